//! The rule that decides the effect of a verified trade report on an order.
//!
//! [`judge`] is a pure function over the provider's report and the stored order. The caller holds the order's row in a
//! transaction and applies the decision there.
//!
//! Reports arrive in any order and any number of times, and a status alone is ambiguous. A partial refund repeats
//! `TRADE_SUCCESS`, and a full one is `TRADE_CLOSED`, like an unpaid time-out.

use super::{Currency, Fen, RefundResult, Trade, TradeStatus};
use crate::types::named_enum;

named_enum! {
    /// The state of our order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OrderState {
        Created = "created",
        /// Paid, not yet credited.
        Paid = "paid",
        Credited = "credited",
        Closed = "closed",
        Refunded = "refunded",
        /// It needs a decision by an operator.
        Review = "review",
    }
}

/// The parts of a stored order that the rule needs.
#[derive(Debug, Clone, Copy)]
pub struct OrderView<'a> {
    /// The gateway that the order was made with.
    pub channel: &'a str,
    pub order_no: &'a str,
    pub amount: Fen,
    pub currency: Currency,
    pub state: OrderState,
    /// The provider's number of the trade that paid the order, if known.
    pub trade_no: Option<&'a str>,
    /// The amount received, if known.
    pub paid: Option<Fen>,
    /// All refunds recorded so far.
    pub refunded: Fen,
}

/// The decision about a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettlementDecision {
    /// The order was paid and not credited yet. Includes late payments of closed orders.
    Credit,
    /// The order will not be paid and must be closed.
    Close,
    /// Money was refunded: record `total` as the sum of all refunds. `full` if nothing is left. An order under review
    /// stays there with the sum.
    Refund { total: Fen, full: bool },
    /// The report changes nothing.
    Nothing,
    /// Genuine, but it needs a decision by an operator.
    Review(ReviewReason),
    /// Not about this order: change nothing and do not acknowledge.
    Reject(RejectReason),
}

named_enum! {
    /// The reason why a genuine report is rejected.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RejectReason {
        UnknownOrder = "unknown_order",
        WrongChannel = "wrong_channel",
        WrongAmount = "wrong_amount",
        WrongCurrency = "wrong_currency",
    }
}

named_enum! {
    /// The reason for a manual review.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ReviewReason {
        /// The order is already under review; the reviewer should see this report too.
        OrderUnderReview = "order_under_review",
        /// A second trade was paid or refunded for an order that is already paid: the buyer may have paid twice.
        SecondTrade = "second_trade",
        /// Closed without a refund after the payment was recorded.
        ClosedAfterPayment = "closed_after_payment",
        /// Part of the money was refunded before the order was credited. The report of the payment ends it.
        RefundBeforeCredit = "refund_before_credit",
        /// More was refunded than was paid.
        RefundExceedsAmount = "refund_exceeds_amount",
        /// Money was refunded, but the report does not say how much.
        RefundTotalUnknown = "refund_total_unknown",
    }
}

/// Judges a report against the order that it names; `None` if there is no such order.
pub fn judge(trade: &Trade, order: Option<&OrderView<'_>>) -> SettlementDecision {
    let Some(order) = order.filter(|order| order.order_no == trade.order_no) else {
        return SettlementDecision::Reject(RejectReason::UnknownOrder);
    };
    if order.channel != trade.channel {
        return SettlementDecision::Reject(RejectReason::WrongChannel);
    }
    if order.currency != trade.currency {
        return SettlementDecision::Reject(RejectReason::WrongCurrency);
    }
    if is_second_trade(trade, order) {
        return judge_second_trade(trade);
    }
    // A refund is compared with the amount received, if that differs from the price.
    let is_return_of_it = trade.refunded.is_some() && order.paid == Some(trade.amount);
    if order.amount != trade.amount && !is_return_of_it {
        return SettlementDecision::Reject(RejectReason::WrongAmount);
    }
    match (&trade.refunded, trade.status) {
        (Some(refunded), _) => judge_refund(refunded, trade, order),
        (None, TradeStatus::WaitBuyerPay) => SettlementDecision::Nothing,
        (None, TradeStatus::Success | TradeStatus::Finished) => judge_payment(order.state),
        (None, TradeStatus::Closed) => judge_closing(order.state),
    }
}

/// Returns true if another trade has already paid the order. Before a payment, a different trade number only means that
/// an earlier attempt was never paid.
fn is_second_trade(trade: &Trade, order: &OrderView<'_>) -> bool {
    let has_money = !matches!(order.state, OrderState::Created | OrderState::Closed);
    has_money && order.trade_no.is_some_and(|known| known != trade.trade_no)
}

fn judge_second_trade(trade: &Trade) -> SettlementDecision {
    let paid = matches!(trade.status, TradeStatus::Success | TradeStatus::Finished);
    if paid || trade.refunded.is_some() {
        SettlementDecision::Review(ReviewReason::SecondTrade)
    } else {
        SettlementDecision::Nothing
    }
}

fn judge_payment(state: OrderState) -> SettlementDecision {
    match state {
        OrderState::Created | OrderState::Paid | OrderState::Closed => SettlementDecision::Credit,
        OrderState::Credited | OrderState::Refunded => SettlementDecision::Nothing,
        OrderState::Review => SettlementDecision::Review(ReviewReason::OrderUnderReview),
    }
}

fn judge_closing(state: OrderState) -> SettlementDecision {
    match state {
        OrderState::Created => SettlementDecision::Close,
        OrderState::Closed | OrderState::Refunded | OrderState::Review => SettlementDecision::Nothing,
        OrderState::Paid | OrderState::Credited => SettlementDecision::Review(ReviewReason::ClosedAfterPayment),
    }
}

fn judge_refund(refunded: &RefundResult, trade: &Trade, order: &OrderView<'_>) -> SettlementDecision {
    // A paid trade closes only by a full refund.
    let implied = (trade.status == TradeStatus::Closed).then_some(trade.amount);
    let Some(total) = refunded.total.or(implied) else {
        return SettlementDecision::Review(ReviewReason::RefundTotalUnknown);
    };
    if total > trade.amount {
        return SettlementDecision::Review(ReviewReason::RefundExceedsAmount);
    }
    if total <= order.refunded {
        return SettlementDecision::Nothing;
    }
    let full = total == trade.amount;
    match order.state {
        OrderState::Created | OrderState::Paid | OrderState::Closed if !full => {
            SettlementDecision::Review(ReviewReason::RefundBeforeCredit)
        }
        _ => SettlementDecision::Refund { total, full },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [OrderState; 6] = [
        OrderState::Created,
        OrderState::Paid,
        OrderState::Credited,
        OrderState::Closed,
        OrderState::Refunded,
        OrderState::Review,
    ];

    fn fen(text: &str) -> Fen {
        Fen::parse(text).unwrap()
    }

    fn trade(status: TradeStatus) -> Trade {
        Trade {
            channel: "alipay",
            order_no: "D1".to_owned(),
            trade_no: "T1".to_owned(),
            amount: fen("6.00"),
            currency: Currency::CNY,
            status,
            paid_at: None,
            refunded: None,
        }
    }

    fn refunded(status: TradeStatus, total: Option<&str>) -> Trade {
        let refunded = RefundResult { total: total.map(fen), refund_no: None, at: None };
        Trade { refunded: Some(refunded), ..trade(status) }
    }

    fn order(state: OrderState) -> OrderView<'static> {
        let trade_no = (!matches!(state, OrderState::Created | OrderState::Closed)).then_some("T1");
        let paid = trade_no.map(|_| fen("6.00"));
        OrderView {
            channel: "alipay",
            order_no: "D1",
            amount: fen("6.00"),
            currency: Currency::CNY,
            state,
            trade_no,
            paid,
            refunded: Fen::ZERO,
        }
    }

    fn judged(trade: &Trade, state: OrderState) -> SettlementDecision {
        judge(trade, Some(&order(state)))
    }

    #[test]
    fn a_payment_credits_once_and_even_after_closing() {
        for status in [TradeStatus::Success, TradeStatus::Finished] {
            let expected = [
                SettlementDecision::Credit,
                SettlementDecision::Credit,
                SettlementDecision::Nothing,
                SettlementDecision::Credit,
                SettlementDecision::Nothing,
                SettlementDecision::Review(ReviewReason::OrderUnderReview),
            ];
            assert_eq!(STATES.map(|state| judged(&trade(status), state)), expected);
        }
    }

    #[test]
    fn an_unpaid_trade_changes_nothing() {
        for state in STATES {
            assert_eq!(judged(&trade(TradeStatus::WaitBuyerPay), state), SettlementDecision::Nothing);
        }
    }

    #[test]
    fn closing_affects_only_unpaid_orders() {
        let flagged = SettlementDecision::Review(ReviewReason::ClosedAfterPayment);
        let expected = [
            SettlementDecision::Close,
            flagged,
            flagged,
            SettlementDecision::Nothing,
            SettlementDecision::Nothing,
            SettlementDecision::Nothing,
        ];
        assert_eq!(STATES.map(|state| judged(&trade(TradeStatus::Closed), state)), expected);
    }

    #[test]
    fn refunds_are_recorded_for_any_status_and_never_credit() {
        let partial = SettlementDecision::Refund { total: fen("1.50"), full: false };
        let early = SettlementDecision::Review(ReviewReason::RefundBeforeCredit);
        let of_part = refunded(TradeStatus::Success, Some("1.50"));
        assert_eq!(STATES.map(|state| judged(&of_part, state)), [early, early, partial, early, partial, partial]);

        let full = SettlementDecision::Refund { total: fen("6.00"), full: true };
        for total in [Some("6.00"), None] {
            let of_all = refunded(TradeStatus::Closed, total);
            assert_eq!(STATES.map(|state| judged(&of_all, state)), [full; 6]);
        }
    }

    #[test]
    fn refund_totals_tolerate_repetition_and_disorder() {
        let recorded = OrderView { refunded: fen("2.00"), ..order(OrderState::Credited) };
        for total in ["1.50", "2.00"] {
            assert_eq!(
                judge(&refunded(TradeStatus::Success, Some(total)), Some(&recorded)),
                SettlementDecision::Nothing
            );
        }
        let more = judge(&refunded(TradeStatus::Success, Some("2.01")), Some(&recorded));
        assert_eq!(more, SettlementDecision::Refund { total: fen("2.01"), full: false });
    }

    #[test]
    fn impossible_refunds_go_to_review() {
        let too_much = judged(&refunded(TradeStatus::Success, Some("6.01")), OrderState::Credited);
        assert_eq!(too_much, SettlementDecision::Review(ReviewReason::RefundExceedsAmount));
        let unstated = judged(&refunded(TradeStatus::Success, None), OrderState::Credited);
        assert_eq!(unstated, SettlementDecision::Review(ReviewReason::RefundTotalUnknown));
    }

    #[test]
    fn rejects_reports_about_another_order_channel_or_amount() {
        let paid = trade(TradeStatus::Success);
        assert_eq!(judge(&paid, None), SettlementDecision::Reject(RejectReason::UnknownOrder));
        let other = OrderView { order_no: "D2", ..order(OrderState::Created) };
        assert_eq!(judge(&paid, Some(&other)), SettlementDecision::Reject(RejectReason::UnknownOrder));
        let sandbox = OrderView { channel: "sandbox", ..order(OrderState::Created) };
        assert_eq!(judge(&paid, Some(&sandbox)), SettlementDecision::Reject(RejectReason::WrongChannel));
        let dollars = OrderView { currency: Currency::parse("USD").unwrap(), ..order(OrderState::Created) };
        assert_eq!(judge(&paid, Some(&dollars)), SettlementDecision::Reject(RejectReason::WrongCurrency));
        let dearer = OrderView { amount: fen("30.00"), ..order(OrderState::Created) };
        assert_eq!(judge(&paid, Some(&dearer)), SettlementDecision::Reject(RejectReason::WrongAmount));
        assert!(matches!(judge(&paid, None), SettlementDecision::Reject(_)));
    }

    #[test]
    fn refunds_are_compared_with_the_received_amount() {
        let overpaid = OrderView { paid: Some(fen("7.00")), ..order(OrderState::Review) };
        let of_seven = |trade: Trade| Trade { amount: fen("7.00"), ..trade };
        let judged = |trade: Trade| judge(&of_seven(trade), Some(&overpaid));
        assert_eq!(judged(trade(TradeStatus::Success)), SettlementDecision::Reject(RejectReason::WrongAmount));
        let part = SettlementDecision::Refund { total: fen("6.00"), full: false };
        assert_eq!(judged(refunded(TradeStatus::Success, Some("6.00"))), part);
        let all = SettlementDecision::Refund { total: fen("7.00"), full: true };
        assert_eq!(judged(refunded(TradeStatus::Closed, None)), all);
        let unheard = OrderView { paid: None, ..order(OrderState::Review) };
        let early = judge(&of_seven(refunded(TradeStatus::Closed, None)), Some(&unheard));
        assert_eq!(early, SettlementDecision::Reject(RejectReason::WrongAmount));
    }

    #[test]
    fn a_second_trade_for_a_paid_order_goes_to_review() {
        let second = |trade: Trade| Trade { trade_no: "T2".to_owned(), ..trade };
        for state in [OrderState::Paid, OrderState::Credited, OrderState::Refunded, OrderState::Review] {
            let flagged = SettlementDecision::Review(ReviewReason::SecondTrade);
            assert_eq!(judged(&second(trade(TradeStatus::Success)), state), flagged);
            assert_eq!(judged(&second(refunded(TradeStatus::Closed, Some("6.00"))), state), flagged);
            assert_eq!(judged(&second(trade(TradeStatus::Closed)), state), SettlementDecision::Nothing);
        }
        let attempted = OrderView { trade_no: Some("T1"), ..order(OrderState::Created) };
        assert_eq!(judge(&second(trade(TradeStatus::Success)), Some(&attempted)), SettlementDecision::Credit);
    }
}
