//! The search box: ids, phone numbers, email addresses, order and trade numbers, numbers of purchases in app stores,
//! trace ids, request ids, and beginnings of nicknames.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    app::App,
    domain::{
        divination::interpretation,
        identity::{
            accounts::{self, CodeMessages},
            directory::{self, ListedUser, MAX_QUERY, UserFilter},
            users::Address,
        },
        money::{payments::orders, purchases::records},
        operations::{
            admins::roles::{Right, Role},
            network_log::search::{Logged, by_request_id},
        },
    },
    error::{Code, Result},
    http::console::{
        request::{ConsoleRequest, ok, see_other},
        views::{
            context::{Flash, href, order_href, purchase_href, user_href},
            format::with_query,
            pages::search::{self as view, Found, Search, SearchHit},
            texts::{Text, Tone},
        },
    },
    types::{UserId, clean},
};

/// Hits of each kind.
const HITS: u32 = 20;

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    // Spreadsheets copy the number of an order from an export in quotes, with the tab at its end.
    let query = console.query.get("q").trim_matches(['"', '\t', ' ']).to_owned();
    let role = console.context.admin()?.role();
    let asked = query.clone();
    let found = console
        .context
        .report(move |app| {
            let exact = if role.has(Right::SupportUsers) { find(app, &asked) } else { None };
            match exact {
                Some(address) => Ok(Outcome::Exact(address)),
                None if role.has(Right::FindUsers) => search(app, &asked, role),
                None => Ok(Outcome::NOTHING),
            }
        })
        .await?;
    match found {
        Outcome::Exact(address) => see_other(&address),
        Outcome::Hits { hits, codes: None, .. } if hits.len() == 1 => see_other(&hits[0].href),
        Outcome::Hits { hits, has_more, codes } => {
            ok(view::page(&console.view()?, &Search { query, hits, has_more, codes }))
        }
    }
}

/// Hits that the palette shows.
const SUGGESTIONS: usize = 6;

/// Suggests the page of what is typed, and users.
pub async fn suggest(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let asked = console.query.get("q").trim().to_owned();
    let role = console.context.admin()?.role();
    let typed = asked.clone();
    let hits = console
        .context
        .report(move |app| {
            let exact = if role.has(Right::SupportUsers) { find(app, &asked) } else { None };
            let exact = exact.map(|address| (asked.clone(), address));
            let hits = match search(app, &asked, role)? {
                Outcome::Hits { hits, .. } if role.has(Right::FindUsers) => hits,
                _ => Vec::new(),
            };
            let hits = hits.into_iter().map(|hit| (format!("{} {}", hit.name, hit.detail), hit.href));
            Ok(exact.into_iter().chain(hits).take(SUGGESTIONS).collect::<Vec<_>>())
        })
        .await?;
    ok(view::suggestions(&console.view()?, &typed, &hits))
}

/// Asks the SMS provider what became of the codes for an address without an account.
pub async fn ask_about_address(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let text = console.form.get("q");
    let address = directory::address_of(&console.context.app.core, text).ok_or(Code::NotFound)?;
    ask_for_receipts(&console, vec![address]).await
}

/// Asks the SMS provider for receipts, and goes back to the page, which shows them.
pub async fn ask_for_receipts(console: &ConsoleRequest, addresses: Vec<Address>) -> Result<Response<Body>> {
    let found =
        console.context.blocking(move |app| accounts::delivered_code_messages(&app.code_sender, &addresses)).await?;
    match found.receipts_failure {
        None => console.done(console.text(Text::ActionDone)),
        Some(failure) => {
            let text = format!("{} {failure}", console.text(Text::NoReceipts));
            console.redirect(&Flash { tone: Tone::Bad, text })
        }
    }
}

/// The result of a search: the page of one thing, or several hits.
enum Outcome {
    Exact(String),
    Hits { hits: Vec<SearchHit>, has_more: bool, codes: Option<CodeMessages> },
}

impl Outcome {
    const NOTHING: Self = Self::Hits { hits: Vec::new(), has_more: false, codes: None };
}

/// Searches users, and records of requests by their id.
fn search(app: &App, text: &str, role: Role) -> Result<Outcome> {
    let Some(text) = clean(text, MAX_QUERY).ok().filter(|text| !text.is_empty()) else { return Ok(Outcome::NOTHING) };
    let filter = UserFilter { query: Some(text.clone()), ..UserFilter::default() };
    let found = directory::list(&app.core, &filter, None, HITS)?;
    let mut hits: Vec<_> = found.items.into_iter().map(user_hit).collect();
    let mut codes = None;
    if role.has(Right::SupportUsers) {
        // An address with an account leads to the page of its user.
        let address = directory::address_of(&app.core, &text);
        codes = address.map(|address| accounts::list_code_messages(&app.core, &[address])).transpose()?;
        hits.extend(by_request_id(&app.network_log, &text, HITS as usize)?.into_iter().map(request_hit));
    }
    Ok(Outcome::Hits { hits, has_more: found.next.is_some(), codes })
}

fn user_hit(user: ListedUser) -> SearchHit {
    let address = user.phone_number.or(user.email).unwrap_or_default();
    SearchHit {
        found: Found::User,
        name: user.id.to_string(),
        detail: format!("{} {address}", user.nickname),
        state: Some(user.state),
        at: user.created_at,
        href: user_href(&user.id.to_string()),
    }
}

fn request_hit(logged: Logged) -> SearchHit {
    let route = logged.route.as_deref().unwrap_or("–");
    SearchHit {
        found: Found::Request,
        name: logged.request_id,
        detail: format!("{} {route} {}", logged.method, logged.status),
        state: None,
        at: logged.at,
        href: match logged.user {
            Some(user) => user_href(&user.to_string()),
            None => with_query(&href("network-log"), &[("clientIp", &logged.client_ip)]),
        },
    }
}

/// Returns the address of the page of what the text names.
fn find(app: &App, text: &str) -> Option<String> {
    let core = &app.core;
    let user = |user: UserId| Some(user_href(&user.to_string()));
    if let Ok(Some(named)) = directory::find_named(core, text) {
        return user(named);
    }
    if let Ok(order) = orders::find(&app.payments, text) {
        return Some(order_href(&order.order_no));
    }
    if let Ok(purchase) = records::find(core, text) {
        return Some(purchase_href(&purchase.id.to_string()));
    }
    let record = interpretation::find_by_trace(core, None, text).ok()?;
    user(record.user)
}
