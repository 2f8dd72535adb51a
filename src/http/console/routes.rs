//! The table of the console's pages and actions, each with the right it requires.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{Method, Response},
    routing::{MethodFilter, on},
};

use super::{
    acts,
    pages::{
        administrators, api_keys, bills, cleanup,
        feedback::{self, FeedbackList},
        figures, files, health, lists, log, messages,
        models::{self, CallList},
        moderation, moderation_services,
        network_log::RequestList,
        orders, overview, preferences, purchases, releases, review, search, settings, sign_in, user_erasure, user_list,
        users::{self, EntryList},
        words,
    },
    request::{ConsoleRequest, PageHandler, see_other},
    route::{PageAccess, Route},
    service::respond,
    views::{context::BASE, texts::Text},
};
use crate::{
    domain::operations::admins::roles::Right::{
        self, Administer, FindUsers, GrantCoins, Moderate, OwnSession, SupportUsers, ViewAudit, ViewFigures,
    },
    error::{Code, Error, Result},
    http::{
        admin::{
            self,
            audit::AuditList,
            notifications::{self, MessageList},
            payments::{self, BillList, CallbackList, OrderList},
            purchases::PurchaseList,
            releases::ReleaseList,
            sensitive_word_migration, sensitive_words,
            users::UserList,
            violations::ViolationList,
        },
        endpoint::Handler,
        params::Parameters,
        reply::Reply,
        state::HttpState,
    },
};

fn route(method: Method, path: &str, access: PageAccess, handler: impl PageHandler) -> Route {
    let path = if path.is_empty() { BASE.to_owned() } else { format!("{BASE}/{path}") };
    let page_depth = depth(&path);
    Route { method, page_depth, needs_recent_sign_in: false, path, access, handler: Arc::new(handler), page: None }
}

/// Returns the number of slashes in a path.
fn depth(path: &str) -> usize {
    path.matches('/').count()
}

fn open(method: Method, path: &str, handler: impl PageHandler) -> Route {
    route(method, path, PageAccess::Open, handler)
}

fn get(path: &str, right: Right, handler: impl PageHandler) -> Route {
    route(Method::GET, path, PageAccess::Session { right, is_live: false }, handler)
}

fn post(path: &str, right: Right, handler: impl PageHandler) -> Route {
    route(Method::POST, path, PageAccess::Session { right, is_live: false }, handler)
}

/// An act: the handler of an endpoint, called with the fields of a form.
fn act<P: Parameters, R: Reply>(path: &str, right: Right, handler: impl Handler<P, R>) -> Route {
    post(path, right, acts::act(handler, Text::ActionDone))
}

/// A region that refreshes itself.
fn live(path: &str, right: Right, handler: impl PageHandler) -> Route {
    route(Method::GET, path, PageAccess::Session { right, is_live: true }, handler)
}

/// Returns all pages and actions.
#[allow(clippy::too_many_lines, reason = "a table")]
pub fn routes() -> Vec<Route> {
    vec![
        open(Method::GET, "sign-in", sign_in::show),
        open(Method::POST, "sign-in", sign_in::submit),
        open(Method::GET, "first-run/{token}", sign_in::show_first_run),
        open(Method::POST, "first-run/{token}", sign_in::submit_first_run),
        open(Method::GET, "demo/{token}", sign_in::show_demo),
        open(Method::POST, "preferences", preferences::change),
        route(Method::GET, "assets/{version}/{file}", PageAccess::Files, files::show),
        post("sign-out", OwnSession, sign_in::sign_out),
        get("", ViewFigures, overview::show),
        live("fragments/overview", ViewFigures, overview::refresh),
        get("search", ViewFigures, search::show),
        get("search/suggest", ViewFigures, search::suggest),
        post("search/receipts", SupportUsers, search::ask_about_address),
        get("users", FindUsers, lists::show::<UserList>),
        post("users/export", FindUsers, lists::export::<UserList>),
        post("users/bulk", FindUsers, user_list::bulk),
        get("users/{userId}", FindUsers, users::show),
        act("users/{userId}/suspend", Moderate, admin::users::suspend),
        act("users/{userId}/unsuspend", Moderate, admin::users::lift_suspension),
        act("users/{userId}/reset-nickname", Moderate, admin::users::reset_nickname),
        act("users/{userId}/notes", FindUsers, admin::users::add_note),
        act("users/{userId}/notes/{id}/remove", FindUsers, admin::users::remove_note),
        act("users/{userId}/devices/end", SupportUsers, admin::users::sign_out_everywhere),
        act("users/{userId}/devices/{id}/end", SupportUsers, admin::users::sign_out_device),
        post("users/{userId}/export", Administer, user_erasure::export).for_recent_sign_in(),
        post("users/{userId}/erase", Administer, user_erasure::erase).for_recent_sign_in(),
        act("users/{userId}/move", SupportUsers, admin::users::move_to_phone).for_recent_sign_in(),
        get("users/{userId}/ledger", SupportUsers, lists::show::<EntryList>),
        post("users/{userId}/ledger/export", SupportUsers, lists::export::<EntryList>),
        post("users/{userId}/reveal", SupportUsers, users::reveal),
        post("users/{userId}/receipts", SupportUsers, users::ask_for_receipts),
        post("users/{userId}/repair", SupportUsers, users::repair),
        post("users/{userId}/grant", GrantCoins, users::grant).for_recent_sign_in(),
        get("purchases", SupportUsers, lists::show::<PurchaseList>),
        post("purchases/export", SupportUsers, lists::export::<PurchaseList>),
        get("purchases/{id}", SupportUsers, purchases::show),
        act("purchases/{id}/query", SupportUsers, admin::purchases::query),
        post("purchases/{id}/history", SupportUsers, purchases::history),
        get("orders", SupportUsers, lists::show::<OrderList>),
        post("orders/export", SupportUsers, lists::export::<OrderList>),
        post("orders/bulk", SupportUsers, orders::bulk),
        get("orders/callbacks", SupportUsers, lists::show::<CallbackList>),
        post("orders/callbacks/export", SupportUsers, lists::export::<CallbackList>),
        act("orders/callbacks/{id}/replay", SupportUsers, payments::replay),
        get("orders/bills", SupportUsers, lists::show::<BillList>),
        post("orders/bills/export", SupportUsers, lists::export::<BillList>),
        post("orders/bills", Administer, bills::check),
        get("orders/{orderNo}", SupportUsers, orders::show),
        post("orders/{orderNo}/query", SupportUsers, orders::query),
        act("orders/{orderNo}/settle", Administer, payments::settle).for_recent_sign_in(),
        act("orders/{orderNo}/refund", Administer, payments::refund).for_recent_sign_in(),
        get("growth", ViewFigures, figures::growth),
        get("growth.csv", ViewFigures, figures::growth_csv),
        get("revenue", ViewFigures, figures::revenue),
        get("revenue.csv", ViewFigures, figures::revenue_csv),
        get("models", ViewFigures, models::show),
        get("models.csv", ViewFigures, models::export),
        get("models/calls", SupportUsers, lists::show::<CallList>),
        post("models/calls/export", SupportUsers, lists::export::<CallList>),
        get("moderation", Moderate, lists::show::<ViolationList>),
        post("moderation/export", Moderate, lists::export::<ViolationList>),
        post("moderation/bulk", Moderate, moderation::bulk),
        get("moderation/violations/{id}", Moderate, moderation::show),
        get("moderation/review", Moderate, review::list),
        post("moderation/review", Moderate, review::decide),
        post("moderation/review/undo", Moderate, review::undo),
        post("moderation/violations/{id}/acquit", Moderate, moderation::acquit),
        get("moderation/services", Moderate, moderation_services::show),
        post("moderation/services/compare", Moderate, moderation_services::compare),
        act("moderation/services/switch", Administer, sensitive_word_migration::switch).for_recent_sign_in(),
        act("moderation/services/fallback", Administer, sensitive_word_migration::set_fallback).for_recent_sign_in(),
        get("moderation/words", Moderate, words::list),
        get("moderation/words/export", Moderate, words::export),
        post("moderation/words/test", Moderate, words::test),
        post("moderation/words/add", Moderate, words::add),
        act("moderation/words/remove", Moderate, sensitive_words::remove),
        post("moderation/words/allow", Moderate, words::allow),
        act("moderation/words/disallow", Moderate, sensitive_words::disallow),
        post("moderation/words/import", Moderate, words::import),
        get("feedback", SupportUsers, feedback::list),
        post("feedback/export", SupportUsers, lists::export::<FeedbackList>),
        post("feedback/bulk", SupportUsers, feedback::bulk),
        act("feedback/change", SupportUsers, admin::feedback::change),
        act("feedback/reply", SupportUsers, admin::feedback::reply),
        get("messages", Administer, lists::show::<MessageList>),
        post("messages", Administer, messages::send).for_recent_sign_in(),
        post("messages/export", Administer, lists::export::<MessageList>),
        post("messages/preview", Administer, messages::preview),
        post("messages/edit", Administer, messages::edit),
        act("messages/{id}/withdraw", Administer, notifications::delete).for_recent_sign_in(),
        get("releases", Administer, lists::show::<ReleaseList>),
        post("releases", Administer, acts::act(admin::releases::publish, Text::ReleasePublished)).for_recent_sign_in(),
        post("releases/export", Administer, lists::export::<ReleaseList>),
        post("releases/preview", Administer, releases::preview),
        post("releases/edit", Administer, releases::edit),
        act("releases/{id}/withdraw", Administer, admin::releases::withdraw).for_recent_sign_in(),
        get("network-log", SupportUsers, lists::show::<RequestList>),
        post("network-log/export", SupportUsers, lists::export::<RequestList>),
        get("logs", Administer, log::show),
        live("fragments/logs", Administer, log::refresh),
        get("health", ViewFigures, health::show),
        live("fragments/health", ViewFigures, health::refresh),
        post("health/alert-test", Administer, health::test_alerts),
        post("health/backup", Administer, acts::act(admin::health::back_up, Text::JobStarted)),
        post("health/ledger-verification", Administer, acts::act(admin::health::verify_ledger, Text::JobStarted)),
        post("health/doctor", Administer, acts::act(admin::health::run_doctor, Text::JobStarted)),
        get("audit", ViewAudit, lists::show::<AuditList>),
        post("audit/export", ViewAudit, lists::export::<AuditList>),
        get("administrators", Administer, administrators::list),
        post("administrators", Administer, administrators::create).for_recent_sign_in(),
        act("administrators/{name}/role", Administer, admin::administrators::change).for_recent_sign_in(),
        act("administrators/{name}/remove", Administer, admin::administrators::remove).for_recent_sign_in(),
        post("administrators/{name}/totp", Administer, administrators::enrol).for_recent_sign_in(),
        post("administrators/{name}/totp/confirm", Administer, administrators::confirm_totp),
        post("administrators/{name}/totp/remove", Administer, administrators::remove_totp).for_recent_sign_in(),
        post("administrators/sessions/{id}/end", Administer, administrators::end_session).for_recent_sign_in(),
        post("administrators/networks", Administer, administrators::allow_network).for_recent_sign_in(),
        post("administrators/networks/remove", Administer, administrators::disallow_network).for_recent_sign_in(),
        get("settings", Administer, settings::list),
        get("cleanup", Administer, cleanup::list),
        post("cleanup/{target}", Administer, cleanup::clear).for_recent_sign_in(),
        get("keys", Administer, api_keys::list),
        post("keys", Administer, api_keys::create).for_recent_sign_in(),
        act("keys/change", Administer, admin::api_keys::change).for_recent_sign_in(),
        act("keys/revoke", Administer, admin::api_keys::revoke).for_recent_sign_in(),
    ]
}

/// Adds the console to the router of a listener that serves administrators.
///
/// # Errors
/// `internal` for a method that axum does not route.
pub fn add_to(router: Router, state: &Arc<HttpState>) -> Result<Router> {
    let routes = routes();
    let pages: BTreeMap<_, _> = routes
        .iter()
        .filter(|route| route.method == Method::GET)
        .map(|route| (route.path.clone(), Arc::clone(&route.handler)))
        .collect();
    let mut served = Vec::new();
    for route in routes {
        let page = page_of(&pages, &route.path);
        let page_depth = depth(page);
        let route = Arc::new(Route { page_depth, page: pages.get(page).cloned(), ..route });
        served.push((route.path.clone(), Arc::clone(&route)));
        if route.path == BASE {
            served.push((format!("{BASE}/"), Arc::clone(&route)));
        }
        // A reload of a rejected form, and a link with a slash at its end, lead to the page.
        let to_page = |path: &str| {
            let route = Route { page_depth, ..open(Method::GET, "", lead_to_page) };
            Arc::new(Route { path: path.to_owned(), ..route })
        };
        if route.method == Method::POST && !pages.contains_key(&route.path) {
            served.push((route.path.clone(), to_page(&route.path)));
        } else if route.method == Method::GET && route.path != BASE && route.access != PageAccess::Files {
            let path = format!("{}/", route.path);
            served.push((path.clone(), to_page(&path)));
        }
    }
    served.into_iter().try_fold(router, |router, (path, route)| {
        let filter = MethodFilter::try_from(route.method.clone()).map_err(Error::internal)?;
        let state = Arc::clone(state);
        Ok(router.route(&path, on(filter, move |request: Request| respond(state.clone(), route.clone(), request))))
    })
}

/// Returns the path template of the page that an address belongs to: itself, or the longest beginning that is a page.
fn page_of<'path>(pages: &BTreeMap<String, Arc<dyn PageHandler>>, path: &'path str) -> &'path str {
    let mut page = path;
    while !pages.contains_key(page) {
        match page.rsplit_once('/') {
            Some((shorter, _)) if shorter.len() >= BASE.len() => page = shorter,
            _ => return BASE,
        }
    }
    page
}

async fn lead_to_page(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    see_other(&format!("{}{}", console.address, console.query.as_query()))
}

/// Answers an address below the console that is no page, or no page for this method.
pub async fn reject(state: Arc<HttpState>, code: Code, request: Request) -> Response<Body> {
    let handler = move |_: Arc<ConsoleRequest>| async move { Err::<Response<Body>, Error>(code.into()) };
    respond(state, Arc::new(open(request.method().clone(), "", handler)), request).await
}
