//! The style sheet, scripts and the icon.

use std::sync::{Arc, LazyLock};

use axum::{
    body::Body,
    http::{HeaderValue, Response, header},
};

use crate::{
    error::{Code, Result},
    http::{
        console::{request::ConsoleRequest, views::assets},
        precompressed::{Precompressed, StaticFile},
    },
};

/// The address contains the version.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The files, compressed once and better than a response on its way could be.
static FILES: LazyLock<Vec<(StaticFile, Precompressed)>> = LazyLock::new(|| {
    let packed = assets::ALL.into_iter().map(|asset| Some((asset, asset.compressed().ok()?)));
    packed.flatten().collect()
});

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (version, name) = (console.parameter("version"), console.parameter("file"));
    let found = FILES.iter().find(|(asset, _)| asset.name == name && version == assets::version());
    let (asset, content) = found.ok_or(Code::NotFound)?;
    let content_type = HeaderValue::from_static(asset.content_type);
    let mut response = content.choose(&console.context.headers).into_response(content_type);
    response.headers_mut().insert(header::CACHE_CONTROL, FOREVER);
    Ok(response)
}
