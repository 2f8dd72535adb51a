//! Builds responses from results and errors: the one place that maps error codes to statuses.

use std::{borrow::Cow, collections::BTreeMap, io::Write, marker::PhantomData, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::{ToSchema, openapi::schema::Object};

use super::{
    openapi::{
        headers::Header,
        schemas::{one_of_names, reference, reference_to, schemas},
    },
    rate_limit,
    request_meta::RequestMeta,
};
use liuyao::script::to_traditional;

use crate::{
    config::WrongCodeStatus,
    domain::operations::idempotency::StoredResponse,
    error::{Code, Error, FieldCode},
    types::{Locale, Timestamp, pluralize},
};

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// Marks the response of an earlier request with the same key.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The default, because most responses belong to one user.
pub const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Returns the status of an error code.
pub const fn status(code: Code) -> StatusCode {
    match code {
        Code::InvalidRequest | Code::InvalidJson | Code::ConflictingParameter => StatusCode::BAD_REQUEST,
        Code::ConfirmationRequired => StatusCode::PRECONDITION_REQUIRED,
        Code::InsufficientCoins | Code::InsufficientPoints => StatusCode::PAYMENT_REQUIRED,
        Code::Unauthenticated
        | Code::InvalidCode
        | Code::InvalidIdentity
        | Code::InvalidCredentials
        | Code::TotpRequired => StatusCode::UNAUTHORIZED,
        Code::NotYours
        | Code::Forbidden
        | Code::UserSuspended
        | Code::NicknameSuspended
        | Code::StepUpRequired
        | Code::AddressNotAllowed => StatusCode::FORBIDDEN,
        Code::NotFound | Code::UnknownEndpoint | Code::NoRelease | Code::UnknownInvite => StatusCode::NOT_FOUND,
        Code::CursorExpired => StatusCode::GONE,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        Code::HistoryFull
        | Code::HistoryTooLarge
        | Code::VersionConflict
        | Code::AddressTaken
        | Code::IdentityTaken
        | Code::EmailCodeRequired
        | Code::LastIdentity
        | Code::AlreadyPosted
        | Code::BalanceTooLarge
        | Code::OwnInvite
        | Code::InviteExpired
        | Code::AlreadyInvited
        | Code::AlreadyRunning
        | Code::OrderState
        | Code::PurchaseRevoked
        | Code::AlreadyExists
        | Code::InterpretationLimit
        | Code::LastOwner
        | Code::NotConfigured
        | Code::UnsupportedByDatabase => StatusCode::CONFLICT,
        Code::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::InvalidParameters
        | Code::ContentRejected
        | Code::UnknownPackage
        | Code::PurchaseRefused
        | Code::UnknownProduct
        | Code::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        Code::TooManyRequests | Code::TooManyCalls => StatusCode::TOO_MANY_REQUESTS,
        Code::ProviderFailed => StatusCode::BAD_GATEWAY,
        Code::ProviderTimeout => StatusCode::GATEWAY_TIMEOUT,
        Code::AccountInconsistent
        | Code::BudgetSpent
        | Code::Overloaded
        | Code::Superseded
        | Code::StorageFull
        | Code::StorageFailed
        | Code::OutcomeUnknown
        | Code::ProviderUnavailable
        | Code::ModerationUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Internal
        | Code::ChecksFailed
        | Code::BackupUnusable
        | Code::AddressUnavailable
        | Code::Configuration
        | Code::DataDirectoryUnusable => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns the status of an error code for this request.
fn status_for(meta: &RequestMeta, code: Code) -> StatusCode {
    match (code, meta.wrong_code_status) {
        (Code::InvalidCode | Code::InvalidIdentity, WrongCodeStatus::UnprocessableContent) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        (code, _) => status(code),
    }
}

/// The reply of a handler, with its description for the API document.
pub trait Reply: Sized + Send + 'static {
    fn into_response(self) -> Result<Response<Body>, Error>;

    fn describe() -> ReplyDescription;

    /// Returns the reply to an error for callers that do not understand problem documents.
    fn from_error(_: &Error) -> Option<Self> {
        None
    }
}

/// The description of a reply in the API document.
pub struct ReplyDescription {
    /// Statuses and their meanings.
    pub statuses: Vec<(StatusCode, &'static str)>,
    /// Content type, schema and, for JSON, an example built from the schema.
    pub contents: Vec<(&'static str, Value)>,
    /// Referenced schemas, by name.
    pub schemas: Vec<(String, Value)>,
    /// Headers that the response always has.
    pub headers: &'static [Header],
}

/// A resource, with status 200.
pub struct Json<T>(pub T);

/// An empty response, with status 204.
pub struct NoContent;

/// A new resource (201) or an existing one (200).
pub struct Saved<T> {
    pub resource: T,
    pub is_new: bool,
}

impl<T: Serialize + ToSchema + Send + 'static> Reply for Json<T> {
    fn into_response(self) -> Result<Response<Body>, Error> {
        json_response(StatusCode::OK, JSON, &self.0)
    }

    fn describe() -> ReplyDescription {
        json_document(reference::<T>(), schemas::<T>())
    }
}

impl Reply for NoContent {
    fn into_response(self) -> Result<Response<Body>, Error> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription {
            statuses: vec![(StatusCode::NO_CONTENT, "Done.")],
            contents: Vec::new(),
            schemas: Vec::new(),
            headers: &[],
        }
    }
}

/// A text, with status 200.
pub struct PlainText(pub String);

impl Reply for PlainText {
    fn into_response(self) -> Result<Response<Body>, Error> {
        Ok(response_with(StatusCode::OK, TEXT, self.0.into_bytes()))
    }

    fn describe() -> ReplyDescription {
        ReplyDescription {
            statuses: vec![(StatusCode::OK, "Done.")],
            contents: vec![("text/plain", json!({ "type": "string" }))],
            schemas: Vec::new(),
            headers: &[],
        }
    }
}

/// A new resource, with status 201.
pub struct Created<T>(pub T);

impl<T: Serialize + ToSchema + Send + 'static> Reply for Created<T> {
    fn into_response(self) -> Result<Response<Body>, Error> {
        json_response(StatusCode::CREATED, JSON, &self.0)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription { statuses: vec![(StatusCode::CREATED, "Created.")], ..Json::<T>::describe() }
    }
}

/// Work that was started and goes on after the response, with status 202.
pub struct Accepted<T>(pub T);

impl<T: Serialize + ToSchema + Send + 'static> Reply for Accepted<T> {
    fn into_response(self) -> Result<Response<Body>, Error> {
        json_response(StatusCode::ACCEPTED, JSON, &self.0)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription { statuses: vec![(StatusCode::ACCEPTED, "Started.")], ..Json::<T>::describe() }
    }
}

impl<T: Serialize + ToSchema + Send + 'static> Reply for Saved<T> {
    fn into_response(self) -> Result<Response<Body>, Error> {
        let status = if self.is_new { StatusCode::CREATED } else { StatusCode::OK };
        json_response(status, JSON, &self.resource)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription {
            statuses: vec![(StatusCode::CREATED, "Created."), (StatusCode::OK, "It already existed.")],
            ..Json::<T>::describe()
        }
    }
}

/// A list of `T`, `{"items": […], "total": …}`. Items are serialised while they are read, so that long lists exist in
/// memory only once.
pub struct SerializedList<T> {
    text: Vec<u8>,
    items: PhantomData<fn() -> T>,
}

/// Collects the serialised items of a list.
pub struct ListWriter(Vec<u8>);

impl<T> SerializedList<T> {
    /// Calls `list`, which writes the items and returns the total.
    pub fn write(list: impl FnOnce(&mut ListWriter) -> Result<i64, Error>) -> Result<Self, Error> {
        let mut items = ListWriter::new();
        let total = list(&mut items)?;
        Ok(Self { text: items.finish(total)?, items: PhantomData })
    }
}

impl ListWriter {
    const START: &[u8] = br#"{"items":["#;

    fn new() -> Self {
        let mut text = Vec::with_capacity(LIST_CAPACITY);
        text.extend_from_slice(Self::START);
        Self(text)
    }

    /// Adds an item, and the members whose JSON was checked when it was stored. The item has members of its own.
    pub fn push(&mut self, item: &impl Serialize, stored: [(&str, Option<&str>); 2]) -> Result<(), Error> {
        if self.0.len() > Self::START.len() {
            self.0.push(b',');
        }
        serde_json::to_writer(&mut self.0, item).map_err(Error::internal)?;
        for (name, json) in stored {
            if let Some(json) = json {
                self.0.pop();
                for piece in [",\"", name, "\":", json, "}"] {
                    self.0.extend_from_slice(piece.as_bytes());
                }
            }
        }
        Ok(())
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    fn finish(self, total: i64) -> Result<Vec<u8>, Error> {
        let mut text = self.0;
        write!(text, r#"],"total":{total}}}"#).map_err(Error::internal)?;
        Ok(text)
    }
}

impl<T: ToSchema + 'static> Reply for SerializedList<T> {
    fn into_response(self) -> Result<Response<Body>, Error> {
        Ok(response_with(StatusCode::OK, JSON, self.text))
    }

    fn describe() -> ReplyDescription {
        let list = json!({
            "type": "object",
            "required": ["items", "total"],
            "properties": {
                "items": { "type": "array", "items": reference::<T>() },
                "total": { "type": "integer", "format": "int64", "minimum": 0, "example": 1 },
            },
        });
        let name = format!("{}List", T::name());
        let mut schemas = schemas::<T>();
        let answer = reference_to(&name);
        schemas.push((name, list));
        json_document(answer, schemas)
    }
}

/// A new resource, or the response that is stored under the idempotency key of this request or an earlier one.
pub enum Replayable<T> {
    Fresh(StatusCode, T),
    Stored(StoredResponse),
    Replayed(StoredResponse),
}

impl<T: Serialize + ToSchema + Send + 'static> Reply for Replayable<T> {
    fn into_response(self) -> Result<Response<Body>, Error> {
        match self {
            Self::Fresh(status, resource) => json_response(status, JSON, &resource),
            Self::Stored(StoredResponse { status, body }) => {
                let status = StatusCode::from_u16(status).map_err(Error::internal)?;
                let content_type = if status.is_success() { JSON } else { PROBLEM };
                Ok(response_with(status, content_type, body))
            }
            Self::Replayed(response) => Ok(mark_replayed(Self::Stored(response).into_response()?)),
        }
    }

    fn describe() -> ReplyDescription {
        Json::<T>::describe()
    }
}

/// Marks a response as that of an earlier request.
pub fn mark_replayed(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// Builds the response that is stored and sent.
pub fn stored_resource<T: Serialize>(status: StatusCode, resource: &T) -> Result<StoredResponse, Error> {
    let body = serde_json::to_vec(resource).map_err(Error::internal)?;
    Ok(StoredResponse { status: status.as_u16(), body })
}

/// Builds the stored form of the response that [`problem`] sends.
pub fn stored_problem(error: &Error, meta: &RequestMeta) -> Result<StoredResponse, Error> {
    let problem = Problem::of(error, meta);
    let body = serde_json::to_vec(&problem).map_err(Error::internal)?;
    Ok(StoredResponse { status: problem.status, body })
}

fn json_document(schema: Value, schemas: Vec<(String, Value)>) -> ReplyDescription {
    ReplyDescription {
        statuses: vec![(StatusCode::OK, "Done.")],
        contents: vec![("application/json", schema)],
        schemas,
        headers: &[],
    }
}

/// Initial buffer size, enough for most responses.
const INITIAL_CAPACITY: usize = 1024;
/// Bytes in which a usual page of records finds room.
const LIST_CAPACITY: usize = 32 << 10;

fn json_response<T: Serialize>(
    status: StatusCode,
    content_type: HeaderValue,
    value: &T,
) -> Result<Response<Body>, Error> {
    let mut text = Vec::with_capacity(INITIAL_CAPACITY);
    serde_json::to_writer(&mut text, value).map_err(Error::internal)?;
    Ok(response_with(status, content_type, text))
}

fn response_with(status: StatusCode, content_type: HeaderValue, text: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// The body of every error, RFC 9457.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem<'error> {
    /// Always `about:blank`: `code` identifies the problem.
    #[schema(example = "about:blank")]
    pub r#type: &'static str,
    /// The status in words.
    #[schema(example = "Unprocessable Entity")]
    pub title: &'static str,
    #[schema(example = 422)]
    pub status: u16,
    /// A sentence for developers, in Chinese if `Accept-Language` prefers it, or else in English. It may change; branch
    /// on `code`.
    #[schema(example = "Some parameters are invalid; `errors` lists all of them.")]
    pub detail: Cow<'error, str>,
    /// A sentence for users in their language: Chinese without `Accept-Language` and where it prefers that, else English.
    #[schema(example = "部分参数有误：phoneNumber。")]
    pub message: Cow<'error, str>,
    #[schema(schema_with = codes)]
    pub code: &'static str,
    /// The request's id, as in `X-Request-Id` and in the log.
    #[schema(example = "9f2c1b7d0000000000000001")]
    pub request_id: Cow<'error, str>,
    /// Trace id of the failed interpretation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    pub trace_id: Option<Cow<'error, str>>,
    /// The newer state of a record that was edited in an older one; missing if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>, example = json!({ "localRecordId": "a1b2c3", "version": "8" }))]
    pub record: Option<&'error serde_json::Value>,
    /// The token with which to repeat a request that needs confirmation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs")]
    pub confirm: Option<&'error str>,
    /// Time at which that token expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, format = DateTime, example = "2026-01-02T03:14:05.678Z")]
    pub expires_at: Option<Timestamp>,
    /// The rows that would be deleted, by kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>, example = json!({ "codes": 12 }))]
    pub would_delete: Option<BTreeMap<&'error str, i64>>,
    /// The rows of the same kinds that would remain.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>, example = json!({}))]
    pub would_keep: Option<BTreeMap<&'error str, i64>>,
    /// All invalid fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemField<'error>>,
}

/// One invalid field of a request.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemField<'error> {
    #[schema(example = "phoneNumber")]
    pub field: Cow<'error, str>,
    #[schema(schema_with = field_codes)]
    pub code: &'static str,
    #[schema(example = "is required")]
    pub message: Cow<'error, str>,
}

/// Returns the codes that responses carry. All others are used by commands alone.
pub fn response_codes() -> impl Iterator<Item = Code> {
    let is_internal = |code: &Code| {
        matches!(
            code,
            Code::ChecksFailed
                | Code::BackupUnusable
                | Code::AddressUnavailable
                | Code::Configuration
                | Code::DataDirectoryUnusable
        )
    };
    Code::ALL.iter().copied().filter(move |code| !is_internal(code))
}

fn codes() -> Object {
    one_of_names("The stable code.", response_codes().map(Code::name).collect(), Code::InvalidParameters.name())
}

fn field_codes() -> Object {
    let names = FieldCode::ALL.iter().map(|code| code.name()).collect();
    one_of_names("The kind of fault.", names, FieldCode::Required.name())
}

impl<'error> Problem<'error> {
    /// Returns the part of the error that the client may see, without internal causes.
    pub fn of(error: &'error Error, meta: &'error RequestMeta) -> Self {
        let status = status_for(meta, error.code);
        let is_internal = status == StatusCode::INTERNAL_SERVER_ERROR;
        let code = if is_internal { Code::Internal } else { error.code };
        // Clients that name no language get details in English, as they always did.
        let locale = meta.named_locale.unwrap_or(Locale::English);
        let detail = match (is_internal, locale) {
            (true, Locale::English) => Code::Internal.meaning(),
            (true, Locale::Chinese) => Code::Internal.chinese(),
            (false, locale) => error.detail_in(locale),
        };
        let in_script = |text: Cow<'error, str>| {
            if meta.is_traditional { to_traditional(&text).into() } else { text }
        };
        let field = |field: &'error crate::error::FieldError| ProblemField {
            field: field.field.as_str().into(),
            code: field.code.name(),
            message: in_script(field.message.in_locale(locale).into()),
        };
        let confirmation = error.confirmation.as_ref();
        Self {
            r#type: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: in_script(detail.into()),
            message: in_script(message(code, error, meta.locale)),
            code: code.name(),
            request_id: meta.request_id.as_str().into(),
            trace_id: error.trace_id.as_deref().map(Into::into),
            record: error.record.as_ref(),
            confirm: confirmation.map(|confirmation| confirmation.token.reveal()),
            expires_at: confirmation.map(|confirmation| confirmation.expires_at),
            would_delete: confirmation.map(|confirmation| counted(&confirmation.would_delete)),
            would_keep: confirmation.map(|confirmation| counted(&confirmation.would_keep)),
            errors: error.fields.iter().map(field).collect(),
        }
    }
}

/// Returns the sentence for users: that of the code, with the names of invalid fields or the delay.
fn message(code: Code, error: &Error, locale: Locale) -> Cow<'static, str> {
    match (code, error.retry_after) {
        (Code::InvalidParameters, _) if !error.fields.is_empty() => {
            let mut names: Vec<_> = error.fields.iter().map(|field| field.field.as_str()).collect();
            names.dedup();
            match locale {
                Locale::English => format!("Please check: {}.", names_in_words(&names.join(", "))),
                Locale::Chinese => format!("部分参数有误：{}。", names.join("、")),
            }
            .into()
        }
        (Code::TooManyRequests, Some(wait)) => please_wait(wait, locale).into(),
        _ => code.message(locale).into(),
    }
}

/// Returns `phone number` for `phoneNumber`.
fn names_in_words(names: &str) -> String {
    let words = names
        .chars()
        .flat_map(|letter| letter.is_ascii_uppercase().then_some(' ').into_iter().chain([letter.to_ascii_lowercase()]));
    words.collect()
}

/// Names a delay in seconds, or in minutes or hours if it has more than two of them.
fn please_wait(wait: Duration, locale: Locale) -> String {
    let seconds = whole_seconds(wait);
    let (unit, [one, many, chinese]) = match seconds {
        0..=120 => (1, ["second", "seconds", "秒"]),
        121..=7_200 => (60, ["minute", "minutes", "分钟"]),
        _ => (3_600, ["hour", "hours", "小时"]),
    };
    let count = seconds.div_ceil(unit);
    match locale {
        Locale::English => format!("Please wait {} and try again.", pluralize(count, one, many)),
        Locale::Chinese => format!("操作过于频繁，请在 {count} {chinese}后再试。"),
    }
}

fn counted(counts: &[(String, i64)]) -> BTreeMap<&str, i64> {
    counts.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}

/// Builds the response to an error.
pub fn problem(error: &Error, meta: &RequestMeta) -> Response<Body> {
    let status = status_for(meta, error.code);
    let body = serde_json::to_vec(&Problem::of(error, meta)).unwrap_or_default();
    let mut response = response_with(status, PROBLEM, body);
    let headers = response.headers_mut();
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    headers.insert(header::CONTENT_LANGUAGE, content_language(meta));
    headers.insert(header::VARY, HeaderValue::from_static("accept-language"));
    add_retry_after(headers, error);
    rate_limit::add_exceeded(headers, error);
    response
}

/// Returns the languages of a problem. Without a preference `detail` and `message` differ.
fn content_language(meta: &RequestMeta) -> HeaderValue {
    HeaderValue::from_static(match meta.named_locale {
        Some(locale) => locale.name(),
        None => "en, zh",
    })
}

fn add_retry_after(headers: &mut HeaderMap, error: &Error) {
    if let Some(seconds) = retry_after_seconds(error) {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
}

/// Returns the delay after which a retry makes sense.
pub fn retry_after_seconds(error: &Error) -> Option<u64> {
    match (error.retry_after.map(whole_seconds), status(error.code)) {
        (Some(seconds), _) => Some(seconds),
        (None, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) => Some(1),
        (None, _) => None,
    }
}

/// Rounds up, so that clients do not retry too early.
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}
