//! Checks of a PostgreSQL server.

use super::{Check, Services, Verdict};
use crate::{
    error::Result,
    store::{OLDEST_SERVER_VERSION, ServerReport},
    types::pluralize,
};

const GROUP: &str = "database";
/// Milliseconds by which the clocks of this machine and of the server may differ.
const MAX_CLOCK_DIFFERENCE: i64 = 1_000;
/// Rows below this number cost little, however many of them are dead.
const FEW_ROWS: i64 = 100_000;

pub(super) fn checks(services: Services<'_>, report: &ServerReport) -> Result<Vec<Check>> {
    let (core, now) = (services.core, services.core.clock.now());
    let difference = (report.at - now.0).abs();
    let (used, accepted) = (report.connections, report.max_connections);
    let needed = core.config.database.long_reads + core.config.server.worker_threads() + 3;
    let (live, dead) = (report.live_rows, report.dead_rows);
    let standbys = &report.synchronous_standbys;
    Ok(vec![
        Check::holds(
            GROUP,
            "version",
            (report.version_number >= OLDEST_SERVER_VERSION, format!("PostgreSQL {}", report.version)),
            (Verdict::Fail, format!("PostgreSQL {} is older than 15", report.version)),
        ),
        super::database::schema(&services)?,
        Check::holds(
            GROUP,
            "fsync",
            (
                report.has_fsync && report.has_full_page_writes,
                "commits are synced to disk before they are acknowledged",
            ),
            (Verdict::Fail, "fsync or full_page_writes is off: a power cut loses payments and may damage the database"),
        ),
        Check::holds(
            GROUP,
            "standbys",
            (report.standbys == 0 || !standbys.is_empty(), if standbys.is_empty() { "none" } else { standbys }),
            (
                Verdict::Warn,
                "commits wait for no standby: a failover loses the last ones. Set synchronous_standby_names",
            ),
        ),
        Check::holds(
            GROUP,
            "encoding",
            (report.encoding == "UTF8", "UTF8"),
            (Verdict::Fail, format!("{}: create the database with encoding UTF8", report.encoding)),
        ),
        Check::holds(
            GROUP,
            "clock",
            (difference <= MAX_CLOCK_DIFFERENCE, format!("{difference} ms from this machine's")),
            (Verdict::Warn, format!("{difference} ms from this machine's: synchronise both clocks")),
        ),
        Check::holds(
            GROUP,
            "connections",
            (used + needed <= accepted, format!("{used} of {accepted} are open; each copy opens up to {needed}")),
            (Verdict::Warn, format!("{used} of {accepted} are open, and each copy opens up to {needed}")),
        ),
        Check::holds(
            GROUP,
            "dead rows",
            (dead < FEW_ROWS || dead < live, pluralize(dead.unsigned_abs(), "dead row", "dead rows")),
            (Verdict::Warn, format!("{dead} beside {live} live ones: autovacuum does not keep up")),
        ),
        Check::holds(
            GROUP,
            "role",
            (!report.is_superuser, "no superuser"),
            (Verdict::Warn, "a superuser: give the service a role that only owns this database"),
        ),
        Check::new(GROUP, "copies", Verdict::Pass, pluralize(u64::from(report.copies), "copy serves", "copies serve")),
    ])
}
