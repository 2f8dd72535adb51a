//! Castings, their history, and what language models make of them.

pub mod budget;
pub mod chat;
pub mod crash_recovery;
pub mod hexagram;
pub mod history;
pub mod interpretation;
pub mod model_calls;
pub mod sessions;
