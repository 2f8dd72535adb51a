//! The trades of the sandbox, as its simulated provider stores them.

use crate::{
    error::{Error, Result},
    providers::{
        Failure, FailureKind,
        payment::sandbox::{SandboxLedger, SandboxTrade},
    },
    store::{Read, Row, Store, Write},
};

/// The storage of the sandbox's trades, in their own table.
pub struct TradeStore {
    store: Store,
}

impl TradeStore {
    pub fn new(store: Store) -> Self {
        Self { store }
    }
}

impl SandboxLedger for TradeStore {
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
