//! Static responses: built once, stored plain and compressed, and sent without copying.

use std::io::{Read, Write};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Response, header},
};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use super::{content_negotiation::quality, held_bytes::HeldBytes};
use crate::error::{Error, Result};

/// Content in plain and compressed form. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct Precompressed {
    plain: Bytes,
    gzipped: Bytes,
}

/// The form selected for a client.
pub struct SelectedEncoding {
    bytes: Bytes,
    is_gzipped: bool,
}

impl Precompressed {
    pub fn new(plain: impl Into<Bytes>) -> Result<Self> {
        let plain = plain.into();
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        let gzipped = packer.write_all(&plain).and_then(|()| packer.finish()).map_err(Error::internal)?;
        Ok(Self { plain, gzipped: gzipped.into() })
    }

    /// Unpacks compressed content.
    ///
    /// # Errors
    /// `internal` if the bytes are not gzip.
    pub fn of_gzipped(gzipped: Bytes) -> Result<Self> {
        let mut plain = Vec::new();
        GzDecoder::new(gzipped.as_ref()).read_to_end(&mut plain).map_err(Error::internal)?;
        Ok(Self { plain: plain.into(), gzipped })
    }

    /// Selects the form for a request with these headers.
    pub fn choose(&self, headers: &HeaderMap) -> SelectedEncoding {
        let is_gzipped = accepts_gzip(headers);
        let bytes = if is_gzipped { &self.gzipped } else { &self.plain };
        SelectedEncoding { bytes: bytes.clone(), is_gzipped }
    }
}

impl SelectedEncoding {
    pub fn into_response(self, content_type: HeaderValue) -> Response<Body> {
        let mut response = Response::new(Body::from(self.bytes));
        response.extensions_mut().insert(HeldBytes::SHARED);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, content_type);
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if self.is_gzipped {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

/// Returns true if the client accepts gzip.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.and_then(|accepted| quality(accepted, "gzip")).is_some_and(|quality| quality > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(accepted: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted))])
    }

    #[test]
    fn sends_gzip_to_clients_that_accept_it() {
        for accepted in ["gzip", "GZIP", "br, gzip;q=0.5", "deflate , gzip ; q=1"] {
            assert!(accepts_gzip(&asking(accepted)), "{accepted}");
        }
        for refused in ["", "identity", "br", "gzip;q=0", "gzip;q=0.000", "xgzip", "*;q=0"] {
            assert!(!accepts_gzip(&asking(refused)), "{refused}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn both_encodings_have_the_same_content() {
        let content = "content ".repeat(1000);
        let packed = Precompressed::new(content.clone()).unwrap();
        let gzipped = packed.choose(&asking("gzip"));
        assert!(gzipped.is_gzipped && gzipped.bytes.len() < content.len() / 10);
        let unpacked = Precompressed::of_gzipped(gzipped.bytes).unwrap();
        assert_eq!(unpacked.choose(&HeaderMap::new()).bytes, content.as_bytes());
        assert_eq!(packed.choose(&asking("identity")).bytes, content.as_bytes());
    }
}
