//! Formats a count with its noun, singular or plural.

use std::fmt::Display;

/// Returns `1 entry` or `2 entries`. The words may include the part of a sentence that depends on the number.
pub fn pluralize<N: Copy + Display + PartialEq + From<u8>>(number: N, one: &str, many: &str) -> String {
    let words = if number == N::from(1) { one } else { many };
    format!("{number} {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_the_singular_for_one() {
        assert_eq!(pluralize(1_i64, "entry", "entries"), "1 entry");
        assert_eq!(pluralize(0_u64, "entry", "entries"), "0 entries");
        assert_eq!(pluralize(21_usize, "entry", "entries"), "21 entries");
    }
}
