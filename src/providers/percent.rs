//! Percent-encoding for signatures: one encoding for each text, because signed text is compared byte for byte.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Encodes everything but unreserved characters. A space becomes `%20`, which every decoder accepts.
pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}
