//! The search of a user's sessions by words of question, title and note.
//!
//! A search reads the texts of one user, newest first, from a table that holds nothing else. That takes milliseconds
//! for ten thousand sessions, needs no index of words, and works for Chinese, which has no blanks between words.

use std::ops::ControlFlow::{Break, Continue};

use crate::{
    error::Result,
    store::{Read, Write},
    types::{CursorRange, CursorSlice, UserId},
};

/// The most words of a search; more are ignored.
const MAX_WORDS: usize = 8;
/// The most sessions that one request reads. The next page continues after them.
pub const MAX_SCANNED: u32 = 10_000;

/// The words to find, all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSearch(Vec<String>);

impl SessionSearch {
    pub fn new(text: &str) -> Self {
        Self(folded(text).split_whitespace().take(MAX_WORDS).map(ToOwned::to_owned).collect())
    }

    fn matches(&self, text: &str) -> bool {
        self.0.iter().all(|word| text.contains(word.as_str()))
    }
}

/// Returns the sequence numbers of the user's sessions with these words, newest first.
pub(super) fn find_in(
    tx: &Read<'_>,
    user: UserId,
    search: &SessionSearch,
    span: CursorRange,
) -> Result<CursorSlice<i64>> {
    let limit = span.limit as usize;
    let (mut items, mut scanned, mut last) = (Vec::new(), 0, None);
    let ended = tx.each_until(
        "select sequence, text from session_texts where user_id = ?1 and sequence < ?2 order by sequence desc limit ?3",
        (user.0, span.upper_bound(), MAX_SCANNED),
        |row| {
            let sequence: i64 = row.get(0)?;
            if search.matches(row.text(1)?) {
                if items.len() == limit {
                    return Ok(Break(()));
                }
                items.push(sequence);
            }
            scanned += 1;
            last = Some(sequence);
            Ok(Continue(()))
        },
    )?;
    // A page that ends because of the number of sessions read may have few items, or none.
    let next = if ended.is_break() { items.last().copied() } else { last.filter(|_| scanned == MAX_SCANNED) };
    Ok(CursorSlice { items, next })
}

/// Stores the texts of a session for searches.
pub(super) fn put_texts_in(tx: &Write<'_>, user: UserId, sequence: i64, texts: [Option<&str>; 3]) -> Result<()> {
    let text = folded(&texts.into_iter().flatten().collect::<Vec<_>>().join("\n"));
    tx.execute_later(
        "insert into session_texts (user_id, sequence, text) values (?1, ?2, ?3) \
         on conflict (user_id, sequence) do update set text = excluded.text",
        (user.0, sequence, text),
    )
}

/// Returns the text in lower case and without full-width letters, so that spellings of one word are equal.
fn folded(text: &str) -> String {
    text.chars().map(half_width).flat_map(char::to_lowercase).collect()
}

/// Returns the ASCII character that a full-width character stands for.
fn half_width(character: char) -> char {
    match character {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(character) - 0xFEE0).unwrap_or(character),
        '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_all_words_in_any_spelling() {
        let text = folded("换工作\nShould I take the ＯＦＦＥＲ？");
        for words in ["工作", "offer", "OFFER 工作", "ｔａｋｅ　换", ""] {
            assert!(SessionSearch::new(words).matches(&text), "{words}");
        }
        for words in ["工 作 x", "offers", "作工"] {
            assert!(!SessionSearch::new(words).matches(&text), "{words}");
        }
    }
}
