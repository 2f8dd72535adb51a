//! Alipay and the sandbox: order strings, and callbacks that are signed forms.

use super::{CallbackMessage, GatewayEvent, GatewayReport, OrderKey, PayerClient, PaymentGateway, PaymentInstruction};
use crate::providers::{
    Failure,
    payment::{
        CloseOutcome, OrderRequest, PaymentCallback, RefundOutcome, RefundQueryOutcome, RefundRequest, Rejection,
        TradeQueryOutcome,
        alipay::{self, Alipay},
        bill::ProviderBill,
        sandbox::{self, Sandbox},
    },
};

macro_rules! gateway_of {
    ($gateway:ty, $name:expr $(, $more:item)*) => {
        impl PaymentGateway for $gateway {
            fn name(&self) -> &'static str {
                $name
            }

            fn app_id(&self) -> &str {
                <$gateway>::app_id(self)
            }

            fn answers_in_words(&self) -> bool {
                true
            }

            fn prepare(&self, order: &OrderRequest, _: &PayerClient) -> Result<PaymentInstruction, Failure> {
                let order_string = Some(self.order_string(order)?);
                Ok(PaymentInstruction { order_string, ..PaymentInstruction::default() })
            }

            fn read_callback(&self, message: &CallbackMessage<'_>) -> Result<GatewayReport, Rejection> {
                let PaymentCallback { notify_id, trade, .. } = <$gateway>::read_callback(self, message.body)?;
                Ok(GatewayReport { notify_id, event: GatewayEvent::Trade(trade) })
            }

            fn query(&self, order: OrderKey<'_>) -> Result<TradeQueryOutcome, Failure> {
                <$gateway>::query(self, order.order_no)
            }

            fn close(&self, order: OrderKey<'_>) -> Result<CloseOutcome, Failure> {
                <$gateway>::close(self, order.order_no)
            }

            fn refund(&self, refund: &RefundRequest, _: OrderKey<'_>) -> Result<RefundOutcome, Failure> {
                <$gateway>::refund(self, refund)
            }

            fn query_refund(&self, order: OrderKey<'_>, refund_no: &str) -> Result<RefundQueryOutcome, Failure> {
                <$gateway>::query_refund(self, order.order_no, refund_no)
            }

            $($more)*
        }
    };
}

gateway_of!(
    Alipay,
    alipay::PROVIDER,
    fn has_bills(&self) -> bool {
        true
    },
    fn bill(&self, day: i64) -> Result<Option<ProviderBill>, Failure> {
        Self::bill(self, day)
    }
);
gateway_of!(Sandbox, sandbox::PROVIDER);
