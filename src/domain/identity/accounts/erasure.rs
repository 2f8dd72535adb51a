//! Deletes what the deletion of an account leaves: rows whose number grows with the use of the account.
//!
//! Each write takes a few milliseconds, so that others wait for none. The write that deletes the account makes the end
//! state true for every reader, so that these may be interrupted and repeated.

use crate::{
    core::Core,
    domain::{
        divination::{history, interpretation, sessions},
        messaging::notifications,
        moderation::violations,
        money::invites,
        operations::{
            account_erasures, deletions, free_space_scrub, idempotency,
            steps::{self, CHUNK},
            webhook_outbox,
        },
    },
    error::Result,
    store::Write,
    types::UserId,
};

/// Deletes some rows of a user.
type Part = fn(&Write<'_>, UserId, u32) -> Result<usize>;

/// The parts of an account whose rows are deleted by user.
const PARTS: [Part; 6] = [
    history::delete_orphans_in,
    deletions::erase_user_in,
    notifications::erase_readings_in,
    violations::erase_user_in,
    invites::forget_inviter_in,
    webhook_outbox::erase_user_in,
];

/// Deletes the rows that deleted accounts left, and marked history records, until `is_running` returns false.
/// Returns true if there were some. Blocks.
///
/// # Errors
/// Storage errors, after all accounts were tried; the next call goes on.
pub fn run_due(core: &Core, is_running: &dyn Fn() -> bool) -> Result<bool> {
    let (users, (marked, _)) = core.store.read(|tx| Ok((account_erasures::list_in(tx)?, history::marked_in(tx)?)))?;
    let has_work = marked > 0 || !users.is_empty();
    let mut outcome = Ok(());
    if marked > 0 {
        let delete = |tx: &Write<'_>| history::delete_marked_in(tx, CHUNK);
        outcome = free_space_scrub::delete_counted_in_steps(core, &mut 0, is_running, delete);
    }
    for user in users {
        // A damaged page of one account does not stop the others.
        outcome = erase_rest(core, user, is_running).and(outcome);
    }
    outcome.map(|()| has_work)
}

/// Deletes the rows that a deleted account left, until `is_running` returns false. Blocks.
///
/// # Errors
/// Storage errors; [`run_due`] goes on.
pub(super) fn erase_rest(core: &Core, user: UserId, is_running: &dyn Fn() -> bool) -> Result<()> {
    let home = core.config.limits.time_zone.clone();
    let sessions = move |tx: &Write<'_>| sessions::erase_user_in(tx, &home, user, CHUNK);
    free_space_scrub::delete_counted_in_steps(core, &mut 0, is_running, sessions)?;
    for part in PARTS {
        let delete = move |tx: &Write<'_>| part(tx, user, CHUNK);
        free_space_scrub::delete_counted_in_steps(core, &mut 0, is_running, delete)?;
    }
    let records = core.store.read(|tx| interpretation::ids_of_user_in(tx, user))?;
    steps::for_each(core, is_running, records, |tx, id| interpretation::erase_in(tx, *id))?;
    let responses = core.store.read(|tx| idempotency::ids_of_user_in(tx, user))?;
    steps::for_each(core, is_running, responses, move |tx, id| idempotency::delete_of_user_in(tx, user, *id))?;
    if !is_running() {
        return Ok(());
    }
    let complete = move |tx: &Write<'_>| {
        account_erasures::complete_in(tx, user)?;
        // The rows are deleted private data.
        tx.truncate_wal_after_commit();
        free_space_scrub::request_in(tx)
    };
    core.store.write(complete).wait()
}
