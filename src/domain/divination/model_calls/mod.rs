//! Calls of language models: admission, budgets, screening of the output, and the outcome for the caller's record.
//!
//! Callers write their own record before the call, in the transaction that reserves the budget, and finish it with the
//! [`Outcome`] in the transaction that settles. This module stores only the calls of the last hour. Outcomes that could
//! not be stored are retried, so that no record stays in the state "running".

mod admission_queue;
mod outcome_retry_queue;
pub mod hourly_limit;
pub mod running_calls;
mod service;
mod outcome;
mod answer_screen;
mod run;
pub mod test_call;

pub use admission_queue::{AdmissionQueue, CallPermit, PermitFuture, overloaded};
pub use outcome::{CallStatus, ModelCaller, Outcome};
pub use run::{CallReport, new_trace_id, run, store_outcome, user_reference};
pub use service::ModelCalls;
