//! Measures background work at one size: ledger verification, retention and a backup.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use yarrow::{
    domain::{divination::history, identity::tokens, messaging::notifications, operations::network_log},
    error::Result as Done,
    store::Write,
};

use crate::{
    Size, endpoints, fill,
    support::{
        Failure,
        client::{self, Plan},
        measurement::{Measurement, Spread},
        process::{Machine, Server, yarrow_program},
        requests::{Kind, Requests},
    },
};

/// Measures verified ledger entries per second, including the start of the program.
pub fn verify_ledger(size: &Size) -> Result<(), Failure> {
    let begun = Instant::now();
    let output = command(size, &["ledger", "verify", "--json"]).output()?;
    let seconds = begun.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err("`yarrow ledger verify` failed".into());
    }
    // Includes the entries that the cases have written.
    let entries = serde_json::from_slice::<serde_json::Value>(&output.stdout)?["entries"].as_f64();
    let million = entries.ok_or("`yarrow ledger verify` counted nothing")? / seconds / 1e6;
    println!("{}: `ledger verify` took {seconds:.2} s, {million:.2} million entries a second", size.name());
    Ok(())
}

/// Measures saves without and during a backup: from one client, and from enough clients to keep the writer busy.
pub fn back_up(size: &Size, machine: &Machine) -> Result<(), Failure> {
    let server = Server::start(&size.directory, machine, &[])?;
    for connections in [1, 64] {
        let save = |seconds: f64| {
            let saves = Requests::writing(Kind::Save, (1..=size.filled.users.min(1000)).map(endpoints::save).collect());
            let (warm_up, measured) = (Duration::from_millis(200), Duration::from_secs_f64(seconds));
            client::load(&server, saves, &Plan { connections, warm_up, measured, sleeps: false, interval: None })
                .map(|(measurement, _)| measurement)
        };
        let alone = (0..5).map(|_| save(1.0)).collect::<Result<Vec<_>, _>>()?;
        let begun = Instant::now();
        let mut command = machine.command_anywhere(&yarrow_program());
        command.args(["backup", "create", "--data-dir"]).arg(&size.directory);
        let mut backup = command.stdout(Stdio::null()).spawn()?;
        let mut beside = vec![save(1.0)?];
        let status = loop {
            match backup.try_wait()? {
                Some(status) => break status,
                None => beside.push(save(1.0)?),
            }
        };
        if !status.success() {
            return Err("the backup failed".into());
        }
        let seconds = begun.elapsed().as_secs_f64();
        println!("{}: a backup took {seconds:.1} s, beside {connections} clients that save", size.name());
        for (when, saves) in [("alone", alone), ("while it was made", beside)] {
            let of_seconds = |pick: fn(&Measurement) -> f64| Spread::new(saves.iter().map(pick).collect());
            let middle = of_seconds(|second| second.median).median;
            let tail = of_seconds(|second| second.percentile_99);
            let (p99, worst) = (tail.median, tail.largest);
            println!("  saves {when}: p50 {middle:.2} ms, p99 {p99:.2} ms (of the worst second {worst:.2} ms)");
        }
    }
    server.stop()?;
    Ok(std::fs::remove_dir_all(size.directory.join("backups"))?)
}

/// Measures the longest time that one batch of a sweep holds the writer, including its commit.
pub fn sweep(size: &Size) -> Result<(), Failure> {
    let app = fill::open(&size.directory)?;
    let kept = app.core.config.retention.clone();
    let (log, hidden, expired) = (kept.access_log, kept.deactivated_history, kept.expired_notifications);
    let before = app.core.clock.now().minus(log);
    in_batches("network log", || network_log::delete_batch_before(&app.network_log, before))?;
    in_writes(&app, "hidden castings", move |tx| history::delete_expired_in(tx, hidden, 200))?;
    in_writes(&app, "expired tokens", |tx| tokens::delete_expired_in(tx, 200))?;
    in_writes(&app, "expired notifications", move |tx| notifications::delete_expired_in(tx, expired, 200))?;
    fill::close(app);
    Ok(())
}

fn in_writes(
    app: &yarrow::app::App,
    what: &str,
    delete: impl Fn(&Write<'_>) -> Done<usize> + Clone + Send + 'static,
) -> Result<(), Failure> {
    in_batches(what, || {
        let delete = delete.clone();
        app.core.store.write(move |tx| delete(tx)).wait()
    })
}

fn in_batches(what: &str, delete: impl Fn() -> Done<usize>) -> Result<(), Failure> {
    let (mut rows, mut times) = (0, Vec::new());
    loop {
        let begun = Instant::now();
        let deleted = delete()?;
        times.push(begun.elapsed());
        rows += deleted;
        if deleted == 0 {
            break;
        }
    }
    times.sort_unstable();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("sweeping {what}: {rows} rows in {} batches, median {median:.1?}, longest {longest:.1?}", times.len());
    Ok(())
}

fn command(size: &Size, arguments: &[&str]) -> Command {
    let mut command = Command::new(yarrow_program());
    command.args(arguments).arg("--data-dir").arg(&size.directory);
    if let Some(url) = &size.database {
        command.arg("--database").arg(url);
    }
    command
}
