//! Checks that the service can listen, or listens, on each configured address.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    os::unix::fs::MetadataExt,
    path::Path,
};

use rustix::fs::{major, minor};

use super::{CheckFact, Installation};
use crate::{
    domain::operations::preflight::{self, Collision},
    store::lock::LOCK,
};

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

pub(super) fn listeners(installation: &Installation<'_>) -> Vec<CheckFact> {
    let config = installation.config;
    let collisions = preflight::collisions(config);
    let server = server_of(config.data_dir());
    let check = |(setting, address): (&str, SocketAddr)| match collisions.iter().find(|one| one.setting == setting) {
        Some(&Collision { other, other_address, .. }) => {
            CheckFact::AddressShared { setting: setting.into(), address, other: other.into(), other_address }
        }
        None => check_address(setting.into(), address, &server),
    };
    config.listeners().into_iter().map(check).collect()
}

fn check_address(setting: String, address: SocketAddr, server: &Server) -> CheckFact {
    match bind(address) {
        Ok(_) if address.port() == 0 => CheckFact::AnyPort { setting, address },
        Ok(_) => CheckFact::AddressFree { setting, address },
        Err(error) if error.kind() == ErrorKind::AddrInUse => match server {
            Server::Unknown => CheckFact::AddressInUse { setting, address },
            Server::Process(process) if listens_on(*process, address.port()) => {
                CheckFact::ServerListens { setting, address }
            }
            _ => CheckFact::AddressTaken { setting, address },
        },
        // The server may run as another user than this command.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => CheckFact::AddressForbidden { setting, address },
        Err(error) => CheckFact::AddressUnusable { setting, address, error: error.to_string() },
    }
}

/// Binds as the server does: `[::]` falls back to IPv4 on machines without IPv6.
fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    match TcpListener::bind(address) {
        Err(error) if error.kind() != ErrorKind::AddrInUse && address.ip() == Ipv6Addr::UNSPECIFIED => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port()))
        }
        bound => bound,
    }
}

/// The server that runs on a data directory.
enum Server {
    None,
    Process(u32),
    /// This system has no `/proc/locks`.
    Unknown,
}

/// Finds the process that holds the directory's lock.
fn server_of(directory: &Path) -> Server {
    let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return Server::Unknown };
    let Ok(lock) = std::fs::metadata(directory.join(LOCK)) else { return Server::None };
    lock_holder(&locks, lock.dev(), lock.ino()).map_or(Server::None, Server::Process)
}

/// Returns the process that locks an inode according to `/proc/locks`. Prefers the lock on this device, but accepts
/// another, because some file systems report a different device number there.
fn lock_holder(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let device = format!("{:02x}:{:02x}", major(device), minor(device));
    // `1: FLOCK ADVISORY WRITE <process> <device>:<inode> …`
    let holders = locks.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (lock_device, lock_inode) = fields.get(5)?.rsplit_once(':')?;
        let process = fields.get(4)?.parse().ok()?;
        (lock_inode.parse() == Ok(inode)).then_some((lock_device != device, process))
    });
    holders.min_by_key(|(is_other_device, _)| *is_other_device).map(|(_, process)| process)
}

/// Returns true if a socket of the process listens on this port, or if its sockets may not be read.
fn listens_on(process: u32, port: u16) -> bool {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| std::fs::read_to_string(table).unwrap_or_default());
    let sockets: Vec<_> =
        tables.iter().flat_map(|table| table.lines()).filter_map(|line| listening_socket(line, port)).collect();
    let Ok(files) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return true };
    let mut links = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    links.any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

/// Returns the name of the socket in a line of `/proc/net/tcp` if it listens on the port.
fn listening_socket(line: &str, port: u16) -> Option<String> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
    let is_match = u16::from_str_radix(local_port, 16) == Ok(port) && *fields.get(3)? == LISTENING;
    is_match.then(|| Some(format!("socket:[{}]", fields.get(9)?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefers_the_lock_on_the_same_device() {
        let locks = "1: FLOCK  ADVISORY  WRITE 11 00:2a:77 0 EOF\n2: POSIX  ADVISORY  WRITE 12 fe:01:78 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 fe:01:77 0 EOF\n";
        let device = rustix::fs::makedev(0xfe, 1);
        assert_eq!(lock_holder(locks, device, 77), Some(13));
        assert_eq!(lock_holder(locks, device, 78), Some(12));
        assert_eq!(lock_holder(locks, rustix::fs::makedev(8, 0), 78), Some(12), "another number for the same device");
        assert_eq!(lock_holder(locks, device, 79), None);
    }
}
