//! The list of users.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    domain::identity::{
        directory::{self, COUNTED, ListedUser, MAX_QUERY, UserCursor, UserFilter, UserState},
        users::listing::RegistrationRange,
    },
    error::{Error, Result},
    http::console::{
        request::{ConsoleRequest, PAGE_SIZE, ok},
        views::{
            format::ShownCount,
            lists::{Listing, Rows},
            pages::users::{self as view, TypedUserFilter, UserRow, Users},
        },
    },
    types::clean,
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let query = &console.query;
    let mut typed = TypedUserFilter {
        q: query.get("q").to_owned(),
        state: query.get("state").to_owned(),
        from: query.get("from").to_owned(),
        to: query.get("to").to_owned(),
        errors: Vec::new(),
    };
    let (from, to) = console.time_filter(&mut typed.errors);
    let text = clean(&typed.q, MAX_QUERY).map_err(|fault| Error::field("q", fault))?;
    let filter = UserFilter {
        query: Some(text).filter(|text| !text.is_empty()),
        state: UserState::from_name(&typed.state),
        registered: RegistrationRange { from, to },
    };
    let cursor = query.find("cursor").map(UserCursor::parse).transpose();
    let cursor = cursor.map_err(|fault| Error::field("cursor", fault))?;
    let is_later = cursor.is_some();
    let found =
        console.context.report(move |app| directory::list(&app.core, &filter, cursor.as_ref(), PAGE_SIZE)).await?;
    let rows = Rows {
        items: found.items.into_iter().map(user_row).collect(),
        total: found.total.map(|total| ShownCount::up_to(COUNTED, total.into())),
        next: found.next.map(|cursor| cursor.to_string()),
        is_later,
    };
    ok(view::page(&console.view()?, &Users { filter: typed, listing: Listing::Rows(rows) }))
}

fn user_row(user: ListedUser) -> UserRow {
    let state = match user.state {
        UserState::Active if user.has_suspended_account => "account_suspended",
        state => state.name(),
    };
    UserRow {
        id: user.id.to_string(),
        nickname: user.nickname,
        phone_number: user.phone_number,
        email: user.email,
        coins: user.coins,
        points: user.points,
        state: state.to_owned(),
        created_at: user.created_at,
    }
}
