//! Account deletion: one write deletes the user and everything small, or nothing.
//!
//! From then on the user does not exist, and nobody sees the rows that are left: those whose number grows with the use of
//! the account. They are deleted next, in many small writes: see [`super::erasure`].
//!
//! Records without personal data stay under the user's id, which is never reused: ledger entries, orders, purchases, and
//! records of interpretations and violations without their texts. A background job erases the user's entries from the
//! network log within seconds. A payment that arrives later goes to review. The points of an account with an email
//! address are parked for that address. Those of an account with only a phone number stay in place, because nothing may
//! be stored about the number.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;

use super::erasure;
use crate::{
    config::AuthConfig,
    core::Core,
    domain::{
        divination::{budget, history, interpretation, model_calls, sessions},
        identity::{
            codes::{self, AddressHmac},
            email_rewards::{self, EmailHmac},
            identities, preferences, staff_notes, suspensions, tokens,
            users::{self, User},
        },
        messaging::{
            feedback::{self, FeedbackFilter},
            notifications, push_queue,
        },
        moderation::{
            reviews, shadow_mode,
            violations::{self, ViolationQuery},
        },
        money::{
            invites,
            ledger::{self, Asset},
            payments::{
                self,
                orders::{self, OrderFilter},
            },
            purchases::{
                accounts,
                records::{self, PurchaseFilter},
            },
        },
        operations::{
            account_erasures, active_users,
            confirmations::DeletionPreview,
            idempotency, imports, network_log,
            webhook_outbox::{self, NewWebhookEvent, WebhookKind},
        },
    },
    error::Result,
    keys::ServerKey,
    store::{Read, Write},
    types::{PageRequest, Secret, TimeZone, UserId},
};

/// The requester of a deletion.
#[derive(Clone, Debug)]
pub enum DeletionActor {
    /// The account's user, who must have verified a code recently.
    Owner {
        token: Secret,
    },
    Operator,
}

/// The time that a caller spends on the rows of a large account, before it leaves the rest to the job.
const OWN_SHARE: Duration = Duration::from_secs(10);

/// Deletes the account. Blocks.
///
/// When it returns, the rows with the user's addresses, texts and tokens are overwritten in the database file and
/// removed from its log. A concurrent reader delays the truncation of the log by up to half a minute, or until the next
/// start. The rows of an account that takes longer than some seconds follow in the background. The free-space scrub
/// then removes copies that SQLite left in unused space.
///
/// # Errors
/// `step_up_required` for an owner without a recent code; `not_found`; `account_inconsistent` if the points cannot be
/// parked until the account is repaired.
pub fn erase(core: &Core, user: UserId, by: DeletionActor) -> Result<()> {
    let (config, key) = (Arc::clone(&core.config), core.keys.clone());
    let responses = core.store.read(|tx| {
        // Rejects an unauthorised caller before the search.
        by.require_in(tx, &config.auth)?;
        idempotency::find_user_in(tx, user)
    })?;
    // All checks precede the first change.
    let deleted = core.store.write_without_savepoint(move |tx| {
        by.require_in(tx, &config.auth)?;
        erase_in(tx, &key, &config.limits.time_zone, user, &responses)
    });
    deleted.wait()?;
    let begun = Instant::now();
    if let Err(error) = erasure::erase_rest(core, user, &|| begun.elapsed() < OWN_SHARE) {
        // The account is deleted, and the job goes on.
        tracing::warn!(%error, "some rows of a deleted account could not be deleted yet");
    }
    Ok(())
}

/// The effect of a deletion on the balances. Without an email address nobody could prove later whose they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalancesAfterDeletion {
    /// Points that are parked for the email address.
    pub points_kept: i64,
    pub points_lost: i64,
    pub coins_lost: i64,
}

impl BalancesAfterDeletion {
    pub fn of(user: &User, points: i64, coins: i64) -> Self {
        let points_kept = if user.email.is_some() { points } else { 0 };
        Self { points_kept, points_lost: points - points_kept, coins_lost: coins }
    }
}

/// Counts the coins, points and rows of a user that a deletion would remove, and those that remain without personal data.
///
/// # Errors
/// `not_found`.
pub fn preview_deletion(core: &Core, user: UserId) -> Result<DeletionPreview> {
    let balances = super::find(core, user)?.after_deletion;
    let newest = PageRequest::of_newest(1);
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let own_feedback = FeedbackFilter { user: Some(user), ..FeedbackFilter::default() };
    let own_orders = OrderFilter::of_user(user);
    let own_purchases = PurchaseFilter { user: Some(user), state: None };
    let own_violations = ViolationQuery { user: Some(user), ..ViolationQuery::default() };
    let mut entries = 0;
    for asset in Asset::ALL {
        entries += ledger::entries(core, user, asset, newest)?.total;
    }
    let counts = |counts: &[(&str, i64)]| counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    Ok(DeletionPreview {
        delete: counts(&[
            ("coins", balances.coins_lost),
            ("points", balances.points_lost),
            ("tokens", number(tokens::list_devices(core, user, None)?.len())),
            ("history", history::count(core, user)?),
            ("interpretations", interpretation::count_of_user(core, user)?),
            ("feedback", feedback::list(core, &own_feedback, newest)?.total),
            ("suspensions", number(suspensions::list(core, user)?.len())),
            ("staff_notes", number(staff_notes::list(core, user)?.len())),
        ]),
        keep: counts(&[
            ("points", balances.points_kept),
            ("ledger_entries", entries),
            ("payment_orders", orders::list(core, own_orders, newest)?.total),
            ("store_purchases", records::list(core, own_purchases, newest)?.total),
            ("violations", violations::list(core, &own_violations, newest)?.total),
        ]),
    })
}

impl DeletionActor {
    fn require_in(&self, tx: &Read<'_>, limits: &AuthConfig) -> Result<()> {
        match self {
            Self::Owner { token } => tokens::require_recent_sign_in_in(tx, limits, token.reveal()),
            Self::Operator => Ok(()),
        }
    }
}

/// Deletes the user, and rows of which an account has few. `home` is the time zone of the days that remain in statistics.
fn erase_in(
    tx: &Write<'_>,
    key: &ServerKey,
    home: &TimeZone,
    id: UserId,
    responses: &idempotency::UserResponses,
) -> Result<()> {
    let user = users::find_in(tx, id)?;
    // Before the points are parked.
    sessions::interpretation::refund_user_in(tx, id)?;
    if let Some(email) = &user.email {
        email_rewards::park_in(tx, EmailHmac::new(key, email), id)?;
    }
    for address in user.addresses() {
        let recipient = AddressHmac::new(key, address.as_str());
        codes::erase_in(tx, &recipient)?;
        codes::messages::erase_in(tx, &recipient)?;
    }
    invites::archive_in(tx, key, id)?;
    identities::erase_user_in(tx, id)?;
    notifications::erase_user_in(tx, id)?;
    push_queue::erase_user_in(tx, id)?;
    preferences::erase_user_in(tx, id)?;
    feedback::erase_user_in(tx, id, user.phone_number.as_ref())?;
    budget::erase_user_in(tx, home, id)?;
    model_calls::hourly_limit::erase_user_in(tx, id)?;
    for trace_id in model_calls::running_calls::list_of_user_in(tx, id)? {
        interpretation::cancel_in(tx, &trace_id)?;
    }
    model_calls::running_calls::erase_user_in(tx, id)?;
    staff_notes::erase_user_in(tx, id)?;
    imports::erase_user_in(tx, id)?;
    suspensions::erase_user_in(tx, id)?;
    tokens::revoke_all_in(tx, id)?;
    history::erase_hidings_in(tx, id)?;
    shadow_mode::erase_user_in(tx, id)?;
    reviews::erase_user_in(tx, id)?;
    payments::callbacks::erase_payer_in(tx, id)?;
    accounts::erase_user_in(tx, id)?;
    idempotency::erase_user_in(tx, responses)?;
    active_users::erase_user_in(tx, id)?;
    network_log::erasure::request_in(tx, id)?;
    account_erasures::begin_in(tx, id)?;
    let event = NewWebhookEvent { kind: WebhookKind::UserErased, user: Some(id), data: json!({}), text: None };
    webhook_outbox::record_in(tx, &event)?;
    users::delete_in(tx, id)
}
