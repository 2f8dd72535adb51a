//! Commands that are killed on their way, and what they leave.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use rusqlite::Connection;

use super::server::Binary;

/// Starts a command and says nothing of it.
pub fn started(directory: &Path, arguments: &[&str]) -> Child {
    let mut command = Binary::command();
    command.args(arguments).arg("--data-dir").arg(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Starts a command and kills it after a while; true if it was still running.
pub fn killed_after(directory: &Path, arguments: &[&str], wait: Duration) -> bool {
    let mut process = started(directory, arguments);
    sleep(wait);
    let was_running = process.try_wait().unwrap().is_none();
    process.kill().unwrap();
    process.wait().unwrap();
    was_running
}

/// Has a command that takes a `whole` when left alone cut off at `times` moments of its way, from its start on.
/// `attempt` starts it, kills it after a while and says whether it was still running. Where it was not, the machine
/// has become faster, and the moment comes sooner.
pub fn cut_off(times: u32, mut whole: Duration, mut attempt: impl FnMut(Duration) -> bool) {
    for moment in 0..times {
        while !attempt(whole * moment / times) {
            whole = whole * 2 / 3;
        }
    }
}

/// Copies a data directory at rest.
pub fn copy_of(directory: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(directory).arg(to).status().unwrap().success());
}

/// Fails the test if something is wrong with the structure of a database, or refers to nothing.
pub fn assert_sound(database: &Connection) {
    let integrity: String = database.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    let dangling = database.prepare("pragma foreign_key_check").unwrap().exists([]).unwrap();
    assert!(!dangling);
}

/// How many rows a table has.
pub fn count(database: &Connection, table: &str) -> i64 {
    database.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap()
}
