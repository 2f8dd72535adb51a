//! The support page of a user, as JSON and as text.

use serde_json::{Value, json};

use super::issue_table;
use crate::cli::{audit, blank, logs, row, shown, table};
use yarrow::{
    http::answers::{AuditRow, LoggedRequest, UserDataIssue},
    ops::{
        codes::LiveCode,
        interpretation::Record,
        ledger::{Change, Entry},
        notifications::Received,
        payment::order::Order,
        support::Sheet,
        violations,
    },
};

pub fn json_of(sheet: &Sheet) -> Value {
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
        "issues": shown::<_, UserDataIssue>(&sheet.issues),
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
        "violations": sheet.violations.iter().map(|violation| json!({
            "id": violation.id.to_string(), "contentType": violation.content_type, "violationType": violation.violation_type,
            "maskedText": violation.masked_text, "provider": violation.provider, "createdAt": violation.at,
        })).collect::<Vec<_>>(),
        "violationsTotal": sheet.violations_total,
        "notices": sheet.notices.iter().map(|received| json!({
            "id": received.notification.id.to_string(), "kind": received.notification.kind.name(),
            "title": received.notification.title, "toEverybody": received.notification.ordinal.is_some(),
            "createdAt": received.notification.created_at, "readAt": received.read_at,
        })).collect::<Vec<_>>(),
        "noticesUnread": sheet.notices_unread,
        "requests": shown::<_, LoggedRequest>(&sheet.requests),
        "audit": shown::<_, AuditRow>(&sheet.audit),
    })
}

/// What stands for a code, of which nobody knows more than that it exists.
const MASKED: &str = "******";

/// The page as text: who it is, and a section for each kind of rows.
pub fn text_of(sheet: &Sheet) -> String {
    let sections = [
        ("Wrong", some(&sheet.issues, issue_table)),
        (
            "Signed in",
            some(&sheet.devices, |rows| {
                table(
                    ["device", "since", "last used"],
                    rows.iter().map(|row| row![row.label, row.signed_in_at, row.last_used_at]),
                )
            }),
        ),
        (
            "Live codes",
            some(&sheet.live_codes, |rows| {
                let row = |row: &LiveCode| row![row.purpose, MASKED, row.tries_left, row.expires_at];
                table(["for", "code", "tries left", "until"], rows.iter().map(row))
            }),
        ),
        (
            "Codes sent",
            some(&sheet.sent_codes, |rows| {
                table(["at", "asked for from"], rows.iter().map(|row| row![row.sent_at, row.client_network]))
            }),
        ),
        (
            "Ledger",
            some(&sheet.entries, |rows| {
                let row = |row: &Entry| {
                    let (change, about) = (format!("{:+}", row.delta), blank(row.reference.as_ref()));
                    row![row.created_at, row.asset.name(), row.kind.name(), change, row.balance_after, about]
                };
                table(["at", "asset", "kind", "change", "balance", "about"], rows.iter().map(row))
            }),
        ),
        (
            "Changed by people and repairs",
            some(&sheet.changes, |rows| {
                let row = |row: &Change| {
                    let action = format!("{} {}", row.action, row.asset.name());
                    let balance = format!("{} → {}", row.balance_before, row.balance_after);
                    row![row.created_at, row.actor, action, balance, row.reason]
                };
                table(["at", "actor", "action", "balance", "reason"], rows.iter().map(row))
            }),
        ),
        (
            "Orders",
            some(&sheet.orders, |rows| {
                let row = |row: &Order| {
                    row![row.created_at, row.order_no, row.amount, row.state.name(), blank(row.reason.as_ref())]
                };
                table(["at", "order", "yuan", "state", "reason"], rows.iter().map(row))
            }),
        ),
        (
            "Interpretations",
            some(&sheet.records, |rows| {
                let row = |row: &Record| {
                    let (ms, error) = (blank(row.duration_ms), blank(row.error_class.as_ref()));
                    row![row.created_at, row.trace_id, row.status.name(), ms, error]
                };
                table(["at", "trace", "status", "ms", "error"], rows.iter().map(row))
            }),
        ),
        (
            "Refused texts",
            some(&sheet.violations, |rows| {
                let row = |row: &violations::Recorded| {
                    row![row.at, row.content_type, row.violation_type, row.provider, row.masked_text]
                };
                table(["at", "kind of text", "type", "by", "text, masked"], rows.iter().map(row))
            }),
        ),
        (
            "Notices",
            some(&sheet.notices, |rows| {
                let row = |Received { notification, read_at }: &Received| {
                    let read = read_at.map_or_else(|| "unread".to_owned(), |time| time.to_string());
                    row![notification.created_at, notification.kind.name(), notification.title, read]
                };
                table(["at", "kind", "title", "read"], rows.iter().map(row))
            }),
        ),
        ("Requests", some(&sheet.requests, logs::table_of)),
        ("Seen and changed by administrators", some(&sheet.audit, audit::table_of)),
    ];
    sections.into_iter().fold(head_of(sheet), |text, (title, table)| {
        format!("{text}\n\n{title}\n{}", table.as_deref().unwrap_or("none"))
    })
}

fn head_of(sheet: &Sheet) -> String {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".into());
    let (kept, profile) = (&sheet.kept, &sheet.profile);
    let rows = [
        row!["user", kept.id],
        row!["phone number", or_none(&kept.phone_number)],
        row!["email", or_none(&kept.email)],
        row!["since", kept.created_at],
        row!["nickname", profile.nickname],
        row!["gender", profile.gender.name()],
        row!["birthday", or_none(&profile.birthday)],
        row!["signature", profile.signature],
        row!["castings kept", sheet.castings],
        row!["texts refused", sheet.violations_total],
        row!["unread notices", sheet.notices_unread],
    ];
    let accounts = sheet.accounts.iter().map(|(asset, account)| {
        let closed = if account.suspended_at.is_some() { " (closed)" } else { "" };
        [format!("{}s", asset.name()), format!("{}{closed}", account.balance)]
    });
    table(["", ""], rows.into_iter().chain(accounts))
}

/// The table of these rows, if there are any.
fn some<T>(rows: &[T], table: impl FnOnce(&[T]) -> String) -> Option<String> {
    (!rows.is_empty()).then(|| table(rows))
}
