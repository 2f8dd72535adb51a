//! Static responses: built once, stored plain and compressed, and sent without copying.

use std::io::{Read, Write};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Response, header},
};
use brotli::enc::BrotliEncoderParams;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use super::{content_negotiation::quality, held_bytes::BodyBytes};
use crate::error::{Error, Result};

/// Slower levels make texts hardly smaller.
const BROTLI_QUALITY: i32 = 6;

/// The first bytes of gzip content.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Content in plain and compressed form. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct Precompressed {
    plain: Bytes,
    gzipped: Bytes,
    brotli: Bytes,
}

/// A file in the program, as it is or compressed by gzip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticFile {
    pub name: &'static str,
    pub content_type: &'static str,
    pub bytes: &'static [u8],
}

impl StaticFile {
    pub fn compressed(&self) -> Result<Precompressed> {
        let bytes = Bytes::from_static(self.bytes);
        if bytes.starts_with(&GZIP) { Precompressed::of_gzipped(bytes) } else { Precompressed::new(bytes) }
    }
}

/// A content coding that compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCoding {
    Brotli,
    Gzip,
}

impl ContentCoding {
    const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// The form selected for a client.
pub struct SelectedEncoding {
    bytes: Bytes,
    coding: Option<ContentCoding>,
}

impl Precompressed {
    pub fn new(plain: impl Into<Bytes>) -> Result<Self> {
        let plain = plain.into();
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        let gzipped = packer.write_all(&plain).and_then(|()| packer.finish()).map_err(Error::internal)?;
        let brotli = brotli_of(&plain)?;
        Ok(Self { plain, gzipped: gzipped.into(), brotli })
    }

    /// Builds all encodings from gzip content.
    ///
    /// # Errors
    /// `internal` if the bytes are not gzip.
    fn of_gzipped(gzipped: Bytes) -> Result<Self> {
        let mut plain = Vec::new();
        GzDecoder::new(gzipped.as_ref()).read_to_end(&mut plain).map_err(Error::internal)?;
        let brotli = brotli_of(&plain)?;
        Ok(Self { plain: plain.into(), gzipped, brotli })
    }

    pub fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// Selects the form for a request with these headers.
    pub fn choose(&self, headers: &HeaderMap) -> SelectedEncoding {
        let coding = accepted_coding(headers);
        let bytes = match coding {
            Some(ContentCoding::Brotli) => &self.brotli,
            Some(ContentCoding::Gzip) => &self.gzipped,
            None => &self.plain,
        };
        SelectedEncoding { bytes: bytes.clone(), coding }
    }
}

fn brotli_of(plain: &[u8]) -> Result<Bytes> {
    let (mut compressed, mut source) = (Vec::new(), plain);
    let params = BrotliEncoderParams { quality: BROTLI_QUALITY, size_hint: plain.len(), ..Default::default() };
    brotli::BrotliCompress(&mut source, &mut compressed, &params).map_err(Error::internal)?;
    Ok(compressed.into())
}

impl SelectedEncoding {
    pub fn into_response(self, content_type: HeaderValue) -> Response<Body> {
        let mut response = Response::new(Body::from(self.bytes));
        response.extensions_mut().insert(BodyBytes::NONE);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, content_type);
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if let Some(coding) = self.coding {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        }
        response
    }
}

/// Returns the coding that the client prefers, or `None` if it accepts none that compresses.
pub fn accepted_coding(headers: &HeaderMap) -> Option<ContentCoding> {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok())?;
    let quality_of = |coding: ContentCoding| quality(accepted, coding.name()).unwrap_or(0.0);
    let [brotli, gzip] = [ContentCoding::Brotli, ContentCoding::Gzip].map(quality_of);
    if brotli > 0.0 && brotli >= gzip {
        Some(ContentCoding::Brotli)
    } else {
        (gzip > 0.0).then_some(ContentCoding::Gzip)
    }
}

/// Returns the coding for a response that is compressed on its way: gzip, unless the client accepts Brotli alone. A fast
/// Brotli makes texts no smaller and takes more memory.
pub fn coding_of_new_content(headers: &HeaderMap) -> Option<ContentCoding> {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok())?;
    match quality(accepted, ContentCoding::Gzip.name()) {
        Some(gzip) if gzip > 0.0 => Some(ContentCoding::Gzip),
        _ => accepted_coding(headers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(accepted: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted))])
    }

    #[test]
    fn sends_the_coding_that_the_client_prefers() {
        for (accepted, coding) in [
            ("gzip", Some(ContentCoding::Gzip)),
            ("GZIP", Some(ContentCoding::Gzip)),
            ("deflate , gzip ; q=1", Some(ContentCoding::Gzip)),
            ("br;q=0, gzip", Some(ContentCoding::Gzip)),
            ("br;q=0.4, gzip;q=0.5", Some(ContentCoding::Gzip)),
            ("br", Some(ContentCoding::Brotli)),
            ("gzip, deflate, br, zstd", Some(ContentCoding::Brotli)),
            ("", None),
            ("identity", None),
            ("gzip;q=0", None),
            ("gzip;q=0.000, br;q=0", None),
            ("xgzip", None),
            ("*;q=0", None),
        ] {
            assert_eq!(accepted_coding(&asking(accepted)), coding, "{accepted}");
        }
        assert_eq!(accepted_coding(&HeaderMap::new()), None);
    }

    #[test]
    fn all_encodings_have_the_same_content() {
        let content = "content ".repeat(1000);
        let packed = Precompressed::new(content.clone()).unwrap();
        let gzipped = packed.choose(&asking("gzip"));
        assert!(gzipped.coding == Some(ContentCoding::Gzip) && gzipped.bytes.len() < content.len() / 10);
        let unpacked = Precompressed::of_gzipped(gzipped.bytes).unwrap();
        assert_eq!(unpacked.choose(&HeaderMap::new()).bytes, content.as_bytes());
        assert_eq!(packed.choose(&asking("identity")).bytes, content.as_bytes());
        let compressed = packed.choose(&asking("br")).bytes;
        let mut plain = Vec::new();
        brotli::BrotliDecompress(&mut compressed.as_ref(), &mut plain).unwrap();
        assert_eq!(plain, content.as_bytes());
    }

    #[test]
    fn vendored_files_are_those_of_the_packages() {
        for (folder, count) in [("console", 5), ("api-docs", 3)] {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets").join(folder);
            let sums = std::fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
            assert_eq!(sums.lines().count(), count);
            for (expected, name) in sums.lines().filter_map(|line| line.split_once("  ")) {
                let content = std::fs::read(folder.join(name)).unwrap_or_else(|_| {
                    let gzipped = std::fs::read(folder.join(format!("{name}.gz"))).unwrap();
                    Precompressed::of_gzipped(gzipped.into()).unwrap().plain.to_vec()
                });
                let digest = ring::digest::digest(&ring::digest::SHA256, &content);
                assert_eq!(crate::types::hex(digest.as_ref()), expected, "{name}");
            }
        }
    }
}
