//! Castings, their history, and their interpretation by language models.

pub use liuyao::hexagram;

pub mod chart;
pub mod budget;
pub mod prompts;
pub mod help;
pub mod model_calls;
pub mod interpretation;
pub mod chat;
pub mod history;
pub mod sessions;
pub mod card;
pub mod crash_recovery;
