//! Language and theme, kept in cookies of the browser.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Response, header},
};

use crate::{
    error::Result,
    http::console::{
        request::{ConsoleRequest, is_page_address, see_other},
        session,
        views::{
            context::{ConsoleTheme, href},
            texts::Language,
        },
    },
};

pub async fn change(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    // Only pages of the console: the address comes from a form.
    let back = Some(console.form.get("back"))
        .filter(|address| is_page_address(address))
        .map_or_else(|| href(""), ToOwned::to_owned);
    let mut response = see_other(&back)?;
    let headers = response.headers_mut();
    if let Some(tag) = console.form.find("language") {
        headers.append(header::SET_COOKIE, session::preference("language", Language::of(tag).tag())?);
    }
    if let Some(theme) = console.form.find("theme") {
        headers.append(header::SET_COOKIE, session::preference("theme", ConsoleTheme::of(theme).name())?);
    }
    Ok(response)
}
