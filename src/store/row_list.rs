//! Statements over lists of rows, made from statements over one row.
//!
//! A database server answers one statement about many rows for little more than one about one. A file has no round trips,
//! so there the statement runs once for each row.

use std::fmt::Write as _;

/// The most rows of one statement. A list has a power of two of them, so that few texts are prepared.
const MOST: usize = 256;

/// Returns the text of a statement for so many rows: an insertion repeats its row of values, a query the condition after
/// its last `where`. The parameters of a row follow those of the one before.
///
/// Returns none for any other statement.
pub fn repeat(sql: &str, rows: usize) -> Option<String> {
    let (before, row, after, separator) = if sql.starts_with("insert ") {
        let (before, rest) = sql.split_once(" values ")?;
        let end = end_of_parenthesis(rest)?;
        (format!("{before} values "), rest[..end].to_owned(), &rest[end..], ", ")
    } else {
        let (before, condition) = sql.rsplit_once(" where ")?;
        (format!("{before} where "), format!("({condition})"), "", " or ")
    };
    let parts: Vec<_> = row.split('?').map(split_number).collect();
    let columns = parts.iter().filter_map(|(number, _)| *number).max()?;
    let mut text = before;
    for index in 0..rows {
        text += if index == 0 { "" } else { separator };
        for (number, rest) in &parts {
            if let Some(number) = number {
                // Writing to a text cannot fail.
                let _ = write!(text, "?{}", number + index * columns);
            }
            text += rest;
        }
    }
    Some(text + after)
}

/// Splits a list into parts for one statement each.
pub(super) fn parts<T>(list: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let length = if rest.len() >= MOST { MOST } else { (rest.len() + 1).next_power_of_two() / 2 };
        let (part, others) = rest.split_at_checked(length)?;
        rest = others;
        (!part.is_empty()).then_some(part)
    })
}

/// Returns the number of keys of a query for this many, some of which are then repeated.
pub(super) fn padded(rows: usize) -> usize {
    rows.next_power_of_two()
}

/// Splits a list into parts of at most [`MOST`].
pub(super) fn chunks<T>(list: &[T]) -> impl Iterator<Item = &[T]> {
    list.chunks(MOST)
}

fn end_of_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(index, character)| {
        depth += match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        (depth == 0).then_some(index + 1)
    })
}

/// Splits the number of a parameter from the text after it.
fn split_number(part: &str) -> (Option<usize>, &str) {
    let digits = part.find(|character: char| !character.is_ascii_digit()).unwrap_or(part.len());
    let (number, rest) = part.split_at(digits);
    number.parse().map_or((None, part), |number| (Some(number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_the_row_of_an_insertion_and_the_condition_of_a_query() {
        let insert = "insert into a (b, c, d) values (?1, coalesce(?2, 0), ?1) on conflict (b) do update set c = 1";
        let twice = "insert into a (b, c, d) values (?1, coalesce(?2, 0), ?1), (?3, coalesce(?4, 0), ?3) \
                     on conflict (b) do update set c = 1";
        assert_eq!(repeat(insert, 2).as_deref(), Some(twice));
        assert_eq!(repeat(insert, 1).as_deref(), Some(insert));
        let query = "select (select max(b) from a where c = 1) from a where b = ?1 and c = ?2";
        let twice = "select (select max(b) from a where c = 1) from a where (b = ?1 and c = ?2) or (b = ?3 and c = ?4)";
        assert_eq!(repeat(query, 2).as_deref(), Some(twice));
        assert_eq!(repeat("select 1", 2), None);
    }

    #[test]
    fn parts_have_lengths_of_powers_of_two() {
        let lengths = |count: usize| parts(&vec![(); count]).map(<[()]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(0), [0; 0]);
        assert_eq!(lengths(1), [1]);
        assert_eq!(lengths(100), [64, 32, 4]);
        assert_eq!(lengths(600), [256, 256, 64, 16, 8]);
        assert_eq!((padded(1), padded(5), padded(64)), (1, 8, 64));
    }
}
