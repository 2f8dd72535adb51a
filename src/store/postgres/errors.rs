//! Maps errors of PostgreSQL to the service's error codes.

use std::{error::Error as _, fmt, time::Duration};

use tokio_postgres::{
    Error as DatabaseError,
    error::{Severity, SqlState},
};

use crate::error::{Code, Error};

impl From<DatabaseError> for Error {
    #[cold]
    #[inline(never)]
    fn from(error: DatabaseError) -> Self {
        let (code, advice) = match error.code().and_then(fault_of) {
            Some((code, advice)) => (code, advice),
            None if is_connection_lost(&error) => (Code::StorageFailed, Some(UNREACHABLE)),
            None => (Code::Internal, None),
        };
        let detail = advice.unwrap_or((code.meaning(), code.chinese()));
        let error = Self::new(code).detail(detail).caused_by(ServerFailure(error));
        if matches!(code, Code::Internal | Code::Unauthenticated) {
            error
        } else {
            error.retry_after(Duration::from_secs(1))
        }
    }
}

/// A failure in the server's own words, which the driver's error hides. It is never part of a response.
#[derive(Debug)]
pub(super) struct ServerFailure(pub(super) DatabaseError);

impl fmt::Display for ServerFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(answer) = self.0.as_db_error() else {
            write!(formatter, "{}", self.0)?;
            let mut source = self.0.source();
            while let Some(cause) = source {
                write!(formatter, ": {cause}")?;
                source = cause.source();
            }
            return Ok(());
        };
        write!(formatter, "{} (SQLSTATE {})", answer.message(), answer.code().code())?;
        answer.hint().map_or(Ok(()), |hint| write!(formatter, "; {hint}"))
    }
}

impl std::error::Error for ServerFailure {}

const UNREACHABLE: Advice =
    ("The database server cannot be reached; nothing was stored.", "无法连接数据库服务器，没有保存任何内容。");

/// A sentence in English and Chinese that says what to do.
type Advice = (&'static str, &'static str);

/// Returns the error for a connection that is lost or cannot be opened.
pub(super) fn unreachable_server() -> Error {
    Error::new(Code::StorageFailed).detail(UNREACHABLE).retry_after(Duration::from_secs(1))
}

/// Returns the error for a server that takes no changes, with its reason.
pub(super) fn read_only_server(reason: &'static str) -> Error {
    Error::new(Code::StorageFailed).detail(READ_ONLY).caused_by(reason).retry_after(Duration::from_secs(1))
}

const READ_ONLY: Advice = (
    "The database is read-only; nothing was stored. Check that the address leads to the primary server, that its disk or \
     quota is not used up, and default_transaction_read_only.",
    "数据库为只读，没有保存任何内容。请检查地址是否指向主服务器、磁盘或配额是否用尽，以及 default_transaction_read_only。",
);

/// Returns the code of a failure, and what to do, by its SQLSTATE: the server's words depend on its language.
fn fault_of(state: &SqlState) -> Option<(Code, Option<Advice>)> {
    let failed = |english, chinese| (Code::StorageFailed, Some((english, chinese)));
    Some(match *state {
        SqlState::DISK_FULL | SqlState::CONFIGURATION_LIMIT_EXCEEDED => (Code::StorageFull, None),
        SqlState::QUERY_CANCELED
        | SqlState::LOCK_NOT_AVAILABLE
        | SqlState::TOO_MANY_CONNECTIONS
        | SqlState::OUT_OF_MEMORY
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::T_R_SERIALIZATION_FAILURE => (Code::Overloaded, None),
        SqlState::IO_ERROR | SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => (Code::StorageFailed, None),
        SqlState::READ_ONLY_SQL_TRANSACTION => failed(READ_ONLY.0, READ_ONLY.1),
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => failed(
            "The database server refuses the sign-in. Check user and password in database.url, and pg_hba.conf.",
            "数据库服务器拒绝登录。请检查 database.url 中的用户和密码，以及 pg_hba.conf。",
        ),
        SqlState::INVALID_CATALOG_NAME => failed(
            "The database does not exist on the server. Create it, or correct its name in database.url.",
            "服务器上没有此数据库。请创建它，或更正 database.url 中的名称。",
        ),
        SqlState::INSUFFICIENT_PRIVILEGE | SqlState::INVALID_SCHEMA_NAME => failed(
            "The role lacks a right in the database. Make it the owner: alter database NAME owner to ROLE.",
            "数据库角色缺少权限。请将其设为所有者：alter database NAME owner to ROLE。",
        ),
        SqlState::CHARACTER_NOT_IN_REPERTOIRE | SqlState::UNTRANSLATABLE_CHARACTER => failed(
            "The database cannot store this text. Create it with encoding 'UTF8'.",
            "数据库无法保存此文本。请使用 encoding 'UTF8' 创建数据库。",
        ),
        SqlState::INVALID_SQL_STATEMENT_NAME | SqlState::DUPLICATE_PSTATEMENT => failed(
            "The server lost a prepared statement, as behind a pooler in transaction mode. Use its session mode, or the \
             server's own address.",
            "服务器丢失了预备语句，常见于事务模式的连接池。请改用会话模式，或直接连接服务器。",
        ),
        // The user of the row was deleted after the token was checked, and the token with it.
        SqlState::FOREIGN_KEY_VIOLATION => (Code::Unauthenticated, None),
        _ => return None,
    })
}

/// Returns true if the statement may or may not have taken effect: the server gave no answer, or it is shutting down.
pub(super) fn is_connection_lost(error: &DatabaseError) -> bool {
    let Some(answer) = error.as_db_error() else { return error.is_closed() || is_io(error) };
    ["08", "57P"].iter().any(|class| answer.code().code().starts_with(class))
        || matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

fn is_io(error: &DatabaseError) -> bool {
    let mut source = error.source();
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
