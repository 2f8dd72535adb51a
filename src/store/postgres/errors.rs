//! Maps errors of PostgreSQL to the service's error codes.

use std::time::Duration;

use tokio_postgres::{Error as DatabaseError, error::SqlState};

use crate::error::{Code, Error};

impl From<DatabaseError> for Error {
    #[cold]
    #[inline(never)]
    fn from(error: DatabaseError) -> Self {
        if is_connection_lost(&error) {
            return unreachable_server().caused_by(error);
        }
        let code = code_of(&error);
        let error = Self::new(code).detail((code.meaning(), code.chinese())).caused_by(error);
        if matches!(code, Code::Internal | Code::Unauthenticated) {
            error
        } else {
            error.retry_after(Duration::from_secs(1))
        }
    }
}

/// Returns the error for a connection that is lost or cannot be opened.
pub(super) fn unreachable_server() -> Error {
    Error::new(Code::StorageFailed)
        .detail((
            "The database server cannot be reached; nothing was stored.",
            "无法连接数据库服务器，没有保存任何内容。",
        ))
        .retry_after(Duration::from_secs(1))
}

fn code_of(error: &DatabaseError) -> Code {
    match error.code() {
        Some(&SqlState::DISK_FULL) => Code::StorageFull,
        Some(
            &(SqlState::QUERY_CANCELED
            | SqlState::LOCK_NOT_AVAILABLE
            | SqlState::TOO_MANY_CONNECTIONS
            | SqlState::OUT_OF_MEMORY
            | SqlState::T_R_DEADLOCK_DETECTED
            | SqlState::T_R_SERIALIZATION_FAILURE),
        ) => Code::Overloaded,
        Some(
            &(SqlState::IO_ERROR
            | SqlState::DATA_CORRUPTED
            | SqlState::INDEX_CORRUPTED
            | SqlState::READ_ONLY_SQL_TRANSACTION),
        ) => Code::StorageFailed,
        // The user of the row was deleted after the token was checked, and the token with it.
        Some(&SqlState::FOREIGN_KEY_VIOLATION) => Code::Unauthenticated,
        _ => Code::Internal,
    }
}

/// Returns true if the statement may or may not have taken effect: the server gave no answer, or it is shutting down.
pub(super) fn is_connection_lost(error: &DatabaseError) -> bool {
    let Some(answer) = error.as_db_error() else { return error.is_closed() || is_io(error) };
    ["08", "57P"].iter().any(|class| answer.code().code().starts_with(class))
        || matches!(answer.severity(), "FATAL" | "PANIC")
}

fn is_io(error: &DatabaseError) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}

/// Returns true if the error reports damage in the files of the database.
pub(super) fn is_damage(error: &DatabaseError) -> bool {
    matches!(error.code(), Some(&(SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED)))
}
