//! Measures the idle service: time to the first response, memory, and program size.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    seed::Seed,
    support::{
        Failure,
        measurement::Spread,
        process::{Server, yarrow_program},
    },
};

const STARTS: usize = 7;
/// Allocators and caches settle after the first response.
const SETTLED_AFTER: Duration = Duration::from_millis(500);

pub fn print(seed: &Seed, directory: &Path) -> Result<(), Failure> {
    let data = directory.join("start");
    let fresh = starts(&data, remove)?;
    seed.copy_to(&data)?;
    let existing = starts(&data, |_| Ok(()))?;
    remove(&data)?;
    let server = Server::start_with_defaults(&data)?;
    first_answer(&server)?;
    std::thread::sleep(SETTLED_AFTER);
    let memory = mebibytes(server.memory()?);
    server.stop()?;
    let size = mebibytes(std::fs::metadata(yarrow_program())?.len());
    println!("\nexec to first answer, fresh directory: {} ms; target < 50", fresh.show());
    println!("exec to first answer, seeded directory: {} ms; target < 20", existing.show());
    println!("anonymous memory when idle: {memory:.1} MiB; target < 12");
    println!("size of the program: {size:.1} MiB; target < 15");
    remove(&data)
}

/// Measures the milliseconds from exec to the first response of `/readyz`.
fn starts(data: &Path, prepare: impl Fn(&Path) -> Result<(), Failure>) -> Result<Spread, Failure> {
    let mut milliseconds = Vec::new();
    for _ in 0..STARTS {
        prepare(data)?;
        let begun = Instant::now();
        let server = Server::start_with_defaults(data)?;
        first_answer(&server)?;
        milliseconds.push(begun.elapsed().as_secs_f64() * 1e3);
        server.stop()?;
    }
    Ok(Spread::new(milliseconds))
}

fn first_answer(server: &Server) -> Result<(), Failure> {
    let mut stream = TcpStream::connect(server.address())?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(format!("not ready: {answer}").into()) }
}

fn remove(directory: &Path) -> Result<(), Failure> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a rounded number of mebibytes")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
