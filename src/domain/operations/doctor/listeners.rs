//! Where the service listens: whether each address can be had, or is had by the server that runs here.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    os::unix::fs::MetadataExt,
    path::Path,
};

use rustix::fs::{major, minor};

use super::{Check, Installation, Verdict};
use crate::{domain::operations::preflight, store::lock::LOCK};

const GROUP: &str = "listeners";
/// A socket that listens, as the kernel writes it.
const LISTENING: &str = "0A";

pub(super) fn listeners(installation: &Installation<'_>) -> Vec<Check> {
    let config = installation.config;
    let collisions = preflight::collisions(config);
    let server = server_of(&config.installation.data_dir.0);
    let check = |(setting, address): (&'static str, SocketAddr)| {
        let collision = collisions.iter().find(|(colliding, _)| *colliding == setting);
        let (verdict, detail) =
            collision.map_or_else(|| judge(address, &server), |(_, fault)| (Verdict::Fail, fault.clone()));
        Check::new(GROUP, setting, verdict, detail)
    };
    config.listeners().into_iter().map(check).collect()
}

fn judge(address: SocketAddr, server: &Server) -> (Verdict, String) {
    match bind(address) {
        Ok(_) if address.port() == 0 => (Verdict::Pass, format!("{address}: a free port")),
        Ok(_) => (Verdict::Pass, format!("{address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => match server {
            Server::Unknown => (Verdict::Warn, format!("{address} is taken; whether by this service cannot be told")),
            Server::Process(process) if listens_on(*process, address.port()) => {
                (Verdict::Pass, format!("{address}: the running server listens"))
            }
            _ => (Verdict::Fail, format!("{address} is taken by another program")),
        },
        // Whoever examines may be somebody else than who serves.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            (Verdict::Warn, format!("{address}: may be listened on by others than this user only"))
        }
        Err(error) => (Verdict::Fail, format!("{address} cannot be listened on: {error}")),
    }
}

/// Listens as the server does: "everywhere" is meant to work on machines without IPv6 too.
fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    match TcpListener::bind(address) {
        Err(error) if error.kind() != ErrorKind::AddrInUse && address.ip() == Ipv6Addr::UNSPECIFIED => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port()))
        }
        bound => bound,
    }
}

/// Who serves a data directory.
enum Server {
    Nobody,
    Process(u32),
    /// This system does not tell.
    Unknown,
}

/// The process that holds the lock of the directory.
fn server_of(directory: &Path) -> Server {
    let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return Server::Unknown };
    let Ok(lock) = std::fs::metadata(directory.join(LOCK)) else { return Server::Nobody };
    holder(&locks, lock.dev(), lock.ino()).map_or(Server::Nobody, Server::Process)
}

/// The process that holds the lock of a file, by the kernel's table. Another disk may have a file by the same number,
/// so the one on this device goes first; what some file systems call their device, the table calls otherwise.
fn holder(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let device = format!("{:02x}:{:02x}", major(device), minor(device));
    // `1: FLOCK ADVISORY WRITE <process> <device>:<inode> …`
    let holders = locks.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (its_device, its_inode) = fields.get(5)?.rsplit_once(':')?;
        let process = fields.get(4)?.parse().ok()?;
        (its_inode.parse() == Ok(inode)).then_some((its_device != device, process))
    });
    holders.min_by_key(|(is_elsewhere, _)| *is_elsewhere).map(|(_, process)| process)
}

/// Whether one of the process's sockets listens on this port. Files of a process that may not be looked at are taken
/// for what is looked for.
fn listens_on(process: u32, port: u16) -> bool {
    let sockets = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| std::fs::read_to_string(table).unwrap_or_default());
    let sockets: Vec<_> =
        sockets.iter().flat_map(|table| table.lines()).filter_map(|line| socket(line, port)).collect();
    let Ok(files) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return true };
    let mut links = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    links.any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

/// The name of the socket in this line of the kernel's table, if it listens on the port.
fn socket(line: &str, port: u16) -> Option<String> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let (_, its_port) = fields.get(1)?.rsplit_once(':')?;
    let is_it = u16::from_str_radix(its_port, 16) == Ok(port) && *fields.get(3)? == LISTENING;
    is_it.then(|| Some(format!("socket:[{}]", fields.get(9)?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_on_this_device_goes_before_one_by_the_same_number() {
        let locks = "1: FLOCK  ADVISORY  WRITE 11 00:2a:77 0 EOF\n2: POSIX  ADVISORY  WRITE 12 fe:01:78 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 fe:01:77 0 EOF\n";
        let device = rustix::fs::makedev(0xfe, 1);
        assert_eq!(holder(locks, device, 77), Some(13));
        assert_eq!(holder(locks, device, 78), Some(12));
        assert_eq!(holder(locks, rustix::fs::makedev(8, 0), 78), Some(12), "another name of the same device");
        assert_eq!(holder(locks, device, 79), None);
    }
}
