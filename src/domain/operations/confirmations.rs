//! Two-step confirmation of actions that cannot be undone.
//!
//! The first request is refused with a preview and a token. The second request repeats it with the token. A token is
//! valid for one action of one administrator, once, for a few minutes.

use std::time::Duration;

use crate::{
    core::Core,
    error::{Code, Confirmation, Error, Result},
    store::{Pending, Write},
    types::{Secret, sha256},
};

/// The lifetime of a token.
const LIFETIME: Duration = Duration::from_mins(10);
/// Expired tokens deleted in one write.
const BATCH_SIZE: u32 = 100;

/// The numbers of rows that an action would delete and keep, by table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeletionPreview {
    pub delete: Vec<(String, i64)>,
    pub keep: Vec<(String, i64)>,
}

/// A request that needs a confirmation, with the token if it has one.
#[derive(Clone, Debug)]
pub struct ConfirmationRequest {
    pub actor: String,
    /// The action, with the user if it concerns one.
    pub action: String,
    pub token: Option<String>,
    pub preview: DeletionPreview,
}

/// Redeems the token of an earlier request, or refuses with a new one.
///
/// # Errors
/// `confirmation_required` without a valid token for this action.
pub fn require(core: &Core, request: ConfirmationRequest) -> Pending<()> {
    core.store.write(move |tx| require_in(tx, request))
}

pub fn require_in(tx: &Write<'_>, request: ConfirmationRequest) -> Result<()> {
    if redeem_token_in(tx, &request)? {
        return Ok(());
    }
    let confirmation = issue_token_in(tx, request)?;
    let mut error = Error::new(Code::ConfirmationRequired).keeping_changes();
    error.confirmation = Some(confirmation);
    Err(error)
}

fn redeem_token_in(tx: &Write<'_>, request: &ConfirmationRequest) -> Result<bool> {
    let Some(token) = &request.token else { return Ok(false) };
    let deleted = tx.execute(
        "delete from confirmations where token_sha256 = ?1 and actor = ?2 and action = ?3 and expires_at > ?4",
        (sha256(token), &request.actor, &request.action, tx.now.0),
    )?;
    Ok(deleted == 1)
}

fn issue_token_in(tx: &Write<'_>, request: ConfirmationRequest) -> Result<Confirmation> {
    tx.execute(
        "delete from confirmations where token_sha256 in \
         (select token_sha256 from confirmations where expires_at <= ?1 order by expires_at limit ?2)",
        (tx.now.0, BATCH_SIZE),
    )?;
    let token = Secret::random()?;
    let expires_at = tx.now.plus(LIFETIME);
    tx.execute(
        "insert into confirmations (token_sha256, actor, action, expires_at) values (?1, ?2, ?3, ?4)",
        (sha256(token.reveal()), &request.actor, &request.action, expires_at.0),
    )?;
    let DeletionPreview { delete, keep } = request.preview;
    Ok(Confirmation { token, expires_at, would_delete: delete, would_keep: keep })
}
