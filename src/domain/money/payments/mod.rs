//! Payment: orders of coins, and the one way in which money becomes coins.
//!
//! Only two things credit: a notification that the provider signed, and the provider's answer to our own question.
//! What a user's app says about a payment is a hint to ask. Both end in [`settle`], in one transaction with the
//! ledger entry. A job asks about orders of which nothing was heard, so that a lost notification loses nobody's money.
//!
//! The surprise: an order stays payable after it was closed, and after its user is gone, because the provider may
//! take money late. Such money is credited, or left to a person; it is never ignored.

pub mod callbacks;
pub mod decisions;
pub mod order;
pub mod orders;
pub mod reconcile;
pub mod refunds;
pub mod report;
pub mod retention;
pub mod sandbox;
pub mod settle;

pub use orders::export_in;

use std::sync::Arc;

use secrecy::ExposeSecret;

use crate::{
    clock::Clock,
    concurrency::semaphore::{KeyedMutex, Semaphore},
    config::{Config, PaymentGateway as Choice},
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

/// The gateway of this installation, and what guards the way to it.
pub struct Payments {
    pub core: Core,
    pub gateway: Arc<dyn PaymentGateway>,
    /// The other side of the gateway, where that is in this process. Never there beside a real one.
    sandbox: Option<Arc<Sandbox>>,
    breaker: Arc<CircuitBreaker>,
    /// Calls to the provider that users are waiting for.
    calls: Semaphore,
    /// Orders about which it is being asked for their users.
    asking: KeyedMutex<String>,
}

impl Payments {
    /// Builds the gateway that is configured. `sandbox_key` gives the key of this installation's sandbox.
    ///
    /// # Errors
    /// `configuration` with everything that is wrong with the gateway's settings.
    pub fn open(core: Core, sandbox_key: impl FnOnce() -> Result<Vec<u8>>) -> Result<Self> {
        let (config, store, clock) = (&core.config, &core.store, core.clock.clone());
        let clock = Box::new(move || clock.now().0);
        let (gateway, sandbox): (Arc<dyn PaymentGateway>, _) = match config.payment.gateway {
            Choice::Sandbox => {
                let books = Arc::new(sandbox::Books::new(store.clone()));
                let made = Sandbox::new(&sandbox_key()?, &notify_url(config), books, clock);
                let sandbox = Arc::new(made.map_err(|error| Error::new(Code::Configuration).caused_by(error))?);
                (Arc::clone(&sandbox) as _, Some(sandbox))
            }
            Choice::Alipay => (Arc::new(alipay_gateway(config, clock)?), None),
        };
        let (breaker, calls) =
            (Arc::new(CircuitBreaker::with_defaults("payment")), Semaphore::new(config.payment.calls));
        Ok(Self { core, gateway, sandbox, breaker, calls, asking: KeyedMutex::default() })
    }

    /// What guards the way to the provider.
    pub fn breaker(&self) -> &Arc<CircuitBreaker> {
        &self.breaker
    }

    /// Asks the provider, unless it has been failing.
    fn ask<T>(
        &self,
        clock: &Clock,
        question: impl FnOnce(&dyn PaymentGateway) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.breaker.run(|| clock.now().0, || question(self.gateway.as_ref()))
    }
}

/// The gateway that takes money.
///
/// # Errors
/// `configuration` with everything that is wrong with its settings.
pub fn alipay_gateway(config: &Config, clock: Box<dyn Fn() -> i64 + Send + Sync>) -> Result<Alipay> {
    let payment = &config.payment;
    let private_key = payment.private_key.as_ref().map_or("", |key| key.expose_secret());
    let settings = alipay::Settings {
        app_id: payment.app_id.clone(),
        seller_id: payment.seller_id.clone(),
        private_key: private_key.to_owned(),
        alipay_public_key: payment.alipay_public_key.clone(),
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
