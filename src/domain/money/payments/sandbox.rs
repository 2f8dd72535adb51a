//! Test payments through the sandbox gateway, which simulates the buyer and the provider.
//!
//! A test payment is processed like a real one, by a signed callback. Its delivery can be skipped to test a lost
//! callback.

pub(super) mod trades;

use std::collections::BTreeMap;

use crate::domain::money::payments::Payments;
use crate::{
    domain::money::payments::{callbacks, order::Order, orders},
    error::{Code, Error, Result},
    providers::{
        Failure,
        payment::{PayerClient, delivery},
    },
    types::UserId,
};

/// The options of a test payment.
#[derive(Clone, Debug, Default)]
pub struct TestPayment {
    /// Pays after the order has expired, as can happen with a real provider.
    pub late: bool,
    pub delivery: Delivery,
}

/// The delivery of the callback.
#[derive(Clone, Debug, Default)]
pub enum Delivery {
    /// In this process, through the operation behind the endpoint.
    #[default]
    Here,
    /// By HTTP to this URL.
    To(String),
    /// Not delivered.
    Lost,
}

/// The result of a test payment.
#[derive(Clone, Debug)]
pub struct TestPaymentResult {
    pub order: Order,
    /// The response to the callback; `None` if it was not delivered.
    pub answer: Option<String>,
}

/// Pays an order in the sandbox as its buyer, where the operator allows it.
///
/// # Errors
/// `not_found` for orders of others; `not_configured` where it is not allowed; those of [`pay`].
pub fn pay_own(payments: &Payments, user: UserId, order_no: &str) -> Result<Order> {
    let own = orders::find_own(&payments.core, user, order_no)?;
    if !payments.core.config.payment.sandbox_buyers {
        return Err(Error::new(Code::NotConfigured));
    }
    Ok(pay(payments, &own.order_no, &TestPayment::default())?.order)
}

/// Pays an order in the sandbox, or delivers the callback of an earlier payment again.
///
/// # Errors
/// `order_state` without a sandbox or if the order cannot be paid; `not_found`; those of the delivery.
pub fn pay(payments: &Payments, order_no: &str, payment: &TestPayment) -> Result<TestPaymentResult> {
    let Some(sandbox) = &payments.special.sandbox else {
        return Err(
            Error::new(Code::OrderState).detail(("Test payments need the sandbox gateway.", "测试支付需要沙箱渠道。"))
        );
    };
    let order = orders::find(payments, order_no)?;
    let prepared = orders::prepare(payments, &order, &PayerClient::MobileApp)?;
    let order_string = prepared.order_string.unwrap_or_default();
    let paid = if payment.late { sandbox.pay_late(&order_string) } else { sandbox.pay(&order_string) };
    let form = match paid {
        Err(failure) if failure.code == "ACQ.TRADE_HAS_SUCCESS" => sandbox.callback(&order.order_no),
        paid => paid,
    };
    let form = form.map_err(|failure| refused(&failure))?;
    let answer = match &payment.delivery {
        Delivery::Here => Some(
            callbacks::receive(payments, None, BTreeMap::new(), form.into_bytes()).wait()?.word().name().to_owned(),
        ),
        Delivery::To(address) => Some(delivery::deliver(address, &form)?),
        Delivery::Lost => None,
    };
    Ok(TestPaymentResult { order: orders::find(payments, &order.order_no)?, answer })
}

fn refused(failure: &Failure) -> Error {
    Error::new(Code::OrderState).detail((
        format!("The sandbox refused the payment: {}.", failure.code),
        format!("沙箱拒绝了支付：{}。", failure.code),
    ))
}
