//! Rehearsing payments with the gateway inside the process: the buyer's side, and the provider's books.
//!
//! A rehearsed payment takes the same way as a real one: a signed notification, judged like any other. Delivering it
//! may be left out, to see that a lost one loses nothing.

use crate::domain::money::payments::Payments;
use crate::{
    domain::money::payments::{callbacks, order::Order, orders},
    error::{Code, Error, Result},
    providers::{
        Failure, FailureKind,
        payment::{
            delivery,
            sandbox::{SandboxLedger, SandboxTrade},
        },
    },
    store::{Read, Row, Store, Write},
};

/// How a payment is rehearsed.
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    /// The buyer pays although the time for it has passed, as can happen at a real provider.
    pub late: bool,
    pub delivery: Delivery,
}

/// How the notification gets to where it is judged.
#[derive(Clone, Debug, Default)]
pub enum Delivery {
    /// By this process, through the same operation as the endpoint.
    #[default]
    Here,
    /// By HTTP to this address.
    To(String),
    /// It is lost.
    Lost,
}

/// What came of a rehearsal.
#[derive(Clone, Debug)]
pub struct Rehearsed {
    pub order: Order,
    /// What the notification was answered with; nothing if it was lost.
    pub answer: Option<String>,
}

/// Pays an order in the sandbox, or reports a payment again that was made before.
///
/// # Errors
/// `order_state` where there is no sandbox or the order cannot be paid; `not_found`; those of the delivery.
pub fn pay(payments: &Payments, order_no: &str, rehearsal: &Rehearsal) -> Result<Rehearsed> {
    let Some(sandbox) = &payments.sandbox else {
        return Err(Error::new(Code::OrderState).detail("The gateway is not the sandbox: nothing can be rehearsed."));
    };
    let order = orders::find(payments, order_no)?;
    let order_string = orders::order_string(payments, &order)?;
    let paid = if rehearsal.late { sandbox.pay_late(&order_string) } else { sandbox.pay(&order_string) };
    let form = match paid {
        Err(failure) if failure.code == "ACQ.TRADE_HAS_SUCCESS" => sandbox.notification(&order.order_no),
        paid => paid,
    };
    let form = form.map_err(|failure| refused(&failure))?;
    let answer = match &rehearsal.delivery {
        Delivery::Here => Some(callbacks::receive(payments, form.into_bytes()).wait()?.word().name().to_owned()),
        Delivery::To(address) => Some(delivery::deliver(address, &form)?),
        Delivery::Lost => None,
    };
    Ok(Rehearsed { order: orders::find(payments, &order.order_no)?, answer })
}

fn refused(failure: &Failure) -> Error {
    Error::new(Code::OrderState).detail(format!("The sandbox refuses the payment: {}.", failure.code))
}

/// The sandbox's trades, in a table of their own.
pub struct Books {
    store: Store,
}

impl Books {
    pub fn new(store: Store) -> Self {
        Self { store }
    }
}

impl SandboxLedger for Books {
    fn trade(&self, order_no: &str) -> Result<Option<SandboxTrade>, Failure> {
        let found = self.store.read(|tx| find_in(tx, order_no));
        found.map_err(|error| unusable(&error))
    }

    fn store(&self, trade: &SandboxTrade) -> Result<bool, Failure> {
        let trade = trade.clone();
        let stored = self.store.write(move |tx| store_in(tx, &trade)).wait();
        stored.map_err(|error| unusable(&error))
    }
}

fn unusable(error: &Error) -> Failure {
    Failure::new(FailureKind::Busy, "sandbox", error.code.name())
}

fn find_in(tx: &Read<'_>, order_no: &str) -> Result<Option<SandboxTrade>> {
    let text = tx.first("select trade from sandbox_trades where order_no = ?1", [order_no], |row: &Row<'_>| {
        row.get::<String>(0)
    })?;
    text.map(|text| serde_json::from_str(&text).map_err(Error::internal)).transpose()
}

fn store_in(tx: &Write<'_>, trade: &SandboxTrade) -> Result<bool> {
    let text = serde_json::to_string(trade).map_err(Error::internal)?;
    let values = (&trade.order_no, trade.version, text);
    let changed = if trade.version == 1 {
        tx.execute(
            "insert into sandbox_trades (order_no, version, trade) values (?1, ?2, ?3) \
             on conflict (order_no) do nothing",
            values,
        )?
    } else {
        tx.execute(
            "update sandbox_trades set version = ?2, trade = ?3 where order_no = ?1 and version = ?2 - 1",
            values,
        )?
    };
    Ok(changed == 1)
}
