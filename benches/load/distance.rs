//! A proxy before the socket of a PostgreSQL server that delays each way, as if the server were another machine of one zone.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

use crate::support::Failure;

/// The delay of each way. A round trip then takes about 0.7 ms, because threads wake late.
const DELAY: Duration = Duration::from_micros(250);
const SOCKET: &str = ".s.PGSQL.5432";

/// Listens in a directory, and passes connections on to the server with its socket in another one.
pub fn start(directory: &Path, server: &str) -> Result<(), Failure> {
    let host = server.split(' ').find_map(|part| part.strip_prefix("host=")).ok_or("no host")?;
    let to = PathBuf::from(host).join(SOCKET);
    let listener = UnixListener::bind(directory.join(SOCKET))?;
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = UnixStream::connect(&to) else { return };
            let (Ok(back), Ok(answers)) = (client.try_clone(), server.try_clone()) else { return };
            pass(client, server);
            pass(answers, back);
        }
    });
    Ok(())
}

/// Passes bytes on in one direction until the connection ends.
fn pass(mut from: UnixStream, mut to: UnixStream) {
    let (sender, receiver) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if sender.send((Instant::now() + DELAY, buffer[..count].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // The other side may have closed it.
        let _ = to.shutdown(Shutdown::Both);
    });
}
