//! Files of a data directory: private to their owner, written completely before they get their name, and synced.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use ring::digest;
use rustix::fs::OFlags;

use crate::{
    error::{Code, Error, Result},
    types::hex,
};

/// The mode of files that only their owner can access.
const PRIVATE: u32 = 0o600;

/// The database in a data directory.
pub const DATABASE: &str = "yarrow.db";
/// The database of the network log.
pub const NETWORK_LOG: &str = "network-log.db";
/// The marker of a restore whose new files are complete. It contains the name of the directory for the old ones.
pub const RESTORE_MARKER: &str = "restore.pending";
/// The suffix of the new files of a restore.
pub const RESTORED: &str = ".restored";

/// Returns the directory of a file: the working directory for a bare name.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a new file that only its owner can access.
///
/// # Errors
/// Storage errors, such as for an existing file.
pub fn create_private(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, PRIVATE);
    let file = options.open(path).map_err(|error| file_error(path, error))?;
    chown_to_directory_owner(path).map_err(|error| file_error(path, error))?;
    Ok(file)
}

/// Creates a directory that only its owner can access, unless it exists.
///
/// # Errors
/// Storage errors.
pub fn create_private_directory(directory: &Path) -> Result<()> {
    ensure_own(directory)?;
    if directory.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory).map_err(|error| file_error(directory, error))?;
    chown_to_directory_owner(directory).map_err(|error| file_error(directory, error))
}

/// Changes the owner of a file that root created to the owner of its directory, because the service user could not open
/// it otherwise. Follows no links, with which the owner of the directory could redirect root.
///
/// # Errors
/// Those of the file system.
pub fn chown_to_directory_owner(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, lchown};
        let (of_directory, own) = (std::fs::metadata(parent_of(path))?, std::fs::symlink_metadata(path)?);
        let is_own = own.is_dir() || own.is_file() && own.nlink() == 1;
        if is_own && own.uid() == 0 && of_directory.uid() != 0 {
            lchown(path, Some(of_directory.uid()), Some(of_directory.gid()))?;
        }
    }
    Ok(())
}

/// Rejects a link that another user made, and anything that is neither a file nor a directory. Root works in directories
/// of the service user, who must not be able to lead it elsewhere or to make it wait. Missing files are fine.
///
/// # Errors
/// `data_directory_unusable`.
pub fn ensure_own(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
        let (kind, owner) = (metadata.file_type(), metadata.uid());
        let fault = match () {
            () if kind.is_symlink() && is_foreign(owner, rustix::process::geteuid().as_raw()) => {
                "is a link that another user made"
            }
            () if !kind.is_symlink() && !kind.is_file() && !kind.is_dir() => "is neither a file nor a directory",
            () => return Ok(()),
        };
        let detail = format!("{} {fault} (user {owner}): remove it.", path.display());
        Err(Error::new(Code::DataDirectoryUnusable).english_detail(detail))
    }
    #[cfg(not(unix))]
    Ok(())
}

/// Returns true if a link of this owner must not be followed by this user.
const fn is_foreign(owner: u32, user: u32) -> bool {
    owner != 0 && owner != user
}

/// Opens a lock file, creating it if it is missing. Follows no link. Only its owner can access it, because everybody who
/// can open it could lock it.
///
/// # Errors
/// Those of the file system.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let file = open_own(path, OpenOptions::new().create(true).truncate(false).write(true))?;
    make_private(&file)?;
    chown_to_directory_owner(path)?;
    Ok(file)
}

/// Opens a lock file for reading. Follows no link, and waits for no writer of a pipe.
///
/// # Errors
/// Those of the file system.
pub fn open_lock_for_reading(path: &Path) -> io::Result<File> {
    open_own(path, OpenOptions::new().read(true))
}

fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.mode(PRIVATE).custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is not a file"));
    }
    Ok(file)
}

/// Removes the access of others, which an older version or another umask left.
fn make_private(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(std::fs::Permissions::from_mode(PRIVATE))?;
        }
    }
    Ok(())
}

/// Writes and syncs a new file that only its owner can access.
///
/// # Errors
/// Storage errors.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = create_private(path)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|error| file_error(path, error))
}

/// Deletes a file if it exists.
///
/// # Errors
/// If it could not be deleted.
pub fn remove_if_exists(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Syncs a complete file and renames it, so that its final name never refers to a partial file.
///
/// # Errors
/// Storage errors.
pub fn sync_and_rename(unfinished: &Path, path: &Path) -> Result<()> {
    let failed = |error: io::Error| file_error(path, error);
    File::open(unfinished).and_then(|file| file.sync_all()).map_err(failed)?;
    std::fs::rename(unfinished, path).map_err(failed)?;
    sync_directory(parent_of(path))
}

pub(super) fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(|error| file_error(path, error))
}

/// Syncs a directory, so that renames and deletions in it are durable.
///
/// # Errors
/// Storage errors.
pub fn sync_directory(directory: &Path) -> Result<()> {
    File::open(directory).and_then(|file| file.sync_all()).map_err(|error| file_error(directory, error))
}

/// Appends a suffix to the file name: `yarrow.db` becomes `yarrow.db-wal`.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns the SHA-256 of a file in hexadecimal digits.
///
/// # Errors
/// Storage errors.
pub fn checksum(path: &Path) -> Result<String> {
    let failed = |error: io::Error| file_error(path, error);
    let (mut file, mut buffer) = (File::open(path).map_err(failed)?, vec![0; 256 << 10]);
    let mut context = digest::Context::new(&digest::SHA256);
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(hex(context.finish().as_ref())),
            count => context.update(&buffer[..count]),
        }
    }
}

/// Returns the free bytes and the size of a directory's disk.
///
/// # Errors
/// Storage errors.
pub fn disk_space(directory: &Path) -> Result<(u64, u64)> {
    let disk = rustix::fs::statvfs(directory).map_err(|error| file_error(directory, error.into()))?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    Ok((bytes(disk.f_bavail), bytes(disk.f_blocks)))
}

/// Checks that a directory's disk has enough free space.
///
/// # Errors
/// `storage_full` if it has not, storage errors.
pub fn ensure_free_space(directory: &Path, needed: u64) -> Result<()> {
    let free = disk_space(directory)?.0;
    if free >= needed {
        return Ok(());
    }
    let detail = format!("{} MiB are needed in {}, with {} MiB free.", needed >> 20, directory.display(), free >> 20);
    Err(Error::new(Code::StorageFull).english_detail(detail))
}

/// Returns the code of a failed file operation. A used-up quota is a full disk for its user.
pub fn storage_code(error: &io::Error) -> Code {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::StorageFull,
        _ => Code::StorageFailed,
    }
}

/// Returns the size of a database and its WAL in bytes.
pub fn database_size(path: &Path) -> u64 {
    size_of(path) + size_of(&with_suffix(path, "-wal"))
}

pub(super) fn size_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Creates the error for a failed file operation.
pub fn file_error(path: &Path, error: io::Error) -> Error {
    Error::new(storage_code(&error)).english_detail(format!("{}: {error}", path.display())).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_links_of_root_and_of_the_user_only() {
        let followed = [(0, 0), (0, 7), (7, 7)].map(|(owner, user)| !is_foreign(owner, user));
        assert_eq!(followed, [true; 3]);
        assert!(is_foreign(7, 0) && is_foreign(7, 8));
    }
}
