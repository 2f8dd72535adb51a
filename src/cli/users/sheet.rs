//! The support page of a user, as JSON and as text.

use serde_json::{Value, json};

use super::{issue_table, issues};
use crate::cli::table;
use yarrow::ops::support::Sheet;

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
        "requests": sheet.requests.iter().map(super::super::logs::json_of).collect::<Vec<_>>(),
        "audit": sheet.audit.iter().map(super::super::audit::json_of).collect::<Vec<_>>(),
    })
}

/// What stands for a code, of which nobody knows more than that it exists.
const MASKED: &str = "******";

pub fn text_of(sheet: &Sheet) -> String {
    let mut text = head_of(sheet);
    sign_ins(&mut text, sheet);
    money(&mut text, sheet);
    words(&mut text, sheet);
    section(&mut text, "Requests", some(&sheet.requests, super::super::logs::table_of));
    section(&mut text, "Seen and changed by administrators", some(&sheet.audit, super::super::audit::table_of));
    text
}

fn section(text: &mut String, title: &str, table: Option<String>) {
    let none = || "none".to_owned();
    text.extend(["\n\n", title, "\n", &table.unwrap_or_else(none)]);
}

fn sign_ins(text: &mut String, sheet: &Sheet) {
    let mut section = |title: &str, table: Option<String>| section(text, title, table);
    section("Wrong", some(&sheet.issues, issue_table));
    section(
        "Signed in",
        some(&sheet.devices, |rows| {
            let row = |row: &yarrow::ops::tokens::Device| {
                [row.label.clone(), row.signed_in_at.to_string(), row.last_used_at.to_string()]
            };
            table(["device", "since", "last used"], rows.iter().map(row))
        }),
    );
    section(
        "Live codes",
        some(&sheet.live_codes, |rows| {
            let row = |row: &yarrow::ops::codes::LiveCode| {
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
}

fn money(text: &mut String, sheet: &Sheet) {
    let mut section = |title: &str, table: Option<String>| section(text, title, table);
    section(
        "Ledger",
        some(&sheet.entries, |rows| {
            let row = |row: &yarrow::ops::ledger::Entry| {
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
            let row = |row: &yarrow::ops::ledger::Change| {
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
            let row = |row: &yarrow::ops::payment::order::Order| {
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
}

/// What the user asked and was told.
fn words(text: &mut String, sheet: &Sheet) {
    let mut section = |title: &str, table: Option<String>| section(text, title, table);
    section(
        "Interpretations",
        some(&sheet.records, |rows| {
            let row = |row: &yarrow::ops::interpretation::Record| {
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
    section(
        "Refused texts",
        some(&sheet.violations, |rows| {
            let row = |row: &yarrow::ops::violations::Recorded| {
                [
                    row.at.to_string(),
                    row.content_type.clone(),
                    row.violation_type.clone(),
                    row.provider.clone(),
                    row.masked_text.clone(),
                ]
            };
            table(["at", "kind of text", "type", "by", "text, masked"], rows.iter().map(row))
        }),
    );
    section(
        "Notices",
        some(&sheet.notices, |rows| {
            let row = |row: &yarrow::ops::notifications::Received| {
                [
                    row.notification.created_at.to_string(),
                    row.notification.kind.name().to_owned(),
                    row.notification.title.clone(),
                    row.read_at.map_or_else(|| "unread".to_owned(), |time| time.to_string()),
                ]
            };
            table(["at", "kind", "title", "read"], rows.iter().map(row))
        }),
    );
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
        ["texts refused".to_owned(), sheet.violations_total.to_string()],
        ["unread notices".to_owned(), sheet.notices_unread.to_string()],
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
