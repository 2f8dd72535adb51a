//! Finds the words of a list in texts that disguise them.
//!
//! Owns the comparison: which characters count as equal, which gaps and repetitions are ignored, and which lookalikes
//! are exempt. It knows no database; a changed list is a new [`Engine`]. An automaton finds candidates cheaply, and a
//! verifier decides; a text without candidates costs no allocation. Words can also be matched by pronunciation, and in
//! characters split into their parts. The options of each word and the content type decide how much disguise is
//! presumed.

#![expect(
    clippy::cast_possible_truncation,
    reason = "texts and lists stay far below four gigabytes, and offsets of four bytes halve the memory of a large list"
)]

mod types;
mod code_point_table;
mod fixed_map;
mod confusables;
mod folding;
mod contact;
mod dictionary;
mod segmentation;
mod bopomofo;
mod emoji_letters;
mod emoji_names;
mod readings;
mod text_readings;
mod similar_characters;
mod letters;
mod split_characters;
mod pattern;
mod pinyin;
mod spellings;
mod pictures;
mod lexicon;
mod automaton;
mod symbols;
mod matcher;
mod candidate;
mod required_symbols;
mod gap_rules;
mod homophones;
mod verifier;
mod span_cover;
mod app_vocabulary;
mod search;
mod rules;
mod vocabulary;

#[cfg(test)]
mod case_table;
#[cfg(test)]
mod property_tests;

pub use contact::{ContactKind, contacts, is_assigned_nickname};
pub(crate) use fixed_map::{FixedMap, KeyHasher};
pub(crate) use folding::{Fold, folding};
pub use lexicon::normalise;
pub use rules::is_malformed_rule;
pub use search::{AcquittedWord, Engine};
pub use span_cover::mask;
pub use types::{ContentType, ContentTypes, MAX_MATCHES, Match, MatchWay, Severity, Word};
pub use vocabulary::{each_part_of_common_words, is_ordinary};
