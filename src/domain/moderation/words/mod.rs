//! The stored word list, and the allowed phrases: innocent texts that contain a listed word.
//!
//! A word is stored with its unique normal form. Every change increments the version of the list, by which other
//! processes notice it. Small changes are logged one by one, so that no process reloads a hundred thousand words for
//! one. A new database gets the default list once, so that a removed default word stays removed.

mod entry;
mod file;
mod changes;
mod rows;

pub use changes::{Changes, WordChange, changes_since_in, state_in, version_in};
pub use entry::{UNTYPED, check, check_phrase, parse_tags};
pub use file::{CSV_HEADER, ImportOptions, SkippedLine, csv_field, parse, to_csv_line};
pub use rows::{
    KindCount, WordEntry, WordListStatistics, WordQuery, add_in, add_many_in, all_in, allow_in, allowed_in, are_seeded,
    disallow_in, find_in, list_in, remove_in, seed, slang_in, sorted_by_normal_form, statistics_in,
};
