//! Measures the disk alone, to put the figures of durable writes into proportion.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::Path,
    time::{Duration, Instant},
};

use crate::{bare, seed::Seed, support::Failure, workload::Casting};

pub fn print(seed: &Seed, directory: &Path, time: Duration) -> Result<(), Failure> {
    let syncs = syncs_per_second(&directory.join("sync"), time)?;
    println!("4 KiB overwritten and synced (fdatasync): {syncs:.0} per second");
    let data = directory.join("commits");
    seed.copy_to(&data)?;
    let commits = commits_per_second(seed, &data.join("yarrow.db"), time)?;
    println!("one casting inserted and committed by SQLite alone (synchronous=full): {commits:.0} per second");
    Ok(std::fs::remove_dir_all(data)?)
}

/// Counts the rows of a table in a database file of a stopped service.
pub fn count(database: &Path, table: &str) -> Result<u64, Failure> {
    let connection = bare::open(database)?;
    let rows: i64 = connection.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0))?;
    Ok(u64::try_from(rows)?)
}

/// Counts the entries of a network log.
pub fn logged(log: &Path) -> Result<u64, Failure> {
    let sum = "select coalesce(sum(entries), 0) from access_log_blocks";
    let entries: i64 = bare::open(log)?.query_row(sum, [], |row| row.get(0))?;
    Ok(u64::try_from(entries)?)
}

fn syncs_per_second(path: &Path, time: Duration) -> Result<f64, Failure> {
    let file = File::options().create(true).truncate(true).write(true).open(path)?;
    let mut block = [0; 4096];
    file.write_all_at(&block, 0)?;
    file.sync_all()?;
    per_second(time, |number| {
        block[0] = number.to_le_bytes()[0];
        file.write_all_at(&block, 0)?;
        Ok(file.sync_data()?)
    })
}

fn commits_per_second(seed: &Seed, database: &Path, time: Duration) -> Result<f64, Failure> {
    let connection = bare::open(database)?;
    let casting = Casting::sample();
    per_second(time, |number| {
        let account = &seed.accounts[usize::from(u16::from_le_bytes([number.to_le_bytes()[0], 0]))];
        let texts = (&*format!("{number:012}"), casting.question_type, casting.question);
        Ok(bare::insert_row(&connection, account.user_id, texts, &casting.json_data, casting.timestamp)?)
    })
}

fn per_second(time: Duration, mut step: impl FnMut(u32) -> Result<(), Failure>) -> Result<f64, Failure> {
    let begun = Instant::now();
    let mut steps = 0;
    while begun.elapsed() < time {
        step(steps)?;
        steps += 1;
    }
    Ok(f64::from(steps) / begun.elapsed().as_secs_f64())
}
