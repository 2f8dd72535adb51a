//! Cursor pagination: reads a list in pages, newest first, while new rows arrive.
//!
//! Positions only grow, and a cursor names the last one read, so new rows do not move the following pages. To clients a
//! cursor is opaque. Its seal binds it to its list and user (see [`crate::keys::ServerKey::cursor`]), so that another
//! user's cursor is rejected.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;

use crate::error::{Fault, FieldCode};

const POSITION_BYTES: usize = 8;
const SEAL_BYTES: usize = 16;

/// The authentication tag of a cursor, made with the server's key.
pub type Seal = [u8; SEAL_BYTES];

/// The position at which the next page starts. The server's key verifies the seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub position: i64,
    pub seal: Seal,
}

impl Cursor {
    /// Length of a cursor in characters.
    pub const LENGTH: usize = (POSITION_BYTES + SEAL_BYTES) * 4 / 3;

    /// Parses the text of a cursor.
    ///
    /// # Errors
    /// `invalid_format`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == POSITION_BYTES + SEAL_BYTES);
        let bytes = bytes.ok_or_else(Self::fault)?;
        let (mut position, mut seal) = ([0; POSITION_BYTES], [0; SEAL_BYTES]);
        position.copy_from_slice(&bytes[..POSITION_BYTES]);
        seal.copy_from_slice(&bytes[POSITION_BYTES..]);
        Ok(Self { position: i64::from_be_bytes(position), seal })
    }

    /// Returns the fault of an invalid cursor, and of one for another list or user.
    pub fn fault() -> Fault {
        Fault::new(
            FieldCode::InvalidFormat,
            ("must be a `nextCursor` that this list returned to this user", "须为此列表返回给该用户的 `nextCursor`"),
        )
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = [&self.position.to_be_bytes()[..], &self.seal[..]].concat();
        formatter.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl Serialize for Cursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The range of a list that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorRange {
    /// Returns only rows before this position; `None` for the newest.
    pub before: Option<i64>,
    pub limit: u32,
}

impl CursorRange {
    /// Returns the exclusive upper bound of positions.
    pub fn upper_bound(self) -> i64 {
        self.before.unwrap_or(i64::MAX)
    }

    /// Returns the limit plus one: an extra row shows that there are more.
    pub fn rows_to_read(self) -> u32 {
        self.limit.saturating_add(1)
    }

    /// Builds a page from the rows that were read, newest first.
    pub fn slice<T>(self, mut rows: Vec<T>, position: impl Fn(&T) -> i64) -> CursorSlice<T> {
        let limit = self.limit as usize;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(position).filter(|_| has_more);
        CursorSlice { items: rows, next }
    }
}

/// A page of a list, newest first, and the position before which the next page starts, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorSlice<T> {
    pub items: Vec<T>,
    pub next: Option<i64>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parses_written_cursors(position: i64, seal: Seal) {
            let cursor = Cursor { position, seal };
            let text = cursor.to_string();
            prop_assert_eq!(text.len(), Cursor::LENGTH);
            prop_assert_eq!(Cursor::parse(&text), Ok(cursor));
        }

        #[test]
        fn rejects_any_other_text(text in ".*") {
            if let Ok(cursor) = Cursor::parse(&text) {
                prop_assert_eq!(cursor.to_string(), text);
            }
        }

        /// For any page sizes and any new rows in between, every row appears once, newest first.
        #[test]
        fn pages_contain_each_row_once(rows in 0_i64..60, limit in 1_u32..12, arriving in 0_i64..5) {
            let mut newest = rows;
            let mut before = None;
            let mut read = Vec::new();
            loop {
                let span = CursorRange { before, limit };
                let all = (1..=newest).rev().filter(|row| *row < span.upper_bound());
                let slice = span.slice(all.take(span.rows_to_read() as usize).collect(), |row| *row);
                prop_assert!(slice.items.len() <= limit as usize);
                read.extend(slice.items);
                newest += arriving;
                match slice.next {
                    Some(next) => before = Some(next),
                    None => break,
                }
            }
            prop_assert_eq!(read, (1..=rows).rev().collect::<Vec<_>>());
        }
    }
}
