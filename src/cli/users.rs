//! `yarrow users`: one person, for whoever has them on the telephone.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, authority, find_user, record, table};
use crate::{
    app::App,
    error::{Code, Error, Result},
    ops::{
        support::{self, Sheet},
        user_data::{self, Issue, Who},
    },
    types::UserId,
};

/// Look at a user, check and repair what is kept of them. WHO is a user's id, phone number or email address.
#[derive(Debug, Args)]
pub struct UsersArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print one page: profile, balances, sign-ins, codes, ledger, orders, records, requests.
    Show { who: String },
    /// Check what is kept of a user against itself. Exits with 5 if something is wrong.
    Validate { who: String },
    /// Repair what can be repaired without a decision. Exits with 5 if something is left.
    Fix {
        who: String,
        /// Why, for the audit.
        #[arg(long)]
        reason: Option<String>,
    },
}

pub fn run(common: &Common, args: UsersArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Show { who } => show(common, &app, find_user(&app, &who)?.id),
        Action::Validate { who } => validate(common, &app, find_user(&app, &who)?.id),
        Action::Fix { who, reason } => fix(common, &app, find_user(&app, &who)?.id, reason),
    }
}

fn show(common: &Common, app: &App, user: UserId) -> Result<()> {
    let sheet = support::show(app, user)?;
    record(app, "users show", Some(user), authority(None))?;
    common.answer(&json_of(&sheet), || text_of(&sheet))
}

fn validate(common: &Common, app: &App, user: UserId) -> Result<()> {
    let found = user_data::validate(app, &Who::Id(user))?;
    record(app, "users validate", Some(user), authority(None))?;
    let json = json!({
        "userId": user, "phoneNumber": found.phone_number, "consistent": found.issues.is_empty(),
        "issues": issues(&found.issues),
    });
    common.answer(&json, || match found.issues.as_slice() {
        [] => "Nothing is wrong.".to_owned(),
        issues => issue_table(issues),
    })?;
    left(&found.issues)
}

fn fix(common: &Common, app: &App, user: UserId, reason: Option<String>) -> Result<()> {
    let by = authority(reason);
    let done = user_data::fix(app, Who::Id(user), by.clone()).wait()?;
    record(app, "users fix", Some(user), by)?;
    let json = json!({
        "userId": user, "phoneNumber": done.phone_number, "consistent": done.remaining.is_empty(),
        "fixed": issues(&done.fixed), "remaining": issues(&done.remaining),
    });
    common.answer(&json, || match (done.fixed.as_slice(), done.remaining.as_slice()) {
        ([], []) => "Nothing was wrong.".to_owned(),
        (fixed, remaining) => {
            format!("Repaired:\n{}\nLeft for a person:\n{}", issue_table(fixed), issue_table(remaining))
        }
    })?;
    left(&done.remaining)
}

/// Fails with the exit code of a check if something is left.
fn left(issues: &[Issue]) -> Result<()> {
    match issues.len() {
        0 => Ok(()),
        count => Err(Error::new(Code::ChecksFailed).detail(format!("{count} issues."))),
    }
}

fn issues(found: &[Issue]) -> Vec<Value> {
    let one = |issue: &Issue| json!({ "code": issue.code, "detail": issue.detail, "fixable": issue.fixable });
    found.iter().map(one).collect()
}

fn issue_table(found: &[Issue]) -> String {
    let fixable = |issue: &Issue| if issue.fixable { "yes" } else { "no" }.to_owned();
    table(
        ["issue", "fixable", ""],
        found.iter().map(|issue| [issue.code.to_owned(), fixable(issue), issue.detail.clone()]),
    )
}

fn json_of(sheet: &Sheet) -> Value {
    json!({
        "userId": sheet.kept.id, "phoneNumber": sheet.kept.phone_number, "email": sheet.kept.email,
        "createdAt": sheet.kept.created_at,
        "profile": {
            "nickname": sheet.profile.nickname, "gender": sheet.profile.gender.name(),
            "birthday": sheet.profile.birthday, "signature": sheet.profile.signature,
        },
        "balances": sheet.accounts.iter().map(|(asset, account)| json!({
            "asset": asset.name(), "balance": account.balance, "entries": account.last_sequence,
            "suspendedAt": account.suspended_at,
        })).collect::<Vec<_>>(),
        "issues": issues(&sheet.issues),
        "signIns": sheet.devices.iter().map(|device| json!({
            "id": device.id, "label": device.label, "signedInAt": device.signed_in_at,
            "lastUsedAt": device.last_used_at,
        })).collect::<Vec<_>>(),
        "codes": {
            "live": sheet.live_codes.iter().map(|code| json!({
                "purpose": code.purpose, "code": MASKED, "triesLeft": code.tries_left, "expiresAt": code.expires_at,
            })).collect::<Vec<_>>(),
            "sent": sheet.sent_codes.iter().map(|sent| json!({
                "sentAt": sent.sent_at, "clientNetwork": sent.client_network,
            })).collect::<Vec<_>>(),
        },
        "ledger": sheet.entries.iter().map(|entry| json!({
            "seq": entry.seq, "asset": entry.asset.name(), "delta": entry.delta, "balanceAfter": entry.balance_after,
            "kind": entry.kind.name(), "ref": entry.reference, "createdAt": entry.created_at,
        })).collect::<Vec<_>>(),
        "changes": sheet.changes.iter().map(|change| json!({
            "actor": change.actor, "action": change.action, "asset": change.asset.name(), "reason": change.reason,
            "balanceBefore": change.balance_before, "balanceAfter": change.balance_after,
            "createdAt": change.created_at,
        })).collect::<Vec<_>>(),
        "orders": sheet.orders.iter().map(|order| json!({
            "orderNo": order.order_no, "amount": order.amount.to_string(), "coinCount": order.coin_count,
            "state": order.state.name(), "reason": order.reason, "createdAt": order.created_at,
        })).collect::<Vec<_>>(),
        "castings": sheet.castings,
        "records": sheet.records.iter().map(|record| json!({
            "traceId": record.trace_id, "status": record.status.name(), "provider": record.provider,
            "model": record.model, "durationMs": record.duration_ms, "errorClass": record.error_class,
            "createdAt": record.created_at,
        })).collect::<Vec<_>>(),
        "requests": sheet.requests.iter().map(super::logs::json_of).collect::<Vec<_>>(),
        "audit": sheet.audit.iter().map(super::audit::json_of).collect::<Vec<_>>(),
    })
}

/// What stands for a code, of which nobody knows more than that it exists.
const MASKED: &str = "******";

fn text_of(sheet: &Sheet) -> String {
    let mut text = head_of(sheet);
    let mut section = |title: &str, table: Option<String>| {
        let none = || "none".to_owned();
        text.extend(["\n\n", title, "\n", &table.unwrap_or_else(none)]);
    };
    section("Wrong", some(&sheet.issues, issue_table));
    section(
        "Signed in",
        some(&sheet.devices, |rows| {
            let row = |row: &crate::ops::tokens::Device| {
                [row.label.clone(), row.signed_in_at.to_string(), row.last_used_at.to_string()]
            };
            table(["device", "since", "last used"], rows.iter().map(row))
        }),
    );
    section(
        "Live codes",
        some(&sheet.live_codes, |rows| {
            let row = |row: &crate::ops::codes::LiveCode| {
                [row.purpose.clone(), MASKED.to_owned(), row.tries_left.to_string(), row.expires_at.to_string()]
            };
            table(["for", "code", "tries left", "until"], rows.iter().map(row))
        }),
    );
    section(
        "Codes sent",
        some(&sheet.sent_codes, |rows| {
            table(
                ["at", "asked for from"],
                rows.iter().map(|row| [row.sent_at.to_string(), row.client_network.clone()]),
            )
        }),
    );
    section(
        "Ledger",
        some(&sheet.entries, |rows| {
            let row = |row: &crate::ops::ledger::Entry| {
                [
                    row.created_at.to_string(),
                    row.asset.name().to_owned(),
                    row.kind.name().to_owned(),
                    format!("{:+}", row.delta),
                    row.balance_after.to_string(),
                    row.reference.clone().unwrap_or_default(),
                ]
            };
            table(["at", "asset", "kind", "change", "balance", "about"], rows.iter().map(row))
        }),
    );
    section(
        "Changed by people and repairs",
        some(&sheet.changes, |rows| {
            let row = |row: &crate::ops::ledger::Change| {
                [
                    row.created_at.to_string(),
                    row.actor.clone(),
                    format!("{} {}", row.action, row.asset.name()),
                    format!("{} → {}", row.balance_before, row.balance_after),
                    row.reason.clone(),
                ]
            };
            table(["at", "actor", "action", "balance", "reason"], rows.iter().map(row))
        }),
    );
    section(
        "Orders",
        some(&sheet.orders, |rows| {
            let row = |row: &crate::ops::payment::orders::Order| {
                [
                    row.created_at.to_string(),
                    row.order_no.clone(),
                    row.amount.to_string(),
                    row.state.name().to_owned(),
                    row.reason.clone().unwrap_or_default(),
                ]
            };
            table(["at", "order", "yuan", "state", "reason"], rows.iter().map(row))
        }),
    );
    section(
        "Interpretations",
        some(&sheet.records, |rows| {
            let row = |row: &crate::ops::interpretation::Record| {
                [
                    row.created_at.to_string(),
                    row.trace_id.clone(),
                    row.status.name().to_owned(),
                    row.duration_ms.map(|duration| duration.to_string()).unwrap_or_default(),
                    row.error_class.clone().unwrap_or_default(),
                ]
            };
            table(["at", "trace", "status", "ms", "error"], rows.iter().map(row))
        }),
    );
    section("Requests", some(&sheet.requests, super::logs::table_of));
    section("Seen and changed by administrators", some(&sheet.audit, super::audit::table_of));
    text
}

fn head_of(sheet: &Sheet) -> String {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".into());
    let mut rows = vec![
        ["user".to_owned(), sheet.kept.id.to_string()],
        ["phone number".to_owned(), or_none(&sheet.kept.phone_number)],
        ["email".to_owned(), or_none(&sheet.kept.email)],
        ["since".to_owned(), sheet.kept.created_at.to_string()],
        ["nickname".to_owned(), sheet.profile.nickname.clone()],
        ["gender".to_owned(), sheet.profile.gender.name().to_owned()],
        ["birthday".to_owned(), or_none(&sheet.profile.birthday)],
        ["signature".to_owned(), sheet.profile.signature.clone()],
        ["castings kept".to_owned(), sheet.castings.to_string()],
    ];
    rows.extend(sheet.accounts.iter().map(|(asset, account)| {
        let closed = if account.suspended_at.is_some() { " (closed)" } else { "" };
        [format!("{}s", asset.name()), format!("{}{closed}", account.balance)]
    }));
    table(["", ""], rows)
}

/// The table of these rows, if there are any.
fn some<T>(rows: &[T], table: impl FnOnce(&[T]) -> String) -> Option<String> {
    (!rows.is_empty()).then(|| table(rows))
}
