//! A payment provider inside the process, for development, tests and demonstrations.
//!
//! It uses the same code as Alipay: order strings, callbacks and their verification differ only in the signature
//! scheme. Each installation generates its own key at its first start ([`Sandbox::generate_key`]), so that no other
//! installation can sign a payment for this server.
//!
//! It has no state: its trades are stored in a [`SandboxLedger`]. It never delivers a callback itself: [`Sandbox::pay`]
//! returns the callback, and the caller posts it once, twice or not at all.

use std::fmt;
use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};

use super::callback::CallbackReader;
use super::order_string::Merchant;
use super::signing::{Signer, Verifier};
use super::{
    CloseOutcome, OrderRequest, PaymentCallback, RefundOutcome, RefundQueryOutcome, RefundRequest, Rejection,
    TradeQueryOutcome,
};
use crate::providers::{Failure, FailureKind, WallClock};

use terms::Terms;
use trade::TradeChange;
pub use trade::{SandboxRefund, SandboxTrade};

mod message;
mod terms;
#[cfg(test)]
mod tests;
mod trade;

pub const PROVIDER: &str = "sandbox";
/// Used as the application id and the seller id.
const APP_ID: &str = "sandbox";
const SELLER_ID: &str = "sandbox_seller";
/// Two callers rarely change one trade at once; more failed attempts mean that the storage is broken.
const CHANGE_ATTEMPTS: usize = 8;

/// The storage of the sandbox's trades, which stands for the provider's records.
pub trait SandboxLedger: Send + Sync {
    /// Returns the trade of an order, if the buyer has opened the payment screen.
    fn trade(&self, order_no: &str) -> Result<Option<SandboxTrade>, Failure>;

    /// Stores a trade if the stored one has the preceding version, or none exists for version 1. Returns false
    /// otherwise, so that only one of two concurrent changes happens.
    fn store(&self, trade: &SandboxTrade) -> Result<bool, Failure>;
}

/// The key is invalid or could not be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sandbox key is not a P-256 private key in PKCS#8 form, or no key could be generated")]
pub struct SandboxKeyError;

/// The sandbox gateway.
pub struct Sandbox {
    merchant: Merchant,
    reader: CallbackReader,
    ledger: Arc<dyn SandboxLedger>,
    clock: WallClock,
}

impl Sandbox {
    /// Generates a key, as PKCS#8 bytes. Must be kept secret: whoever has it can pay without money.
    pub fn generate_key() -> Result<Vec<u8>, SandboxKeyError> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
        document.map(|document| document.as_ref().to_vec()).map_err(|_| SandboxKeyError)
    }

    /// Creates a sandbox with a key from [`Sandbox::generate_key`]. `notify_url` is only written into order strings.
    pub fn new(
        key: &[u8],
        notify_url: &str,
        ledger: Arc<dyn SandboxLedger>,
        clock: WallClock,
    ) -> Result<Self, SandboxKeyError> {
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key, &SystemRandom::new());
        let key = key.map_err(|_| SandboxKeyError)?;
        let reader = CallbackReader {
            channel: PROVIDER,
            app_id: APP_ID.to_owned(),
            seller_id: Some(SELLER_ID.to_owned()),
            verifier: Verifier::Ecdsa256(key.public_key().as_ref().to_vec()),
        };
        let merchant = Merchant {
            provider: PROVIDER,
            app_id: APP_ID.to_owned(),
            seller_id: Some(SELLER_ID.to_owned()),
            notify_url: notify_url.to_owned(),
            // One key signs order strings and callbacks. An order string cannot be turned into a callback, because its
            // variable parts, number and subject, cannot contain `&`.
            signer: Signer::Ecdsa256(key),
            certificates: None,
        };
        Ok(Self { merchant, reader, ledger, clock })
    }

    /// Opens the payment screen as the buyer, without confirming: the trade waits for payment.
    pub fn open(&self, order_string: &str) -> Result<(), Failure> {
        let terms = Terms::read(order_string, &self.reader.verifier).map_err(refused)?;
        let number = self.trade_number()?;
        let now = (self.clock)();
        self.change(&terms.order_no, |found| trade::opened(found, &terms, &number, now)).map(|_| ())
    }

    /// Pays as the buyer and returns the signed form body to post to `/payment/notify`.
    ///
    /// Fails as `Refused` if the string is not ours or has expired, or if its order is already paid or closed.
    pub fn pay(&self, order_string: &str) -> Result<String, Failure> {
        let now = (self.clock)();
        self.pay_at(order_string, now, now)
    }

    /// Like [`Sandbox::pay`], but ignores the expiry of the order string, to test a payment after the order was closed
    /// here.
    pub fn pay_late(&self, order_string: &str) -> Result<String, Failure> {
        self.pay_at(order_string, (self.clock)(), i64::MIN)
    }

    /// Ends the refund period, so that the trade can no longer be refunded, and returns the callback.
    pub fn finish(&self, order_no: &str) -> Result<String, Failure> {
        self.change(order_no, trade::finished).and_then(|change| self.message_about(change.left()))
    }

    /// Returns the callback about the current state of a trade: paid, refunded or closed. The `notify_id` stays the
    /// same until the trade changes, as with a repeated delivery.
    pub fn callback(&self, order_no: &str) -> Result<String, Failure> {
        let found = self.current(order_no)?.ok_or_else(|| refused("ACQ.TRADE_NOT_EXIST"))?;
        self.message_about(&found)
    }

    fn pay_at(&self, order_string: &str, now: i64, measured_against_expiry: i64) -> Result<String, Failure> {
        let terms = Terms::read(order_string, &self.reader.verifier).map_err(refused)?;
        if terms.expires_at <= measured_against_expiry {
            return Err(refused("order_expired"));
        }
        let number = self.trade_number()?;
        let change = self.change(&terms.order_no, |found| trade::paid(found, &terms, &number, now))?;
        self.message_about(change.left())
    }

    fn message_about(&self, trade: &SandboxTrade) -> Result<String, Failure> {
        message::about(trade, &self.merchant, (self.clock)())
            .ok_or_else(|| self.merchant.misconfigured("message_not_made"))
    }

    fn current(&self, order_no: &str) -> Result<Option<SandboxTrade>, Failure> {
        let now = (self.clock)();
        Ok(self.ledger.trade(order_no)?.map(|trade| trade.state_at(now)))
    }

    /// Changes a trade without losing concurrent changes. `decide` may run several times.
    fn change(
        &self,
        order_no: &str,
        decide: impl Fn(Option<SandboxTrade>) -> Result<TradeChange, &'static str>,
    ) -> Result<TradeChange, Failure> {
        for _ in 0..CHANGE_ATTEMPTS {
            let change = decide(self.current(order_no)?).map_err(refused)?;
            let done = match &change {
                TradeChange::None(_) => true,
                TradeChange::To(next) => self.ledger.store(next)?,
            };
            if done {
                return Ok(change);
            }
        }
        Err(Failure::new(FailureKind::Busy, PROVIDER, "trade_contended"))
    }

    /// Returns a trade number in the provider's format: day, a fixed part, and random digits.
    fn trade_number(&self) -> Result<String, Failure> {
        let mut random = [0; 8];
        SystemRandom::new().fill(&mut random).map_err(|_| self.merchant.misconfigured("no_randomness"))?;
        let day = crate::providers::shanghai_time::shanghai_text((self.clock)()).unwrap_or_default();
        let day: String = day.chars().take(10).filter(char::is_ascii_digit).collect();
        Ok(format!("{day}{:020}", u64::from_be_bytes(random)))
    }
}

impl Sandbox {
    /// Returns the id that stands for our app.
    pub fn app_id(&self) -> &str {
        &self.merchant.app_id
    }

    /// Returns the signed string of an order.
    pub fn order_string(&self, order: &OrderRequest) -> Result<String, Failure> {
        self.merchant.order_string(order)
    }

    /// Parses and verifies a callback from the raw form body.
    pub fn read_callback(&self, form_body: &[u8]) -> Result<PaymentCallback, Rejection> {
        self.reader.read(form_body)
    }

    /// Queries the trade of an order.
    pub fn query(&self, order_no: &str) -> Result<TradeQueryOutcome, Failure> {
        let found = self.current(order_no)?;
        Ok(found.map_or(TradeQueryOutcome::NotFound, |trade| TradeQueryOutcome::Found(trade.queried(PROVIDER))))
    }

    /// Closes an unpaid trade.
    pub fn close(&self, order_no: &str) -> Result<CloseOutcome, Failure> {
        let now = (self.clock)();
        if self.current(order_no)?.is_none() {
            return Ok(CloseOutcome::NotFound);
        }
        Ok(match self.change(order_no, |found| trade::closed(found, now))? {
            TradeChange::To(_) => CloseOutcome::Closed,
            TradeChange::None(_) => CloseOutcome::NotClosable,
        })
    }

    /// Refunds money. Safe to repeat with the same refund number and amount.
    pub fn refund(&self, refund: &RefundRequest) -> Result<RefundOutcome, Failure> {
        if !refund.is_possible() {
            return Err(refused("invalid_refund"));
        }
        let now = (self.clock)();
        Ok(match self.change(&refund.order_no, |found| trade::refunded(found, refund, now))? {
            TradeChange::To(trade) => RefundOutcome::Moved { total: trade.refunded_total() },
            TradeChange::None(trade) => RefundOutcome::Unconfirmed { total: trade.refunded_total() },
        })
    }

    /// Queries if a refund took effect.
    pub fn query_refund(&self, order_no: &str, refund_no: &str) -> Result<RefundQueryOutcome, Failure> {
        let trade = self.current(order_no)?;
        let found = trade.as_ref().and_then(|trade| trade.refund(refund_no));
        Ok(found.map_or(RefundQueryOutcome::NotFound, |refund| RefundQueryOutcome::Succeeded { amount: refund.amount }))
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sandbox")
    }
}

fn refused(code: &'static str) -> Failure {
    Failure::new(FailureKind::Refused, PROVIDER, code)
}
