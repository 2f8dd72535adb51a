//! The table of the console's pages and actions, each with the right it requires.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{Method, Response},
    routing::{MethodFilter, on},
};

use super::{
    pages::{
        administrators, api_keys, bills, cleanup,
        feedback::{self, FeedbackList},
        figures, files, health, lists, log, messages,
        models::{self, CallList},
        moderation, moderation_services,
        network_log::RequestList,
        orders, overview, preferences, purchases, releases, review, search, settings, sign_in, user_acts, user_erasure,
        user_list,
        users::{self, EntryList},
        words,
    },
    request::{ConsoleRequest, see_other},
    route::{PageAccess, PageHandler, Route},
    service::respond,
    views::context::BASE,
};
use crate::{
    domain::operations::admins::roles::Right::{
        self, Administer, FindUsers, GrantCoins, Moderate, OwnSession, SupportUsers, ViewAudit, ViewFigures,
    },
    error::{Code, Error, Result},
    http::{
        admin::{
            audit::AuditList,
            notifications::MessageList,
            payments::{BillList, CallbackList, OrderList},
            purchases::PurchaseList,
            releases::ReleaseList,
            users::UserList,
            violations::ViolationList,
        },
        state::HttpState,
    },
};

fn route(method: Method, path: &str, access: PageAccess, handler: impl PageHandler) -> Route {
    let path = if path.is_empty() { BASE.to_owned() } else { format!("{BASE}/{path}") };
    Route { method, page_depth: depth(&path), needs_recent_sign_in: false, path, access, handler: Box::new(handler) }
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
        post("search/receipts", SupportUsers, search::ask_about_address),
        get("users", FindUsers, lists::show::<UserList>),
        post("users/export", FindUsers, lists::export::<UserList>),
        post("users/bulk", FindUsers, user_list::bulk),
        get("users/{id}", FindUsers, users::show),
        post("users/{id}/suspend", Moderate, user_acts::suspend),
        post("users/{id}/unsuspend", Moderate, user_acts::lift_suspension),
        post("users/{id}/reset-nickname", Moderate, user_acts::reset_nickname),
        post("users/{id}/notes", FindUsers, user_acts::add_note),
        post("users/{id}/notes/{note}/remove", FindUsers, user_acts::remove_note),
        post("users/{id}/devices/end", SupportUsers, user_acts::end_all_devices),
        post("users/{id}/devices/{device}/end", SupportUsers, user_acts::end_device),
        post("users/{id}/export", Administer, user_erasure::export).for_recent_sign_in(),
        post("users/{id}/erase", Administer, user_erasure::erase).for_recent_sign_in(),
        post("users/{id}/move", SupportUsers, user_acts::move_to_phone).for_recent_sign_in(),
        get("users/{id}/ledger", SupportUsers, lists::show::<EntryList>),
        post("users/{id}/ledger/export", SupportUsers, lists::export::<EntryList>),
        post("users/{id}/reveal", SupportUsers, users::reveal),
        post("users/{id}/receipts", SupportUsers, users::ask_for_receipts),
        post("users/{id}/repair", SupportUsers, users::repair),
        post("users/{id}/grant", GrantCoins, users::grant).for_recent_sign_in(),
        get("purchases", SupportUsers, lists::show::<PurchaseList>),
        post("purchases/export", SupportUsers, lists::export::<PurchaseList>),
        get("purchases/{id}", SupportUsers, purchases::show),
        post("purchases/{id}/query", SupportUsers, purchases::query),
        post("purchases/{id}/history", SupportUsers, purchases::history),
        get("orders", SupportUsers, lists::show::<OrderList>),
        post("orders/export", SupportUsers, lists::export::<OrderList>),
        post("orders/bulk", SupportUsers, orders::bulk),
        get("orders/callbacks", SupportUsers, lists::show::<CallbackList>),
        post("orders/callbacks/export", SupportUsers, lists::export::<CallbackList>),
        post("orders/callbacks/{id}/replay", SupportUsers, orders::replay),
        get("orders/bills", SupportUsers, lists::show::<BillList>),
        post("orders/bills/export", SupportUsers, lists::export::<BillList>),
        post("orders/bills", Administer, bills::check),
        get("orders/{orderNo}", SupportUsers, orders::show),
        post("orders/{orderNo}/query", SupportUsers, orders::query),
        post("orders/{orderNo}/settle", Administer, orders::settle).for_recent_sign_in(),
        post("orders/{orderNo}/refund", Administer, orders::refund).for_recent_sign_in(),
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
        post("moderation/services/switch", Administer, moderation_services::switch).for_recent_sign_in(),
        post("moderation/services/fallback", Administer, moderation_services::set_fallback).for_recent_sign_in(),
        get("moderation/words", Moderate, words::list),
        get("moderation/words/export", Moderate, words::export),
        post("moderation/words/test", Moderate, words::test),
        post("moderation/words/add", Moderate, words::add),
        post("moderation/words/remove", Moderate, words::remove),
        post("moderation/words/allow", Moderate, words::allow),
        post("moderation/words/disallow", Moderate, words::disallow),
        post("moderation/words/import", Moderate, words::import),
        get("feedback", SupportUsers, feedback::list),
        post("feedback/export", SupportUsers, lists::export::<FeedbackList>),
        post("feedback/bulk", SupportUsers, feedback::bulk),
        post("feedback/change", SupportUsers, feedback::change),
        post("feedback/reply", SupportUsers, feedback::reply),
        get("messages", Administer, lists::show::<MessageList>),
        post("messages", Administer, messages::send).for_recent_sign_in(),
        post("messages/export", Administer, lists::export::<MessageList>),
        post("messages/preview", Administer, messages::preview),
        post("messages/edit", Administer, messages::edit),
        post("messages/{id}/withdraw", Administer, messages::withdraw).for_recent_sign_in(),
        get("releases", Administer, lists::show::<ReleaseList>),
        post("releases", Administer, releases::publish).for_recent_sign_in(),
        post("releases/export", Administer, lists::export::<ReleaseList>),
        post("releases/preview", Administer, releases::preview),
        post("releases/edit", Administer, releases::edit),
        post("releases/{id}/withdraw", Administer, releases::withdraw).for_recent_sign_in(),
        get("network-log", SupportUsers, lists::show::<RequestList>),
        post("network-log/export", SupportUsers, lists::export::<RequestList>),
        get("logs", Administer, log::show),
        live("fragments/logs", Administer, log::refresh),
        get("health", ViewFigures, health::show),
        live("fragments/health", ViewFigures, health::refresh),
        post("health/alert-test", Administer, health::test_alerts),
        post("health/backup", Administer, health::back_up),
        post("health/ledger-verification", Administer, health::verify_ledger),
        post("health/doctor", Administer, health::run_doctor),
        get("audit", ViewAudit, lists::show::<AuditList>),
        post("audit/export", ViewAudit, lists::export::<AuditList>),
        get("administrators", Administer, administrators::list),
        post("administrators", Administer, administrators::create).for_recent_sign_in(),
        post("administrators/{name}/role", Administer, administrators::change_role).for_recent_sign_in(),
        post("administrators/{name}/remove", Administer, administrators::remove).for_recent_sign_in(),
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
        post("keys/suspend", Administer, api_keys::suspend).for_recent_sign_in(),
        post("keys/resume", Administer, api_keys::resume).for_recent_sign_in(),
        post("keys/revoke", Administer, api_keys::revoke).for_recent_sign_in(),
    ]
}

/// Adds the console to the router of a listener that serves administrators.
///
/// # Errors
/// `internal` for a method that axum does not route.
pub fn add_to(router: Router, state: &Arc<HttpState>) -> Result<Router> {
    let routes = routes();
    let pages: BTreeSet<_> =
        routes.iter().filter(|route| route.method == Method::GET).map(|route| route.path.clone()).collect();
    let mut served = Vec::new();
    for route in routes {
        let page_depth = depth(page_of(&pages, &route.path));
        let route = Arc::new(Route { page_depth, ..route });
        served.push((route.path.clone(), Arc::clone(&route)));
        if route.path == BASE {
            served.push((format!("{BASE}/"), Arc::clone(&route)));
        }
        // A reload of a rejected form, and a link with a slash at its end, lead to the page.
        let to_page = |path: &str| {
            let (path, handler) = (path.to_owned(), Box::new(lead_to_page));
            let needs_recent_sign_in = false;
            Arc::new(Route {
                method: Method::GET,
                path,
                access: PageAccess::Open,
                page_depth,
                needs_recent_sign_in,
                handler,
            })
        };
        if route.method == Method::POST && !pages.contains(&route.path) {
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
fn page_of<'path>(pages: &BTreeSet<String>, path: &'path str) -> &'path str {
    let mut page = path;
    while !pages.contains(page) {
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
    let handler = Box::new(move |_: Arc<ConsoleRequest>| async move { Err::<Response<Body>, Error>(code.into()) });
    let (method, path) = (request.method().clone(), BASE.to_owned());
    let (page_depth, access, needs_recent_sign_in) = (depth(BASE), PageAccess::Open, false);
    let route = Route { method, path, access, page_depth, needs_recent_sign_in, handler };
    respond(state, Arc::new(route), request).await
}
