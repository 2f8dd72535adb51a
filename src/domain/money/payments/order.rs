//! An order and the rules for its coins.

use crate::{
    domain::{
        money::ledger::{Asset, EntryKind, LedgerEntry},
        operations::admins::roles::{Right, Role},
    },
    error::{Code, Error, Result},
    providers::payment::{OrderKey, OrderRequest, OrderState, OrderView, PaymentGateway},
    types::{Currency, Fen, Timestamp, UserId},
};

/// The end of the reference of an entry that gives a bonus back.
pub(super) const BONUS_SUFFIX: &str = "/bonus";

/// A stored order.
#[derive(Clone, Debug)]
pub struct Order {
    pub id: i64,
    pub order_no: String,
    pub user: UserId,
    /// The name of the gateway.
    pub channel: String,
    /// The provider's app id.
    pub app_id: Option<String>,
    /// The provider's name of the order before it is paid, if it has one.
    pub provider_ref: Option<String>,
    pub amount: Fen,
    pub currency: Currency,
    pub product_id: String,
    /// The version of the product whose terms the order has.
    pub product_version: u32,
    /// The asset that the order brings.
    pub asset: Asset,
    /// The number of coins or points, without bonus.
    pub coin_count: u32,
    /// The bonus of each purchase.
    pub bonus: u32,
    /// The additional bonus of a user's first purchase.
    pub first_bonus: u32,
    /// The name that the buyer sees at the provider.
    pub subject: String,
    pub state: OrderState,
    /// The reason for the review, or the operator's reason for its decision.
    pub reason: Option<String>,
    /// The provider's number of the payment.
    pub trade_no: Option<String>,
    /// The amount paid, which may differ from the price.
    pub paid: Fen,
    /// The total refunded.
    pub refunded: Fen,
    /// Coins taken back for refunds.
    pub coins_returned: i64,
    /// Coins that an operator wrote off instead of taking them back.
    pub coins_written_off: i64,
    /// The bonus that was given.
    pub bonus_credited: i64,
    /// Bonus taken back for refunds.
    pub bonus_returned: i64,
    /// Bonus that an operator wrote off instead of taking it back.
    pub bonus_written_off: i64,
    /// The number of postings that took coins back or gave them back.
    pub returns: u32,
    /// The number of scheduled queries.
    pub checks: u32,
    pub next_check_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// The expiry of the order string.
    pub expires_at: Timestamp,
    pub paid_at: Option<Timestamp>,
    pub credited_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    pub refunded_at: Option<Timestamp>,
    /// The time of the last decision by an operator.
    pub settled_at: Option<Timestamp>,
}

impl Order {
    /// Returns what the settlement rule needs.
    pub fn view(&self) -> OrderView<'_> {
        OrderView {
            channel: &self.channel,
            order_no: &self.order_no,
            amount: self.amount,
            currency: self.currency,
            state: self.state,
            trade_no: self.trade_no.as_deref(),
            paid: self.paid_at.map(|_| self.paid),
            refunded: self.refunded,
        }
    }

    /// Returns the names by which the provider finds the order.
    pub(super) fn key(&self) -> OrderKey<'_> {
        OrderKey {
            order_no: &self.order_no,
            price: self.returnable(),
            provider_ref: self.provider_ref.as_deref(),
            trade_no: self.trade_no.as_deref(),
        }
    }

    /// Returns the amount that can be refunded in total: the amount paid, or the price if that is unknown.
    pub fn returnable(&self) -> Fen {
        if self.paid_at.is_some() { self.paid } else { self.amount }
    }

    /// Returns the ledger reference of the credit.
    pub fn credit_reference(&self) -> String {
        format!("order:{}", self.order_no)
    }

    /// Returns the ledger reference of the `number`th claw-back.
    pub fn return_reference(&self, number: u32) -> String {
        format!("order:{}/refund:{number}", self.order_no)
    }

    /// Returns the ledger references of the `number`th posting that gives coins back, and of its bonus.
    pub fn reversal_references(&self, number: u32) -> [String; 2] {
        let reference = format!("order:{}/reversal:{number}", self.order_no);
        [reference.clone(), reference + BONUS_SUFFIX]
    }

    /// Returns true if the ledger entry belongs to this order, by user and reference.
    pub fn owns_entry(&self, entry: &LedgerEntry) -> bool {
        let is_own = entry.user == self.user && entry.asset == self.asset;
        let Some(reference) = entry.reference.as_deref().filter(|_| is_own) else { return false };
        match entry.kind {
            EntryKind::Topup | EntryKind::PurchaseBonus => reference == self.credit_reference(),
            EntryKind::Refund | EntryKind::PurchaseBonusRefund => {
                (1..=self.returns).any(|number| reference == self.return_reference(number))
            }
            EntryKind::RefundReversal => {
                (1..=self.returns).any(|number| self.reversal_references(number).iter().any(|own| own == reference))
            }
            _ => false,
        }
    }

    /// Returns the coins bought with the refunded money, rounded down. Money above the price bought nothing. If less
    /// than the price was paid and an operator credited the order, that money bought all coins.
    pub fn coins_for(&self, refunded: Fen) -> i64 {
        self.share_for(refunded, self.coin_count.into())
    }

    /// Returns the part of the given bonus that belongs to the refunded money.
    fn bonus_for(&self, refunded: Fen) -> i64 {
        self.share_for(refunded, self.bonus_credited)
    }

    fn share_for(&self, refunded: Fen, whole: i64) -> i64 {
        let bought_by = self.amount.min(self.returnable()).as_fen();
        let kept = self.returnable().as_fen() - refunded.as_fen();
        let returned = (bought_by - kept).clamp(0, bought_by);
        let exact = i128::from(whole) * i128::from(returned) / i128::from(bought_by.max(1));
        i64::try_from(exact).unwrap_or(i64::MAX)
    }

    /// Returns the coins still to be taken back for refunds.
    pub fn coins_owed(&self) -> i64 {
        match self.credited_at {
            Some(_) => self.coins_for(self.refunded) - self.coins_returned - self.coins_written_off,
            None => 0,
        }
    }

    /// Returns the bonus still to be taken back for refunds.
    pub fn bonus_owed(&self) -> i64 {
        match self.credited_at {
            Some(_) => self.bonus_for(self.refunded) - self.bonus_returned - self.bonus_written_off,
            None => 0,
        }
    }

    /// Returns true if more coins or bonus were taken back than refunds account for, because a refund failed later.
    pub fn is_owed_to_user(&self) -> bool {
        self.coins_owed() < 0 || self.bonus_owed() < 0
    }

    /// Returns true if the gateway belongs to the order's channel and app.
    pub(super) fn belongs_to(&self, gateway: &dyn PaymentGateway) -> bool {
        let is_app = |made_for: &String| made_for == gateway.app_id();
        self.channel == gateway.name() && self.app_id.as_ref().is_none_or(is_app)
    }

    /// Rejects an order of another app: the gateway does not know it, so its refusals mean nothing.
    ///
    /// # Errors
    /// `order_state`.
    pub(super) fn require_app(&self, gateway: &dyn PaymentGateway) -> Result<()> {
        match &self.app_id {
            Some(app_id) if !self.belongs_to(gateway) => {
                let detail = (
                    format!("The order belongs to the app `{app_id}`, which is not configured."),
                    format!("订单属于应用 `{app_id}`，该应用未配置。"),
                );
                Err(Error::new(Code::OrderState).detail(detail))
            }
            _ => Ok(()),
        }
    }

    /// Returns the order as a role sees it: only owners see their reasons for decisions. Those for a review stay.
    #[must_use]
    pub fn seen_by(self, role: Role) -> Self {
        if self.state == OrderState::Review || role.has(Right::Administer) {
            self
        } else {
            Self { reason: None, ..self }
        }
    }

    /// Returns the request that the gateway signs, the same each time.
    pub fn request(&self) -> OrderRequest {
        OrderRequest {
            order_no: self.order_no.clone(),
            amount: self.amount,
            subject: self.subject.clone(),
            expires_at: self.expires_at.0,
            now: self.created_at.0,
        }
    }
}
