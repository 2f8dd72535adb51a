//! The states of an order, what a report does to them, and the review of an order by an operator.

use crate::{
    domain::money::payments::{order::Order, orders},
    error::{Error, Result},
    providers::payment::{OrderState, RejectReason, ReviewReason},
    store::Write,
    types::{Fen, named_enum},
};

/// The review reason of an order whose app or gateway is no longer configured, so that it cannot be queried. A later
/// report by the provider still settles the order.
pub(super) const NOT_CONFIGURED: &str = "not_configured";
/// The review reason of an order whose refund could not be delivered.
pub(super) const REFUND_ABNORMAL: &str = "refund_abnormal";
/// The review reason of an order of which a refund failed after it was counted.
pub(super) const REFUND_FAILED: &str = "refund_failed";

named_enum! {
    /// The effect of a report.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SettlementEffect {
        Credited = "credited",
        /// The payment is recorded, but the account rejects postings for now.
        Paid = "paid",
        Closed = "closed",
        Refunded = "refunded",
        Unchanged = "unchanged",
        Review = "review",
        Rejected = "rejected",
    }
}

impl SettlementEffect {
    /// Returns true if the response is `success`. Otherwise the provider sends the report again.
    pub const fn is_acknowledged(self) -> bool {
        !matches!(self, Self::Rejected)
    }
}

/// The effect of a report, with a reason if it needs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettlementOutcome {
    pub verdict: SettlementEffect,
    pub reason: Option<&'static str>,
}

impl SettlementOutcome {
    /// Returns the outcome of a report about an order that does not exist.
    pub(super) const fn unknown_order() -> Self {
        Self { verdict: SettlementEffect::Rejected, reason: Some(RejectReason::UnknownOrder.name()) }
    }
}

impl From<SettlementEffect> for SettlementOutcome {
    fn from(verdict: SettlementEffect) -> Self {
        Self { verdict, reason: None }
    }
}

pub(super) const fn under_review() -> SettlementOutcome {
    SettlementOutcome { verdict: SettlementEffect::Review, reason: Some(ReviewReason::OrderUnderReview.name()) }
}

/// Moves an order to review, unless it is there already. Then its reason stays.
pub(super) fn ensure_review_in(tx: &Write<'_>, order: Order, reason: &'static str) -> Result<SettlementOutcome> {
    if order.state == OrderState::Review { Ok(under_review()) } else { review_in(tx, order, reason) }
}

/// Moves the order to review.
pub fn review_in(tx: &Write<'_>, order: Order, reason: &'static str) -> Result<SettlementOutcome> {
    tracing::warn!(
        order_no = order.order_no,
        reason,
        "a payment order needs the decision of an operator; see `yarrow payments list --state review`"
    );
    set_state_in(tx, Order { reason: Some(reason.to_owned()), ..order }, OrderState::Review)?;
    Ok(SettlementOutcome { verdict: SettlementEffect::Review, reason: Some(reason) })
}

/// Returns the state that follows from the recorded payment, credit and refunds.
pub(super) fn settled_state(order: &Order) -> OrderState {
    if order.refunded > Fen::ZERO && order.refunded >= order.returnable() {
        OrderState::Refunded
    } else if order.credited_at.is_some() {
        OrderState::Credited
    } else {
        OrderState::Closed
    }
}

/// Stores the order in a new state. Clears the scheduled query unless a credit is pending.
pub(super) fn set_state_in(tx: &Write<'_>, order: Order, state: OrderState) -> Result<()> {
    if !may_become(order.state, state) {
        let detail = format!("an order cannot become {} after {}", state.name(), order.state.name());
        return Err(Error::internal(detail));
    }
    let next_check_at = order.next_check_at.filter(|_| state == OrderState::Paid);
    let refunded_at = order.refunded_at.or((state == OrderState::Refunded).then_some(tx.now));
    orders::store_in(tx, &Order { state, next_check_at, refunded_at, ..order })
}

/// States only move forward, except for `review`: any state can enter it, and an operator ends it.
const fn may_become(from: OrderState, to: OrderState) -> bool {
    use OrderState::{Closed, Created, Credited, Paid, Refunded, Review};
    match from {
        Created => true,
        Paid => matches!(to, Paid | Credited | Refunded | Review),
        Credited => matches!(to, Credited | Refunded | Review),
        Closed => matches!(to, Closed | Paid | Credited | Refunded | Review),
        Refunded => matches!(to, Refunded | Review),
        Review => !matches!(to, Created),
    }
}
