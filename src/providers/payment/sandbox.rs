//! A payment provider inside the process, for development, tests and demonstrations.
//!
//! It speaks Alipay's protocol with the same code: order strings, notifications and their checks differ only in the
//! signature scheme. Each installation generates its own key at its first start ([`Sandbox::generate_key`]), so that no
//! other installation can sign a payment for this server.
//!
//! It keeps no state: its trades are stored in a [`SandboxLedger`]. It never delivers by itself: [`Sandbox::pay`]
//! returns the notification, and the caller posts it once, twice or not at all.

use std::fmt;
use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};

use super::notification::NotificationReader;
use super::order_string::Merchant;
use super::signing::{Signer, Verifier};
use super::{
    CloseOutcome, OrderRequest, PaymentGateway, PaymentNotification, RefundOutcome, RefundRequest, RefundState,
    Rejection, TradeState,
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
/// Two callers rarely change one trade at once; more than this many lost races in a row mean a broken ledger.
const CHANGE_ATTEMPTS: usize = 8;

/// The storage of the sandbox's trades: the provider's books, not ours.
pub trait SandboxLedger: Send + Sync {
    /// The trade of an order, if the buyer ever came as far as the payment screen.
    fn trade(&self, order_no: &str) -> Result<Option<SandboxTrade>, Failure>;

    /// Stores a trade if the one stored has the version before it (`version - 1`; a first version, 1, needs that
    /// none is stored). Answers whether it did, so that of two changes at once only one happens.
    fn store(&self, trade: &SandboxTrade) -> Result<bool, Failure>;
}

/// The key cannot be made or used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sandbox key is not a P-256 private key in PKCS#8 form, or no key could be made")]
pub struct SandboxKeyError;

/// The sandbox gateway.
pub struct Sandbox {
    merchant: Merchant,
    reader: NotificationReader,
    ledger: Arc<dyn SandboxLedger>,
    clock: WallClock,
}

impl Sandbox {
    /// Makes a new key, as PKCS#8 bytes. Keep it as secret as the tokens' key: who has it can pay without money.
    pub fn generate_key() -> Result<Vec<u8>, SandboxKeyError> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
        document.map(|document| document.as_ref().to_vec()).map_err(|_| SandboxKeyError)
    }

    /// A sandbox with a key from [`Sandbox::generate_key`]. `notify_url` is only written into order strings.
    pub fn new(
        key: &[u8],
        notify_url: &str,
        ledger: Arc<dyn SandboxLedger>,
        clock: WallClock,
    ) -> Result<Self, SandboxKeyError> {
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key, &SystemRandom::new());
        let key = key.map_err(|_| SandboxKeyError)?;
        let reader = NotificationReader {
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
            // One key signs for both sides. An order string cannot be re-cut into a notification: its parts that
            // vary, number and subject, admit no `&`.
            signer: Signer::Ecdsa256(key),
        };
        Ok(Self { merchant, reader, ledger, clock })
    }

    /// The buyer opens the payment screen with an order string and does not confirm yet: a trade waits for payment.
    pub fn open(&self, order_string: &str) -> Result<(), Failure> {
        let terms = Terms::read(order_string, &self.reader.verifier).map_err(refused)?;
        let number = self.trade_number()?;
        let now = (self.clock)();
        self.change(&terms.order_no, |found| trade::opened(found, &terms, &number, now)).map(|_| ())
    }

    /// Pays as the buyer and returns the signed form body to post to `/payment/notify`.
    ///
    /// Fails as `Refused` if the string is not ours or has expired, or if its order is paid or closed.
    pub fn pay(&self, order_string: &str) -> Result<String, Failure> {
        let now = (self.clock)();
        self.pay_at(order_string, now, now)
    }

    /// As [`Sandbox::pay`], but the order string's expiry is not looked at: for rehearsing money that arrives after
    /// the order was closed here.
    pub fn pay_late(&self, order_string: &str) -> Result<String, Failure> {
        self.pay_at(order_string, (self.clock)(), i64::MIN)
    }

    /// The refund window passes: the trade can no longer be refunded. The result is the notification.
    pub fn finish(&self, order_no: &str) -> Result<String, Failure> {
        self.change(order_no, trade::finished).and_then(|change| self.message_about(change.left()))
    }

    /// The notification about the present state of a trade: paid, refunded or closed. The same `notify_id` each
    /// time until the trade changes, as with a repeated delivery.
    pub fn notification(&self, order_no: &str) -> Result<String, Failure> {
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
        Ok(self.ledger.trade(order_no)?.map(|trade| trade.standing_at(now)))
    }

    /// Changes a trade so that no concurrent change is lost. `decide` may run several times.
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

    /// A number in the form of the real provider's: day, a fixed part, and random digits.
    fn trade_number(&self) -> Result<String, Failure> {
        let mut random = [0; 8];
        SystemRandom::new().fill(&mut random).map_err(|_| self.merchant.misconfigured("no_randomness"))?;
        let day = super::clock_text::shanghai_text((self.clock)()).unwrap_or_default();
        let day: String = day.chars().take(10).filter(char::is_ascii_digit).collect();
        Ok(format!("{day}{:020}", u64::from_be_bytes(random)))
    }
}

impl PaymentGateway for Sandbox {
    fn name(&self) -> &'static str {
        PROVIDER
    }

    fn app_id(&self) -> &str {
        APP_ID
    }

    fn order_string(&self, order: &OrderRequest) -> Result<String, Failure> {
        self.merchant.order_string(order)
    }

    fn read_notification(&self, form_body: &[u8]) -> Result<PaymentNotification, Rejection> {
        self.reader.read(form_body)
    }

    fn query(&self, order_no: &str) -> Result<TradeState, Failure> {
        let found = self.current(order_no)?;
        Ok(found.map_or(TradeState::NotFound, |trade| TradeState::Found(trade.queried(PROVIDER))))
    }

    fn close(&self, order_no: &str) -> Result<CloseOutcome, Failure> {
        let now = (self.clock)();
        if self.current(order_no)?.is_none() {
            return Ok(CloseOutcome::NotFound);
        }
        Ok(match self.change(order_no, |found| trade::closed(found, now))? {
            TradeChange::To(_) => CloseOutcome::Closed,
            TradeChange::None(_) => CloseOutcome::NotClosable,
        })
    }

    fn refund(&self, refund: &RefundRequest) -> Result<RefundOutcome, Failure> {
        if !refund.is_possible() {
            return Err(refused("invalid_refund"));
        }
        let now = (self.clock)();
        Ok(match self.change(&refund.order_no, |found| trade::refunded(found, refund, now))? {
            TradeChange::To(trade) => RefundOutcome::Moved { total: trade.refunded_total() },
            TradeChange::None(trade) => RefundOutcome::Unconfirmed { total: trade.refunded_total() },
        })
    }

    fn query_refund(&self, order_no: &str, refund_no: &str) -> Result<RefundState, Failure> {
        let trade = self.current(order_no)?;
        let found = trade.as_ref().and_then(|trade| trade.refund(refund_no));
        Ok(found.map_or(RefundState::NotFound, |refund| RefundState::Succeeded { amount: refund.amount }))
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
