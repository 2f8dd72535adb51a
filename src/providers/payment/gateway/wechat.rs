//! WeChat Pay: a call for each order, encrypted notifications, and refunds that are reported one by one.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use super::{
    CallbackMessage, FailedRefund, GatewayEvent, GatewayReport, OrderKey, PayerClient, PaymentGateway,
    PaymentInstruction, RefundReport,
};
use crate::{
    providers::{
        Failure, FailureKind,
        payment::{
            CloseOutcome, OrderRequest, RefundOutcome, RefundQueryOutcome, RefundRequest, Rejection, TradeQueryOutcome,
            bill::{BillLine, ProviderBill},
            wechat::{
                PROVIDER, WeChatBill, WeChatBillLine, WeChatClient, WeChatEvent, WeChatNotification, WeChatPay,
                WeChatRefund, WeChatRefundState, WeChatSignature,
            },
        },
    },
    types::{Currency, sha256},
};

/// The headers of a signature.
const SIGNED: [&str; 5] =
    ["wechatpay-timestamp", "wechatpay-nonce", "wechatpay-signature", "wechatpay-serial", "wechatpay-signature-type"];

impl PaymentGateway for WeChatPay {
    fn name(&self) -> &'static str {
        PROVIDER
    }

    fn app_id(&self) -> &str {
        Self::app_id(self)
    }

    fn prepares_online(&self) -> bool {
        true
    }

    fn payer(&self, client: &PayerClient) -> String {
        let facts = match client {
            PayerClient::MobileApp => "app",
            PayerClient::H5 { client_ip } => &format!("h5 {client_ip}"),
            PayerClient::Jsapi { open_id } => &format!("jsapi {open_id}"),
            PayerClient::Native => "native",
        };
        URL_SAFE_NO_PAD.encode(sha256(facts))
    }

    fn signed_headers(&self) -> &'static [&'static str] {
        &SIGNED
    }

    fn prepare(&self, order: &OrderRequest, client: &PayerClient) -> Result<PaymentInstruction, Failure> {
        let client = match client {
            PayerClient::MobileApp => WeChatClient::MobileApp,
            PayerClient::H5 { client_ip } => WeChatClient::H5 { client_ip },
            PayerClient::Jsapi { open_id } => WeChatClient::Jsapi { open_id },
            PayerClient::Native => WeChatClient::Native,
        };
        let payment = self.prepay(client, order)?;
        let Ok(Value::Object(members)) = serde_json::to_value(payment) else {
            return Err(Failure::new(FailureKind::Misconfigured, PROVIDER, "content_not_serializable"));
        };
        let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
        Ok(PaymentInstruction {
            parameters: members.into_iter().filter_map(text).collect(),
            ..PaymentInstruction::default()
        })
    }

    fn read_callback(&self, message: &CallbackMessage<'_>) -> Result<GatewayReport, Rejection> {
        let signature = WeChatSignature::from_headers(|name| message.headers.get(name).map(String::as_str));
        let signature = signature.map_err(|reason| Rejection::anonymous(reason, false))?;
        let WeChatNotification { id, event } = self.read_notification(&signature, message.body, message.received_at)?;
        let event = match event {
            WeChatEvent::Paid(trade) => GatewayEvent::Trade(trade),
            WeChatEvent::Refund(refund) => GatewayEvent::Refund(refund.into()),
            WeChatEvent::Other(kind) => GatewayEvent::Other(kind),
        };
        Ok(GatewayReport { notify_id: id, event })
    }

    fn refresh_keys(&self) -> Result<bool, Failure> {
        self.refresh_certificates().map(|fetched| !fetched.is_empty())
    }

    fn query(&self, order: OrderKey<'_>) -> Result<TradeQueryOutcome, Failure> {
        Self::query(self, order.order_no)
    }

    fn close(&self, order: OrderKey<'_>) -> Result<CloseOutcome, Failure> {
        Self::close(self, order.order_no)
    }

    fn refund(&self, refund: &RefundRequest, order: OrderKey<'_>) -> Result<RefundOutcome, Failure> {
        // The provider shows the buyer at most 80 characters.
        let refund = RefundRequest { reason: refund.reason.chars().take(80).collect(), ..refund.clone() };
        Ok(match Self::refund(self, &refund, order.price)?.state {
            WeChatRefundState::Succeeded => RefundOutcome::Moved { total: None },
            WeChatRefundState::Processing => RefundOutcome::Processing,
            WeChatRefundState::Closed => RefundOutcome::Closed,
            WeChatRefundState::Abnormal => RefundOutcome::Abnormal,
        })
    }

    fn query_refund(&self, order: OrderKey<'_>, refund_no: &str) -> Result<RefundQueryOutcome, Failure> {
        let found = Self::query_refund(self, order.order_no, refund_no)?;
        Ok(found.map_or(RefundQueryOutcome::NotFound, |refund| refund.outcome()))
    }

    fn has_bills(&self) -> bool {
        true
    }

    fn bill(&self, day: i64) -> Result<Option<ProviderBill>, Failure> {
        Ok(Self::bill(self, day)?.map(Into::into))
    }
}

impl From<WeChatBill> for ProviderBill {
    fn from(bill: WeChatBill) -> Self {
        let line = |line: WeChatBillLine| match line.refund {
            Some(refund) => BillLine {
                order_no: line.order_no,
                trade_no: line.trade_no,
                amount: refund.amount,
                refund_no: Some(refund.refund_no),
            },
            None => BillLine { order_no: line.order_no, trade_no: line.trade_no, amount: line.amount, refund_no: None },
        };
        Self { lines: bill.lines.into_iter().map(line).collect(), fees: bill.fees }
    }
}

impl From<&RefundReport> for FailedRefund {
    fn from(report: &RefundReport) -> Self {
        let RefundReport { trade_no, refund_no, amount, .. } = report.clone();
        Self { trade_no, refund_no, amount, currency: Currency::CNY }
    }
}

impl From<WeChatRefund> for RefundReport {
    fn from(refund: WeChatRefund) -> Self {
        Self {
            state: refund.outcome(),
            order_no: refund.order_no,
            trade_no: refund.trade_no,
            refund_no: refund.refund_no,
            amount: refund.amount,
            price: refund.total,
            at: refund.succeeded_at,
        }
    }
}
