//! Runs a request to the console: session, right, cross-site token, audit, and the error page if something fails.

use std::{
    mem,
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header},
};
use futures_util::FutureExt as _;

use super::{
    pages::{lost_session, proof},
    request::{ConsoleRequest, FormFields, page, protect, see_other},
    route::{PageAccess, Route},
    session,
    views::{
        context::{BASE, href},
        format::encode,
        layout,
    },
};
use crate::{
    domain::operations::admins::{self, Identity, networks},
    error::{Code, Error, Result},
    http::{
        body,
        endpoint_service::{log_failure, panic_as_error, path_parameters, run_audited},
        reply::problem,
        request_context::RequestContext,
        request_meta::{Caller, IdempotencyHeader, RequestMeta, audit_event},
        state::HttpState,
    },
    types::sha256_of_parts,
};

/// The largest form, for pasted word lists: percent-encoded, a Chinese character takes nine bytes.
const FORM_BYTES: usize = 256 << 10;

/// Responds to a request that the request layer has given its [`RequestMeta`].
pub async fn respond(state: Arc<HttpState>, route: Arc<Route>, mut request: Request<Body>) -> Response<Body> {
    let Some(meta) = request.extensions_mut().remove::<Arc<RequestMeta>>() else {
        return problem(&Error::internal("a request has no metadata"), &RequestMeta::unknown());
    };
    let _ = meta.console.set(BASE);
    let outcome = AssertUnwindSafe(run(&state, &route, &meta, request)).catch_unwind().await;
    let mut response = panic_as_error(outcome).unwrap_or_else(|error| problem(&error, &meta));
    protect(&mut response);
    response
}

async fn run(
    state: &Arc<HttpState>,
    route: &Route,
    meta: &Arc<RequestMeta>,
    mut request: Request<Body>,
) -> Result<Response<Body>> {
    let target = request.uri().path().to_owned();
    let mut body = mem::take(request.body_mut());
    let mut console = read_head(state, route, meta, &mut request).await?;
    let admitted = admit(state, route, &target, &mut console, &mut body).await;
    let console = Arc::new(console);
    let answered = match admitted {
        Ok(None) => handle(route, target, &console).await,
        Ok(Some(response)) => Ok(response),
        Err(error) => {
            // The rest of a form that is not read.
            body::discard(body, &console.context.headers).await;
            Err(error)
        }
    };
    let answered = answered.unwrap_or_else(|error| {
        log_failure(&state.app.core.log_throttle, &error, meta);
        console.error_page(&error)
    });
    with_flash_shown(&console, answered)
}

/// Reads the request without its form.
async fn read_head(
    state: &Arc<HttpState>,
    route: &Route,
    meta: &Arc<RequestMeta>,
    request: &mut Request<Body>,
) -> Result<ConsoleRequest> {
    let path = path_parameters(request, &route.path).await?;
    let uri = request.uri();
    let address = match uri.path().match_indices('/').nth(route.page_depth) {
        Some((end, _)) if end > BASE.len() || end + 1 < uri.path().len() => uri.path()[..end].to_owned(),
        _ => uri.path_and_query().map_or(uri.path(), |address| address.as_str()).to_owned(),
    };
    let query = FormFields::parse(uri.query().unwrap_or_default().as_bytes())?;
    let headers = mem::take(request.headers_mut());
    Ok(ConsoleRequest {
        path,
        query,
        form: FormFields::default(),
        session: session::token(&headers),
        address,
        page: route.page.clone(),
        kept_form: OnceLock::new(),
        context: RequestContext {
            app: Arc::clone(&state.app),
            meta: Arc::clone(meta),
            caller: Caller::Anonymous,
            headers,
            idempotency: None,
            audit: None,
            reports: Arc::clone(&state.reports),
            live: Arc::clone(&state.live),
            inbox: Arc::clone(&state.inbox),
            token: None,
            body: Bytes::new(),
        },
    })
}

/// Reads the form, once it is known who sends it.
async fn read_form(console: &mut ConsoleRequest, target: &str, body: Body) -> Result<()> {
    let context = &mut console.context;
    let hold = |bytes| context.meta.held.grow(bytes);
    let read = body::read(body, &context.headers, FORM_BYTES, hold);
    let read = tokio::time::timeout(context.app.core.config.limits.body_timeout, read).await;
    let form = read.map_err(|_| Code::RequestTimeout)??;
    // The fields are a copy.
    hold(form.len())?;
    console.form = FormFields::parse(&form)?;
    context.idempotency = form_key(&console.form, target, &form).map(Box::new);
    go_back(console)?;
    Ok(())
}

/// Takes the filter and the part of a list from the address that the form carries, if it is on the page of the act.
fn go_back(console: &mut ConsoleRequest) -> Result<()> {
    let back = console.form.get("back").to_owned();
    if let Some((path, query)) = back.split_once('?')
        && path == console.page_path()
    {
        console.query = FormFields::parse(query.as_bytes())?;
        console.address = back;
    }
    Ok(())
}

/// Returns the key that a form carries, so that a double click is one action.
fn form_key(form: &FormFields, path: &str, body: &[u8]) -> Option<IdempotencyHeader> {
    let value = HeaderValue::from_str(form.find("once")?).ok()?;
    let request_sha256 = sha256_of_parts(&[path.as_bytes(), body]);
    Some(IdempotencyHeader { value, is_ambiguous: false, request_sha256 })
}

/// Checks network, session, right and, after the form is read, cross-site token. Returns a response if the request goes no
/// further.
async fn admit(
    state: &HttpState,
    route: &Route,
    target: &str,
    console: &mut ConsoleRequest,
    body: &mut Body,
) -> Result<Option<Response<Body>>> {
    let meta = Arc::clone(&console.context.meta);
    let admitted = admit_caller(route, console).await;
    if let Err(error) = meta.admit(&state.held, &console.context.caller, &console.context.headers) {
        // It is not in the ledger, so nothing more of it is read.
        drop(mem::take(body));
        return Err(error);
    }
    admitted?;
    if route.method == Method::POST {
        read_form(console, target, mem::take(body)).await?;
    }
    let PageAccess::Session { is_live, .. } = route.access else { return Ok(None) };
    let Caller::Admin(identity) = &console.context.caller else {
        return ask_for_session(route, target, console).map(Some);
    };
    let actor = identity.actor();
    if route.method == Method::POST {
        require_own_form(console)?;
    }
    if !is_live {
        let action = format!("{} {}", route.method, route.path);
        let described = audit_event(&meta, actor, action);
        console.context.audit = Some(Arc::new(console.context.app.audits.prepare(described)));
    }
    Ok(None)
}

/// Checks the network, and the right of the session if there is one.
async fn admit_caller(route: &Route, console: &mut ConsoleRequest) -> Result<()> {
    if route.access != PageAccess::Files {
        let client = console.context.meta.client;
        console.context.app.core.store.read(|tx| networks::admit_in(tx, client))?;
    }
    if let PageAccess::Session { right, is_live } = route.access
        && let Some(identity) = authenticate(console, is_live).await?
    {
        let role = identity.role();
        console.context.caller = Caller::Admin(identity);
        role.require(right)?;
    }
    Ok(())
}

/// Calls the handler, after a proof of identity if the act needs one, and records its outcome in the audit.
async fn handle(route: &Route, target: String, console: &Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let mut future = route.handler.handle(Arc::clone(console));
    if route.needs_recent_sign_in {
        future = Box::pin(proof::require(Arc::clone(console), target, future));
    }
    match &console.context.audit {
        Some(audit) => run_audited(Arc::clone(audit), future).await,
        None => future.await,
    }
}

/// Returns the administrator of the session. Pages that refresh themselves do not keep it alive.
async fn authenticate(console: &ConsoleRequest, is_live: bool) -> Result<Option<Identity>> {
    let app = &console.context.app;
    let Some(token) = console.session.as_ref().filter(|token| admins::is_session(token.reveal())) else {
        return Ok(None);
    };
    let credential = app.core.store.read(|tx| admins::authenticate_in(tx, &app.core.config.admin, token.reveal()))?;
    let Some(credential) = credential else { return Ok(None) };
    if credential.is_use_due && !is_live {
        console.context.committed(admins::record_use(&app.core, token.reveal())).await?;
    }
    Ok(Some(credential.identity))
}

fn require_own_form(console: &ConsoleRequest) -> Result<()> {
    let session = console.session.as_ref().ok_or(Code::Unauthenticated)?;
    if session::is_own_form(&console.context.app.core.keys, session, console.form.get("csrf")) {
        return Ok(());
    }
    Err(Error::new(Code::Forbidden).detail((
        "The form does not belong to this session. Load the page again.",
        "表单不属于当前会话，请重新加载页面。",
    )))
}

/// Responds without a session: a page that reloads itself for links of other sites, 401 for scripts, the sign-in page
/// for people. The sign-in page of a form keeps what was typed.
fn ask_for_session(route: &Route, target: &str, console: &ConsoleRequest) -> Result<Response<Body>> {
    let headers = &console.context.headers;
    if header_is(headers, "hx-request", "true") {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return Ok(response);
    }
    // Browsers withhold a strict cookie from links of other sites.
    if route.method == Method::GET && header_is(headers, "sec-fetch-site", "cross-site") {
        return Ok(page(StatusCode::OK, layout::reload(&console.view()?, &console.address)));
    }
    if route.method == Method::POST {
        return lost_session::ask(console, target);
    }
    let ended = if console.session.is_some() { "&ended=1" } else { "" };
    see_other(&format!("{}?next={}{ended}", href("sign-in"), encode(&console.address)))
}

fn header_is(headers: &HeaderMap, name: &str, value: &str) -> bool {
    headers.get(name).is_some_and(|sent| sent.as_bytes() == value.as_bytes())
}

/// Removes the message of the last redirect once a page has shown it.
fn with_flash_shown(console: &ConsoleRequest, mut response: Response<Body>) -> Result<Response<Body>> {
    let is_page = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/html; charset=utf-8");
    let has_flash = session::read_flash(&console.context.app.core.keys, &console.context.headers).is_some();
    if is_page && has_flash {
        response.headers_mut().append(header::SET_COOKIE, session::forget_flash()?);
    }
    Ok(response)
}
