//! Several SMS providers in an order that may depend on the country.
//!
//! The next one is tried only if the one before certainly did not accept the message, because two codes confuse a user
//! more than a failure. Each provider has its own circuit breaker, so that one that is down costs no time.

use std::sync::Arc;

use super::{CodeMessage, DeliveryReceipt, SentMessage, SmsSender};
use crate::providers::{Failure, FailureKind, MessageReceipt, WallClock, breaker::CircuitBreaker};

/// A provider with its circuit breaker.
pub struct SmsRoute {
    pub sender: Box<dyn SmsSender>,
    pub breaker: Arc<CircuitBreaker>,
}

/// Sends each message by the first provider that accepts it.
pub struct FailoverSms {
    /// In the usual order.
    routes: Vec<SmsRoute>,
    /// Other orders, as positions in `routes`, by the first digits of the number in E.164 form.
    orders: Vec<(String, Vec<usize>)>,
    clock: WallClock,
}

impl FailoverSms {
    pub fn new(routes: Vec<SmsRoute>, orders: Vec<(String, Vec<usize>)>, clock: WallClock) -> Self {
        Self { routes, orders, clock }
    }

    /// Returns the providers for a number: the order of the longest prefix, else the usual one.
    fn order(&self, phone_number: &str) -> Vec<&SmsRoute> {
        let digits = phone_number.trim_start_matches('+');
        let fitting = self.orders.iter().filter(|(prefix, _)| digits.starts_with(prefix));
        match fitting.max_by_key(|(prefix, _)| prefix.len()) {
            Some((_, order)) => order.iter().filter_map(|position| self.routes.get(*position)).collect(),
            None => self.routes.iter().collect(),
        }
    }
}

impl SmsSender for FailoverSms {
    fn name(&self) -> &'static str {
        self.routes.first().map_or("failover", |route| route.sender.name())
    }

    fn names(&self) -> Vec<&'static str> {
        self.routes.iter().map(|route| route.sender.name()).collect()
    }

    fn send_code(&self, message: &CodeMessage) -> Result<MessageReceipt, Failure> {
        let mut last = Failure::new(FailureKind::Misconfigured, "failover", "no_provider");
        for route in self.order(&message.phone_number) {
            match route.breaker.run(|| (self.clock)(), || route.sender.send_code(message)) {
                Ok(receipt) => return Ok(MessageReceipt { provider: Some(route.sender.name()), ..receipt }),
                Err(failure) if !failure.is_certainly_not_accepted() => return Err(failure),
                Err(failure) => {
                    tracing::warn!(%failure, "an SMS provider did not accept a message; the next one is tried");
                    last = failure;
                }
            }
        }
        Err(last)
    }

    fn delivery(&self, sent: &SentMessage) -> Result<Option<DeliveryReceipt>, Failure> {
        let route = self.routes.iter().find(|route| route.sender.name() == sent.provider);
        route.map_or(Ok(None), |route| route.sender.delivery(sent))
    }

    fn probe(&self) -> Result<(), Failure> {
        self.routes.iter().try_for_each(|route| route.sender.probe())
    }

    fn breakers(&self) -> Vec<Arc<CircuitBreaker>> {
        self.routes.iter().map(|route| Arc::clone(&route.breaker)).collect()
    }
}
