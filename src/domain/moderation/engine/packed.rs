//! The larger tables, which `build.rs` packs: each is read once, as a whole, by the first text that needs it.

use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;

/// Hands over the lines of a table, without its comments.
pub(super) fn each_line(table: &[u8], mut line: impl FnMut(&str)) {
    let lines = BufReader::new(GzDecoder::new(table)).lines().map_while(Result::ok);
    lines.filter(|text| !text.starts_with('#')).for_each(|text| line(&text));
}

#[cfg(test)]
mod tests {
    use super::super::{dictionary::WORDS, parts::PARTS};
    use super::*;

    #[test]
    fn a_table_is_read_to_its_end() {
        for (packed, text) in [
            (WORDS, include_str!("../../../../assets/han-words.txt")),
            (PARTS, include_str!("../../../../assets/character-parts.tsv")),
        ] {
            let mut lines = Vec::new();
            each_line(packed, |line| lines.push(line.to_owned()));
            assert!(text.lines().filter(|line| !line.starts_with('#')).eq(lines));
        }
    }
}
