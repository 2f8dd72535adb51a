//! A purchase in an app store with its notifications.

use maud::{Markup, html};

use super::rows;
use crate::{
    domain::money::{
        ledger::LedgerEntry,
        purchases::{
            messages::StoreMessage,
            purchase::{PurchaseStore, StorePurchase},
        },
    },
    http::console::views::{
        cells::{self, Cell, Column, column},
        context::{ViewContext, purchase_href},
        forms,
        layout::{self, PageBody, Place},
        lists::{text, time},
        parts::{self, facts, panel},
        texts::Text,
    },
    types::Timestamp,
};

/// A purchase with everything recorded about it.
#[derive(Clone, Debug)]
pub struct PurchasePage {
    pub purchase: StorePurchase,
    pub nickname: String,
    /// The balance of the user now.
    pub balance: Option<i64>,
    pub times: Vec<(Text, Timestamp)>,
    pub messages: Vec<StoreMessage>,
    pub entries: Vec<LedgerEntry>,
}

const MESSAGE: &[Column<StoreMessage>] = &[
    column(time(Text::Received), |message| Cell::Time(message.received_at)),
    column(text(Text::EntryKind), |message| Cell::Code(message.kind.clone())),
    column(text(Text::State), |message| Cell::word(message.verdict.clone())),
    column(text(Text::Reference), |message| Cell::Code(message.message_id.clone())),
];

/// Renders a purchase.
pub fn page(cx: &ViewContext, page: &PurchasePage) -> Markup {
    let purchase = &page.purchase;
    let id = purchase.id.to_string();
    let (ask, history) = (format!("{}/query", purchase_href(&id)), format!("{}/history", purchase_href(&id)));
    let body = html! {
        (layout::heading(cx.t(Text::Purchase), None, &html! { (parts::copyable(cx, &id)) (parts::state(cx, &purchase.state)) }))
        div.columns {
            (panel("purchase", cx.t(Text::PurchaseDetails), &details(cx, page)))
            (panel("times", cx.t(Text::Timeline), &html! {
                ol.timeline { @for (name, at) in &page.times { li { span { (cx.t(*name)) } (cx.time(*at)) } } }
                @if let Some(at) = purchase.due_at { p.hint { (cx.t(Text::NextStoreCall)) " " (cx.time(at)) } }
                div.actions {
                    (forms::button(cx, &ask, cx.t(Text::AskStore), "primary"))
                    @if purchase.key.store == PurchaseStore::Apple { (forms::button(cx, &history, cx.t(Text::AskBuyerHistory), "")) }
                }
            }))
        }
        (panel("messages", cx.t(Text::StoreNotifications), &cells::table_or(cx, Text::NothingYet, Text::StoreNotifications, MESSAGE, &page.messages)))
        (panel("entries", cx.t(Text::LedgerEntries), &cells::table_or(cx, Text::NothingYet, Text::LedgerEntries, rows::ENTRY, &page.entries)))
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Purchase).to_owned(), Place::Purchases, body))
}

fn details(cx: &ViewContext, page: &PurchasePage) -> Markup {
    let purchase = &page.purchase;
    let code = |text: Option<&str>| text.map_or_else(|| parts::dash(cx), |text| parts::copyable(cx, text));
    let number = |number: i64| Cell::Number(number).markup(cx);
    let in_list = |title: Text| cells::value(cx, rows::PURCHASE, title, purchase);
    facts(
        cx,
        &[
            (Text::User, html! { (in_list(Text::User)) " " (page.nickname) }),
            (Text::Store, in_list(Text::Store)),
            (Text::StoreNumber, code(purchase.store_number())),
            (Text::StoreProduct, code(purchase.store_product.as_deref())),
            (Text::Quantity, number(purchase.quantity.into())),
            (Text::Price, in_list(Text::Amount)),
            (Text::Country, parts::or_dash(cx, purchase.country.as_deref())),
            (Text::CoinsAndBonus, in_list(Text::CoinsOrPoints)),
            (Text::CoinsReturned, number(purchase.returned + purchase.bonus_returned)),
            (Text::CoinsWrittenOff, number(purchase.written_off + purchase.bonus_written_off)),
            (Text::BalanceNow, Cell::optional(page.balance, Cell::Number).markup(cx)),
            (Text::Cause, in_list(Text::Cause)),
        ],
    )
}
