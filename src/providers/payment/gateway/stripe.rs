//! Stripe Checkout: a session for each order, in the configured currency.
//!
//! An order's provider reference is the session; its trade number is the payment that the session made. Only currencies
//! with two decimals are possible, because orders count hundredths.

use std::time::Duration;

use super::{
    CallbackMessage, FailedRefund, GatewayEvent, GatewayReport, OrderKey, PayerClient, PaymentGateway,
    PaymentInstruction,
};
use crate::{
    providers::{
        Failure, FailureKind, WallClock,
        payment::{
            CloseOutcome, Fen, OrderRequest, RefundOutcome, RefundQueryOutcome, RefundRequest, RefundResult, Rejection,
            RejectionReason, SettingFault, Trade, TradeQueryOutcome, TradeStatus,
            setting_fault::fault,
            stripe::{
                PROVIDER, Stripe, StripeCheckout, StripeEvent, StripeOrder, StripeRefund, StripeRefundRequest,
                StripeRefundTotal, StripeSession, StripeSettings, decimals_of,
            },
        },
    },
    types::Currency,
};

/// Stripe demands half an hour from the moment at which it receives the request.
const MIN_PAYMENT_TIME: Duration = Duration::from_mins(31);

/// The operator's settings of the gateway.
pub struct StripeGatewaySettings {
    pub stripe: StripeSettings,
    pub currency: Currency,
    /// Prices in yuan, and those in `currency`. Not needed for yuan.
    pub prices: Vec<(Fen, Fen)>,
    pub success_url: String,
    pub cancel_url: String,
}

/// The gateway to Stripe Checkout.
pub struct StripeGateway {
    stripe: Stripe,
    currency: Currency,
    prices: Vec<(Fen, Fen)>,
    success_url: String,
    cancel_url: String,
    clock: WallClock,
}

impl StripeGateway {
    /// Builds the gateway, or returns every fault of the settings.
    pub fn new(settings: StripeGatewaySettings, clock: WallClock) -> Result<Self, Vec<SettingFault>> {
        let StripeGatewaySettings { stripe, currency, prices, success_url, cancel_url } = settings;
        let made = Stripe::new(&stripe);
        let mut faults = made.as_ref().err().cloned().unwrap_or_default();
        if decimals_of(&currency.lower_case()) != 2 {
            faults.push(fault("currency", "must be a currency with two decimals"));
        }
        if currency != Currency::CNY && prices.is_empty() {
            faults.push(fault("prices", "must have the price of each product, because the currency is not CNY"));
        }
        for (setting, url) in [("success_url", &success_url), ("cancel_url", &cancel_url)] {
            if !url.starts_with("https://") && !url.starts_with("http://") {
                faults.push(fault(setting, "must be the address of the page to which buyers return"));
            }
        }
        match made {
            Ok(stripe) if faults.is_empty() => Ok(Self { stripe, currency, prices, success_url, cancel_url, clock }),
            _ => Err(faults),
        }
    }

    fn trade_of(&self, checkout: StripeCheckout, status: TradeStatus) -> Result<Trade, RejectionReason> {
        let is_paid = status == TradeStatus::Success;
        let trade_no = match checkout.payment_intent {
            Some(payment) => trade_number(payment)?,
            None if is_paid => return Err(RejectionReason::FieldMissing("payment_intent")),
            // An unpaid trade has no number yet. Ids of sessions are longer than numbers of trades may be.
            None => checkout.session_id,
        };
        Ok(Trade {
            channel: PROVIDER,
            order_no: checkout.order_no,
            trade_no,
            amount: amount(checkout.amount)?,
            currency: currency(&checkout.currency)?,
            status,
            paid_at: is_paid.then(|| (self.clock)()),
            refunded: None,
        })
    }

    fn refunds_of(total: StripeRefundTotal) -> Result<Trade, RejectionReason> {
        let payment = total.payment_intent.ok_or(RejectionReason::FieldMissing("payment_intent"))?;
        let refunded = RefundResult { total: Some(amount(total.refunded)?), refund_no: None, at: None };
        Ok(Trade {
            channel: PROVIDER,
            order_no: total.order_no.unwrap_or_default(),
            trade_no: trade_number(payment)?,
            amount: amount(total.amount)?,
            currency: currency(&total.currency)?,
            status: TradeStatus::Success,
            paid_at: None,
            refunded: Some(refunded),
        })
    }

    fn event(&self, event: StripeEvent) -> Result<GatewayEvent, RejectionReason> {
        Ok(match event {
            StripeEvent::Paid(checkout) => GatewayEvent::Trade(self.trade_of(checkout, TradeStatus::Success)?),
            StripeEvent::AwaitingPayment(checkout) => {
                GatewayEvent::Trade(self.trade_of(checkout, TradeStatus::WaitBuyerPay)?)
            }
            StripeEvent::PaymentFailed(checkout) | StripeEvent::Expired(checkout) => {
                GatewayEvent::Trade(self.trade_of(checkout, TradeStatus::Closed)?)
            }
            StripeEvent::Refunded(total) => GatewayEvent::Trade(Self::refunds_of(total)?),
            StripeEvent::RefundFailed(refund) => GatewayEvent::RefundFailed(failed_refund(&refund)?),
            StripeEvent::Dispute { id, payment_intent, state } => {
                GatewayEvent::Dispute { trade_no: trade_number(payment_intent)?, dispute_no: id, state }
            }
            StripeEvent::Other(kind) => GatewayEvent::Other(kind),
        })
    }

    fn trade_of_session(&self, session: StripeSession, order_no: &str) -> Result<Trade, Failure> {
        let status = match session.status.as_deref() {
            _ if session.is_paid() => TradeStatus::Success,
            Some("expired") => TradeStatus::Closed,
            _ => TradeStatus::WaitBuyerPay,
        };
        let checkout = StripeCheckout {
            order_no: order_no.to_owned(),
            session_id: session.id,
            payment_intent: session.payment_intent,
            amount: session.amount_total.unwrap_or(-1),
            currency: session.currency.unwrap_or_default(),
        };
        self.trade_of(checkout, status).map_err(|reason| invalid_response(reason.code()))
    }
}

impl StripeGateway {
    /// Returns the refunds of a payment so far; `None` if there are none.
    fn refunded(&self, payment: &str) -> Result<Option<RefundResult>, Failure> {
        let sum = self.stripe.refunded_sum(payment)?;
        let total = Fen::from_fen(sum).map_err(|_| invalid_response("answer_incomplete"))?;
        Ok((total > Fen::ZERO).then_some(RefundResult { total: Some(total), refund_no: None, at: None }))
    }
}

impl PaymentGateway for StripeGateway {
    fn name(&self) -> &'static str {
        PROVIDER
    }

    fn app_id(&self) -> &str {
        if self.stripe.is_live() { "live" } else { "test" }
    }

    fn currency(&self) -> Currency {
        self.currency
    }

    fn price(&self, yuan: Fen) -> Option<Fen> {
        if self.currency == Currency::CNY {
            return Some(yuan);
        }
        self.prices.iter().find(|(known, _)| *known == yuan).map(|(_, price)| *price)
    }

    fn min_payment_time(&self) -> Duration {
        MIN_PAYMENT_TIME
    }

    fn prepares_online(&self) -> bool {
        true
    }

    fn signed_headers(&self) -> &'static [&'static str] {
        &["stripe-signature"]
    }

    fn prepare(&self, order: &OrderRequest, _: &PayerClient) -> Result<PaymentInstruction, Failure> {
        let session = self.stripe.create_session(&StripeOrder {
            order_no: order.order_no.clone(),
            amount: order.amount.as_fen(),
            currency: self.currency.lower_case(),
            subject: order.subject.clone(),
            success_url: self.success_url.clone(),
            cancel_url: self.cancel_url.clone(),
            expires_at: order.expires_at,
            now: order.now,
        })?;
        let url = session.url.ok_or_else(|| invalid_response("answer_incomplete"))?;
        Ok(PaymentInstruction {
            order_string: None,
            parameters: [("url".to_owned(), url)].into(),
            provider_ref: Some(session.id),
        })
    }

    fn read_callback(&self, message: &CallbackMessage<'_>) -> Result<GatewayReport, Rejection> {
        let signature = message.headers.get("stripe-signature").map(String::as_str);
        let notification = self.stripe.read_webhook(signature, message.body, message.received_at)?;
        match self.event(notification.event) {
            Ok(event) => Ok(GatewayReport { notify_id: notification.id, event }),
            Err(reason) => Err(Rejection { notify_id: Some(notification.id), ..Rejection::anonymous(reason, true) }),
        }
    }

    /// Without a session the buyer never got an address to pay at.
    fn query(&self, order: OrderKey<'_>) -> Result<TradeQueryOutcome, Failure> {
        let Some(session) = order.provider_ref.map(|id| self.stripe.session(id)).transpose()?.flatten() else {
            return Ok(TradeQueryOutcome::NotFound);
        };
        if session.client_reference_id.as_deref() != Some(order.order_no) {
            return Err(invalid_response("answer_for_another_order"));
        }
        let trade = self.trade_of_session(session, order.order_no)?;
        // Refunds that were made in the dashboard are known only by their webhook otherwise.
        let refunded = if trade.is_paid() { self.refunded(&trade.trade_no)? } else { None };
        Ok(TradeQueryOutcome::Found(Trade { refunded, ..trade }))
    }

    fn close(&self, order: OrderKey<'_>) -> Result<CloseOutcome, Failure> {
        let Some(session) = order.provider_ref else { return Ok(CloseOutcome::NotFound) };
        match self.stripe.expire_session(session) {
            Ok(_) => Ok(CloseOutcome::Closed),
            Err(failure) if failure.kind == FailureKind::Refused => Ok(CloseOutcome::NotClosable),
            Err(failure) => Err(failure),
        }
    }

    fn refund(&self, refund: &RefundRequest, order: OrderKey<'_>) -> Result<RefundOutcome, Failure> {
        let Some(payment) = order.trade_no else {
            return Err(Failure::new(FailureKind::Refused, PROVIDER, "no_payment"));
        };
        let made = self.stripe.refund(&StripeRefundRequest {
            payment_intent: payment.to_owned(),
            refund_no: refund.refund_no.clone(),
            amount: refund.amount.as_fen(),
        })?;
        Ok(match made.status.as_str() {
            // Without the sum the refund counts alone, until the webhook or a query tells the sum.
            "succeeded" => {
                let refunded = self.refunded(payment).ok().flatten();
                RefundOutcome::Moved { total: refunded.and_then(|refunded| refunded.total) }
            }
            _ if made.has_failed() => RefundOutcome::Closed,
            _ => RefundOutcome::Processing,
        })
    }

    fn query_refund(&self, order: OrderKey<'_>, refund_no: &str) -> Result<RefundQueryOutcome, Failure> {
        let Some(payment) = order.trade_no else { return Ok(RefundQueryOutcome::NotFound) };
        let Some(refund) = self.stripe.find_refund(payment, refund_no)? else {
            return Ok(RefundQueryOutcome::NotFound);
        };
        Ok(match refund.status.as_str() {
            "succeeded" => RefundQueryOutcome::Succeeded {
                amount: Fen::from_fen(refund.amount).map_err(|_| invalid_response("answer_incomplete"))?,
            },
            _ if refund.has_failed() => RefundQueryOutcome::Closed,
            _ => RefundQueryOutcome::Processing,
        })
    }

    fn failed_refunds(&self, order: OrderKey<'_>) -> Result<Vec<FailedRefund>, Failure> {
        let Some(payment) = order.trade_no else { return Ok(Vec::new()) };
        let refunds = self.stripe.refunds_of(payment)?;
        let failed = refunds.iter().filter(|refund| refund.has_failed());
        failed.map(|refund| failed_refund(refund).map_err(|reason| invalid_response(reason.code()))).collect()
    }
}

fn failed_refund(refund: &StripeRefund) -> Result<FailedRefund, RejectionReason> {
    Ok(FailedRefund {
        trade_no: trade_number(refund.payment_intent.clone().unwrap_or_default())?,
        refund_no: refund.number().chars().take(64).collect(),
        amount: amount(refund.amount)?,
        currency: currency(&refund.currency)?,
    })
}

fn trade_number(text: String) -> Result<String, RejectionReason> {
    if super::super::is_number(&text) { Ok(text) } else { Err(RejectionReason::FieldMissing("payment_intent")) }
}

fn amount(hundredths: i64) -> Result<Fen, RejectionReason> {
    Fen::from_fen(hundredths).map_err(|_| RejectionReason::InvalidAmount("amount"))
}

fn currency(code: &str) -> Result<Currency, RejectionReason> {
    Currency::parse(code).map_err(|_| RejectionReason::WrongCurrency)
}

fn invalid_response(code: &str) -> Failure {
    Failure::new(FailureKind::InvalidResponse, PROVIDER, code)
}
