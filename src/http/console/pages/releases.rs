//! Releases of the app: a new one with its preview, and withdrawal.

use std::sync::Arc;

use axum::{body::Body, http::Response};
use maud::Markup;

use super::lists;
use crate::{
    app::App,
    domain::messaging::releases::{self, AppVersion, DownloadUrl, Release, ReleaseDraft},
    error::{Code, Error, Fault, FieldCode, Result},
    http::{
        admin::releases::ReleaseList,
        console::{
            request::{ConsoleRequest, FormFields, message_of, ok, page},
            views::{
                context::ViewContext,
                list_page::Frame,
                pages::messages::{self as view, TypedRelease},
                texts::Text,
            },
        },
        reply,
    },
    types::clean,
};

const PAGE: &str = "releases";
const PLATFORMS: [&str; 2] = ["android", "ios"];
/// The longest release notes, in characters.
const MAX_NOTES: usize = 2000;

/// Shows the form again, as typed.
pub async fn edit(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    ok(render(&console, typed(&console.form), false).await?)
}

/// Renders the page with a draft, or with its preview.
async fn render(console: &ConsoleRequest, draft: TypedRelease, is_preview: bool) -> Result<Markup> {
    let frame = move |cx: &ViewContext, _: &App, _: Option<&()>| {
        Ok(Frame { above: view::new_release(cx, &draft, is_preview), ..Frame::default() })
    };
    lists::render::<ReleaseList>(console, frame).await
}

fn typed(form: &FormFields) -> TypedRelease {
    let own = |name: &str| form.get(name).to_owned();
    TypedRelease {
        version: own("version"),
        code: own("code"),
        platform: own("platform"),
        url: own("url"),
        notes: own("notes"),
        is_required: form.get("required") == "true",
        errors: Vec::new(),
    }
}

/// Parses the form with the rules of the API. Returns all faults.
fn parse(typed: &TypedRelease) -> Result<ReleaseDraft> {
    let mut faults = Vec::new();
    let version = AppVersion::parse(&typed.version).map_err(|fault| faults.push(fault.in_field("version"))).ok();
    let code = typed.code.parse().ok().filter(|code| (0..=releases::LARGEST_CODE).contains(code));
    if code.is_none() {
        let most = releases::LARGEST_CODE;
        let message = (format!("must be a whole number from 0 to {most}"), format!("须为 0 到 {most} 的整数"));
        faults.push(Fault::new(FieldCode::InvalidFormat, message).in_field("code"));
    }
    let url = Some(typed.url.as_str()).filter(|url| !url.is_empty()).map(DownloadUrl::parse).transpose();
    let download_url = url.map_err(|fault| faults.push(fault.in_field("url"))).ok();
    let notes = clean(&typed.notes, MAX_NOTES).map_err(|fault| faults.push(fault.in_field("notes"))).ok();
    match (version, code, download_url, notes) {
        (Some(version), Some(version_code), Some(download_url), Some(notes)) => Ok(ReleaseDraft {
            version,
            version_code,
            platform: PLATFORMS.contains(&typed.platform.as_str()).then(|| typed.platform.clone()),
            is_required: typed.is_required,
            notes,
            download_url,
        }),
        _ => Err(Error::fields(faults)),
    }
}

pub async fn preview(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let draft = typed(&console.form);
    match parse(&draft) {
        Ok(_) => ok(render(&console, draft, true).await?),
        Err(error) => show_faults(&console, draft, &error).await,
    }
}

async fn show_faults(console: &ConsoleRequest, mut draft: TypedRelease, error: &Error) -> Result<Response<Body>> {
    draft.errors = console.faults_of(error);
    if error.code == Code::AlreadyExists {
        draft.errors.push(("code".to_owned(), message_of(error, console.language())));
    }
    if draft.errors.is_empty() {
        return Err(error.without_source());
    }
    Ok(page(reply::status(error.code), render(console, draft, false).await?))
}

pub async fn publish(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let typed = typed(&console.form);
    let outcome = match parse(&typed) {
        Ok(draft) => console.context.committed(releases::publish(&console.context.app.core, draft)).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(_) => console.done(PAGE, console.text(Text::ReleasePublished)),
        Err(error) => show_faults(&console, typed, &error).await,
    }
}

pub async fn withdraw(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let outcome = try_withdraw(&console).await;
    console.finish(PAGE, outcome)
}

async fn try_withdraw(console: &ConsoleRequest) -> Result<Release> {
    let id = console.parameter("id").parse().map_err(|_| Error::from(Code::NotFound))?;
    console.require_reason()?;
    console.context.committed(releases::withdraw(&console.context.app.core, id)).await
}
