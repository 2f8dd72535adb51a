//! The list of users.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::bulk::{BulkForm, or_rejected};
use crate::{
    app::App,
    domain::{
        identity::{
            directory::{self, COUNTED, ListedUser, MAX_QUERY, UserCursor, UserFilter, UserState},
            staff_acts, suspensions,
            users::listing::RegistrationRange,
        },
        operations::{admins::roles::Right, idempotency::IdempotentRequest},
    },
    error::{Code, Error, Result},
    http::console::{
        csv::{self, CsvList},
        request::{ConsoleRequest, PAGE_SIZE, ok},
        views::{
            context::user_href,
            format::ShownCount,
            layout::Place,
            lists::{Listing, Rows},
            pages::users::{self as view, TypedUserFilter, UserRow, Users},
            texts::Text,
        },
    },
    types::{SuspensionScope, Timestamp, UserId, clean},
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (typed, filter) = read_filter(&console);
    let cursor = console.query.find("cursor").map(UserCursor::parse).transpose();
    let cursor = cursor.map_err(|fault| Error::field("cursor", fault))?;
    let is_later = cursor.is_some();
    if let Some(listing) = Listing::rejected(&typed.errors) {
        return ok(view::page(&console.view()?, &Users { filter: typed, listing }));
    }
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

/// Reads the filter of the address.
fn read_filter(console: &ConsoleRequest) -> (TypedUserFilter, UserFilter) {
    let query = &console.query;
    let mut typed = TypedUserFilter {
        q: query.get("q").to_owned(),
        state: query.get("state").to_owned(),
        from: query.get("from").to_owned(),
        to: query.get("to").to_owned(),
        errors: Vec::new(),
    };
    let (from, to) = console.time_filter(&mut typed.errors);
    let text = clean(&typed.q, MAX_QUERY).unwrap_or_else(|fault| {
        typed.errors.extend(console.faults_of(&Error::field("q", fault)));
        String::new()
    });
    let state = console.choice_filter("state", UserState::from_name, &mut typed.errors);
    let filter = UserFilter {
        query: Some(text).filter(|text| !text.is_empty()),
        state,
        registered: RegistrationRange { from, to },
    };
    (typed, filter)
}

pub async fn export(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let (typed, filter) = read_filter(&console);
    csv::require_valid(&typed.errors)?;
    let (mut cursor, mut is_over) = (None, false);
    let next = move |app: &App| {
        // A page can be empty although others follow, because users of a rare state are far apart.
        while !is_over {
            let found = directory::list(&app.core, &filter, cursor.as_ref(), csv::ROWS)?;
            is_over = found.next.is_none();
            cursor = found.next;
            if !found.items.is_empty() {
                return Ok(found.items.into_iter().map(user_row).collect());
            }
        }
        Ok(Vec::new())
    };
    let list =
        CsvList { page: "users".to_owned(), columns: view::COLUMNS.to_vec(), cells: view::cells, next: Box::new(next) };
    csv::send(console, list).await
}

/// Suspends the picked users, or signs out their devices.
pub async fn bulk(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    or_rejected(&console, Place::Users, try_bulk(&console).await)
}

async fn try_bulk(console: &ConsoleRequest) -> Result<Response<Body>> {
    let mut form = BulkForm::read(console, Place::Users)?;
    let right = match form.act {
        "suspend" => Right::Moderate,
        "end-devices" => Right::SupportUsers,
        _ => return Err(form.unknown_act()),
    };
    console.context.admin()?.role().require(right)?;
    let app = &console.context.app;
    let ends_at = console.optional_time("endsAt")?;
    for id in form.ids.clone() {
        let user = id.parse().map(UserId).map_err(|_| Error::from(Code::NotFound));
        let outcome = match (&user, right) {
            (Err(_), _) => Err(Code::NotFound.into()),
            (Ok(user), Right::Moderate) => suspend(console, *user, ends_at).await,
            (Ok(user), _) => {
                let ended = console.context.committed(staff_acts::sign_out(&app.core, *user, None)).await;
                ended.map(|devices| Some(format!("{}: {devices}", console.text(Text::Devices))))
            }
        };
        form.add(&id, Some(user_href(&id)), user.ok(), outcome).await?;
    }
    form.finish()
}

/// Suspends a user for the reason of the form.
pub(super) async fn suspend(
    console: &ConsoleRequest,
    user: UserId,
    ends_at: Option<Timestamp>,
) -> Result<Option<String>> {
    let by = console.context.authority(Some(console.require_reason()?))?;
    let (core, scope) = (&console.context.app.core, SuspensionScope::Account);
    let once = IdempotentRequest::without_key(None);
    console.context.committed(suspensions::suspend(core, user, scope, ends_at, by, once)).await.map(|_| None)
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
