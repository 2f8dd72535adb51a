//! What a client says of one choice among those that it accepts: a media type, a coding.

/// The weight that a header such as `Accept` gives to a choice: 1 if it says none, 0 for one that is refused. Nothing
/// if it does not name it.
pub fn weight(header: &str, choice: &str) -> Option<f32> {
    header.split(',').find_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case(choice) {
            return None;
        }
        Some(weight_of(parts))
    })
}

/// The weight that is said of one choice of a header's.
pub fn weight_said(choice: &str) -> f32 {
    weight_of(choice.split(';').skip(1).map(str::trim))
}

fn weight_of<'header>(mut parameters: impl Iterator<Item = &'header str>) -> f32 {
    let weight = parameters.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    weight.map_or(1.0, |weight| weight.parse().unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_has_the_weight_that_is_said_of_it() {
        let header = "application/json, TEXT/event-stream ; charset=utf-8; q=0.5,text/html;q=0, text/plain;Q=x";
        let weights = ["application/json", "text/event-stream", "text/html", "text/plain", "text", ""]
            .map(|choice| weight(header, choice));
        assert_eq!(["en-GB; q=0.1", "zh"].map(|choice| Some(weight_said(choice))), [Some(0.1), Some(1.0)]);
        assert_eq!(weights, [Some(1.0), Some(0.5), Some(0.0), Some(1.0), None, None]);
    }
}
