//! Maps errors of SQLite and of the connection pool to the service's error codes.

use std::time::Duration;

use rusqlite::ErrorCode;

use crate::error::{Code, Error};

impl From<rusqlite::Error> for Error {
    // Every statement can fail, so this is kept out of line.
    #[cold]
    #[inline(never)]
    fn from(error: rusqlite::Error) -> Self {
        let code = code_of(&error);
        let detail = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => (
                "The part of the database that holds this data is damaged; nothing was stored.",
                "数据库在此处已损坏，没有保存任何内容。",
            ),
            Some(ErrorCode::ReadOnly) => (
                "The database, its directory or its disk is read-only; nothing was stored.",
                "数据库、其目录或磁盘不可写，没有保存任何内容。",
            ),
            _ => match error.sqlite_error().map(|failure| failure.extended_code) {
                Some(libsqlite3_sys::SQLITE_IOERR_GETTEMPPATH) => (
                    "There is no writable directory for temporary files. Set TMPDIR to one, such as the data directory.",
                    "没有可写的临时文件目录。请将 TMPDIR 设为可写目录，例如数据目录。",
                ),
                Some(libsqlite3_sys::SQLITE_IOERR_WRITE) => (
                    "A write to the disk failed: the disk is failing, or the quota of the user is used up. Nothing was stored.",
                    "写入磁盘失败：磁盘故障或用户配额已用尽，没有保存任何内容。",
                ),
                _ => (code.meaning(), code.chinese()),
            },
        };
        let error = Self::new(code).detail(detail).caused_by(error);
        if matches!(code, Code::Internal | Code::Unauthenticated) {
            error
        } else {
            error.retry_after(Duration::from_secs(1))
        }
    }
}

fn code_of(error: &rusqlite::Error) -> Code {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Code::StorageFull,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::OperationInterrupted) => Code::Overloaded,
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase,
        ) => Code::StorageFailed,
        // The user of the row was deleted after the token was checked, and the token with it.
        _ if is_missing_parent(error) => Code::Unauthenticated,
        _ => Code::Internal,
    }
}

impl From<r2d2::Error> for Error {
    fn from(error: r2d2::Error) -> Self {
        Self::new(Code::Overloaded).retry_after(Duration::from_secs(1)).caused_by(error)
    }
}

/// Returns true if the error reports damage in the file itself, as opposed to its disk or permissions.
pub fn is_damage(error: &Error) -> bool {
    let source = error.source.as_ref().and_then(|source| source.downcast_ref::<rusqlite::Error>());
    source.is_some_and(|error| {
        matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    })
}

/// Returns true if a foreign key refers to a row that does not exist.
pub(super) fn is_missing_parent(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == libsqlite3_sys::SQLITE_CONSTRAINT_FOREIGNKEY)
}
