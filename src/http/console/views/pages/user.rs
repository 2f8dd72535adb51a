//! The page of a user: the answer to missing coins, balances, activity, notes and actions.

use maud::{Markup, html};

use super::missing_coins::{self, CoinVerdict};
use super::rows::{self, AuditEventRow, CallRow, EntryRow, OrderRow, RequestRow, ViolationRow};
use crate::http::console::views::{
    context::{Right, ViewContext, href, user_href},
    format::{self, Timestamp, with_query},
    forms::{self, Control, Field, ProofField, field},
    layout::{self, PageBody, Place},
    lists::{self, Column, number, text, time},
    masked::{Masked, masked},
    parts::{self, facts, or_dash, panel, panel_with},
    texts::{self, Text, Tone},
};

/// The balance of an asset.
#[derive(Clone, Debug)]
pub struct Balance {
    /// `coin` or `point`.
    pub asset: String,
    pub balance: i64,
    pub entries: i64,
    pub suspended_at: Option<Timestamp>,
}

/// An inconsistency of the user's data.
#[derive(Clone, Debug)]
pub struct IssueRow {
    pub code: String,
    pub detail: String,
    pub is_fixable: bool,
}

#[derive(Clone, Debug)]
pub struct DeviceRow {
    pub id: String,
    pub label: String,
    pub signed_in_at: Timestamp,
    pub last_used_at: Timestamp,
}

/// A request for a verification code, with its outcome.
#[derive(Clone, Debug)]
pub struct CodeRow {
    pub asked_at: Timestamp,
    pub channel: String,
    pub purpose: String,
    pub outcome: String,
    pub provider: Option<String>,
    pub code: Option<String>,
    pub receipt: Option<String>,
    pub delivery: Option<String>,
    pub words: Option<String>,
}

/// A manual change or repair of a balance.
#[derive(Clone, Debug)]
pub struct ChangeRow {
    pub at: Timestamp,
    pub actor: String,
    pub action: String,
    pub asset: String,
    pub before: i64,
    pub after: i64,
    pub reason: String,
}

#[derive(Clone, Debug)]
pub struct NoticeRow {
    pub at: Timestamp,
    pub kind: String,
    pub title: String,
    pub read_at: Option<Timestamp>,
}

/// The forms of the page, with what was typed and the errors of a rejected attempt.
#[derive(Clone, Debug, Default)]
pub struct UserForms {
    /// The action that was rejected, as in its address: `grant`, `points`, `note`.
    pub rejected: Option<(String, String)>,
    pub amount: String,
    pub amount_error: Option<String>,
    pub reason: String,
    pub reason_error: Option<String>,
    pub step_up: ProofField,
    /// The largest grant of this role in one act, if it is capped.
    pub grant_cap: Option<i64>,
}

/// The page of a user.
#[derive(Clone, Debug)]
pub struct UserPage {
    pub id: String,
    pub nickname: String,
    pub gender: String,
    pub birthday: Option<String>,
    pub signature: String,
    pub phone_number: Option<Masked>,
    pub email: Option<Masked>,
    pub created_at: Timestamp,
    pub last_seen_at: Option<Timestamp>,
    pub balances: Vec<Balance>,
    pub verdict: CoinVerdict,
    pub issues: Vec<IssueRow>,
    pub entries: Vec<EntryRow>,
    pub changes: Vec<ChangeRow>,
    pub orders: Vec<OrderRow>,
    pub devices: Vec<DeviceRow>,
    pub code_messages: Vec<CodeRow>,
    /// The failure of the question for delivery receipts.
    pub delivery_error: Option<String>,
    pub castings: i64,
    pub calls: Vec<CallRow>,
    pub violations: Vec<ViolationRow>,
    pub violations_total: i64,
    pub notices: Vec<NoticeRow>,
    pub notices_unread: u64,
    pub requests: Vec<RequestRow>,
    pub audit: Vec<AuditEventRow>,
    pub forms: UserForms,
}

/// Renders the page of a user.
pub fn page(cx: &ViewContext, user: &UserPage) -> Markup {
    let title = if user.nickname.is_empty() { user.id.clone() } else { user.nickname.clone() };
    let body = html! {
        (layout::heading(&title, None, &html! { (parts::copyable(cx, &user.id)) }))
        (missing_coins::panel(cx, &user.id, &user.verdict))
        div.columns {
            (panel("identity", cx.t(Text::Identity), &identity(cx, user)))
            (panel("balances", cx.t(Text::Balances), &balances(cx, user)))
        }
        (issues(cx, user))
        (sections(cx, user))
    };
    layout::page(cx, &PageBody::new(title, Place::Users, body))
}

fn act(user: &UserPage, path: &str) -> String {
    format!("{}/{path}", user_href(&user.id))
}

fn identity(cx: &ViewContext, user: &UserPage) -> Markup {
    let address = |value: &Option<Masked>, name| match value {
        Some(value) => masked(cx, value, name),
        None => parts::dash(cx),
    };
    html! {
        (facts(cx, &[
            (Text::PhoneNumber, address(&user.phone_number, Text::PhoneNumber)),
            (Text::Email, address(&user.email, Text::Email)),
            (Text::Registered, cx.time(user.created_at)),
            (Text::LastSeen, user.last_seen_at.map_or_else(|| parts::dash(cx), |at| cx.time(at))),
            (Text::Gender, html! { (texts::code(cx.language, &user.gender)) }),
            (Text::Birthday, or_dash(cx, user.birthday.as_deref())),
            (Text::Signature, or_dash(cx, Some(&user.signature))),
            (Text::Castings, html! { (format::number(user.castings)) }),
        ]))
    }
}

fn balances(cx: &ViewContext, user: &UserPage) -> Markup {
    html! {
        dl.balances { @for balance in &user.balances {
            div {
                dt { (texts::code(cx.language, &balance.asset)) }
                dd.figure { (format::number(balance.balance)) }
                dd.hint { (texts::entries(cx.language, balance.entries)) }
                @if let Some(at) = balance.suspended_at { dd { (parts::badge(Tone::Bad, cx.t(Text::AccountSuspended))) " " (cx.ago(at)) } }
            }
        } }
        @if cx.may(Right::GrantCoins) {
            div.actions {
                (parts::action_with(cx.t(Text::GrantCoins), "", is_rejected(user, "grant"), &grant(cx, user, "grant")))
            }
        }
    }
}

fn is_rejected(user: &UserPage, path: &str) -> bool {
    user.forms.rejected.as_ref().is_some_and(|(action, _)| action == path)
}

fn grant(cx: &ViewContext, user: &UserPage, path: &str) -> Markup {
    let state = &user.forms;
    let is_rejected = is_rejected(user, path);
    let typed = |value: &'_ String| if is_rejected { value.clone() } else { String::new() };
    let (amount, reason) = (typed(&state.amount), typed(&state.reason));
    let id = format!("{path}-amount");
    let error = state.amount_error.as_deref().filter(|_| is_rejected);
    let detail = state.rejected.as_ref().filter(|_| is_rejected).map(|(_, detail)| detail.as_str());
    forms::post(
        cx,
        &act(user, path),
        &html! {
            (forms::rejected(cx, detail))
            (field(cx, &Field::new("amount", Text::AmountOfChange, Control::Digits, &amount).id(&id).required().hint(Text::AmountHint).error(error)))
            @if let Some(cap) = state.grant_cap { p.hint { (texts::grant_cap(cx.language, cap)) } }
            (forms::reason(cx, path, &reason, state.reason_error.as_deref().filter(|_| is_rejected)))
            (forms::step_up(cx, path, &state.step_up))
            button.button.primary type="submit" { (cx.t(if path == "grant" { Text::GrantCoins } else { Text::AdjustPoints })) }
        },
    )
}

fn issues(cx: &ViewContext, user: &UserPage) -> Markup {
    if user.issues.is_empty() {
        return html! {};
    }
    let columns = [text(Text::Issue), text(Text::Detail), text(Text::Repairable)];
    let repair = html! { @if cx.may(Right::SupportUsers) { (forms::button(cx, &act(user, "repair"), cx.t(Text::RepairAccount), "small")) } };
    panel_with(
        "issues",
        cx.t(Text::Issues),
        &repair,
        &lists::table(
            cx,
            Text::Issues,
            &columns,
            user.issues.iter().map(|issue| {
                vec![
                    html! { code { (issue.code) } },
                    html! { (issue.detail) },
                    html! { (cx.t(if issue.is_fixable { Text::Yes } else { Text::NeedsDecision })) },
                ]
            }),
        ),
    )
}

fn sections(cx: &ViewContext, user: &UserPage) -> Markup {
    let mine = |path: &str| with_query(&href(path), &[("user", &user.id)]);
    let all =
        |path: &str, title: Text| html! { a href=(mine(path)) { (cx.t(Text::All)) span.sr { ": " (cx.t(title)) } } };
    html! {
        (table_panel(cx, "ledger", Text::Ledger, &html! { a href=(act(user, "ledger")) { (cx.t(Text::All)) span.sr { ": " (cx.t(Text::Ledger)) } } }, &rows::ENTRY, user.entries.iter().map(|row| rows::entry(cx, row)).collect()))
        (table_panel(cx, "orders", Text::Orders, &all("orders", Text::Orders), &rows::ORDER, user.orders.iter().map(|row| rows::order(cx, row)).collect()))
        (table_panel(cx, "changes", Text::ManualChanges, &html! {}, &CHANGE, user.changes.iter().map(|row| change(cx, row)).collect()))
        (devices(cx, user))
        (codes(cx, user))
        (table_panel(cx, "calls", Text::Interpretations, &html! {}, &rows::CALL, user.calls.iter().map(|row| rows::call(cx, row)).collect()))
        (table_panel(cx, "violations", Text::Violations, &html! { span.hint { (format::number(user.violations_total)) } }, &rows::VIOLATION, user.violations.iter().map(|row| rows::violation(cx, row)).collect()))
        (table_panel(cx, "notices", Text::Notifications, &html! { span.hint { (texts::unread(cx.language, user.notices_unread)) } }, &NOTICE, user.notices.iter().map(|row| vec![
            html! { (row.title) },
            html! { (texts::code(cx.language, &row.kind)) },
            cx.cell_time(row.at),
            row.read_at.map_or_else(|| parts::dash(cx), |at| cx.cell_time(at)),
        ]).collect()))
        (table_panel(cx, "requests", Text::Requests, &all("network-log", Text::Requests), &rows::REQUEST, user.requests.iter().map(|row| rows::request(cx, row)).collect()))
        (table_panel(cx, "audit", Text::Audit, &all("audit", Text::Audit), &rows::AUDIT, user.audit.iter().map(|row| rows::audit(cx, row)).collect()))
    }
}

const CHANGE: [Column; 5] =
    [time(Text::Time), text(Text::Actor), text(Text::Action), number(Text::Balance), text(Text::Reason)];
const NOTICE: [Column; 4] = [text(Text::Title), text(Text::MessageKind), time(Text::Time), time(Text::ReadAt)];

fn change(cx: &ViewContext, row: &ChangeRow) -> Vec<Markup> {
    vec![
        cx.cell_time(row.at),
        html! { code.actor { (row.actor) } },
        html! { (texts::code(cx.language, &row.action)) " · " (texts::code(cx.language, &row.asset)) },
        html! { (format::number(row.before)) " → " (format::number(row.after)) },
        html! { (row.reason) },
    ]
}

/// Renders a panel with a table, which is closed while it has no rows.
fn table_panel(
    cx: &ViewContext,
    id: &str,
    title: Text,
    beside: &Markup,
    columns: &[Column],
    rows: Vec<Vec<Markup>>,
) -> Markup {
    panel_with(
        id,
        cx.t(title),
        beside,
        &html! {
            @if rows.is_empty() { p.empty { (cx.t(Text::NothingYet)) } } @else { (lists::table(cx, title, columns, rows)) }
        },
    )
}

fn devices(cx: &ViewContext, user: &UserPage) -> Markup {
    let columns = [text(Text::Device), time(Text::SignedIn), time(Text::LastUsed)];
    table_panel(
        cx,
        "devices",
        Text::Devices,
        &html! {},
        &columns,
        user.devices
            .iter()
            .map(|device| {
                vec![html! { (device.label) }, cx.cell_time(device.signed_in_at), cx.cell_time(device.last_used_at)]
            })
            .collect(),
    )
}

fn codes(cx: &ViewContext, user: &UserPage) -> Markup {
    let columns = [
        time(Text::Asked),
        text(Text::Outcome),
        text(Text::Purpose),
        text(Text::Channel),
        text(Text::Delivery),
        text(Text::ProviderAnswer),
        text(Text::Receipt),
    ];
    let rows: Vec<_> = user.code_messages.iter().map(|row| vec![
        cx.cell_time(row.asked_at),
        parts::state(cx, &row.outcome),
        html! { (texts::code(cx.language, &row.purpose)) },
        html! { (texts::code(cx.language, &row.channel)) " " span.hint { (row.provider.as_deref().unwrap_or_default()) } },
        html! { @match &row.delivery { Some(delivery) => (parts::state(cx, delivery)), None => (parts::dash(cx)) } },
        html! { @match &row.code { Some(code) => { code { (code) } " " (row.words.as_deref().unwrap_or_default()) }, None => (parts::dash(cx)) } },
        html! { @match &row.receipt { Some(receipt) => (parts::copyable(cx, receipt)), None => (parts::dash(cx)) } },
    ]).collect();
    panel(
        "codes",
        cx.t(Text::CodeMessages),
        &html! {
            @if let Some(error) = &user.delivery_error { (parts::note(Tone::Notice, &html! { p { (cx.t(Text::NoReceipts)) " " (error) } })) }
            @if rows.is_empty() { p.empty { (cx.t(Text::NoCodeMessages)) } } @else { (lists::table(cx, Text::CodeMessages, &columns, rows)) }
        },
    )
}

/// All ledger entries of a user.
#[derive(Clone, Debug)]
pub struct UserLedger {
    pub user_id: String,
    pub nickname: String,
    /// `coin` or `point`.
    pub asset: String,
    pub listing: lists::Listing<EntryRow>,
}

/// Renders all ledger entries of a user.
pub fn ledger(cx: &ViewContext, page: &UserLedger) -> Markup {
    let path = format!("{}/ledger", user_href(&page.user_id));
    let of = |asset: &str| with_query(&path, &[("asset", asset)]);
    let tab = |text, asset: &str| (text, of(asset), page.asset == asset);
    let title = format!("{} · {}", cx.t(Text::Ledger), page.nickname);
    let view = lists::ListView {
        id: "entries",
        caption: Text::Ledger,
        empty: Text::NothingYet,
        href: of(&page.asset),
        export: None,
    };
    let body = html! {
        (layout::heading(&title, None, &html! { a.button href=(user_href(&page.user_id)) { (cx.t(Text::BackToUser)) } }))
        (lists::tabs(cx, Text::Asset, &[tab(Text::Coins, "coin"), tab(Text::Points, "point")]))
        section.card aria-label=(cx.t(Text::Ledger)) { (lists::list(cx, &view, &rows::ENTRY, &page.listing, |row| rows::entry(cx, row))) }
    };
    layout::page(cx, &PageBody::new(title, Place::Users, body))
}
