//! The search box: ids, phone numbers, email addresses, order and trade numbers, trace ids.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    app::App,
    domain::{
        divination::interpretation,
        identity::users::{self, Address},
        money::payments::orders,
        operations::admins::roles::Right,
    },
    error::Result,
    http::console::{
        request::{ConsoleRequest, ok, see_other},
        views::{
            context::{order_href, user_href},
            pages::search::{self as view, Search},
        },
    },
    types::{EmailAddress, PhoneNumber, UserId},
};

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let query = console.query.get("q").to_owned();
    let may_support = console.context.admin()?.role().has(Right::SupportUsers);
    let asked = query.clone();
    let found = console.context.report(move |app| Ok(if may_support { find(app, &asked) } else { None })).await?;
    match found {
        Some(address) => see_other(&address),
        None => ok(view::page(&console.view()?, &Search { query, hits: Vec::new(), has_more: false })),
    }
}

/// Returns the address of the page of what the text names.
fn find(app: &App, text: &str) -> Option<String> {
    let core = &app.core;
    let user = |user: UserId| Some(user_href(&user.to_string()));
    let by_address = |address: Address| core.store.read(|tx| users::find_by_address_in(tx, &address)).ok().flatten();
    if let Ok(phone) = PhoneNumber::parse(text, &core.phone_rules)
        && let Some(found) = by_address(Address::Phone(phone))
    {
        return user(found.id);
    }
    if let Ok(email) = EmailAddress::parse(text)
        && let Some(found) = by_address(Address::Email(email))
    {
        return user(found.id);
    }
    if let Ok(id) = text.parse().map(UserId)
        && core.store.read(|tx| users::exists_in(tx, id)).unwrap_or(false)
    {
        return user(id);
    }
    if let Ok(order) = orders::find(&app.payments, text) {
        return Some(order_href(&order.order_no));
    }
    let record = interpretation::find_by_trace(core, None, text).ok()?;
    user(record.user)
}
