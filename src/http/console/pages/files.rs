//! The style sheet, scripts and the icon.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderValue, Response, header},
};

use crate::{
    error::{Code, Result},
    http::console::{request::ConsoleRequest, views::assets},
};

/// The address contains the version.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (version, name) = (console.parameter("version"), console.parameter("file"));
    let asset = assets::ALL.iter().find(|asset| asset.name == name && version == assets::version());
    let asset = asset.ok_or(Code::NotFound)?;
    let mut response = Response::new(Body::from(asset.bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, FOREVER);
    Ok(response)
}
