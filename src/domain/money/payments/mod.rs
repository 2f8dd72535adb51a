//! Payments: orders of coins. Money that a payment provider reports becomes coins only here.
//!
//! Three things credit an order: a callback signed by the provider, the provider's response to a query, and an
//! operator's decision. A claim by the user's app only triggers a query. All end in one transaction with the ledger
//! entry. A job queries orders without a callback, so a lost callback loses no money.
//!
//! The surprise: a closed order, or one of a deleted user, can still be paid, because the provider may accept money
//! late. Such a payment is credited or goes to review. It is never ignored.

pub mod bills;
pub mod callbacks;
pub mod certificates;
pub mod channels;
pub mod decisions;
mod disputes;
pub mod order;
pub mod order_details;
pub mod orders;
pub mod reconcile;
pub mod refunds;
pub mod report;
pub mod retention;
pub mod sandbox;
pub mod order_states;
pub mod settle;

pub use order_details::export_in;

use std::sync::Arc;

use self::{
    channels::{PaymentChannels, SpecialGateways},
    order::Order,
};
use crate::{
    concurrency::semaphore::{KeyedMutex, Semaphore},
    core::Core,
    error::Result,
    providers::{
        Failure,
        breaker::CircuitBreaker,
        payment::{OrderKey, PaymentGateway},
    },
};

/// The payment service: the channels with their limits.
pub struct Payments {
    pub core: Core,
    pub channels: Arc<PaymentChannels>,
    special: SpecialGateways,
    /// Permits for provider calls that users wait for.
    calls: Semaphore,
    /// Orders with a running query for their user.
    asking: KeyedMutex<String>,
}

impl Payments {
    /// Builds the configured gateways. `sandbox_key` provides the sandbox's signing key.
    ///
    /// # Errors
    /// `configuration` with all faults of the gateways' settings.
    pub fn open(core: Core, sandbox_key: impl FnOnce() -> Result<Vec<u8>>) -> Result<Self> {
        let known = core.store.read(certificates::stored_in)?;
        let (channels, special) = PaymentChannels::open(&core, sandbox_key, &known)?;
        let calls = Semaphore::new(core.config.payment.max_concurrent_calls);
        Ok(Self { core, channels: Arc::new(channels), special, calls, asking: KeyedMutex::default() })
    }

    /// Returns the circuit breakers of all channels.
    pub fn breakers(&self) -> impl Iterator<Item = &Arc<CircuitBreaker>> {
        self.channels.all().map(|channel| &channel.breaker)
    }

    /// Asks the provider of an order, through the breaker of its channel.
    ///
    /// # Errors
    /// `order_state` if the channel is not configured.
    fn ask<T>(
        &self,
        order: &Order,
        question: impl FnOnce(&dyn PaymentGateway, OrderKey<'_>) -> Result<T, Failure>,
    ) -> Result<Result<T, Failure>> {
        let channel = self.channels.of(order)?;
        let clock = &self.core.clock;
        Ok(channel.breaker.run(|| clock.now().0, || question(channel.gateway.as_ref(), order.key())))
    }
}
