//! Rules that suspend users by themselves after a number of rejected texts.
//!
//! A rule runs in the transaction that records a violation, so the suspension holds from the next request on. It counts
//! only violations since the user's last suspension with the same scope; otherwise one more text would suspend a user
//! again whose suspension has ended or was lifted.

use super::violations::{self, Violation};
use crate::{
    config::{Config, SuspensionRule},
    domain::{
        identity::suspensions::{self, SuspensionSource},
        messaging::user_notices::{self, SuspensionCause, UserNotice},
        moderation::engine::ContentType,
        money::ledger::Authority,
        operations::audit::{self, AuditEvent},
    },
    error::Result,
    store::Write,
    types::{Timestamp, UserId, pluralize},
};

/// The actor of suspensions by a rule.
pub const RULE_ACTOR: &str = "rule";
const ACTION: &str = "suspend by rule";
const DAY: u64 = 24 * 60 * 60;

/// Records a violation and applies the rules to its user. Returns the id of the violation.
pub(super) fn record_in(tx: &Write<'_>, config: &Config, violation: &Violation) -> Result<i64> {
    let id = violations::record_in(tx, violation, config.max_records_per_user())?;
    // Users are not to blame for the text of a model.
    if violation.content_type == ContentType::Answer.name() {
        return Ok(id);
    }
    let rules = config.moderation.suspension_rules.iter();
    let matching =
        |rule: &&SuspensionRule| rule.violation_type.as_ref().is_none_or(|kind| *kind == violation.violation_type);
    rules.filter(matching).try_for_each(|rule| apply_in(tx, config, violation.user, rule))?;
    Ok(id)
}

fn apply_in(tx: &Write<'_>, config: &Config, user: UserId, rule: &SuspensionRule) -> Result<()> {
    let newest = suspensions::newest_in(tx, user, rule.scope)?;
    if newest.as_ref().is_some_and(|newest| newest.is_in_force(tx.now)) {
        return Ok(());
    }
    let last = newest.map_or(Timestamp(0), |newest| newest.lifted_at.unwrap_or(newest.created_at).min(tx.now));
    let since = tx.now.minus(rule.window).max(last);
    if violations::count_since_in(tx, user, rule.violation_type.as_deref(), since)? < i64::from(rule.count) {
        return Ok(());
    }
    suspend_in(tx, config, user, rule)
}

fn suspend_in(tx: &Write<'_>, config: &Config, user: UserId, rule: &SuspensionRule) -> Result<()> {
    let ends_at = Some(tx.now.plus(rule.length));
    let days = rule.window.as_secs().div_ceil(DAY);
    let by = Authority { actor: RULE_ACTOR.to_owned(), reason: reason(rule, days), request_id: String::new() };
    suspensions::suspend_in(tx, user, rule.scope, SuspensionSource::Rule, ends_at, &by)?;
    let cause = SuspensionCause::Violations { count: rule.count, days };
    user_notices::send_in(tx, config, user, &UserNotice::Suspended { scope: rule.scope, cause, ends_at })?;
    let event = AuditEvent {
        actor: by.actor,
        action: ACTION.to_owned(),
        user: Some(user),
        reason: Some(by.reason),
        outcome: 200,
        client_ip: None,
        request_id: by.request_id,
        system_user: None,
    };
    audit::record_in(tx, &event)
}

/// Returns the reason for staff and audit.
fn reason(rule: &SuspensionRule, days: u64) -> String {
    let kind = rule.violation_type.as_deref().map(|kind| format!(" of type {kind}")).unwrap_or_default();
    format!("{}{kind} in {}", pluralize(rule.count, "rejected text", "rejected texts"), pluralize(days, "day", "days"))
}
