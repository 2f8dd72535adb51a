//! Checks of the compiled SQLite library.
//!
//! Options that make the service faster are set in `.cargo/config.toml`, which cargo ignores when it runs from another
//! directory. Nothing may depend on them; only the features below are required.

use rusqlite::Connection;

use crate::error::{Error, Result};

/// SQLite 3.43 brought `octet_length`.
const OLDEST_VERSION: i32 = 3_043_000;
/// Compile-time options that remove a required feature.
const UNUSABLE_OPTIONS: [&str; 6] =
    ["THREADSAFE=0", "OMIT_WAL", "OMIT_JSON", "OMIT_FOREIGN_KEY", "OMIT_TRIGGER", "OMIT_INTEGRITY_CHECK"];

/// Returns the version of the compiled SQLite.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// Checks that the compiled SQLite has every feature that the store needs.
///
/// # Errors
/// `configuration` naming the missing features; storage errors.
pub(super) fn check(connection: &Connection) -> Result<()> {
    let mut statement = connection.prepare("pragma compile_options")?;
    let options = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let problems = problems(rusqlite::version_number(), &options);
    if problems.is_empty() {
        return Ok(());
    }
    let detail = format!("The SQLite library of this build cannot be used: {}.", problems.join("; "));
    Err(Error::misconfigured(detail))
}

fn problems(version: i32, options: &[String]) -> Vec<String> {
    let outdated = (version < OLDEST_VERSION).then(|| format!("version {version} is older than {OLDEST_VERSION}"));
    let unusable = UNUSABLE_OPTIONS.iter().filter(|unusable| options.iter().any(|option| option == **unusable));
    outdated.into_iter().chain(unusable.map(|option| format!("it was compiled with {option}"))).collect()
}

/// Returns true if SQLite was compiled with the `sqlite_dbpage` table, which reads and writes single pages.
///
/// # Errors
/// Storage errors.
pub(super) fn has_page_access(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare("select 1 from pragma_module_list where name = 'sqlite_dbpage'")?.exists([])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_the_compiled_library() {
        check(&Connection::open_in_memory().unwrap()).unwrap();
    }

    #[test]
    fn names_missing_features() {
        let options = ["THREADSAFE=0", "ENABLE_FTS5", "OMIT_WAL"].map(ToOwned::to_owned);
        let expected = [
            "version 3042000 is older than 3043000",
            "it was compiled with THREADSAFE=0",
            "it was compiled with OMIT_WAL",
        ];
        assert_eq!(problems(3_042_000, &options), expected);
        assert!(problems(OLDEST_VERSION, &["THREADSAFE=2".to_owned()]).is_empty());
    }
}
