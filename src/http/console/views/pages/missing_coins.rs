//! The answer to "my coins are missing" on the page of a user.

use maud::{Markup, html};

use crate::{
    domain::money::{
        missing_coins::{MissingCoins, Reckoning},
        payments::order::Order,
        purchases::purchase::StorePurchase,
    },
    http::console::views::{
        context::{ViewContext, order_href, purchase_href, user_href},
        format::{self, ShownMoney, Timestamp},
        forms::{self, Control, Field, field},
        lists::{self, number, text, time},
        parts,
        texts::{self, Text, Tone},
    },
};

/// Uses that are shown, so that the reply stays in sight. A button leads to all.
const SHOWN_USES: usize = 6;

/// The answer to "my coins are missing".
#[derive(Clone, Debug)]
pub struct CoinVerdict {
    pub cause: MissingCoins,
    pub reckoning: Reckoning,
    /// A trade number from the user's receipt, as typed.
    pub trade_no: String,
    pub trade_error: Option<String>,
}

/// Renders the answer with the reckoning, one button and a reply to copy.
pub fn panel(cx: &ViewContext, user_id: &str, verdict: &CoinVerdict) -> Markup {
    let (tone, title, detail) = explain(cx, verdict);
    html! {
        section.card.verdict.(tone.class()) id="coins" aria-labelledby="coins-title" {
            header.card-head { h2 id="coins-title" { (cx.t(Text::MissingCoins)) } (parts::badge(tone, &title)) }
            (detail)
            (reckoning(cx, &verdict.reckoning))
            div.actions { (remedy(cx, user_id, &verdict.cause)) }
            (reply(cx, verdict))
            details.help open[verdict.trade_error.is_some()] {
                summary { (cx.t(Text::HasTradeNumber)) }
                form.row-form method="get" action=(user_href(user_id)) {
                    (field(cx, &Field::new("trade", Text::TradeNumber, Control::Text, &verdict.trade_no).required().hint(Text::TradeNumberHint).error(verdict.trade_error.as_deref())))
                    div.actions { button.button type="submit" { (cx.t(Text::Check)) } }
                }
            }
        }
    }
}

/// Returns tone, title and explanation of a cause.
fn explain(cx: &ViewContext, verdict: &CoinVerdict) -> (Tone, String, Markup) {
    let title = |text| cx.t(text).to_owned();
    match &verdict.cause {
        MissingCoins::AccountSuspended { since } => (
            Tone::Bad,
            title(Text::CauseSuspended),
            html! {
                p { (cx.t(Text::CauseSuspendedDetail)) " " (cx.t(Text::Since)) " " (cx.time(*since)) }
            },
        ),
        MissingCoins::OrderOpen(order) => (
            Tone::Notice,
            title(Text::CauseOrderOpen),
            html! {
                p { (parts::order_link(cx, &order.order_no)) " · " (ShownMoney(order.amount.as_fen(), order.currency).text()) " · " (parts::state(cx, &order.state)) " · " (cx.time(order.created_at)) }
                p { (cx.t(Text::CauseOrderOpenDetail)) }
            },
        ),
        MissingCoins::OtherAccount(order) => (
            Tone::Notice,
            title(Text::CauseOtherAccount),
            html! {
                p { (cx.t(Text::CauseOtherAccountDetail)) }
                p { code { (verdict.trade_no) } " → " (parts::order_link(cx, &order.order_no)) " · " (cx.t(Text::User)) " " (parts::user_link(cx, &order.user.to_string())) }
            },
        ),
        MissingCoins::Used { credited_at, order, uses, total } => (
            Tone::Good,
            title(Text::CauseUsed),
            html! {
                p { (texts::credited_and_used(cx.language, *total)) " " (parts::order_link(cx, &order.order_no)) " · " (cx.time(*credited_at)) }
                @if !uses.is_empty() {
                    (lists::compact_table(cx, Text::CauseUsed, &[time(Text::Time), number(Text::Coins), text(Text::EntryKind)], uses.iter().take(SHOWN_USES).map(|used| vec![
                        cx.cell_time(used.created_at),
                        html! { (format::change(used.delta)) },
                        html! { (cx.word(&used.kind)) },
                    ])))
                }
            },
        ),
        MissingCoins::Refunded { order, at } => (
            Tone::Notice,
            title(Text::CauseRefunded),
            html! {
                p { (cx.t(Text::CauseRefundedDetail)) }
                p { (parts::order_link(cx, &order.order_no)) " · " (refunded(order)) " · " (format::change(-order.coins_returned)) " " (cx.t(Text::Coins)) " · " (cx.time(*at)) }
            },
        ),
        MissingCoins::Deducted { coins, at } => (
            Tone::Notice,
            title(Text::CauseDeducted),
            html! {
                p { (cx.t(Text::CauseDeductedDetail)) }
                p { (format::change(-coins)) " " (cx.t(Text::Coins)) " · " (cx.time(*at)) }
            },
        ),
        MissingCoins::PurchaseOpen(purchase) => (
            Tone::Notice,
            title(Text::CausePurchaseOpen),
            html! {
                p { (purchase_link(purchase)) " · " (parts::state(cx, &purchase.state)) " · " (cx.time(purchase.created_at)) }
                p { (cx.t(Text::CausePurchaseOpenDetail)) }
            },
        ),
        MissingCoins::PurchaseRefunded { purchase, at } => (
            Tone::Notice,
            title(Text::CauseRefunded),
            html! {
                p { (cx.t(Text::CauseRefundedDetail)) }
                p { (purchase_link(purchase)) " · " (format::change(-(purchase.returned + purchase.bonus_returned))) " " (cx.t(Text::Coins)) " · " (cx.time(*at)) }
            },
        ),
        MissingCoins::Nothing => {
            (Tone::Good, title(Text::CauseNothing), html! { p { (cx.t(Text::CauseNothingDetail)) } })
        }
    }
}

fn refunded(order: &Order) -> String {
    format::ShownMoney(order.refunded.as_fen(), order.currency).text()
}

fn purchase_link(purchase: &StorePurchase) -> Markup {
    let id = purchase.id.to_string();
    html! { a href=(purchase_href(&id)) { code { (id) } } }
}

/// Renders the changes since the last purchase, which add up to the balance.
fn reckoning(cx: &ViewContext, reckoning: &Reckoning) -> Markup {
    let line = |label: &str, coins: String| vec![html! { (label) }, html! { (coins) }];
    let before = [line(cx.t(Text::BalanceBefore), format::number(reckoning.before))];
    let changes = reckoning.changes.iter().map(|(kind, sum)| line(cx.word(kind), format::change(*sum)));
    let balance = [line(cx.t(Text::Balance), format::number(reckoning.balance))];
    let lines = before.into_iter().chain(changes).chain(balance);
    lists::compact_table(cx, Text::SinceLastPurchase, &[text(Text::SinceLastPurchase), number(Text::Coins)], lines)
}

/// Renders the one button that resolves the cause.
fn remedy(cx: &ViewContext, user: &str, cause: &MissingCoins) -> Markup {
    let primary =
        |path: &str, text: Text| forms::button(cx, &format!("{}/{path}", user_href(user)), cx.t(text), "primary");
    match cause {
        MissingCoins::AccountSuspended { .. } => primary("repair", Text::RepairAccount),
        MissingCoins::OrderOpen(order) => {
            let ask = format!("{}/query", order_href(&order.order_no));
            forms::button(cx, &ask, cx.t(Text::AskProvider), "primary")
        }
        MissingCoins::OtherAccount(order) => {
            html! { a.button.primary href=(user_href(&order.user.to_string())) { (cx.t(Text::OpenOtherAccount)) } }
        }
        MissingCoins::Used { .. } | MissingCoins::Deducted { .. } => {
            html! { a.button.primary href="#ledger" { (cx.t(Text::ShowLedger)) } }
        }
        MissingCoins::Refunded { order, .. } => {
            html! { a.button.primary href=(order_href(&order.order_no)) { (cx.t(Text::OpenOrder)) } }
        }
        MissingCoins::PurchaseOpen(purchase) => forms::button(
            cx,
            &format!("{}/query", purchase_href(&purchase.id.to_string())),
            cx.t(Text::AskStore),
            "primary",
        ),
        MissingCoins::PurchaseRefunded { purchase, .. } => {
            html! { a.button.primary href=(purchase_href(&purchase.id.to_string())) { (cx.t(Text::OpenPurchase)) } }
        }
        MissingCoins::Nothing => html! { a.button.primary href="#balances" { (cx.t(Text::GrantInstead)) } },
    }
}

/// Renders a reply to the user in both languages.
fn reply(cx: &ViewContext, verdict: &CoinVerdict) -> Markup {
    html! {
        details.help {
            summary { (cx.t(Text::ReplyToCopy)) }
            div.columns { @for language in texts::Language::ALL {
                @let text = reply_text(cx, verdict, language);
                div.reply {
                    p lang=(language.tag()) { (text) }
                    p { button.button.small type="button" hidden data-copy=(text) data-done=(cx.t(Text::Copied)) { (cx.t(Text::Copy)) " (" (language.own_name()) ")" } }
                }
            } }
        }
    }
}

fn reply_text(cx: &ViewContext, verdict: &CoinVerdict, language: texts::Language) -> String {
    let when = |at: Timestamp| format!("{} ({})", format::local(at, &cx.zone), cx.zone.label());
    match &verdict.cause {
        MissingCoins::AccountSuspended { .. } => Text::ReplySuspended.in_language(language).to_owned(),
        MissingCoins::OrderOpen(order) => texts::reply_open(language, &order.order_no),
        MissingCoins::OtherAccount(_) => texts::reply_other_account(language, &verdict.trade_no),
        MissingCoins::Used { credited_at, total, order, .. } => {
            texts::reply_used(language, &order.order_no, &when(*credited_at), *total)
        }
        MissingCoins::Refunded { order, at } => {
            texts::reply_refunded(language, &order.order_no, &when(*at), &refunded(order))
        }
        MissingCoins::Deducted { .. } => Text::ReplyDeducted.in_language(language).to_owned(),
        MissingCoins::PurchaseOpen(_) => Text::ReplyPurchaseOpen.in_language(language).to_owned(),
        MissingCoins::PurchaseRefunded { .. } => Text::ReplyPurchaseRefunded.in_language(language).to_owned(),
        MissingCoins::Nothing => Text::ReplyNothing.in_language(language).to_owned(),
    }
}
