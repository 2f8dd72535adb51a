//! An order: what is known of it, and what follows from that for the coins.

use crate::{
    domain::money::ledger::{Entry, Kind},
    error::{Code, Error, Result},
    providers::payment::{OrderRequest, OrderState, OrderView, PaymentGateway},
    types::{Fen, Timestamp, UserId},
};

/// An order as it is kept.
#[derive(Clone, Debug)]
pub struct Order {
    pub id: i64,
    pub order_no: String,
    pub user: UserId,
    /// The gateway that it was made with.
    pub channel: String,
    /// The provider's app that it was made for; nothing for orders from before that was kept.
    pub app_id: Option<String>,
    pub amount: Fen,
    pub coin_count: u32,
    pub state: OrderState,
    /// Why a person must look, or how a person settled it.
    pub reason: Option<String>,
    /// The provider's number, once money came in.
    pub trade_no: Option<String>,
    /// All money that came in, which need not be the price.
    pub paid: Fen,
    /// All money that went back.
    pub refunded: Fen,
    /// Coins taken back for it.
    pub coins_returned: i64,
    /// Coins that should have been taken back and that a person let go.
    pub coins_written_off: i64,
    /// Ledger entries by which coins were taken back.
    pub returns: u32,
    /// Times that the provider was asked on schedule.
    pub checks: u32,
    pub next_check_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// When the order string ends.
    pub expires_at: Timestamp,
    pub paid_at: Option<Timestamp>,
    pub credited_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    pub refunded_at: Option<Timestamp>,
    /// When a person last decided about it.
    pub settled_at: Option<Timestamp>,
}

impl Order {
    /// As much as the rule about trade reports needs.
    pub fn view(&self) -> OrderView<'_> {
        OrderView {
            channel: &self.channel,
            order_no: &self.order_no,
            amount: self.amount,
            state: self.state,
            trade_no: self.trade_no.as_deref(),
            paid: self.paid_at.map(|_| self.paid),
            refunded: self.refunded,
        }
    }

    /// What can go back at most: what came in, as far as that is known.
    pub fn returnable(&self) -> Fen {
        if self.paid_at.is_some() { self.paid } else { self.amount }
    }

    /// The business event of its credit in the ledger.
    pub fn credit_reference(&self) -> String {
        format!("order:{}", self.order_no)
    }

    /// The business event of the `number`th time that coins are taken back.
    pub fn return_reference(&self, number: u32) -> String {
        format!("order:{}/refund:{number}", self.order_no)
    }

    /// Whether the entry is this order's: its user's, under one of the references that the order gave out.
    pub fn is_named_by(&self, entry: &Entry) -> bool {
        let Some(reference) = entry.reference.as_deref().filter(|_| entry.user == self.user) else { return false };
        match entry.kind {
            Kind::Topup => reference == self.credit_reference(),
            Kind::Refund => (1..=self.returns).any(|number| reference == self.return_reference(number)),
            _ => false,
        }
    }

    /// Coins that belong to money that went back, over all. A part of a coin stays with the user. What came in above
    /// the price bought nothing, and less than the price bought all of them, if a person said so.
    pub fn coins_for(&self, refunded: Fen) -> i64 {
        let bought_by = self.amount.min(self.returnable()).as_fen();
        let kept = self.returnable().as_fen() - refunded.as_fen();
        let returned = (bought_by - kept).clamp(0, bought_by);
        let exact = i128::from(self.coin_count) * i128::from(returned) / i128::from(bought_by.max(1));
        i64::try_from(exact).unwrap_or(i64::MAX)
    }

    /// Coins that are still to be taken back for the money that went back.
    pub fn coins_owed(&self) -> i64 {
        match self.credited_at {
            Some(_) => self.coins_for(self.refunded) - self.coins_returned - self.coins_written_off,
            None => 0,
        }
    }

    /// Whether the gateway knows of the order, if it was ever paid.
    pub(super) fn is_known_to(&self, gateway: &dyn PaymentGateway) -> bool {
        let is_app = |made_for: &String| made_for == gateway.app_id();
        self.channel == gateway.name() && self.app_id.as_ref().is_none_or(is_app)
    }

    /// A gateway for another app knows nothing of the order, and its refusals say nothing.
    ///
    /// # Errors
    /// `order_state`.
    pub(super) fn demand_app(&self, gateway: &dyn PaymentGateway) -> Result<()> {
        self.demand_gateway(gateway.name())?;
        match &self.app_id {
            Some(app_id) if !self.is_known_to(gateway) => {
                let detail = format!("The order was made for the app `{app_id}`, which is not configured.");
                Err(Error::new(Code::OrderState).detail(detail))
            }
            _ => Ok(()),
        }
    }

    /// Another gateway knows nothing of the order, and its refusals say nothing.
    ///
    /// # Errors
    /// `order_state`.
    pub(super) fn demand_gateway(&self, name: &str) -> Result<()> {
        if self.channel == name {
            return Ok(());
        }
        let detail = format!("The order was made with the gateway `{}`, which is not configured.", self.channel);
        Err(Error::new(Code::OrderState).detail(detail))
    }

    /// What the gateway signs. The same text each time, but for a signature that is random by its nature.
    pub fn request(&self) -> OrderRequest {
        OrderRequest {
            order_no: self.order_no.clone(),
            amount: self.amount,
            subject: format!("{} coins", self.coin_count),
            expires_at: self.expires_at.0,
            now: self.created_at.0,
        }
    }
}
