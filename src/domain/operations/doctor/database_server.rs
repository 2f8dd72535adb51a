//! Checks of a PostgreSQL server.

use super::CheckFact;
use crate::{
    core::Core,
    store::{OLDEST_SERVER_VERSION, ServerReport},
};

/// Milliseconds by which the clocks of this machine and of the server may differ.
const MAX_CLOCK_DIFFERENCE: i64 = 1_000;
/// Rows below this number cost little, however many of them are dead.
const FEW_ROWS: i64 = 100_000;

/// Returns the checks of the server with that of the schema.
pub(super) fn checks(core: &Core, report: ServerReport, schema: CheckFact) -> Vec<CheckFact> {
    let now = core.clock.now();
    let milliseconds = (report.at - now.0).abs();
    let (used, accepted) = (report.connections, report.max_connections);
    let needed = core.config.database.long_reads + core.config.server.worker_threads() + 3;
    let (live, dead) = (report.live_rows, report.dead_rows);
    let (version, standbys, encoding) = (report.version, report.synchronous_standbys, report.encoding);
    vec![
        if report.version_number >= OLDEST_SERVER_VERSION {
            CheckFact::ServerVersion { version }
        } else {
            CheckFact::ServerTooOld { version }
        },
        schema,
        if report.has_fsync && report.has_full_page_writes { CheckFact::FsyncOn {} } else { CheckFact::FsyncOff {} },
        match (report.standbys, standbys.is_empty()) {
            (0, true) => CheckFact::NoStandbys {},
            (_, true) => CheckFact::StandbysAsynchronous {},
            (_, false) => CheckFact::Standbys { standbys },
        },
        if encoding == "UTF8" { CheckFact::EncodingUtf8 {} } else { CheckFact::EncodingOther { encoding } },
        if milliseconds <= MAX_CLOCK_DIFFERENCE {
            CheckFact::ClocksAgree { milliseconds }
        } else {
            CheckFact::ClocksDiffer { milliseconds }
        },
        if used + needed <= accepted {
            CheckFact::ConnectionsLeft { used, accepted, needed }
        } else {
            CheckFact::ConnectionsShort { used, accepted, needed }
        },
        if dead < FEW_ROWS || dead < live {
            CheckFact::FewDeadRows { dead }
        } else {
            CheckFact::ManyDeadRows { dead, live }
        },
        if report.is_superuser { CheckFact::RoleSuperuser {} } else { CheckFact::RoleOrdinary {} },
        CheckFact::Copies { copies: report.copies },
    ]
}
