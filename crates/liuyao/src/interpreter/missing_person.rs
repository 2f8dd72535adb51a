use super::Reading;
pub(super) fn paragraph(_: &Reading) -> String { String::new() }
