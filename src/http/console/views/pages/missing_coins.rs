//! The answer to "my coins are missing" on the page of a user.

use maud::{Markup, html};

use crate::{
    domain::money::{ledger::EntryKind, purchases::purchase::PurchaseState},
    http::console::views::{
        context::{ViewContext, order_href, purchase_href, user_href},
        format::{self, Timestamp},
        forms::{self, Control, Field, field},
        lists::{self, number, text, time},
        parts,
        texts::{self, Text, Tone},
    },
    providers::payment::OrderState,
};

/// A use of coins since the last purchase.
#[derive(Clone, Debug)]
pub struct CoinUse {
    pub at: Timestamp,
    pub coins: i64,
    pub kind: EntryKind,
}

/// Uses that are shown, so that the reply stays in sight. A button leads to all.
const SHOWN_USES: usize = 6;

/// The cause of missing coins.
#[derive(Clone, Debug)]
pub enum CoinCause {
    /// The account takes no entries because its balance disagrees with them.
    AccountSuspended { since: Timestamp },
    /// An order was created or paid, or is in review, and was not credited.
    OrderOpen { order_no: String, state: OrderState, amount: format::ShownMoney, at: Timestamp },
    /// The trade number belongs to an order of another user.
    OtherAccount { order_no: String, user_id: String, trade_no: String },
    /// The coins arrived and were used.
    Used { credited_at: Timestamp, order_no: String, uses: Vec<CoinUse>, total: i64 },
    /// A refund took the coins back.
    Refunded { order_no: String, at: Timestamp, coins: i64, amount: format::ShownMoney },
    /// The staff took coins.
    Deducted { coins: i64, at: Timestamp },
    /// A purchase in an app store is pending or refused.
    PurchaseOpen { id: String, state: PurchaseState, at: Timestamp },
    /// A store's refund took the coins back.
    PurchaseRefunded { id: String, at: Timestamp, coins: i64 },
    /// Nothing explains missing coins.
    Nothing,
}

/// The changes of the balance since the last purchase.
#[derive(Clone, Debug, Default)]
pub struct CoinReckoning {
    pub before: i64,
    /// The sum of each kind of entry.
    pub changes: Vec<(EntryKind, i64)>,
    pub balance: i64,
}

/// The answer to "my coins are missing".
#[derive(Clone, Debug)]
pub struct CoinVerdict {
    pub cause: CoinCause,
    pub reckoning: CoinReckoning,
    /// A trade number from the user's receipt, as typed.
    pub trade_no: String,
    pub trade_error: Option<String>,
}

/// Renders the answer with the reckoning, one button and a reply to copy.
pub fn panel(cx: &ViewContext, user_id: &str, verdict: &CoinVerdict) -> Markup {
    let (tone, title, detail) = explain(cx, &verdict.cause);
    html! {
        section.card.verdict.(tone.class()) id="coins" aria-labelledby="coins-title" {
            header.card-head { h2 id="coins-title" { (cx.t(Text::MissingCoins)) } (parts::badge(tone, &title)) }
            (detail)
            (reckoning(cx, &verdict.reckoning))
            div.actions { (remedy(cx, user_id, &verdict.cause)) }
            (reply(cx, &verdict.cause))
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
fn explain(cx: &ViewContext, cause: &CoinCause) -> (Tone, String, Markup) {
    let title = |text| cx.t(text).to_owned();
    match cause {
        CoinCause::AccountSuspended { since } => (
            Tone::Bad,
            title(Text::CauseSuspended),
            html! {
                p { (cx.t(Text::CauseSuspendedDetail)) " " (cx.t(Text::Since)) " " (cx.time(*since)) }
            },
        ),
        CoinCause::OrderOpen { order_no, state, amount, at } => (
            Tone::Notice,
            title(Text::CauseOrderOpen),
            html! {
                p { (parts::order_link(cx, order_no)) " · " (amount.text()) " · " (parts::state(cx, state)) " · " (cx.time(*at)) }
                p { (cx.t(Text::CauseOrderOpenDetail)) }
            },
        ),
        CoinCause::OtherAccount { order_no, user_id, trade_no } => (
            Tone::Notice,
            title(Text::CauseOtherAccount),
            html! {
                p { (cx.t(Text::CauseOtherAccountDetail)) }
                p { code { (trade_no) } " → " (parts::order_link(cx, order_no)) " · " (cx.t(Text::User)) " " (parts::user_link(cx, user_id)) }
            },
        ),
        CoinCause::Used { credited_at, order_no, uses, total } => (
            Tone::Good,
            title(Text::CauseUsed),
            html! {
                p { (texts::credited_and_used(cx.language, *total)) " " (parts::order_link(cx, order_no)) " · " (cx.time(*credited_at)) }
                @if !uses.is_empty() {
                    (lists::compact_table(cx, Text::CauseUsed, &[time(Text::Time), number(Text::Coins), text(Text::EntryKind)], uses.iter().take(SHOWN_USES).map(|used| vec![
                        cx.cell_time(used.at),
                        html! { (format::change(used.coins)) },
                        html! { (cx.word(&used.kind)) },
                    ])))
                }
            },
        ),
        CoinCause::Refunded { order_no, at, coins, amount } => (
            Tone::Notice,
            title(Text::CauseRefunded),
            html! {
                p { (cx.t(Text::CauseRefundedDetail)) }
                p { (parts::order_link(cx, order_no)) " · " (amount.text()) " · " (format::change(*coins)) " " (cx.t(Text::Coins)) " · " (cx.time(*at)) }
            },
        ),
        CoinCause::Deducted { coins, at } => (
            Tone::Notice,
            title(Text::CauseDeducted),
            html! {
                p { (cx.t(Text::CauseDeductedDetail)) }
                p { (format::change(-coins)) " " (cx.t(Text::Coins)) " · " (cx.time(*at)) }
            },
        ),
        CoinCause::PurchaseOpen { id, state, at } => (
            Tone::Notice,
            title(Text::CausePurchaseOpen),
            html! {
                p { a href=(purchase_href(id)) { code { (id) } } " · " (parts::state(cx, state)) " · " (cx.time(*at)) }
                p { (cx.t(Text::CausePurchaseOpenDetail)) }
            },
        ),
        CoinCause::PurchaseRefunded { id, at, coins } => (
            Tone::Notice,
            title(Text::CauseRefunded),
            html! {
                p { (cx.t(Text::CauseRefundedDetail)) }
                p { a href=(purchase_href(id)) { code { (id) } } " · " (format::change(*coins)) " " (cx.t(Text::Coins)) " · " (cx.time(*at)) }
            },
        ),
        CoinCause::Nothing => (Tone::Good, title(Text::CauseNothing), html! { p { (cx.t(Text::CauseNothingDetail)) } }),
    }
}

/// Renders the changes since the last purchase, which add up to the balance.
fn reckoning(cx: &ViewContext, reckoning: &CoinReckoning) -> Markup {
    let line = |label: &str, coins: String| vec![html! { (label) }, html! { (coins) }];
    let before = [line(cx.t(Text::BalanceBefore), format::number(reckoning.before))];
    let changes = reckoning.changes.iter().map(|(kind, sum)| line(cx.word(kind), format::change(*sum)));
    let balance = [line(cx.t(Text::Balance), format::number(reckoning.balance))];
    let lines = before.into_iter().chain(changes).chain(balance);
    lists::compact_table(cx, Text::SinceLastPurchase, &[text(Text::SinceLastPurchase), number(Text::Coins)], lines)
}

/// Renders the one button that resolves the cause.
fn remedy(cx: &ViewContext, user: &str, cause: &CoinCause) -> Markup {
    let primary =
        |path: &str, text: Text| forms::button(cx, &format!("{}/{path}", user_href(user)), cx.t(text), "primary");
    match cause {
        CoinCause::AccountSuspended { .. } => primary("repair", Text::RepairAccount),
        CoinCause::OrderOpen { order_no, .. } => {
            let ask = format!("{}/query", order_href(order_no));
            forms::button(cx, &ask, cx.t(Text::AskProvider), "primary")
        }
        CoinCause::OtherAccount { user_id, .. } => {
            html! { a.button.primary href=(user_href(user_id)) { (cx.t(Text::OpenOtherAccount)) } }
        }
        CoinCause::Used { .. } | CoinCause::Deducted { .. } => {
            html! { a.button.primary href="#ledger" { (cx.t(Text::ShowLedger)) } }
        }
        CoinCause::Refunded { order_no, .. } => {
            html! { a.button.primary href=(order_href(order_no)) { (cx.t(Text::OpenOrder)) } }
        }
        CoinCause::PurchaseOpen { id, .. } => {
            forms::button(cx, &format!("{}/query", purchase_href(id)), cx.t(Text::AskStore), "primary")
        }
        CoinCause::PurchaseRefunded { id, .. } => {
            html! { a.button.primary href=(purchase_href(id)) { (cx.t(Text::OpenPurchase)) } }
        }
        CoinCause::Nothing => html! { a.button.primary href="#balances" { (cx.t(Text::GrantInstead)) } },
    }
}

/// Renders a reply to the user in both languages.
fn reply(cx: &ViewContext, cause: &CoinCause) -> Markup {
    html! {
        details.help {
            summary { (cx.t(Text::ReplyToCopy)) }
            div.columns { @for language in texts::Language::ALL {
                @let text = reply_text(cx, cause, language);
                div.reply {
                    p lang=(language.tag()) { (text) }
                    p { button.button.small type="button" hidden data-copy=(text) data-done=(cx.t(Text::Copied)) { (cx.t(Text::Copy)) " (" (language.own_name()) ")" } }
                }
            } }
        }
    }
}

fn reply_text(cx: &ViewContext, cause: &CoinCause, language: texts::Language) -> String {
    let when = |at: Timestamp| format!("{} ({})", format::local(at, &cx.zone), cx.zone.label());
    match cause {
        CoinCause::AccountSuspended { .. } => Text::ReplySuspended.in_language(language).to_owned(),
        CoinCause::OrderOpen { order_no, .. } => texts::reply_open(language, order_no),
        CoinCause::OtherAccount { trade_no, .. } => texts::reply_other_account(language, trade_no),
        CoinCause::Used { credited_at, total, order_no, .. } => {
            texts::reply_used(language, order_no, &when(*credited_at), *total)
        }
        CoinCause::Refunded { order_no, at, amount, .. } => {
            texts::reply_refunded(language, order_no, &when(*at), &amount.text())
        }
        CoinCause::Deducted { .. } => Text::ReplyDeducted.in_language(language).to_owned(),
        CoinCause::PurchaseOpen { .. } => Text::ReplyPurchaseOpen.in_language(language).to_owned(),
        CoinCause::PurchaseRefunded { .. } => Text::ReplyPurchaseRefunded.in_language(language).to_owned(),
        CoinCause::Nothing => Text::ReplyNothing.in_language(language).to_owned(),
    }
}
