//! The reasons for which a response ended. Each server has its own words for the same few reasons.

/// The meaning of a `finish_reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    /// The model finished its answer.
    Stop,
    /// The token limit cut the text.
    Length,
    /// A content filter withheld the rest.
    Filtered,
    /// The server failed, and may succeed at the next attempt.
    Failed,
    /// Any other word, such as a tool call.
    Unknown,
}

/// Besides the protocol's own word, those of `Together`, `TGI`, Anthropic, Cohere and others.
const STOP: [&str; 14] = [
    "stop",
    "eos",
    "eos_token",
    "eos_found",
    "eosfound",
    "end",
    "end_turn",
    "stop_sequence",
    "stop_token",
    "complete",
    "completed",
    "finish",
    "finished",
    "normal",
];

const LENGTH: [&str; 9] = [
    "length",
    "max_tokens",
    "max_length",
    "max_output_tokens",
    "max_completion_tokens",
    "model_length",
    "token_limit",
    "context_length",
    "model_context_window_exceeded",
];

const FILTERED: [&str; 17] = [
    "content_filter",
    "content_filtered",
    "content_filter_triggered",
    "filtered",
    "sensitive",
    "safety",
    "refusal",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "moderation",
    "censored",
    "risk_control",
    "data_inspection_failed",
    "guardrail_intervened",
    "policy_violation",
];

const FAILED: [&str; 8] = [
    "insufficient_system_resource",
    "error",
    "network_error",
    "abort",
    "aborted",
    "cancelled",
    "timeout",
    "overloaded",
];

impl EndReason {
    pub(super) fn of(word: &str) -> Self {
        let word = word.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        let word = word.strip_prefix("finish_reason_").unwrap_or(&word);
        let lists: [(&[&str], Self); 4] =
            [(&STOP, Self::Stop), (&LENGTH, Self::Length), (&FILTERED, Self::Filtered), (&FAILED, Self::Failed)];
        lists.into_iter().find(|(words, _)| words.contains(&word)).map_or(Self::Unknown, |(_, reason)| reason)
    }

    /// Returns the protocol's word for a reason that leaves the answer usable.
    pub(super) const fn name(self) -> &'static str {
        if matches!(self, Self::Length) { "length" } else { "stop" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_the_end_reasons_of_many_servers() {
        for (word, reason) in [
            ("stop", EndReason::Stop),
            ("STOP", EndReason::Stop),
            ("end_turn", EndReason::Stop),
            ("FINISH_REASON_STOP", EndReason::Stop),
            ("max_tokens", EndReason::Length),
            ("MAX_TOKENS", EndReason::Length),
            ("content-filter", EndReason::Filtered),
            ("SAFETY", EndReason::Filtered),
            ("network_error", EndReason::Failed),
            ("tool_calls", EndReason::Unknown),
            ("", EndReason::Unknown),
        ] {
            assert_eq!(EndReason::of(word), reason, "{word}");
        }
    }
}
