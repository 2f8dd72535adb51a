//! Payments: orders of coins. Money becomes coins only here.
//!
//! Three things credit an order: a callback signed by the provider, the provider's response to a query, and an
//! operator's decision. A claim by the user's app only triggers a query. All end in one transaction with the ledger
//! entry. A job queries orders without a callback, so a lost callback loses no money.
//!
//! The surprise: a closed order, or one of a deleted user, can still be paid, because the provider may accept money
//! late. Such a payment is credited or goes to review. It is never ignored.

pub mod callbacks;
pub mod decisions;
pub mod order;
pub mod order_details;
pub mod orders;
pub mod reconcile;
pub mod refunds;
pub mod report;
pub mod retention;
pub mod sandbox;
pub mod settle;

pub use order_details::export_in;

use std::sync::Arc;

use secrecy::ExposeSecret;

use crate::{
    clock::Clock,
    concurrency::semaphore::{KeyedMutex, Semaphore},
    config::{Config, PaymentProvider},
    core::Core,
    error::{Code, Error, Result},
    providers::{
        Failure,
        breaker::CircuitBreaker,
        payment::{
            PaymentGateway,
            alipay::{self, Alipay},
            sandbox::Sandbox,
        },
    },
};

/// The payment service: the gateway with its breaker and limits.
pub struct Payments {
    pub core: Core,
    pub gateway: Arc<dyn PaymentGateway>,
    /// The simulated provider behind the sandbox gateway.
    sandbox: Option<Arc<Sandbox>>,
    breaker: Arc<CircuitBreaker>,
    /// Permits for provider calls that users wait for.
    calls: Semaphore,
    /// Orders with a running query for their user.
    asking: KeyedMutex<String>,
}

impl Payments {
    /// Builds the configured gateway. `sandbox_key` provides the sandbox's signing key.
    ///
    /// # Errors
    /// `configuration` with all faults of the gateway's settings.
    pub fn open(core: Core, sandbox_key: impl FnOnce() -> Result<Vec<u8>>) -> Result<Self> {
        let (config, store, clock) = (&core.config, &core.store, core.clock.clone());
        let clock = Box::new(move || clock.now().0);
        let (gateway, sandbox): (Arc<dyn PaymentGateway>, _) = match config.payment.gateway {
            PaymentProvider::Sandbox => {
                let trades = Arc::new(sandbox::TradeStore::new(store.clone()));
                let made = Sandbox::new(&sandbox_key()?, &notify_url(config), trades, clock);
                let sandbox = Arc::new(made.map_err(|error| Error::new(Code::Configuration).caused_by(error))?);
                (Arc::clone(&sandbox) as _, Some(sandbox))
            }
            PaymentProvider::Alipay => (Arc::new(alipay_gateway(config, clock)?), None),
        };
        let (breaker, calls) =
            (Arc::new(CircuitBreaker::with_defaults("payment")), Semaphore::new(config.payment.max_concurrent_calls));
        Ok(Self { core, gateway, sandbox, breaker, calls, asking: KeyedMutex::default() })
    }

    /// The gateway's circuit breaker.
    pub fn breaker(&self) -> &Arc<CircuitBreaker> {
        &self.breaker
    }

    /// Calls the provider through the breaker.
    fn ask<T>(
        &self,
        clock: &Clock,
        question: impl FnOnce(&dyn PaymentGateway) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.breaker.run(|| clock.now().0, || question(self.gateway.as_ref()))
    }
}

/// Builds the Alipay gateway.
///
/// # Errors
/// `configuration` with all faults of its settings.
pub fn alipay_gateway(config: &Config, clock: Box<dyn Fn() -> i64 + Send + Sync>) -> Result<Alipay> {
    let payment = &config.payment;
    let private_key = payment.private_key.as_ref().map_or("", |key| key.expose_secret());
    let settings = alipay::AlipaySettings {
        app_id: payment.app_id.clone(),
        seller_id: payment.seller_id.clone(),
        private_key: private_key.to_owned(),
        alipay_public_key: payment.alipay_public_key.clone(),
        certificates: None,
        gateway_url: payment.gateway_url.clone(),
        notify_url: notify_url(config),
        timeout: payment.call_timeout,
    };
    Alipay::new(&settings, clock).map_err(|faults| {
        let faults: Vec<_> = faults.iter().map(|fault| format!("payment.{fault}")).collect();
        Error::new(Code::Configuration).detail(faults.join("\n"))
    })
}

fn notify_url(config: &Config) -> String {
    let own = || {
        let base = config.server.base_url();
        format!("{}/payment/notify", base.trim_end_matches('/'))
    };
    config.payment.notify_url.clone().unwrap_or_else(own)
}
