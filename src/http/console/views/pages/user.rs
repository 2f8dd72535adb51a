//! The page of a user: the answer to missing coins, balances, activity, notes and actions.

use maud::{Markup, html};

use super::{
    missing_coins::{self, CoinVerdict},
    moderation, rows,
};
use crate::{
    domain::{
        divination::interpretation::CallRecord,
        moderation::violations::ViolationRecord,
        money::{ledger::LedgerEntry, payments::order::Order, purchases::purchase::StorePurchase},
        operations::{audit::StoredAuditEvent, network_log::search::Logged},
    },
    http::console::views::{
        cells::{self, Column},
        context::{Right, ViewContext, href, user_href},
        format::{self, Timestamp, with_query},
        forms::{self, Control, Field, ProofField, field},
        layout::{self, PageBody, Place},
        lists::{self, Heading, number, text, time},
        masked::{Masked, masked},
        parts::{self, facts, or_dash, panel, panel_with},
        texts::{self, Text, Tone},
    },
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

/// An identity at another service with which the user signs in.
#[derive(Clone, Debug)]
pub struct IdentityRow {
    /// The code of the service's name.
    pub provider: String,
    pub linked_at: Timestamp,
    pub last_used_at: Timestamp,
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
    /// Empty for a change of others, unless the viewer is an owner.
    pub reason: String,
}

/// A note of the staff.
#[derive(Clone, Debug)]
pub struct NoteRow {
    pub id: String,
    pub at: Timestamp,
    pub author: String,
    pub text: String,
    /// True if the viewer may remove it.
    pub is_removable: bool,
}

/// A suspension of the user.
#[derive(Clone, Debug)]
pub struct SuspensionRow {
    /// `account`, `nickname` or `review`.
    pub scope: String,
    pub since: Timestamp,
    pub until: Option<Timestamp>,
    pub lifted_at: Option<Timestamp>,
    pub actor: String,
    pub reason: String,
    pub is_in_force: bool,
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
    /// The action that was rejected, as in its address (`grant`, `suspend`, `notes`), with the message.
    pub rejected: Option<(String, String)>,
    pub until: String,
    pub until_error: Option<String>,
    pub phone_number: String,
    pub phone_error: Option<String>,
    pub note: String,
    pub note_error: Option<String>,
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
    pub entries: Vec<LedgerEntry>,
    pub changes: Vec<ChangeRow>,
    pub orders: Vec<Order>,
    pub purchases: Vec<StorePurchase>,
    pub identities: Vec<IdentityRow>,
    pub devices: Vec<DeviceRow>,
    pub code_messages: Vec<CodeRow>,
    /// The failure of the question for delivery receipts.
    pub delivery_error: Option<String>,
    pub castings: i64,
    pub calls: Vec<CallRecord>,
    pub violations: Vec<ViolationRecord>,
    pub violations_total: i64,
    pub notices: Vec<NoticeRow>,
    pub notices_unread: u64,
    pub requests: Vec<Logged>,
    /// Newest first.
    pub suspensions: Vec<SuspensionRow>,
    pub notes: Vec<NoteRow>,
    pub audit: Vec<StoredAuditEvent>,
    pub forms: UserForms,
}

/// Renders the page of a user.
pub fn page(cx: &ViewContext, user: &UserPage) -> Markup {
    let title = if user.nickname.is_empty() { user.id.clone() } else { user.nickname.clone() };
    let is_suspended = scopes_in_force(user).any(|scope| scope == "account");
    let body = html! {
        (layout::heading(&title, None, &html! { @if is_suspended { (parts::state(cx, "suspended")) } span.hint { (cx.t(Text::Id)) } (parts::copyable(cx, &user.id)) }))
        @if is_suspended { (parts::note(Tone::Bad, &html! { p { (cx.t(Text::UserSuspended)) } })) }
        @if cx.may(Right::SupportUsers) {
            (missing_coins::panel(cx, &user.id, &user.verdict))
            div.columns {
                (panel("identity", cx.t(Text::Identity), &identity(cx, user)))
                (panel("balances", cx.t(Text::Balances), &balances(cx, user)))
            }
        } @else { (panel("identity", cx.t(Text::Identity), &identity(cx, user))) }
        (account_acts(cx, user))
        (notes(cx, user))
        @if cx.may(Right::SupportUsers) {
            (issues(cx, user))
            (sections(cx, user))
        } @else { (violations(cx, user)) }
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
            (Text::Nickname, or_dash(cx, Some(&user.nickname))),
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

/// The typed values of a form whose last attempt was rejected.
struct Rejected<'page> {
    detail: Option<&'page str>,
    reason: &'page str,
    reason_error: Option<&'page str>,
}

impl<'page> Rejected<'page> {
    fn of(user: &'page UserPage, path: &str) -> Self {
        if !is_rejected(user, path) {
            return Self { detail: None, reason: "", reason_error: None };
        }
        let forms = &user.forms;
        let detail = forms.rejected.as_ref().map(|(_, detail)| detail.as_str());
        Self { detail, reason: &forms.reason, reason_error: forms.reason_error.as_deref() }
    }

    /// Returns a typed value with its error.
    fn typed(&self, value: &'page str, error: Option<&'page str>) -> (&'page str, Option<&'page str>) {
        if self.detail.is_some() { (value, error) } else { ("", None) }
    }
}

/// Renders a form that asks for a reason, with more fields before it.
fn act_form(cx: &ViewContext, user: &UserPage, path: &str, (label, hint): (Text, Text), fields: &Markup) -> Markup {
    let rejected = Rejected::of(user, path);
    let form = forms::post(
        cx,
        &act(user, path),
        &html! {
            (forms::rejected(cx, rejected.detail))
            p.hint { (cx.t(hint)) }
            (fields)
            (forms::reason(cx, path, rejected.reason, rejected.reason_error))
            button.button.primary type="submit" { (cx.t(label)) }
        },
    );
    parts::action_with(cx.t(label), "", is_rejected(user, path), &form)
}

/// The scopes of suspensions, with their labels.
const SCOPES: [(&str, Text); 3] =
    [("account", Text::ScopeAccount), ("nickname", Text::ScopeNickname), ("review", Text::ScopeReview)];

const SUSPENSION: [Heading; 6] = [
    text(Text::Scope),
    time(Text::StartedAt),
    time(Text::Until),
    time(Text::Lifted),
    text(Text::Actor),
    text(Text::Reason),
];

fn scopes_in_force(user: &UserPage) -> impl Iterator<Item = &str> {
    user.suspensions.iter().filter(|row| row.is_in_force).map(|row| row.scope.as_str())
}

/// Returns the options of a field for scopes in force, or for those that are not.
fn scope_options(cx: &ViewContext, user: &UserPage, in_force: bool) -> Vec<(&'static str, String)> {
    let is_offered =
        |(scope, _): &&(&str, Text)| scopes_in_force(user).any(|suspended| suspended == *scope) == in_force;
    SCOPES.iter().filter(is_offered).map(|(scope, label)| (*scope, cx.t(*label).to_owned())).collect()
}

fn scope_field(cx: &ViewContext, id: &str, options: Vec<(&str, String)>) -> Markup {
    field(cx, &Field::new("scope", Text::Scope, Control::Select(options), "").id(id).required())
}

/// Renders the state of the account with the acts on it.
fn account_acts(cx: &ViewContext, user: &UserPage) -> Markup {
    let time_or_dash = |at: Option<Timestamp>| at.map_or_else(|| parts::dash(cx), |at| cx.cell_time(at));
    let (suspended, free) = (scope_options(cx, user, true), scope_options(cx, user, false));
    let rows: Vec<_> = user
        .suspensions
        .iter()
        .map(|row| {
            let label = SCOPES.iter().find(|(scope, _)| *scope == row.scope).map(|(_, label)| cx.t(*label));
            vec![
                html! { (label.unwrap_or(&row.scope)) },
                cx.cell_time(row.since),
                time_or_dash(row.until),
                time_or_dash(row.lifted_at),
                html! { code { (row.actor) } },
                html! { (row.reason) },
            ]
        })
        .collect();
    panel(
        "account",
        cx.t(Text::AccountState),
        &html! {
            @if rows.is_empty() { p.quiet { (cx.t(Text::NeverSuspended)) } } @else { (lists::table(cx, Text::Suspensions, &SUSPENSION, rows)) }
            div.actions {
                @if cx.may(Right::Moderate) {
                    @if !suspended.is_empty() { (act_form(cx, user, "unsuspend", (Text::ResumeUser, Text::ReasonHint), &scope_field(cx, "unsuspend-scope", suspended))) }
                    @if !free.is_empty() { (suspend(cx, user, free)) }
                    @if !user.nickname.is_empty() { (act_form(cx, user, "reset-nickname", (Text::ResetNickname, Text::ResetNicknameHint), &html! {})) }
                }
                @if cx.may(Right::SupportUsers) { (move_phone(cx, user)) }
                @if cx.may(Right::Administer) {
                    (export(cx, user))
                    (forms::button(cx, &act(user, "erase"), cx.t(Text::EraseUser), "danger"))
                }
            }
        },
    )
}

fn suspend(cx: &ViewContext, user: &UserPage, scopes: Vec<(&str, String)>) -> Markup {
    let (until, error) = Rejected::of(user, "suspend").typed(&user.forms.until, user.forms.until_error.as_deref());
    let until = Field::new("endsAt", Text::SuspendUntil, Control::Moment, until).id("suspend-until").error(error);
    let fields = html! { (scope_field(cx, "suspend-scope", scopes)) (field(cx, &until.hint(Text::SuspendUntilHint))) };
    act_form(cx, user, "suspend", (Text::SuspendUser, Text::SuspendHint), &fields)
}

fn move_phone(cx: &ViewContext, user: &UserPage) -> Markup {
    let rejected = Rejected::of(user, "move");
    let (number, error) = rejected.typed(&user.forms.phone_number, user.forms.phone_error.as_deref());
    let number = Field::new("phoneNumber", Text::NewPhoneNumber, Control::Text, number).id("move-phone").required();
    let fields = html! {
        (field(cx, &number.error(error)))
        (forms::step_up(cx, "move", &user.forms.step_up))
    };
    act_form(cx, user, "move", (Text::MoveAccount, Text::MoveAccountHint), &fields)
}

fn export(cx: &ViewContext, user: &UserPage) -> Markup {
    let rejected = Rejected::of(user, "export");
    let form = forms::download(
        cx,
        &act(user, "export"),
        &html! {
            (forms::rejected(cx, rejected.detail))
            p.hint { (cx.t(Text::ExportHint)) }
            (forms::reason(cx, "export", rejected.reason, rejected.reason_error))
            (forms::step_up(cx, "export", &user.forms.step_up))
            button.button.primary type="submit" { (cx.t(Text::ExportData)) }
        },
    );
    parts::action_with(cx.t(Text::ExportData), "", is_rejected(user, "export"), &form)
}

/// Renders the page that confirms the deletion of an account.
pub fn confirm_erasure(cx: &ViewContext, confirmation: &forms::ConfirmationView) -> Markup {
    layout::page(cx, &PageBody::new(confirmation.title.clone(), Place::Users, forms::confirmation(cx, confirmation)))
}

fn notes(cx: &ViewContext, user: &UserPage) -> Markup {
    let rejected = Rejected::of(user, "notes");
    let (typed, error) = rejected.typed(&user.forms.note, user.forms.note_error.as_deref());
    let note = Field::new("text", Text::NewNote, Control::Area, typed).id("note-text").required();
    panel(
        "notes",
        cx.t(Text::Notes),
        &html! {
            @if user.notes.is_empty() { p.empty { (cx.t(Text::NoNotes)) } }
            @for note in &user.notes {
                blockquote.reply {
                    p.message { (note.text) }
                    p.hint { code { (note.author) } " · " (cx.time(note.at)) }
                    @if note.is_removable { (forms::button(cx, &act(user, &format!("notes/{}/remove", note.id)), cx.t(Text::RemoveNote), "small")) }
                }
            }
            @if cx.may(Right::FindUsers) { (forms::post(cx, &act(user, "notes"), &html! {
                (forms::rejected(cx, rejected.detail))
                (field(cx, &note.hint(Text::NoteHint).max_length(1000).error(error)))
                button.button.primary type="submit" { (cx.t(Text::AddNote)) }
            })) }
        },
    )
}

fn violations(cx: &ViewContext, user: &UserPage) -> Markup {
    let total = html! { span.hint { (format::number(user.violations_total)) } };
    row_panel(cx, "violations", Text::Violations, &total, moderation::VIOLATION, &user.violations)
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
    let mine = |path: &str| with_query(&href(path), &[("userId", &user.id)]);
    let all =
        |path: &str, title: Text| html! { a href=(mine(path)) { (cx.t(Text::All)) span.sr { ": " (cx.t(title)) } } };
    html! {
        (row_panel(cx, "ledger", Text::Ledger, &html! { a href=(act(user, "ledger")) { (cx.t(Text::All)) span.sr { ": " (cx.t(Text::Ledger)) } } }, rows::ENTRY, &user.entries))
        (row_panel(cx, "orders", Text::Orders, &all("orders", Text::Orders), rows::ORDER, &user.orders))
        (row_panel(cx, "purchases", Text::Purchases, &all("purchases", Text::Purchases), rows::PURCHASE, &user.purchases))
        (table_panel(cx, "changes", Text::ManualChanges, &html! {}, &CHANGE, user.changes.iter().map(|row| change(cx, row)).collect()))
        (table_panel(cx, "identities", Text::Identities, &html! {}, &IDENTITY, user.identities.iter().map(|row| vec![
            html! { (texts::code(cx.language, &row.provider)) },
            cx.cell_time(row.linked_at),
            cx.cell_time(row.last_used_at),
        ]).collect()))
        (devices(cx, user))
        (codes(cx, &user.code_messages, user.delivery_error.as_deref()))
        (row_panel(cx, "calls", Text::Interpretations, &html! {}, rows::CALL, &user.calls))
        (violations(cx, user))
        (table_panel(cx, "notices", Text::Notifications, &html! { span.hint { (texts::unread(cx.language, user.notices_unread)) } }, &NOTICE, user.notices.iter().map(|row| vec![
            html! { (row.title) },
            html! { (texts::code(cx.language, &row.kind)) },
            cx.cell_time(row.at),
            row.read_at.map_or_else(|| parts::dash(cx), |at| cx.cell_time(at)),
        ]).collect()))
        (row_panel(cx, "requests", Text::Requests, &all("network-log", Text::Requests), rows::REQUEST, &user.requests))
        (row_panel(cx, "audit", Text::Audit, &all("audit", Text::Audit), rows::AUDIT, &user.audit))
    }
}

const CHANGE: [Heading; 5] =
    [time(Text::Time), text(Text::Actor), text(Text::Action), number(Text::Balance), text(Text::Reason)];
const IDENTITY: [Heading; 3] = [text(Text::IdentityService), time(Text::Linked), time(Text::LastUsed)];
const NOTICE: [Heading; 4] = [text(Text::Title), text(Text::MessageKind), time(Text::Time), time(Text::ReadAt)];

fn change(cx: &ViewContext, row: &ChangeRow) -> Vec<Markup> {
    vec![
        cx.cell_time(row.at),
        html! { code.actor { (row.actor) } },
        html! { (texts::code(cx.language, &row.action)) " · " (texts::code(cx.language, &row.asset)) },
        html! { (format::number(row.before)) " → " (format::number(row.after)) },
        or_dash(cx, Some(&row.reason)),
    ]
}

/// Renders a panel with the newest rows of a list.
fn row_panel<R>(cx: &ViewContext, id: &str, title: Text, beside: &Markup, columns: &[Column<R>], rows: &[R]) -> Markup {
    let cells = rows.iter().map(|row| cells::cells(cx, columns, row)).collect();
    table_panel(cx, id, title, beside, &cells::headings(columns), cells)
}

/// Renders a panel with a table, which is closed while it has no rows.
fn table_panel(
    cx: &ViewContext,
    id: &str,
    title: Text,
    beside: &Markup,
    columns: &[Heading],
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
    let columns = [text(Text::Device), time(Text::SignedIn), time(Text::LastUsed), text(Text::Action)];
    let end_all = html! { @if !user.devices.is_empty() { (forms::button(cx, &act(user, "devices/end"), cx.t(Text::EndAllDevices), "small")) } };
    let end = |id: &str| forms::button(cx, &act(user, &format!("devices/{id}/end")), cx.t(Text::EndDevice), "small");
    table_panel(
        cx,
        "devices",
        Text::Devices,
        &end_all,
        &columns,
        user.devices
            .iter()
            .map(|device| {
                vec![
                    html! { (device.label) },
                    cx.cell_time(device.signed_in_at),
                    cx.cell_time(device.last_used_at),
                    end(&device.id),
                ]
            })
            .collect(),
    )
}

/// Renders requests for codes, and the reason why the provider told no deliveries.
pub fn codes(cx: &ViewContext, messages: &[CodeRow], delivery_error: Option<&str>) -> Markup {
    let columns = [
        time(Text::Asked),
        text(Text::Outcome),
        text(Text::Purpose),
        text(Text::Channel),
        text(Text::Delivery),
        text(Text::ProviderAnswer),
        text(Text::Receipt),
    ];
    let rows: Vec<_> = messages.iter().map(|row| vec![
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
            @if let Some(error) = delivery_error { (parts::note(Tone::Notice, &html! { p { (cx.t(Text::NoReceipts)) " " (error) } })) }
            @if rows.is_empty() { p.empty { (cx.t(Text::NoCodeMessages)) } } @else { (lists::table(cx, Text::CodeMessages, &columns, rows)) }
        },
    )
}
