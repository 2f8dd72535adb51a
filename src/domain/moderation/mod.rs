//! Content moderation of all texts that users write for others or for a model, and of model output if configured.
//!
//! A switch selects the word list or the external moderator. If the external moderator fails and the fallback is on,
//! the word list decides and the ruling is marked as degraded. With the fallback off, the text is rejected for now. No
//! text passes without a decision. A rejection names the field, never the word, and is recorded as a violation.

pub mod words;
pub mod violations;
pub mod suspension_rules;
pub mod match_actions;
pub mod reviews;
pub mod acquittals;
pub mod phrase_warning;
mod ruling;
pub mod active_list;
pub mod external_moderator;
pub mod external_quota;
pub mod policy;
pub mod shadow_sampler;
mod service;
mod check;
pub mod word_list;
pub mod adviser;
pub mod compare;
pub mod shadow_mode;
pub mod status;

pub use check::{
    AnswerRuling, Refusal, ScreenedField, Screening, acquitted_words, check_answer, check_rate_limits,
    is_external_active, moderate, moderate_locally, record, rejected, screen, screen_question,
};
pub use ruling::{LOCAL, REPLACEMENT, Ruling};
pub use screening::{engine, risk};
pub use service::Moderation;
