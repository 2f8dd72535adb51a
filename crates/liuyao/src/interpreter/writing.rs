use super::Reading;
pub(super) fn paragraphs(_: &Reading) -> Vec<String> { Vec::new() }
