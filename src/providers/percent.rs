//! Percent-encoding for signatures: one encoding for each text, because signed text is compared byte for byte.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Encodes everything but unreserved characters. A space becomes `%20`, which every decoder accepts.
pub(super) fn encode(text: &str) -> String {
    pieces(text).collect()
}

/// Returns the encoded text in pieces.
pub(super) fn pieces(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}
