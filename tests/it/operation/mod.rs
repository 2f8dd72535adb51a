//! What an operator sees of a running service: numbers, log lines, alerts, readiness.

mod alerts;
mod clock;
mod logs;
mod metrics;
mod retention;
