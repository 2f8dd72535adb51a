//! The page of a user: the answer to missing coins, balances, activity, notes and actions.

use maud::{Markup, html};

use super::{
    missing_coins::{self, CoinVerdict},
    moderation, rows,
};
use crate::{
    domain::{
        identity::{
            accounts::CodeMessages, codes::messages::CodeMessageRecord, identities::UserIdentity,
            suspensions::Suspension, tokens::Device, user_data::Issue,
        },
        messaging::notifications::InboxItem,
        money::ledger::AccountChange,
        operations::support::SupportPage,
    },
    http::console::views::{
        cells::{self, Cell, Column, column},
        context::{Right, ViewContext, href, user_href},
        format::{self, with_query},
        forms::{self, Control, Field, Form},
        layout::{self, PageBody, Place},
        lists::{number, text, time},
        masked::{Masked, masked},
        parts::{self, facts, or_dash, panel, panel_with},
        texts::{self, Text, Tone},
    },
    types::{SuspensionScope, UserId},
};

/// The page of a user.
pub struct UserPage {
    pub id: String,
    /// Everything about the user; of a moderator's page only a part.
    pub found: SupportPage,
    pub phone_number: Option<Masked>,
    pub email: Option<Masked>,
    pub verdict: CoinVerdict,
    /// The author whose notes the viewer may remove; none for all.
    pub remover: Option<String>,
    /// The largest grant of the viewer's role in one act, if it is capped.
    pub grant_cap: Option<i64>,
}

/// Renders the page of a user: a head with the acts on the account, and tabs.
pub fn page(cx: &ViewContext, user: &UserPage) -> Markup {
    let nickname = &user.found.profile.nickname;
    let title = if nickname.is_empty() { &user.id } else { nickname };
    let is_suspended = scopes_in_force(cx, user).any(|scope| scope == SuspensionScope::Account);
    let body = html! {
        (layout::heading(title, None, &html! { @if is_suspended { (parts::state(cx, "suspended")) } span.hint { (cx.t(Text::Id)) } (parts::copyable(cx, &user.id)) }))
        @if is_suspended { (parts::note(Tone::Bad, &html! { p { (cx.t(Text::UserSuspended)) } })) }
        section.card.user-head aria-label=(cx.t(Text::Identity)) {
            (identity(cx, user))
            @if cx.may(Right::SupportUsers) { (balances(cx, user)) }
            (account_acts(cx, user))
        }
        (tabs(cx, &tabs_of(cx, user)))
    };
    layout::page(cx, &PageBody::new(title.clone(), Place::Users, body))
}

/// Returns the tabs of the viewer's role: id, title and sections. Lists without rows are left out.
fn tabs_of(cx: &ViewContext, user: &UserPage) -> Vec<(&'static str, Text, Markup)> {
    let suspensions = &user.found.suspensions;
    let suspensions = rows_of(cx, "suspensions", Text::Suspensions, &html! {}, SUSPENSION, suspensions);
    if !cx.may(Right::SupportUsers) {
        let overview = html! { (notes(cx, user)) (suspensions) };
        return vec![
            ("overview", Text::Overview, overview),
            ("moderation", Text::AreaModeration, violations(cx, user)),
        ];
    }
    let overview = html! {
        (missing_coins::panel(cx, &user.id, &user.verdict))
        (issues(cx, user))
        (notes(cx, user))
        (suspensions)
    };
    vec![
        ("overview", Text::Overview, overview),
        ("money", Text::AreaMoney, money(cx, user)),
        (
            "divination",
            Text::AreaDivination,
            rows_of(cx, "calls", Text::Interpretations, &html! {}, rows::CALL, &user.found.records),
        ),
        ("moderation", Text::AreaModeration, violations(cx, user)),
        ("messaging", Text::AreaMessaging, messages(cx, user)),
        ("sign-ins", Text::SignIns, sign_ins(cx, user)),
        ("activity", Text::Activity, activity(cx, user)),
    ]
}

/// Renders sections of which the style sheet shows one: that of the address's fragment, or with a fault, or the first.
fn tabs(cx: &ViewContext, tabs: &[(&str, Text, Markup)]) -> Markup {
    html! {
        nav.tabs data-tabs aria-label=(cx.t(Text::Sections)) {
            ul { @for (id, title, _) in tabs { li { a href={ "#tab-" (id) } { (cx.t(*title)) } } } }
        }
        div.tabbed { @for (id, title, sections) in tabs {
            section.stack id={ "tab-" (id) } aria-label=(cx.t(*title)) tabindex="-1" {
                (sections)
                @if sections.0.is_empty() { p.empty.card { (cx.t(Text::NothingYet)) } }
            }
        } }
    }
}

fn act(user: &UserPage, path: &str) -> String {
    format!("{}/{path}", user_href(&user.id))
}

fn identity(cx: &ViewContext, user: &UserPage) -> Markup {
    let address = |value: &Option<Masked>, name| match value {
        Some(value) => masked(cx, value, name),
        None => parts::dash(cx),
    };
    let SupportPage { kept, profile, devices, requests, .. } = &user.found;
    // A sign-out removes the device, and the use of a device is recorded to the hour.
    let last_seen_at =
        devices.iter().map(|device| device.last_used_at).chain(requests.iter().map(|request| request.at)).max();
    html! {
        (facts(cx, &[
            (Text::PhoneNumber, address(&user.phone_number, Text::PhoneNumber)),
            (Text::Email, address(&user.email, Text::Email)),
            (Text::Registered, cx.time(kept.created_at)),
            (Text::LastSeen, last_seen_at.map_or_else(|| parts::dash(cx), |at| cx.time(at))),
            (Text::Gender, html! { (cx.word(&profile.gender)) }),
            (Text::Birthday, or_dash(cx, profile.birthday.as_deref())),
            (Text::Signature, or_dash(cx, Some(&profile.signature))),
            (Text::Castings, html! { (format::number(user.found.castings)) }),
        ]))
    }
}

fn balances(cx: &ViewContext, user: &UserPage) -> Markup {
    html! {
        dl.balances { @for (asset, account) in &user.found.accounts {
            div {
                dt { (cx.word(asset)) }
                dd.figure { (format::number(account.balance)) }
                dd.hint { (texts::entries(cx.language, account.last_sequence)) }
                @if let Some(at) = account.suspended_at { dd { (parts::badge(Tone::Bad, cx.t(Text::AccountSuspended))) " " (cx.ago(at)) } }
            }
        } }
    }
}

/// Returns the form of an act on the user.
fn act_form<'view>(cx: &'view ViewContext, user: &UserPage, path: &str) -> Form<'view> {
    Form::new(cx, path, act(user, path))
}

fn grant(cx: &ViewContext, user: &UserPage) -> Markup {
    let form = act_form(cx, user, "grant");
    let amount = Field::new("amount", Text::AmountOfChange, Control::Digits, "").required().hint(Text::AmountHint);
    let fields = html! {
        (form.field(amount))
        @if let Some(cap) = user.grant_cap { p.hint { (texts::grant_cap(cx.language, cap)) } }
        (form.reason())
    };
    form.act(cx.t(Text::GrantCoins), "", &fields)
}

/// Renders a form that asks for a reason, with more fields before it.
fn act_with_reason(form: &Form<'_>, cx: &ViewContext, (label, hint): (Text, Text), fields: &Markup) -> Markup {
    form.act(cx.t(label), "", &html! { p.hint { (cx.t(hint)) } (fields) (form.reason()) })
}

const SUSPENSION: &[Column<Suspension>] = &[
    column(text(Text::Scope), |suspension| Cell::word(suspension.scope)),
    column(time(Text::StartedAt), |suspension| Cell::Time(suspension.created_at)),
    column(time(Text::Until), |suspension| Cell::optional(suspension.ends_at, Cell::Time)),
    column(time(Text::Lifted), |suspension| Cell::optional(suspension.lifted_at, Cell::Time)),
    column(text(Text::Actor), |suspension| Cell::Code(suspension.actor.clone())),
    column(text(Text::Reason), |suspension| Cell::text(&suspension.reason)),
];

fn scopes_in_force(cx: &ViewContext, user: &UserPage) -> impl Iterator<Item = SuspensionScope> {
    user.found.suspensions.iter().filter(|suspension| suspension.is_in_force(cx.now)).map(|suspension| suspension.scope)
}

/// Returns the options of a field for scopes in force, or for those that are not.
fn scope_options(cx: &ViewContext, user: &UserPage, in_force: bool) -> Vec<(&'static str, String)> {
    let is_offered =
        |scope: &SuspensionScope| scopes_in_force(cx, user).any(|suspended| suspended == *scope) == in_force;
    let offered: Vec<_> = SuspensionScope::ALL.into_iter().filter(is_offered).collect();
    let option = |scope: &SuspensionScope| (scope.name(), cx.word(scope).to_owned());
    offered.iter().map(option).collect()
}

fn scope_field(form: &Form<'_>, options: Vec<(&str, String)>) -> Markup {
    form.field(Field::new("scope", Text::Scope, Control::Select(options), "").required())
}

/// Renders the acts on the account.
fn account_acts(cx: &ViewContext, user: &UserPage) -> Markup {
    let (suspended, free) = (scope_options(cx, user, true), scope_options(cx, user, false));
    html! {
        div.actions id="account" {
            @if cx.may(Right::GrantCoins) { (grant(cx, user)) }
            @if cx.may(Right::Moderate) {
                @if !suspended.is_empty() { (resume(cx, user, suspended)) }
                @if !free.is_empty() { (suspend(cx, user, free)) }
                @if !user.found.profile.nickname.is_empty() { (act_with_reason(&act_form(cx, user, "reset-nickname"), cx, (Text::ResetNickname, Text::ResetNicknameHint), &html! {})) }
            }
            @if cx.may(Right::SupportUsers) { (move_phone(cx, user)) }
            @if cx.may(Right::Administer) {
                (export(cx, user))
                (forms::button(cx, &act(user, "erase"), cx.t(Text::EraseUser), "danger"))
            }
        }
    }
}

fn resume(cx: &ViewContext, user: &UserPage, scopes: Vec<(&str, String)>) -> Markup {
    let form = act_form(cx, user, "unsuspend");
    act_with_reason(&form, cx, (Text::ResumeUser, Text::ReasonHint), &scope_field(&form, scopes))
}

fn suspend(cx: &ViewContext, user: &UserPage, scopes: Vec<(&str, String)>) -> Markup {
    let form = act_form(cx, user, "suspend");
    let until = Field::new("endsAt", Text::SuspendUntil, Control::Moment, "").hint(Text::SuspendUntilHint);
    let fields = html! { (scope_field(&form, scopes)) (form.field(until)) };
    act_with_reason(&form, cx, (Text::SuspendUser, Text::SuspendHint), &fields)
}

fn move_phone(cx: &ViewContext, user: &UserPage) -> Markup {
    let form = act_form(cx, user, "move");
    let number = form.field(Field::new("phoneNumber", Text::NewPhoneNumber, Control::Text, "").required());
    act_with_reason(&form, cx, (Text::MoveAccount, Text::MoveAccountHint), &number)
}

fn export(cx: &ViewContext, user: &UserPage) -> Markup {
    let form = act_form(cx, user, "export").download();
    act_with_reason(&form, cx, (Text::ExportData, Text::ExportHint), &html! {})
}

/// Renders the page that confirms the deletion of an account.
pub fn confirm_erasure(cx: &ViewContext, confirmation: &forms::ConfirmationView) -> Markup {
    layout::page(cx, &PageBody::new(confirmation.title.clone(), Place::Users, forms::confirmation(cx, confirmation)))
}

fn notes(cx: &ViewContext, user: &UserPage) -> Markup {
    let form = act_form(cx, user, "notes");
    let note = Field::new("content", Text::NewNote, Control::Area, "").required().hint(Text::NoteHint).max_length(1000);
    panel(
        "notes",
        cx.t(Text::Notes),
        &html! {
            @if user.found.notes.is_empty() { p.empty { (cx.t(Text::NoNotes)) } }
            @for note in &user.found.notes {
                blockquote.reply {
                    p.message { (note.content) }
                    p.hint { code { (note.author) } " · " (cx.time(note.created_at)) }
                    @if user.remover.as_ref().is_none_or(|author| *author == note.author) { (forms::button(cx, &act(user, &format!("notes/{}/remove", note.id)), cx.t(Text::RemoveNote), "small")) }
                }
            }
            @if cx.may(Right::FindUsers) { (form.render(cx.t(Text::AddNote), &form.field(note))) }
        },
    )
}

fn violations(cx: &ViewContext, user: &UserPage) -> Markup {
    let total = html! { span.hint { (format::number(user.found.violations_total)) } };
    rows_of(cx, "violations", Text::Violations, &total, moderation::VIOLATION, &user.found.violations)
}

fn issues(cx: &ViewContext, user: &UserPage) -> Markup {
    if user.found.issues.is_empty() {
        return html! {};
    }
    let repair = html! { @if cx.may(Right::SupportUsers) { (forms::button(cx, &act(user, "repair"), cx.t(Text::RepairAccount), "small")) } };
    panel_with("issues", cx.t(Text::Issues), &repair, &cells::table(cx, Text::Issues, ISSUE, &user.found.issues))
}

/// Renders a link to the whole list of a user's rows.
fn all(cx: &ViewContext, address: &str, title: Text) -> Markup {
    html! { a href=(address) { (cx.t(Text::All)) span.sr { ": " (cx.t(title)) } } }
}

fn money(cx: &ViewContext, user: &UserPage) -> Markup {
    let SupportPage { entries, orders, purchases, changes, .. } = &user.found;
    let list = |path: &str, title| all(cx, &with_query(&href(path), &[("userId", &user.id)]), title);
    html! {
        (rows_of(cx, "ledger", Text::Ledger, &all(cx, &act(user, "ledger"), Text::Ledger), rows::ENTRY, entries))
        (rows_of(cx, "orders", Text::Orders, &list("orders", Text::Orders), rows::ORDER, orders))
        (rows_of(cx, "purchases", Text::Purchases, &list("purchases", Text::Purchases), rows::PURCHASE, purchases))
        (rows_of(cx, "changes", Text::ManualChanges, &html! {}, CHANGE, changes))
    }
}

fn messages(cx: &ViewContext, user: &UserPage) -> Markup {
    let unread = html! { span.hint { (texts::unread(cx.language, user.found.notices_unread as u64)) } };
    rows_of(cx, "notices", Text::Notifications, &unread, NOTICE, &user.found.notices)
}

fn sign_ins(cx: &ViewContext, user: &UserPage) -> Markup {
    html! {
        (rows_of(cx, "identities", Text::Identities, &html! {}, IDENTITY, &user.found.identities))
        (devices(cx, user))
        (codes(cx, &user.found.code_messages, &act(user, "receipts"), None))
    }
}

fn activity(cx: &ViewContext, user: &UserPage) -> Markup {
    let list = |path: &str, title| all(cx, &with_query(&href(path), &[("userId", &user.id)]), title);
    html! {
        (rows_of(cx, "requests", Text::Requests, &list("network-log", Text::Requests), rows::REQUEST, &user.found.requests))
        (rows_of(cx, "audit", Text::Audit, &list("audit", Text::Audit), rows::AUDIT, &user.found.audit))
    }
}

const ISSUE: &[Column<Issue>] = &[
    column(text(Text::Issue), |issue| Cell::Code(issue.code.to_owned())),
    column(text(Text::Detail), |issue| Cell::text(&issue.detail)),
    column(text(Text::Repairable), |issue| Cell::Label(if issue.fixable { Text::Yes } else { Text::NeedsDecision })),
];

const CHANGE: &[Column<AccountChange>] = &[
    column(time(Text::Time), |change| Cell::Time(change.created_at)),
    column(text(Text::Actor), |change| Cell::Actor(change.actor.clone())),
    column(text(Text::RecordedAction), |change| Cell::word(change.action.clone()).explained(Cell::word(change.asset))),
    column(number(Text::Balance), |change| {
        Cell::text(format!("{} → {}", format::number(change.balance_before), format::number(change.balance_after)))
    }),
    column(text(Text::Reason), |change| Cell::text(&change.reason)),
];

const IDENTITY: &[Column<UserIdentity>] = &[
    column(text(Text::IdentityService), |identity| Cell::word(format!("identity_{}", identity.key.provider.name()))),
    column(time(Text::Linked), |identity| Cell::Time(identity.linked_at)),
    column(time(Text::LastUsed), |identity| Cell::Time(identity.last_used_at)),
];

const NOTICE: &[Column<InboxItem>] = &[
    column(text(Text::Title), |item| Cell::text(&item.notification.title)),
    column(text(Text::MessageKind), |item| Cell::word(item.notification.kind)),
    column(time(Text::Time), |item| Cell::Time(item.notification.created_at)),
    column(time(Text::ReadAt), |item| Cell::optional(item.read_at, Cell::Time)),
];

/// A device with its user.
const DEVICE: &[Column<(UserId, Device)>] = &[
    column(text(Text::Device), |(_, device)| Cell::text(&device.label)),
    column(time(Text::SignedIn), |(_, device)| Cell::Time(device.signed_in_at)),
    column(time(Text::LastUsed), |(_, device)| Cell::Time(device.last_used_at)),
    column(text(Text::Action), |(user, device)| {
        let page = format!("{}/devices/{}/end", user_href(&user.to_string()), device.id);
        Cell::html(move |cx| forms::button(cx, &page, cx.t(Text::EndDevice), "small"))
    }),
];

const CODE_MESSAGE: &[Column<CodeMessageRecord>] = &[
    column(time(Text::Asked), |message| Cell::Time(message.asked_at)),
    column(text(Text::Outcome), |message| Cell::state(message.outcome.clone())),
    column(text(Text::Purpose), |message| Cell::word(message.purpose.clone())),
    column(text(Text::Channel), |message| {
        Cell::word(message.channel.clone()).explained(Cell::text(message.provider.as_deref().unwrap_or_default()))
    }),
    column(text(Text::Delivery), |message| {
        Cell::optional(message.delivery.as_ref(), |delivery| Cell::state(delivery.status.clone()))
    }),
    column(text(Text::ProviderAnswer), |message| {
        Cell::optional(message.code.clone(), |code| {
            let code = Cell::Code(code);
            match &message.words {
                Some(words) => code.explained(Cell::text(words)),
                None => code,
            }
        })
    }),
    column(text(Text::Receipt), |message| {
        Cell::optional(message.receipt.clone(), |receipt| Cell::html(move |cx| parts::copyable(cx, &receipt)))
    }),
];

/// Renders a panel with the newest rows of a list, or nothing without rows.
fn rows_of<R>(cx: &ViewContext, id: &str, title: Text, beside: &Markup, columns: &[Column<R>], rows: &[R]) -> Markup {
    if rows.is_empty() {
        return html! {};
    }
    panel_with(id, cx.t(title), beside, &cells::table(cx, title, columns, rows))
}

fn devices(cx: &ViewContext, user: &UserPage) -> Markup {
    let devices: Vec<_> = user.found.devices.iter().map(|device| (user.found.kept.id, device.clone())).collect();
    let end_all = forms::button(cx, &act(user, "devices/end"), cx.t(Text::EndAllDevices), "small");
    rows_of(cx, "devices", Text::Devices, &end_all, DEVICE, &devices)
}

/// Renders requests for codes, with the act that asks the provider about an address or the user of a page.
pub fn codes(cx: &ViewContext, messages: &CodeMessages, ask: &str, address: Option<&str>) -> Markup {
    let ask = forms::post(
        cx,
        ask,
        &html! {
            @if let Some(address) = address { input type="hidden" name="q" value=(address); }
            button.button.small type="submit" { (cx.t(Text::AskForDeliveries)) }
        },
    );
    panel_with(
        "codes",
        cx.t(Text::CodeMessages),
        &html! { @if !messages.items.is_empty() { (ask) } },
        &cells::table_or(cx, Text::NoCodeMessages, Text::CodeMessages, CODE_MESSAGE, &messages.items),
    )
}
