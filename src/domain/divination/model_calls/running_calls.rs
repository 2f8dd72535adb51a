//! Model calls that run, each with the copy of the service that runs it and the budget that it has reserved.
//!
//! A row exists from the transaction that begins the record of a call to the one that finishes it, also if the record is
//! deleted meanwhile. So each reservation is settled once.

use super::hourly_limit::UserCall;
use crate::{
    config::{self, Config},
    core::Core,
    domain::divination::budget::{self, Amount, BudgetWarning, CallUsage, Reservation},
    error::Result,
    store::{Read, Row, RowResult, Write},
    types::UserId,
};

/// A call that begins.
#[derive(Clone, Debug)]
pub struct NewCall {
    pub trace_id: String,
    /// The copy of the service that makes it.
    pub copy: String,
    pub user: UserId,
    pub kind: UserCall,
    pub provider: &'static str,
    pub model: String,
    /// The maximum usage, which is reserved.
    pub amount: Amount,
}

/// A call that its copy of the service did not finish.
#[derive(Clone, Debug)]
pub struct AbandonedCall {
    pub trace_id: String,
    pub kind: UserCall,
    provider: String,
    model: String,
    reservation: Reservation,
}

impl AbandonedCall {
    /// Returns the user; `None` if the account was deleted meanwhile.
    pub fn user(&self) -> Option<UserId> {
        self.reservation.user
    }

    /// Charges the whole reservation, because the usage of an interrupted call is unknown, and counts the call.
    pub fn settle_in(self, tx: &Write<'_>, settings: &config::LlmConfig) -> Result<()> {
        let usage = CallUsage::interrupted(self.kind.name(), self.provider, self.model, self.reservation.amount);
        budget::settle_in(tx, settings, &self.reservation, &usage).map(drop)
    }
}

/// Reserves the budget of a call and stores that this copy of the service runs it.
///
/// # Errors
/// `budget_spent` if the budget of the user or of all users is used up, counting running calls.
pub fn begin_in(tx: &Write<'_>, config: &Config, call: &NewCall) -> Result<()> {
    let day = budget::reserve_in(tx, &config.llm, &config.limits.time_zone, call.user, call.amount)?;
    tx.execute(
        "insert into running_calls (trace_id, copy, user_id, kind, provider, model, day, reserved_tokens, \
         reserved_cost_micros) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            &call.trace_id,
            &call.copy,
            call.user.0,
            call.kind.name(),
            call.provider,
            &call.model,
            day,
            budget::stored(call.amount.tokens),
            budget::stored(call.amount.cost.0),
        ),
    )
    .map(drop)
}

/// Ends a call: releases its reservation and charges its usage. Returns the warnings that it caused; `None` if the call
/// had been closed as abandoned.
pub fn end_in(
    tx: &Write<'_>,
    settings: &config::LlmConfig,
    trace_id: &str,
    usage: &CallUsage,
) -> Result<Option<Vec<BudgetWarning>>> {
    let running = "select reserved_tokens, reserved_cost_micros, user_id, day from running_calls where trace_id = ?1";
    let Some(reservation) = tx.first(running, [trace_id], reservation_of)? else { return Ok(None) };
    tx.execute_later("delete from running_calls where trace_id = ?1", [trace_id])?;
    budget::settle_in(tx, settings, &reservation, usage).map(Some)
}

/// Returns true if calls remain of copies of the service that do not run.
pub fn has_abandoned(core: &Core) -> Result<bool> {
    core.store.read(|tx| Ok(!owners_gone_in(tx, None)?.is_empty()))
}

/// Removes and returns the calls of copies of the service that do not run, and those of `also`.
pub fn take_abandoned_in(tx: &Write<'_>, also: Option<&str>) -> Result<Vec<AbandonedCall>> {
    let mut calls = Vec::new();
    for copy in owners_gone_in(tx, also)? {
        let taken = "delete from running_calls where copy = ?1 returning reserved_tokens, reserved_cost_micros, \
                     user_id, day, trace_id, kind, provider, model";
        calls.extend(tx.all(taken, [copy], |row| {
            Ok(AbandonedCall {
                reservation: reservation_of(row)?,
                trace_id: row.get(4)?,
                kind: row.get_parsed(5, UserCall::from_name)?,
                provider: row.get(6)?,
                model: row.get(7)?,
            })
        })?);
    }
    Ok(calls)
}

/// Returns the trace ids of a user's running calls.
pub fn list_of_user_in(tx: &Read<'_>, user: UserId) -> Result<Vec<String>> {
    tx.all("select trace_id from running_calls where user_id = ?1", [user.0], |row| row.get(0))
}

/// Removes the user from running calls, whose usage is still charged to the budget of all users.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("update running_calls set user_id = null where user_id = ?1", [user.0]).map(drop)
}

fn owners_gone_in(tx: &Read<'_>, also: Option<&str>) -> Result<Vec<String>> {
    let mut owners: Vec<String> = tx.all("select distinct copy from running_calls", (), |row| row.get(0))?;
    if !owners.is_empty() {
        let running = tx.running_copies()?;
        owners.retain(|owner| also == Some(owner.as_str()) || !running.contains(owner));
    }
    Ok(owners)
}

fn reservation_of(row: &Row<'_>) -> RowResult<Reservation> {
    let amount = budget::amount_of(row)?;
    Ok(Reservation { amount, user: row.get::<Option<i64>>(2)?.map(UserId), day: row.get(3)? })
}
