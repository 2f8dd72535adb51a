//! The report of a database server about itself, for the doctor.

use super::session::Session;
use crate::{
    error::{Error, Result},
    store::transaction::Access,
};

/// The settings and the condition of a database server.
#[derive(Clone, Debug)]
pub struct ServerReport {
    /// As the server writes it, such as `15.18 (Debian 15.18-0)`.
    pub version: String,
    /// 150018 for version 15.18.
    pub version_number: u32,
    /// Syncs commits to disk.
    pub has_fsync: bool,
    pub has_full_page_writes: bool,
    /// Standby servers that a commit waits for. Empty if it waits for none.
    pub synchronous_standbys: String,
    /// Standby servers that receive changes now.
    pub standbys: u32,
    pub encoding: String,
    /// Milliseconds since 1970 of the server's clock.
    pub at: i64,
    /// Connections of all clients, and how many the server accepts.
    pub connections: u32,
    pub max_connections: u32,
    pub database_bytes: i64,
    pub live_rows: i64,
    /// Rows that were changed or deleted and still use space.
    pub dead_rows: i64,
    /// Copies of the service that run.
    pub copies: u32,
    /// The role may do everything, which the service does not need.
    pub is_superuser: bool,
}

/// The oldest version that the service supports.
pub const OLDEST_VERSION: u32 = 150_000;

const REPORT: &str = concat!(
    "select current_setting('server_version'), cast(current_setting('server_version_num') as bigint), \
    current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', \
    current_setting('synchronous_standby_names'), (select count(*) from pg_stat_replication), \
    current_setting('server_encoding'), ",
    server_clock!(),
    ", (select count(*) from pg_stat_activity where backend_type = 'client backend'), \
    cast(current_setting('max_connections') as bigint), pg_database_size(current_database()), \
    (select cast(coalesce(sum(n_live_tup), 0) as bigint) from pg_stat_user_tables), \
    (select cast(coalesce(sum(n_dead_tup), 0) as bigint) from pg_stat_user_tables), \
    (select rolsuper from pg_roles where rolname = current_user), \
    (select count(*) from store_copies where is_server = 1 and seen_at > ",
    server_clock!(),
    " - 15000)"
);

pub(super) fn read(session: &Session) -> Result<ServerReport> {
    let report = Access::Server(session).first(REPORT, &(), |row| {
        Ok(ServerReport {
            version: row.get(0)?,
            version_number: row.get(1)?,
            has_fsync: row.get(2)?,
            has_full_page_writes: row.get(3)?,
            synchronous_standbys: row.get(4)?,
            standbys: row.get(5)?,
            encoding: row.get(6)?,
            at: row.get(7)?,
            connections: row.get(8)?,
            max_connections: row.get(9)?,
            database_bytes: row.get(10)?,
            live_rows: row.get(11)?,
            dead_rows: row.get(12)?,
            is_superuser: row.get(13)?,
            copies: row.get(14)?,
        })
    })?;
    report.ok_or_else(|| Error::internal("the server reported nothing"))
}
