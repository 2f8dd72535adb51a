//! The files that pages load. Their addresses contain a version, so that browsers may keep them forever.

use std::sync::LazyLock;

use super::context::BASE;
use crate::{
    http::precompressed::StaticFile,
    types::{hex, sha256_of_parts},
};

/// The styles of uPlot and ours in one file, which saves a request.
pub const STYLE: StaticFile = StaticFile {
    name: "console.css",
    content_type: "text/css; charset=utf-8",
    bytes: concat!(
        include_str!("../../../../assets/console/uPlot.min.css"),
        "\n",
        include_str!("../../../../assets/console/console.css")
    )
    .as_bytes(),
};
pub const SCRIPT: StaticFile = StaticFile {
    name: "console.js",
    content_type: JAVASCRIPT,
    bytes: include_bytes!("../../../../assets/console/console.js"),
};
pub const HTMX: StaticFile = StaticFile {
    name: "htmx.min.js",
    content_type: JAVASCRIPT,
    bytes: include_bytes!("../../../../assets/console/htmx.min.js"),
};
pub const UPLOT: StaticFile = StaticFile {
    name: "uPlot.iife.min.js",
    content_type: JAVASCRIPT,
    bytes: include_bytes!("../../../../assets/console/uPlot.iife.min.js"),
};
pub const ICON: StaticFile = StaticFile {
    name: "icon.svg",
    content_type: "image/svg+xml",
    bytes: include_bytes!("../../../../assets/console/icon.svg"),
};

pub const ALL: [StaticFile; 5] = [STYLE, SCRIPT, HTMX, UPLOT, ICON];

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The policy that every page is sent with.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Returns the address of a file.
pub fn href(asset: StaticFile) -> String {
    format!("{BASE}/assets/{}/{}", version(), asset.name)
}

/// Returns the version in the addresses of the files: a hash of their contents.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let contents: Vec<_> = ALL.iter().map(|asset| asset.bytes).collect();
        hex(&sha256_of_parts(&contents)[..8])
    });
    &VERSION
}
