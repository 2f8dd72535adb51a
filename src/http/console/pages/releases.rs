//! The preview of a new release of the app.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::lists;
use crate::{
    app::App,
    error::Result,
    http::{
        admin::releases::{PublishReleaseParams, ReleaseList},
        console::{
            acts,
            request::{ConsoleRequest, ok},
            views::{context::ViewContext, list_page::Frame, pages::messages as view},
        },
        params::Reader,
    },
};

/// Shows the form again, as typed.
pub async fn edit(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    acts::show_again(&console, None).await
}

/// Shows the release as apps will show it.
pub async fn preview(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let checked =
        Reader::of_form(&console.context, &console.path, console.form.pairs()).parse::<PublishReleaseParams>();
    if let Err(error) = checked {
        return acts::reject(&console, error).await;
    }
    console.keep_form(None);
    let frame = |cx: &ViewContext, _: &App, _: Option<&()>| {
        Ok(Frame { above: view::new_release(cx, true), ..Frame::default() })
    };
    ok(lists::render::<ReleaseList>(&console, frame).await?)
}
