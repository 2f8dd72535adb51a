//! Percent-encoding as signatures want it: one way for each text, because what is signed is compared byte for byte.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Encodes everything but unreserved characters; a blank becomes `%20`, which every decoder reads alike.
pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}
