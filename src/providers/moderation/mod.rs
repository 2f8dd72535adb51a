//! Outside services that judge texts.
//!
//! One trait, one driver a vendor. A driver knows the vendor's labels and which of them the operator wants to be
//! ignored; it refuses to know users, violations, and what happens when it fails.

pub mod aliyun;

use super::Failure;

/// What a text is for, which decides by which of its rules the vendor judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    Nickname,
    /// Anything that a user writes in sentences.
    Prose,
    /// What a model wrote.
    ModelOutput,
}

/// Judges texts.
pub trait TextModerator: Send + Sync {
    /// The driver's name in the configuration.
    fn name(&self) -> &'static str;

    /// Asks the vendor, blocking for some seconds at most. `account` tells users apart without saying who they are.
    fn judge(&self, scene: Scene, text: &str, account: Option<&str>) -> Result<Judgement, Failure>;
}

/// What the vendor says of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    pub is_refused: bool,
    /// The labels that count, worst first as the vendor gives them.
    pub findings: Vec<Finding>,
}

/// One label of a vendor.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The vendor's own word; an open set.
    pub label: String,
    /// Our type for it, such as `gambling`.
    pub kind: &'static str,
    /// From 0 to 100, where the vendor says.
    pub confidence: Option<f64>,
    /// Parts of the text that led to it, where the vendor says.
    pub words: Vec<String>,
}
