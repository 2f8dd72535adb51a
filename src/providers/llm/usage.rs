//! Token usage in responses.
//!
//! Budgets depend on it, so every known member and name is read: `usage` of the document, of its first choice, and
//! non-standard members.

use serde_json::Value;

use super::TokenUsage;

/// Members of a document that contain the usage.
const PLACES: [&str; 6] =
    ["/usage", "/choices/0/usage", "/x_groq/usage", "/usageMetadata", "/usage_metadata", "/token_usage"];
const PROMPT: [&str; 5] = ["prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens", "prompt_token_count"];
const COMPLETION: [&str; 6] = [
    "completion_tokens",
    "output_tokens",
    "candidatesTokenCount",
    "outputTokens",
    "candidates_token_count",
    "generated_tokens",
];
const TOTAL: [&str; 4] = ["total_tokens", "totalTokenCount", "totalTokens", "total_token_count"];

/// Returns the usage in a document, if there is any.
pub(super) fn usage_in(document: &Value) -> Option<TokenUsage> {
    PLACES.iter().find_map(|place| parse_usage(document.pointer(place)?))
}

/// Parses an object of counts, or a text that contains one.
fn parse_usage(usage: &Value) -> Option<TokenUsage> {
    if let Value::String(text) = usage {
        return parse_usage(&serde_json::from_str::<Value>(text).ok().filter(Value::is_object)?);
    }
    let number = |names: &[&str]| names.iter().find_map(|name| count(&usage[*name]));
    let (prompt, completion, total) = (number(&PROMPT), number(&COMPLETION), number(&TOTAL));
    // A missing count is the rest of the total. With the total alone, all of it counts as output, which costs most.
    let (prompt, completion) = match (prompt, completion, total) {
        (Some(prompt), Some(completion), _) => (prompt, completion),
        (Some(prompt), None, Some(total)) => (prompt, total.saturating_sub(prompt)),
        (None, completion, Some(total)) => {
            let completion = completion.unwrap_or(total);
            (total.saturating_sub(completion), completion)
        }
        _ => return None,
    };
    let total = total.unwrap_or_else(|| prompt.saturating_add(completion));
    Some(TokenUsage { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total })
}

/// Returns a whole number from 0, in any notation.
pub(super) fn count(value: &Value) -> Option<u64> {
    let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0).then(|| format!("{number:.0}").parse().ok());
    match value {
        Value::String(text) => text.trim().parse().ok(),
        _ => value.as_u64().or_else(|| whole(value.as_f64()?)?),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_usage_in_every_known_form() {
        for document in [
            json!({ "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 } }),
            json!({ "usage": { "prompt_tokens": "3", "completion_tokens": "4" } }),
            json!({ "usage": { "prompt_tokens": 3.0, "completion_tokens": 4.0 } }),
            json!({ "usage": "{\"prompt_tokens\":3,\"completion_tokens\":4}" }),
            json!({ "usage": null, "choices": [{ "usage": { "prompt_tokens": 3, "completion_tokens": 4 } }] }),
            json!({ "x_groq": { "id": "r", "usage": { "prompt_tokens": 3, "completion_tokens": 4 } } }),
            json!({ "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 4 } }),
            json!({ "usage": { "input_tokens": 3, "output_tokens": 4 } }),
            json!({ "usage": { "prompt_tokens": 3, "total_tokens": 7 } }),
        ] {
            let expected = TokenUsage { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
            assert_eq!(usage_in(&document), Some(expected), "{document}");
        }
        let total_alone = usage_in(&json!({ "usage": { "total_tokens": 7 } })).unwrap();
        assert_eq!((total_alone.prompt_tokens, total_alone.completion_tokens), (0, 7));
        for document in [json!({}), json!({ "usage": {} }), json!({ "usage": { "prompt_tokens": -1 } })] {
            assert_eq!(usage_in(&document), None, "{document}");
        }
    }
}
