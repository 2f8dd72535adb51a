//! Purchases in app stores: the list, and one purchase with its notifications.

use maud::{Markup, html};

use super::rows::{self, EntryRow};
use crate::http::console::views::{
    context::{ViewContext, href, purchase_href},
    format::{self, ShownMoney, Timestamp, with_query},
    forms::{self, Control, Field},
    layout::{self, PageBody, Place},
    lists::{self, Column, Filters, ListView, Listing, number, text, time},
    parts::{self, facts, panel},
    texts::{self, Text},
};

/// A purchase in a list.
#[derive(Clone, Debug)]
pub struct PurchaseRow {
    pub id: String,
    pub store: String,
    /// Made in the store's sandbox, at no cost.
    pub is_test: bool,
    pub user_id: Option<String>,
    pub product: Option<String>,
    /// If the store tells the price.
    pub amount: Option<ShownMoney>,
    /// `coin` or `point`.
    pub asset: String,
    /// The number of coins or points, with bonus.
    pub count: i64,
    pub state: String,
    pub reason: Option<String>,
    pub created_at: Timestamp,
}

/// The list with its filters.
#[derive(Clone, Debug)]
pub struct PurchaseList {
    pub state: String,
    pub user: String,
    /// Errors of fields that could not be read, by name.
    pub errors: Vec<(String, String)>,
    pub listing: Listing<PurchaseRow>,
}

/// A notification of a store.
#[derive(Clone, Debug)]
pub struct PurchaseMessageRow {
    pub id: String,
    pub kind: String,
    pub verdict: String,
    pub received_at: Timestamp,
}

/// A purchase with everything recorded about it.
#[derive(Clone, Debug)]
pub struct PurchasePage {
    pub row: PurchaseRow,
    pub nickname: String,
    /// Apple's transaction id or Google's order number.
    pub store_number: Option<String>,
    pub store_product: Option<String>,
    pub quantity: u32,
    pub country: Option<String>,
    pub coins_returned: i64,
    pub coins_written_off: i64,
    /// The balance of the user now.
    pub balance: Option<i64>,
    /// The next call that the store waits for.
    pub next_call_at: Option<Timestamp>,
    pub times: Vec<(Text, Timestamp)>,
    pub messages: Vec<PurchaseMessageRow>,
    pub entries: Vec<EntryRow>,
}

pub const PURCHASE: [Column; 8] = [
    text(Text::Purchase),
    text(Text::Store),
    text(Text::State),
    number(Text::Amount),
    number(Text::CoinsOrPoints),
    text(Text::User),
    time(Text::Created),
    text(Text::Cause),
];

const MESSAGE: [Column; 4] = [time(Text::Received), text(Text::EntryKind), text(Text::State), text(Text::Reference)];

const STATES: [&str; 4] = ["credited", "pending", "revoked", "refused"];

pub fn cells(cx: &ViewContext, row: &PurchaseRow) -> Vec<Markup> {
    vec![
        html! { a href=(purchase_href(&row.id)) { code { (row.product.as_deref().unwrap_or(&row.id)) } } },
        store(cx, row),
        parts::state(cx, &row.state),
        amount(cx, row),
        rows::count(cx, row.count, &row.asset),
        row.user_id.as_ref().map_or_else(|| parts::dash(cx), |user| parts::user_link(cx, user)),
        cx.cell_time(row.created_at),
        parts::or_dash(cx, row.reason.as_deref().map(|reason| texts::code(cx.language, reason))),
    ]
}

fn store(cx: &ViewContext, row: &PurchaseRow) -> Markup {
    html! { (texts::code(cx.language, &row.store)) @if row.is_test { " " span.hint { (texts::code(cx.language, "sandbox")) } } }
}

fn amount(cx: &ViewContext, row: &PurchaseRow) -> Markup {
    match &row.amount {
        Some(amount) => html! { (amount.text()) },
        None => parts::dash(cx),
    }
}

/// Renders the list of purchases.
pub fn list(cx: &ViewContext, purchases: &PurchaseList) -> Markup {
    let query = [("state", purchases.state.as_str()), ("user", &purchases.user)];
    let mut states = vec![("", cx.t(Text::AnyState).to_owned())];
    states.extend(STATES.map(|state| (state, texts::state(cx.language, state).1.to_owned())));
    let error = |name: &str| purchases.errors.iter().find(|(field, _)| field == name).map(|(_, error)| error.as_str());
    let preset =
        |text, state: &str| (text, with_query(&href("purchases"), &[("state", state)]), purchases.state == state);
    let filters = Filters {
        action: href("purchases"),
        fields: vec![
            Field::new("state", Text::State, Control::Select(states), &purchases.state).error(error("state")),
            Field::new("user", Text::UserId, Control::Text, &purchases.user).error(error("user")),
        ],
        presets: vec![
            preset(Text::All, ""),
            preset(Text::StateRefused, "refused"),
            preset(Text::StateRevoked, "revoked"),
        ],
        region: "purchases",
    };
    let view = ListView {
        id: "purchases",
        caption: Text::Purchases,
        empty: Text::NoPurchases,
        href: with_query(&href("purchases"), &query),
        bulk: None,
        export: Some(with_query(&href("purchases/export"), &query)),
    };
    let body = html! {
        (layout::heading(cx.t(Text::Purchases), None, &html! {}))
        (lists::filters(cx, &filters))
        section.card aria-label=(cx.t(Text::Purchases)) { (lists::list(cx, &view, &PURCHASE, &purchases.listing, |row| cells(cx, row))) }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Purchases), Place::Purchases, body))
}

/// Renders a purchase.
pub fn page(cx: &ViewContext, purchase: &PurchasePage) -> Markup {
    let row = &purchase.row;
    let ask = format!("{}/query", purchase_href(&row.id));
    let history = format!("{}/history", purchase_href(&row.id));
    let body = html! {
        (layout::heading(cx.t(Text::Purchase), None, &html! { (parts::copyable(cx, &row.id)) (parts::state(cx, &row.state)) }))
        div.columns {
            (panel("purchase", cx.t(Text::PurchaseDetails), &details(cx, purchase)))
            (panel("times", cx.t(Text::Timeline), &html! {
                ol.timeline { @for (name, at) in &purchase.times { li { span { (cx.t(*name)) } (cx.time(*at)) } } }
                @if let Some(at) = purchase.next_call_at { p.hint { (cx.t(Text::NextStoreCall)) " " (cx.time(at)) } }
                div.actions {
                    (forms::button(cx, &ask, cx.t(Text::AskStore), "primary"))
                    @if row.store == "apple" { (forms::button(cx, &history, cx.t(Text::AskBuyerHistory), "")) }
                }
            }))
        }
        (panel("messages", cx.t(Text::StoreNotifications), &html! {
            @if purchase.messages.is_empty() { p.empty { (cx.t(Text::NothingYet)) } }
            @else { (lists::table(cx, Text::StoreNotifications, &MESSAGE, purchase.messages.iter().map(|message| vec![
                cx.cell_time(message.received_at),
                html! { code { (message.kind) } },
                html! { (texts::code(cx.language, &message.verdict)) },
                html! { code { (message.id) } },
            ]))) }
        }))
        (panel("entries", cx.t(Text::LedgerEntries), &html! {
            @if purchase.entries.is_empty() { p.empty { (cx.t(Text::NothingYet)) } }
            @else { (lists::table(cx, Text::LedgerEntries, &rows::ENTRY, purchase.entries.iter().map(|row| rows::entry(cx, row)))) }
        }))
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Purchase).to_owned(), Place::Purchases, body))
}

fn details(cx: &ViewContext, purchase: &PurchasePage) -> Markup {
    let row = &purchase.row;
    let code = |text: Option<&String>| match text {
        Some(text) => parts::copyable(cx, text),
        None => parts::dash(cx),
    };
    facts(
        cx,
        &[
            (
                Text::User,
                match &row.user_id {
                    Some(user) => html! { (parts::user_link(cx, user)) " " (purchase.nickname) },
                    None => parts::dash(cx),
                },
            ),
            (Text::Store, store(cx, row)),
            (Text::StoreNumber, code(purchase.store_number.as_ref())),
            (Text::StoreProduct, code(purchase.store_product.as_ref())),
            (Text::Quantity, html! { (format::number(i64::from(purchase.quantity))) }),
            (Text::Price, amount(cx, row)),
            (Text::Country, parts::or_dash(cx, purchase.country.as_deref())),
            (Text::CoinsAndBonus, rows::count(cx, row.count, &row.asset)),
            (Text::CoinsReturned, html! { (format::number(purchase.coins_returned)) }),
            (Text::CoinsWrittenOff, html! { (format::number(purchase.coins_written_off)) }),
            (
                Text::BalanceNow,
                match purchase.balance {
                    Some(balance) => html! { (format::number(balance)) },
                    None => parts::dash(cx),
                },
            ),
            (Text::Cause, parts::or_dash(cx, row.reason.as_deref().map(|reason| texts::code(cx.language, reason)))),
        ],
    )
}
