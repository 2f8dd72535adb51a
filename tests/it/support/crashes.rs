//! Starting, killing and checking commands in crash tests.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use rusqlite::Connection;

use super::server::Binary;

/// Starts a command and discards its output.
pub fn spawn_command(directory: &Path, arguments: &[&str]) -> Child {
    let mut command = Binary::command();
    command.args(arguments).arg("--data-dir").arg(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs a command to its end and returns its exit code and the peak of its memory in bytes.
pub fn peak_memory(directory: &Path, arguments: &[&str]) -> (Option<i32>, u64) {
    let mut process = spawn_command(directory, arguments);
    let mut peak = 0;
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kibibytes.unwrap_or(0) << 10);
        if let Some(ended) = process.try_wait().unwrap() {
            return (ended.code(), peak);
        }
        sleep(Duration::from_millis(5));
    }
}

/// Starts a command and kills it after `wait`. Returns true if it was still running.
pub fn kill_after(directory: &Path, arguments: &[&str], wait: Duration) -> bool {
    let mut process = spawn_command(directory, arguments);
    sleep(wait);
    let was_running = process.try_wait().unwrap().is_none();
    process.kill().unwrap();
    process.wait().unwrap();
    was_running
}

/// Kills a command at `times` evenly spaced moments of its run. `attempt` starts and kills it, and returns true if it
/// was still running. Otherwise `whole`, the expected duration, shrinks and the moment is retried.
pub fn kill_at_intervals(times: u32, mut whole: Duration, mut attempt: impl FnMut(Duration) -> bool) {
    for moment in 0..times {
        while !attempt(whole * moment / times) {
            whole = whole * 2 / 3;
        }
    }
}

/// Copies a data directory that no process is using.
pub fn copy_directory(directory: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(directory).arg(to).status().unwrap().success());
}

/// Panics if the integrity check or the foreign key check fails.
pub fn assert_sound(database: &Connection) {
    let integrity: String = database.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    let dangling = database.prepare("pragma foreign_key_check").unwrap().exists([]).unwrap();
    assert!(!dangling);
}

/// Returns the number of rows of a table.
pub fn count(database: &Connection, table: &str) -> i64 {
    database.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap()
}
