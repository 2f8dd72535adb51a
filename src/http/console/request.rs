//! A request to the console as its handlers receive it, and the responses that they return.

use std::sync::{Arc, OnceLock};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use maud::Markup;
use percent_encoding::{CONTROLS, utf8_percent_encode};

use super::{
    session,
    views::{
        assets,
        context::{BASE, ConsoleTheme, Flash, KeptForm, ViewContext, Viewer, Waiting, href},
        format::Zone,
        forms::ProofField,
        layout,
        texts::{Language, Text, Tone},
    },
};
use crate::{
    app::App,
    domain::{
        messaging::feedback,
        moderation::reviews,
        money::payments::orders,
        operations::{
            admins::{
                self,
                step_up::{self, Proof},
            },
            alerts,
            audit::MAX_REASON,
        },
    },
    error::{Code, Error, Fault, FieldCode, FieldError, Result},
    http::{
        body::require_few_fields, endpoint_service::ResponseFuture, reply, request_context::RequestContext,
        request_meta::RequestMeta,
    },
    store::Read,
    types::{Locale, PageRequest, Secret, Timestamp, clean},
};

/// Rows on one page of a list.
pub const PAGE_SIZE: u32 = 50;
/// The largest number of waiting feedback that is counted.
const MOST_WAITING: u32 = 1000;

/// The decoded fields of a form or query.
#[derive(Clone, Debug, Default)]
pub struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Splits a query or a form.
    ///
    /// # Errors
    /// `invalid_request` for too many fields.
    pub fn parse(encoded: &[u8]) -> Result<Self> {
        require_few_fields(encoded)?;
        Ok(Self(url::form_urlencoded::parse(encoded).into_owned().collect()))
    }

    /// Returns the trimmed value of a field, empty if it is missing.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.trim())
    }

    /// Returns the values of all fields with a name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.trim())
    }

    /// Returns the fields as the query of an address, with its question mark, or an empty text without fields.
    pub fn as_query(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        format!("?{}", url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish())
    }

    /// Returns all fields in their order.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// Returns the value of a field that is not empty.
    pub fn find(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }
}

/// An async function from a request to a page.
pub trait PageHandler: Send + Sync + 'static {
    fn handle(&self, console: Arc<ConsoleRequest>) -> ResponseFuture;
}

impl<H, F> PageHandler for H
where
    H: Fn(Arc<ConsoleRequest>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Response<Body>>> + Send + 'static,
{
    fn handle(&self, console: Arc<ConsoleRequest>) -> ResponseFuture {
        Box::pin(self(console))
    }
}

/// A request to a page or an action.
pub struct ConsoleRequest {
    pub context: RequestContext,
    /// The values of the path's parameters.
    pub path: Vec<(String, String)>,
    pub query: FormFields,
    pub form: FormFields,
    /// The session token; none on pages without a session.
    pub session: Option<Secret>,
    /// Path and query of the page.
    pub address: String,
    /// The page that an act belongs to.
    pub page: Option<Arc<dyn PageHandler>>,
    /// The form of the request, if its page shows it again, and the message of its rejection.
    pub kept_form: OnceLock<(Option<String>, KeptForm)>,
}

impl ConsoleRequest {
    /// Returns a parameter of the path.
    pub fn parameter(&self, name: &str) -> &str {
        self.path.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Returns the address without its query.
    pub fn page_path(&self) -> &str {
        self.address.split('?').next().unwrap_or_default()
    }

    pub fn language(&self) -> Language {
        language_of(&self.context.headers, self.context.locale())
    }

    /// Returns the text in the language of the page.
    pub fn text(&self, text: Text) -> &'static str {
        text.in_language(self.language())
    }

    /// Lets the page show the form of the request as it was typed, and the error for which it was rejected.
    pub fn keep_form(&self, rejection: Option<&Error>) {
        let (id, fields) = (self.form.get("form").to_owned(), self.form.pairs().to_vec());
        let faults = rejection.map_or_else(Vec::new, |error| self.faults_of(error));
        let message = rejection.map(|error| self.summary_of(error));
        self.kept_form.get_or_init(|| (message, KeptForm { id, fields, faults }));
    }

    /// Collects the state that every view needs.
    ///
    /// # Errors
    /// Storage errors.
    pub fn view(&self) -> Result<ViewContext> {
        let app = &self.context.app;
        let now = app.core.clock.now();
        let viewer = self
            .context
            .admin()
            .ok()
            .map(|identity| Viewer { name: identity.name().to_owned(), role: identity.role() });
        let waiting = if viewer.is_some() { app.core.store.read(waiting_in)? } else { Waiting::default() };
        let message = self.kept_form.get().and_then(|(message, _)| message.clone());
        let rejection = message.map(|text| Flash { tone: Tone::Bad, text });
        let csrf = self.session.as_ref().map(|session| session::cross_site_token(&app.core.keys, session));
        Ok(ViewContext {
            language: self.language(),
            theme: ConsoleTheme::of(session::cookie(&self.context.headers, "theme").unwrap_or_default()),
            zone: Zone::new(&app.core.config.limits.time_zone, now),
            now,
            viewer,
            csrf: csrf.unwrap_or_default(),
            once: Secret::random()?.reveal().to_owned(),
            path: self.address.clone(),
            request_id: self.context.meta.request_id.clone(),
            flash: session::read_flash(&app.core.keys, &self.context.headers).into_iter().chain(rejection).collect(),
            kept_form: self.kept_form.get().map(|(_, form)| form.clone()),
            waiting,
            idle_seconds: u32::try_from(app.core.config.admin.session_idle.as_secs()).unwrap_or(u32::MAX),
        })
    }

    /// Returns the page of a list that the cursor names: the number of a page.
    pub fn page_request(&self) -> PageRequest {
        let number = self.query.get("cursor").parse().unwrap_or(1).max(1);
        PageRequest { first: 1, number, size: PAGE_SIZE }
    }

    /// Returns the state of the proof of identity, for the forms of dangerous actions.
    ///
    /// # Errors
    /// Storage errors.
    pub fn step_up(&self) -> Result<ProofField> {
        let app = &self.context.app;
        let Some(session) = &self.session else { return Ok(ProofField::default()) };
        let name = self.context.admin()?.name();
        let has_authenticator = admins::find(&app.core, name)?.has_second_factor;
        Ok(ProofField { is_needed: step_up::is_needed(&app.core, session)?, has_authenticator, error: None })
    }

    /// Requires a recent proof of identity: the last one, or one that the form carries.
    ///
    /// # Errors
    /// `step_up_required` without a proof; `invalid_credentials` for a wrong one.
    pub async fn require_step_up(&self) -> Result<()> {
        let session = self.session.clone().ok_or(Code::Unauthenticated)?;
        match step_up::use_recent(&self.context.app.core, &session) {
            Ok(Some(extended)) => return self.context.committed(extended).await,
            Ok(None) => return Ok(()),
            Err(error) if error.code != Code::StepUpRequired => return Err(error),
            Err(_) => {}
        }
        let proof = Proof {
            password: self.form.find("password").map(|password| Secret::from_text(password.to_owned())),
            totp: self.form.find("totp").map(ToOwned::to_owned),
        };
        let name = self.context.admin()?.name().to_owned();
        self.context.blocking(move |app| step_up::prove(&app.admins, &session, &name, proof)).await
    }

    /// Returns the reason of an action and records it for the audit.
    ///
    /// # Errors
    /// `invalid_parameters` without a reason, and for a reason that the API would reject too.
    pub fn require_reason(&self) -> Result<String> {
        let reason = self.required_text("reason", MAX_REASON)?;
        self.context.meta.reason.get_or_init(|| reason.clone());
        Ok(reason)
    }

    /// Returns the time of an optional field of the form.
    ///
    /// # Errors
    /// `invalid_parameters` for a text that is no time.
    pub fn optional_time(&self, field: &'static str) -> Result<Option<Timestamp>> {
        let zone = &self.context.app.core.config.limits.time_zone;
        let time = self.form.find(field).map(|text| Timestamp::parse(text, zone)).transpose();
        time.map_err(|fault| Error::field(field, fault))
    }

    /// Returns the text of a required field of the form.
    ///
    /// # Errors
    /// `invalid_parameters` without a text, or for one that is too long or has forbidden characters.
    pub fn required_text(&self, field: &'static str, max_length: usize) -> Result<String> {
        let text = clean(self.form.get(field), max_length).map_err(|fault| Error::field(field, fault))?;
        if text.is_empty() {
            return Err(Error::field(field, Fault::new(FieldCode::Required, ("is required", "不能为空"))));
        }
        Ok(text)
    }

    /// Goes back to the page of the request with a message about what was done.
    ///
    /// # Errors
    /// `internal` for a message that no header can carry.
    pub fn done(&self, message: &str) -> Result<Response<Body>> {
        self.redirect(&Flash { tone: Tone::Good, text: message.to_owned() })
    }

    /// Goes back to the page of the request with a message.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn redirect(&self, flash: &Flash) -> Result<Response<Body>> {
        self.redirect_to(&self.address, flash)
    }

    /// Redirects to a page with a message.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub fn redirect_to(&self, address: &str, flash: &Flash) -> Result<Response<Body>> {
        let mut response = see_other(address)?;
        response.headers_mut().append(header::SET_COOKIE, session::flash(&self.context.app.core.keys, flash)?);
        Ok(response)
    }

    /// Reads a choice of a filter by its name. A fault goes to the filter's faults.
    pub fn choice_filter<T>(
        &self,
        field: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
        faults: &mut Vec<(String, String)>,
    ) -> Option<T> {
        let choice = read(self.query.find(field)?);
        if choice.is_none() {
            faults.push((field.to_owned(), self.text(Text::NotAChoice).to_owned()));
        }
        choice
    }

    /// Returns the message of a fault in one field.
    pub fn fault_of(&self, error: &Error, field: &str) -> Option<String> {
        let fault = error.fields.iter().find(|fault| fault.field == field)?;
        Some(fault.message.in_locale(self.language().locale()).to_owned())
    }

    /// Returns the faults by field.
    pub fn faults_of(&self, error: &Error) -> Vec<(String, String)> {
        let message = |fault: &FieldError| fault.message.in_locale(self.language().locale()).to_owned();
        error.fields.iter().map(|fault| (fault.field.clone(), message(fault))).collect()
    }

    /// Returns the message about a rejected form. Faults of its fields stand beside them.
    fn summary_of(&self, error: &Error) -> String {
        let has_field = |fault: &FieldError| self.form.all(&fault.field).next().is_some();
        let is_shown_again = self.form.find("form").is_some();
        if is_shown_again && !error.fields.is_empty() && error.fields.iter().all(has_field) {
            return self.text(Text::CheckFields).to_owned();
        }
        message_of(error, self.language())
    }

    /// Renders the page of an error.
    pub fn error_page(&self, error: &Error) -> Response<Body> {
        let status = reply::status(error.code);
        match self.view() {
            Ok(cx) => {
                let detail = message_of(error, cx.language);
                page(status, layout::error(&cx, status.as_u16(), error.code.name(), &detail))
            }
            Err(_) => reply::problem(error, &self.context.meta),
        }
    }
}

fn language_of(headers: &HeaderMap, preferred: Locale) -> Language {
    match session::cookie(headers, "language") {
        Some(tag) => Language::of(tag),
        None if preferred == Locale::English => Language::English,
        None => Language::Chinese,
    }
}

/// Renders the error page of a request to the console that no page receives, such as one of another site.
pub fn refusal(app: &App, meta: &RequestMeta, headers: &HeaderMap, error: &Error) -> Response<Body> {
    let now = app.core.clock.now();
    let cx = ViewContext {
        language: language_of(headers, meta.locale),
        theme: ConsoleTheme::of(session::cookie(headers, "theme").unwrap_or_default()),
        zone: Zone::new(&app.core.config.limits.time_zone, now),
        now,
        viewer: None,
        csrf: String::new(),
        once: String::new(),
        path: href(""),
        request_id: meta.request_id.clone(),
        flash: Vec::new(),
        kept_form: None,
        waiting: Waiting::default(),
        idle_seconds: 0,
    };
    let (status, detail) = (reply::status(error.code), message_of(error, cx.language));
    let mut response = page(status, layout::error(&cx, status.as_u16(), error.code.name(), &detail));
    protect(&mut response);
    response
}

/// Returns true for the address of a page. Others are no target of a redirect.
pub fn is_page_address(address: &str) -> bool {
    address == BASE || address.starts_with(&format!("{BASE}/"))
}

/// Returns the message of an error in the language of the page, with the faults of its fields.
pub fn message_of(error: &Error, language: Language) -> String {
    let is_english_only = error.chinese_detail.is_none() && error.detail != error.code.meaning();
    let general = match language {
        Language::Chinese if is_english_only => format!("{}（{}）", error.code.chinese(), error.detail),
        language => error.detail_in(language.locale()).to_owned(),
    };
    if error.fields.is_empty() {
        return general;
    }
    let faults: Vec<_> = error
        .fields
        .iter()
        .map(|fault| format!("{} {}", fault.field, fault.message.in_locale(language.locale())))
        .collect();
    faults.join("; ")
}

/// Responds with a page.
pub fn page(status: StatusCode, markup: Markup) -> Response<Body> {
    let mut response = Response::new(Body::from(markup.0));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// Responds with a page that was found.
#[allow(clippy::unnecessary_wraps, reason = "the last expression of a handler")]
pub fn ok(markup: Markup) -> Result<Response<Body>> {
    Ok(page(StatusCode::OK, markup))
}

/// Redirects a browser after a form, or to another page. Forms and queries name pages too, so characters that no header
/// may contain are percent-encoded.
pub fn see_other(address: &str) -> Result<Response<Body>> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let address = utf8_percent_encode(address, CONTROLS).to_string();
    response.headers_mut().insert(header::LOCATION, HeaderValue::try_from(address).map_err(Error::internal)?);
    Ok(response)
}

/// Adds the headers that keep a page private and inert.
pub fn protect(response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(assets::CONTENT_SECURITY_POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// Counts what waits for somebody.
fn waiting_in(tx: &Read<'_>) -> Result<Waiting> {
    Ok(Waiting {
        orders: u64::try_from(orders::in_review_in(tx)?).unwrap_or(0),
        texts: u64::try_from(reviews::count_waiting_in(tx, MOST_WAITING)?).unwrap_or(0),
        feedback: u64::try_from(feedback::count_open_in(tx, MOST_WAITING)?).unwrap_or(0),
        alerts: alerts::active_in(tx)?.len() as u64,
    })
}
