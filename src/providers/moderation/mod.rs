//! External services that moderate texts.
//!
//! One trait, with one driver per provider. A driver knows the provider's labels and which of them the operator
//! ignores. It knows nothing of users, violations, or the fallback.

pub mod aliyun;
pub mod http_judge;
pub mod llm_judge;

use super::{Failure, FailureKind};

/// The use of a text, which selects the provider's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    Nickname,
    /// Any text of sentences that a user writes.
    Prose,
    /// The output of a language model.
    ModelOutput,
}

impl Scene {
    /// Returns the name in requests to judges of our own protocol.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nickname => "nickname",
            Self::Prose => "prose",
            Self::ModelOutput => "model_output",
        }
    }
}

/// The types of the built-in list, which judges may name.
const KINDS: [&str; 9] = ["politics", "porn", "abuse", "violence", "gambling", "drugs", "fraud", "ads", "contact"];

/// Returns the kind of failure of an error status.
const fn kind_of_status(status: u16) -> FailureKind {
    match status {
        401..=404 => FailureKind::Misconfigured,
        429 | 503 => FailureKind::Busy,
        400..=499 => FailureKind::Refused,
        _ => FailureKind::OutcomeUnknown,
    }
}

/// Returns our type with this name, or `other`.
fn known_kind(name: &str) -> &'static str {
    KINDS.into_iter().find(|kind| *kind == name).unwrap_or("other")
}

/// Moderates texts.
pub trait TextModerator: Send + Sync {
    /// The driver's name in the configuration.
    fn name(&self) -> &'static str;

    /// Calls the provider and blocks for up to some seconds. `account` is a pseudonym that distinguishes users.
    fn judge(&self, scene: Scene, text: &str, account: Option<&str>) -> Result<ModerationResult, Failure>;
}

/// The provider's verdict on a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModerationResult {
    pub is_refused: bool,
    /// The labels that count, worst first, in the provider's order.
    pub findings: Vec<RiskLabel>,
}

/// One label of a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct RiskLabel {
    /// The provider's own label; an open set.
    pub label: String,
    /// Our type for it, such as `gambling`.
    pub kind: &'static str,
    /// From 0 to 100, if the provider reports it.
    pub confidence: Option<f64>,
    /// The parts of the text that caused it, if the provider reports them.
    pub words: Vec<String>,
}
