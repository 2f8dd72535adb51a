//! The gateway trait: what all providers have in common for which we make the order.
//!
//! The providers' modules speak the protocols. The adapters here translate to one vocabulary, so that the operations on
//! orders do not know which provider they talk to.

mod form_signed;
mod stripe;
mod wechat;

use std::{collections::BTreeMap, time::Duration};

use super::{
    CloseOutcome, DisputeState, Fen, OrderRequest, RefundOutcome, RefundQueryOutcome, RefundRequest, Rejection, Trade,
    TradeQueryOutcome, bill::ProviderBill,
};
use crate::{providers::Failure, types::Currency};

pub use stripe::{StripeGateway, StripeGatewaySettings};

/// A payment provider. All calls block; all but `read_callback` may take seconds.
pub trait PaymentGateway: Send + Sync {
    /// Returns a fingerprint of the facts about the payer on which a request for an order depends. The provider refuses to
    /// prepare the same order for another payer.
    fn payer(&self, _: &PayerClient) -> String {
        String::new()
    }

    /// Returns the channel under which orders of this gateway are stored.
    fn name(&self) -> &'static str;

    /// Returns the provider's id of our app. Orders made under another app id are unknown to the provider.
    fn app_id(&self) -> &str;

    /// Returns the currency of new orders.
    fn currency(&self) -> Currency {
        Currency::CNY
    }

    /// Returns the price for a product whose price in yuan this is; `None` if it is not sold here.
    fn price(&self, yuan: Fen) -> Option<Fen> {
        Some(yuan)
    }

    /// Returns the shortest time to pay that the provider accepts.
    fn min_payment_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns true if `prepare` calls the provider.
    fn prepares_online(&self) -> bool {
        false
    }

    /// Returns true if callbacks are answered with a word in the body instead of a status.
    fn answers_in_words(&self) -> bool {
        false
    }

    /// Returns the lower-case names of the headers that belong to a callback's signature.
    fn signed_headers(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns what the client needs to pay the order. Safe to repeat with the same order.
    fn prepare(&self, order: &OrderRequest, client: &PayerClient) -> Result<PaymentInstruction, Failure>;

    /// Parses a callback and verifies that signature, app and seller are ours. [`super::judge`] decides its effect on an
    /// order.
    fn read_callback(&self, message: &CallbackMessage<'_>) -> Result<GatewayReport, Rejection>;

    /// Fetches verification keys that the provider has introduced since. Returns true if there are any.
    fn refresh_keys(&self) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Queries the trade of an order. A trade exists only once the buyer has confirmed, so a missing trade is a normal
    /// outcome.
    fn query(&self, order: OrderKey<'_>) -> Result<TradeQueryOutcome, Failure>;

    /// Closes an unpaid trade. After `OutcomeUnknown`, query before repeating.
    fn close(&self, order: OrderKey<'_>) -> Result<CloseOutcome, Failure>;

    /// Refunds money. Safe to repeat with the same refund number and amount. After `OutcomeUnknown` or `Unconfirmed`,
    /// call `query_refund` (ten seconds later at the earliest) before anything else.
    fn refund(&self, refund: &RefundRequest, order: OrderKey<'_>) -> Result<RefundOutcome, Failure>;

    /// Queries if a refund took effect.
    fn query_refund(&self, order: OrderKey<'_>, refund_no: &str) -> Result<RefundQueryOutcome, Failure>;

    /// Queries the refunds of a paid order that failed, also after the provider had reported their success.
    fn failed_refunds(&self, _: OrderKey<'_>) -> Result<Vec<FailedRefund>, Failure> {
        Ok(Vec::new())
    }

    /// Returns true if the provider makes a bill of each day, which is ready in the next morning.
    fn has_bills(&self) -> bool {
        false
    }

    /// Fetches the bill of a day in Shanghai, given by any of its times in epoch milliseconds; `None` for a day without
    /// trades.
    fn bill(&self, _day: i64) -> Result<Option<ProviderBill>, Failure> {
        Ok(None)
    }
}

/// The names and facts by which providers find an order.
#[derive(Debug, Clone, Copy)]
pub struct OrderKey<'a> {
    pub order_no: &'a str,
    /// The amount received, or the price.
    pub price: Fen,
    /// The provider's name of the order before it is paid. Only some providers have one.
    pub provider_ref: Option<&'a str>,
    /// The provider's number of the payment.
    pub trade_no: Option<&'a str>,
}

/// The program in which the buyer pays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PayerClient {
    /// A mobile app with the provider's SDK.
    #[default]
    MobileApp,
    /// A page in a browser.
    H5 { client_ip: String },
    /// A page inside WeChat.
    Jsapi { open_id: String },
    /// A code that the buyer scans.
    Native,
}

/// The value that the client passes to the provider's SDK or page.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct PaymentInstruction {
    /// For SDKs that take one string.
    pub order_string: Option<String>,
    /// For all others: the parameters in the SDK's words, or an address to open.
    pub parameters: BTreeMap<String, String>,
    /// The provider's name of the order, to be stored.
    pub provider_ref: Option<String>,
}

/// A callback as received.
#[derive(Debug, Clone, Copy)]
pub struct CallbackMessage<'a> {
    /// The signed headers by their lower-case names.
    pub headers: &'a BTreeMap<String, String>,
    pub body: &'a [u8],
    /// Epoch milliseconds. Signatures are judged at this time, also if the message is processed again later.
    pub received_at: i64,
}

/// A genuine report of the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayReport {
    /// Equal for all deliveries of one callback.
    pub notify_id: String,
    pub event: GatewayEvent,
}

/// The subject of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayEvent {
    /// The state of a trade. Its order number is empty if the provider names only its own number.
    Trade(Trade),
    /// The end of one refund. Its amount is that of this refund alone.
    Refund(RefundReport),
    /// A refund of this trade ended without moving money, perhaps after its success was reported.
    RefundFailed(FailedRefund),
    /// The buyer's bank asks the money of this trade back, or has decided about it.
    Dispute { trade_no: String, dispute_no: String, state: DisputeState },
    /// It has no effect here.
    Other(String),
}

/// A refund that moved no money in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRefund {
    pub trade_no: String,
    /// Not one of ours if the refund was made at the provider's console.
    pub refund_no: String,
    pub amount: Fen,
    pub currency: Currency,
}

/// A report about one refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundReport {
    pub order_no: String,
    pub trade_no: String,
    /// Not one of ours if the refund was made at the provider's console.
    pub refund_no: String,
    pub amount: Fen,
    /// The price of the order.
    pub price: Fen,
    pub state: RefundQueryOutcome,
    /// Epoch milliseconds.
    pub at: Option<i64>,
}

/// Hides the parameters, which allow to pay the order.
impl std::fmt::Debug for PaymentInstruction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PaymentInstruction").field("provider_ref", &self.provider_ref).finish_non_exhaustive()
    }
}
