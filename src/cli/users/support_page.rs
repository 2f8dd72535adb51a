//! The support page of a user, as JSON and as text.

use serde_json::{Value, json};

use super::issue_table;
use crate::{
    cli::{http_rows, list_of, or_empty, row, table},
    domain::{identity::accounts::CodeMessages, messaging::notifications::InboxItem, operations::support::SupportPage},
    http::{
        console::views::{
            cells::Column,
            pages::{moderation::VIOLATION, rows},
        },
        responses::{AuditRow, LoggedRequest, UserDataIssue},
    },
};

pub fn json_of(page: &SupportPage) -> Value {
    json!({
        "userId": page.kept.id, "phoneNumber": page.kept.phone_number, "email": page.kept.email,
        "createdAt": page.kept.created_at,
        "profile": {
            "nickname": page.profile.nickname, "gender": page.profile.gender.name(),
            "birthday": page.profile.birthday, "signature": page.profile.signature,
        },
        "balances": page.accounts.iter().map(|(asset, account)| json!({
            "asset": asset.name(), "balance": account.balance, "entries": account.last_sequence,
            "suspendedAt": account.suspended_at,
        })).collect::<Vec<_>>(),
        "issues": http_rows::<_, UserDataIssue>(&page.issues),
        "identities": page.identities.iter().map(|identity| json!({
            "provider": identity.key.provider.name(), "linkedAt": identity.linked_at,
            "lastUsedAt": identity.last_used_at,
        })).collect::<Vec<_>>(),
        "signIns": page.devices.iter().map(|device| json!({
            "id": device.id, "label": device.label, "signedInAt": device.signed_in_at,
            "lastUsedAt": device.last_used_at,
        })).collect::<Vec<_>>(),
        "codes": {
            "live": page.live_codes.iter().map(|code| json!({
                "purpose": code.purpose, "code": MASKED, "triesLeft": code.tries_left, "expiresAt": code.expires_at,
            })).collect::<Vec<_>>(),
            "sent": page.sent_codes.iter().map(|sent| json!({
                "sentAt": sent.sent_at, "clientNetwork": sent.client_network,
            })).collect::<Vec<_>>(),
            "messages": page.code_messages.items,
            "deliveryError": page.code_messages.receipts_failure.as_ref().map(ToString::to_string),
        },
        "ledger": page.entries.iter().map(|entry| json!({
            "seq": entry.seq, "asset": entry.asset.name(), "delta": entry.delta, "balanceAfter": entry.balance_after,
            "kind": entry.kind.name(), "ref": entry.reference, "createdAt": entry.created_at,
        })).collect::<Vec<_>>(),
        "changes": page.changes.iter().map(|change| json!({
            "actor": change.actor, "action": change.action, "asset": change.asset.name(), "reason": change.reason,
            "balanceBefore": change.balance_before, "balanceAfter": change.balance_after,
            "createdAt": change.created_at,
        })).collect::<Vec<_>>(),
        "orders": page.orders.iter().map(|order| json!({
            "orderNo": order.order_no, "amount": order.amount.to_string(), "coinCount": order.coin_count,
            "state": order.state.name(), "reason": order.reason, "createdAt": order.created_at,
        })).collect::<Vec<_>>(),
        "castings": page.castings,
        "records": page.records.iter().map(|record| json!({
            "traceId": record.trace_id, "status": record.status.name(), "provider": record.provider,
            "model": record.model, "durationMs": record.duration_ms, "errorClass": record.error_class,
            "createdAt": record.created_at,
        })).collect::<Vec<_>>(),
        "violations": page.violations.iter().map(|violation| json!({
            "id": violation.id.to_string(), "contentType": violation.content_type, "violationType": violation.violation_type,
            "maskedText": violation.masked_text, "provider": violation.provider, "createdAt": violation.at,
        })).collect::<Vec<_>>(),
        "violationsTotal": page.violations_total,
        "notices": page.notices.iter().map(|received| json!({
            "id": received.notification.id.to_string(), "kind": received.notification.kind.name(),
            "title": received.notification.title, "toEverybody": received.notification.ordinal.is_some(),
            "createdAt": received.notification.created_at, "readAt": received.read_at,
        })).collect::<Vec<_>>(),
        "noticesUnread": page.notices_unread,
        "suspensions": page.suspensions,
        "notes": page.notes,
        "requests": http_rows::<_, LoggedRequest>(&page.requests),
        "audit": http_rows::<_, AuditRow>(&page.audit),
    })
}

/// Shown instead of a verification code, which is stored only as a hash.
const MASKED: &str = "******";

/// Formats the page as text: a header, and a section for each kind of rows.
pub fn text_of(page: &SupportPage) -> String {
    [
        header(page),
        section_table(
            "Suspensions",
            ["since", "until", "lifted", "scope", "actor", "reason"],
            &page.suspensions,
            |row| {
                row![
                    row.created_at,
                    or_empty(row.ends_at),
                    or_empty(row.lifted_at),
                    row.scope.name(),
                    row.actor,
                    row.reason
                ]
            },
        ),
        section_table("Notes", ["id", "at", "author", "note"], &page.notes, |row| {
            row![row.id, row.created_at, row.author, row.content]
        }),
        titled("Issues", &page.issues, issue_table),
        section_table("Identities", ["provider", "linked", "last used"], &page.identities, |row| {
            row![row.key.provider.name(), row.linked_at, row.last_used_at]
        }),
        section_table("Devices", ["device", "signed in", "last used"], &page.devices, |row| {
            row![row.label, row.signed_in_at, row.last_used_at]
        }),
        section_table("Active codes", ["purpose", "code", "attempts left", "expires"], &page.live_codes, |row| {
            row![row.purpose, MASKED, row.tries_left, row.expires_at]
        }),
        section_table("Codes sent", ["at", "client network"], &page.sent_codes, |row| {
            row![row.sent_at, row.client_network]
        }),
        format!("\n\nCode messages\n{}", code_message_table(&page.code_messages)),
        section("Ledger", rows::ENTRY, &page.entries),
        section_table(
            "Manual changes and repairs",
            ["at", "actor", "action", "balance", "reason"],
            &page.changes,
            |row| {
                let action = format!("{} {}", row.action, row.asset.name());
                let balance = format!("{} → {}", row.balance_before, row.balance_after);
                row![row.created_at, row.actor, action, balance, row.reason]
            },
        ),
        section("Orders", rows::ORDER, &page.orders),
        section("Interpretations", rows::CALL, &page.records),
        section("Violations", VIOLATION, &page.violations),
        section_table(
            "Notifications",
            ["at", "kind", "title", "read"],
            &page.notices,
            |InboxItem { notification, read_at }| {
                let read = read_at.map_or_else(|| "unread".to_owned(), |time| time.to_string());
                row![notification.created_at, notification.kind.name(), notification.title, read]
            },
        ),
        section("Requests", rows::REQUEST, &page.requests),
        section("Audit events", rows::AUDIT, &page.audit),
    ]
    .concat()
}

/// Formats requests for codes.
pub fn code_message_table(found: &CodeMessages) -> String {
    let rows = found.items.iter().map(|message| {
        let delivery = message.delivery.as_ref().map(|delivery| match &delivery.code {
            Some(code) => format!("{} ({code})", delivery.status),
            None => delivery.status.clone(),
        });
        row![
            message.asked_at,
            message.channel,
            message.purpose,
            message.outcome,
            or_empty(message.provider.as_ref()),
            or_empty(message.code.as_ref()),
            or_empty(message.receipt.as_ref()),
            or_empty(delivery),
            or_empty(message.words.as_ref()),
        ]
    });
    let header = ["asked", "channel", "purpose", "outcome", "provider", "code", "receipt", "delivery", "words"];
    let table = if found.items.is_empty() { "none".to_owned() } else { table(header, rows) };
    match &found.receipts_failure {
        Some(failure) => format!("{table}\nThe provider told no deliveries: {failure}"),
        None => table,
    }
}

fn header(page: &SupportPage) -> String {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".into());
    let (user, profile) = (&page.kept, &page.profile);
    let rows = [
        row!["user", user.id],
        row!["phone number", or_none(&user.phone_number)],
        row!["email", or_none(&user.email)],
        row!["registered", user.created_at],
        row!["nickname", profile.nickname],
        row!["gender", profile.gender.name()],
        row!["birthday", or_none(&profile.birthday)],
        row!["signature", profile.signature],
        row!["history records", page.castings],
        row!["violations", page.violations_total],
        row!["unread notifications", page.notices_unread],
    ];
    let accounts = page.accounts.iter().map(|(asset, account)| {
        let suspended = if account.suspended_at.is_some() { " (suspended)" } else { "" };
        [format!("{}s", asset.name()), format!("{}{suspended}", account.balance)]
    });
    table(["", ""], rows.into_iter().chain(accounts))
}

fn section_table<T, const N: usize>(
    title: &str,
    header: [&str; N],
    rows: &[T],
    row: impl Fn(&T) -> [String; N],
) -> String {
    titled(title, rows, |rows| table(header, rows.iter().map(row)))
}

/// Formats rows with the columns of the console.
fn section<R>(title: &str, columns: &[Column<R>], rows: &[R]) -> String {
    titled(title, rows, |rows| list_of(columns, rows))
}

fn titled<T>(title: &str, rows: &[T], table: impl FnOnce(&[T]) -> String) -> String {
    let body = if rows.is_empty() { "none".to_owned() } else { table(rows) };
    format!("\n\n{title}\n{body}")
}
