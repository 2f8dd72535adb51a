//! Statements over lists of rows, made from statements over one row.
//!
//! A database server answers one statement about many rows for little more than one about one. A file has no round trips,
//! so there the statement runs once for each row.

use std::fmt::Write as _;

/// The most rows or keys of one statement. A list has a power of two of them, so that few texts are prepared.
const MOST: usize = 256;

/// Returns the text of an insertion of so many rows. The parameters of a row follow those of the one before. None for another
/// statement.
pub(super) fn insertion(sql: &str, rows: usize) -> Option<String> {
    let (before, rest) = sql.split_once(" values ")?;
    let (row, after) = rest.split_at_checked(end_of_parenthesis(rest)?)?;
    let columns = parameters(row).filter_map(|(number, _)| number).max()?;
    let mut text = format!("{before} values ");
    for index in 0..rows {
        text += if index == 0 { "" } else { ", " };
        for (number, rest) in parameters(row) {
            if let Some(number) = number {
                // Writing to a text cannot fail.
                let _ = write!(text, "?{}", number + index * columns);
            }
            text += rest;
        }
    }
    Some(text + after)
}

/// Returns the text of a query for so many keys, of values with these types. It looks up each key as the query for one does:
/// a condition on all of them could be planned as a scan while the table is small, and plans are kept.
pub(super) fn query(sql: &str, keys: usize, types: &[&str]) -> String {
    let names: Vec<_> = (1..=types.len()).map(|number| format!("k{number}")).collect();
    let mut text = "select found.* from (values ".to_owned();
    for index in 0..keys {
        text += if index == 0 { "(" } else { ", (" };
        for (column, kind) in types.iter().enumerate() {
            let comma = if column == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}cast(?{} as {kind})", index * types.len() + column + 1);
        }
        text.push(')');
    }
    let _ = write!(text, ") as keys ({}) cross join lateral (", names.join(", "));
    for (number, rest) in parameters(sql) {
        if let Some(number) = number {
            let _ = write!(text, "keys.k{number}");
        }
        text += rest;
    }
    text + " offset 0) as found"
}

/// Splits a text before its parameters.
fn parameters(text: &str) -> impl Iterator<Item = (Option<usize>, &str)> {
    text.split('?').map(split_number)
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
    fn inserts_rows_and_looks_keys_up() {
        let insert = "insert into a (b, c, d) values (?1, coalesce(?2, 0), ?1) on conflict (b) do update set c = 1";
        let twice = "insert into a (b, c, d) values (?1, coalesce(?2, 0), ?1), (?3, coalesce(?4, 0), ?3) \
                     on conflict (b) do update set c = 1";
        assert_eq!(insertion(insert, 2).as_deref(), Some(twice));
        assert_eq!(insertion(insert, 1).as_deref(), Some(insert));
        assert_eq!(insertion("select 1", 2), None);
        let twice = "select found.* from (values (cast(?1 as bigint), cast(?2 as text)), \
                     (cast(?3 as bigint), cast(?4 as text))) as keys (k1, k2) \
                     cross join lateral (select d from a where b = keys.k1 and c = keys.k2 offset 0) as found";
        assert_eq!(query("select d from a where b = ?1 and c = ?2", 2, &["bigint", "text"]), twice);
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
