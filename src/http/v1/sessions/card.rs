//! `/api/v1/sessions/{id}/card.svg`: a casting as a picture.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use serde_json::json;

use super::SessionId;
use crate::{
    domain::{
        divination::{
            card::{CardOptions, Theme},
            help::Asker,
            sessions,
        },
        identity::preferences,
    },
    error::{Error, Result},
    http::{
        content_negotiation::language_tag,
        openapi::headers::Header,
        params::{Flag, parameters},
        public_content::is_known,
        reply::{Reply, ReplyDescription},
        request_context::RequestContext,
        v1::preferences::NamedLocale,
    },
    types::{hex, sha256},
};

const SVG: HeaderValue = HeaderValue::from_static("image/svg+xml; charset=utf-8");
/// The style sheet is part of the picture. Everything else is forbidden, also if it is opened as a page.
const POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox");
/// Kept by the user's own client, which asks each time if the session still exists and looks the same.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("private, no-cache");
const VARY: HeaderValue = HeaderValue::from_static("accept-encoding, accept-language, authorization");

parameters! {
    CardParams(fields) {
        id: SessionId = fields.path("id", "The session's id.");
        theme: Option<Theme> = fields.optional("theme", "Light or dark colours, or those that the reader's system prefers. Default: `auto`.");
        lang: Option<NamedLocale> = fields.optional("lang", "The language of the picture, such as `zh-TW` for traditional characters. Default: that of the preferences, or of `Accept-Language`.");
        question: Option<Flag> = fields.optional("question", "Show the question. Default: false.");
    }
}

/// The picture (200), or the confirmation that the client has it already (304).
pub struct CardImage {
    /// `None` if the client has it.
    svg: Option<String>,
    tag: HeaderValue,
}

pub async fn draw(context: RequestContext, params: CardParams) -> Result<CardImage> {
    let user = context.user()?;
    let session = sessions::find(&context.app.core, user, &params.id.0)?;
    let core = &context.app.core;
    let named = params.lang.map_or(context.locale(), |named| named.locale);
    let locale = if params.lang.is_some() { named } else { preferences::locale(core, user, named)? };
    let asker = Asker::find(core, user, language_tag(&context.headers), locale)?;
    let script = params.lang.and_then(|named| named.script).or(asker.script);
    let options = CardOptions {
        written: Asker { script, ..asker }.written(&session.question, locale),
        theme: params.theme.unwrap_or(Theme::Auto),
        with_question: params.question.is_some_and(|Flag(is_wanted)| is_wanted),
        brand: &context.app.core.config.brand.name,
    };
    CardImage::new(options.draw(&session), &context.headers)
}

impl CardImage {
    fn new(svg: String, headers: &HeaderMap) -> Result<Self> {
        // Weak, because the plain and the compressed form differ in bytes.
        let tag = format!("W/\"{}\"", hex(&sha256(&svg)[..16]));
        let tag = HeaderValue::try_from(tag).map_err(Error::internal)?;
        let svg = (!is_known(headers, &tag)).then_some(svg);
        Ok(Self { svg, tag })
    }
}

impl Reply for CardImage {
    fn into_response(self) -> Result<Response<Body>, Error> {
        let mut response = Response::new(Body::empty());
        match self.svg {
            Some(svg) => {
                *response.body_mut() = Body::from(svg);
                response.headers_mut().insert(header::CONTENT_TYPE, SVG);
            }
            None => *response.status_mut() = StatusCode::NOT_MODIFIED,
        }
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, CACHE_CONTROL);
        headers.insert(header::VARY, VARY);
        headers.insert(header::ETAG, self.tag);
        headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription {
            statuses: vec![
                (StatusCode::OK, "The picture."),
                (StatusCode::NOT_MODIFIED, "The client's copy, named in `If-None-Match`, is current."),
            ],
            contents: vec![("image/svg+xml", json!({ "type": "string" }))],
            schemas: Vec::new(),
            headers: &[
                Header::CACHE_CONTROL,
                Header::ETAG,
                Header::CONTENT_SECURITY_POLICY,
                Header::CONTENT_TYPE_OPTIONS,
            ],
        }
    }
}
