//! Interprets a casting with a language model: one call, one record.
//!
//! The record is written before the call and finished after it, so that a crash loses no call. The question is screened
//! before anything is sent to the provider, and reaches the model as data, apart from the instructions. No transaction is
//! open during the call.

mod question;
mod prompt;
mod rating;
mod reading;
mod record;
mod run;

pub use question::CastingQuestion;
pub use rating::{Note, Rate, Rating, RatingReport, rate, rates, ratings};
pub use record::{
    CallRecord, cancel_in, count_between, count_of_user, delete_in, erase_in, export_in, find_by_trace, find_succeeded,
    ids_of_user_in, interrupt_in, list_failed, list_of_user, list_of_user_between, list_slow, position_and_status_in,
    succeeded_in,
};
pub use run::{PreparedInterpretation, prepare, prepare_for_session, request_for_test, run, run_with};

pub use crate::domain::divination::model_calls::CallStatus;
