//! The list of users.

use maud::{Markup, html};

use crate::http::console::views::{
    context::{Right, ViewContext, href},
    format::{self, Timestamp, with_query},
    forms::{self, Control, Field, field},
    layout::{self, PageBody, Place},
    lists::{self, Bulk, Column, Filters, ListView, Listing, number, text, time},
    parts::{or_dash, state, user_link},
    texts::Text,
};

/// A user in the list. Addresses are masked.
#[derive(Clone, Debug)]
pub struct UserRow {
    pub id: String,
    pub nickname: String,
    pub phone_number: Option<String>,
    pub email: Option<String>,
    pub coins: i64,
    pub points: i64,
    /// `active`, `suspended` or `account_suspended`.
    pub state: String,
    pub created_at: Timestamp,
}

/// The filters, as typed.
#[derive(Clone, Debug, Default)]
pub struct TypedUserFilter {
    pub q: String,
    pub state: String,
    pub from: String,
    pub to: String,
    pub errors: Vec<(String, String)>,
}

/// The list with its filters.
#[derive(Clone, Debug)]
pub struct Users {
    pub filter: TypedUserFilter,
    pub listing: Listing<UserRow>,
}

pub const COLUMNS: [Column; 8] = [
    text(Text::User),
    text(Text::Nickname),
    text(Text::State),
    text(Text::PhoneNumber),
    text(Text::Email),
    number(Text::Coins),
    number(Text::Points),
    time(Text::Registered),
];

/// Renders the cells of a user.
pub fn cells(cx: &ViewContext, user: &UserRow) -> Vec<Markup> {
    vec![
        user_link(cx, &user.id),
        or_dash(cx, Some(&user.nickname)),
        state(cx, &user.state),
        or_dash(cx, user.phone_number.as_deref()),
        or_dash(cx, user.email.as_deref()),
        html! { (format::number(user.coins)) },
        html! { (format::number(user.points)) },
        cx.cell_time(user.created_at),
    ]
}

fn picked(cx: &ViewContext, user: &UserRow) -> Vec<Markup> {
    let mut cells = cells(cx, user);
    cells[0] = lists::pick(cx, &user.id, &cells[0]);
    cells
}

/// Returns what the viewer may do with several users.
fn bulk(cx: &ViewContext) -> Option<Bulk> {
    let (may_suspend, may_sign_out) = (cx.may(Right::Moderate), cx.may(Right::SupportUsers));
    (may_suspend || may_sign_out).then(|| Bulk {
        action: href("users/bulk"),
        controls: html! {
            (forms::reason(cx, "bulk", "", None))
            @if may_suspend { (field(cx, &Field::new("endsAt", Text::SuspendUntil, Control::Moment, "").hint(Text::SuspendUntilHint))) }
            div.actions {
                @if may_suspend { button.button.danger type="submit" name="act" value="suspend" { (cx.t(Text::SuspendUser)) } }
                @if may_sign_out { button.button type="submit" name="act" value="end-devices" { (cx.t(Text::EndAllDevices)) } }
            }
        },
    })
}

/// Renders the list.
pub fn page(cx: &ViewContext, users: &Users) -> Markup {
    let filter = &users.filter;
    let path = href("users");
    let error = |name: &str| filter.errors.iter().find(|(field, _)| field == name).map(|(_, error)| error.as_str());
    let address =
        with_query(&path, &[("q", &filter.q), ("state", &filter.state), ("from", &filter.from), ("to", &filter.to)]);
    let states = [("", Text::AnyState), ("active", Text::StateActive), ("suspended", Text::StateSuspended)];
    let states = states.into_iter().map(|(value, text)| (value, cx.t(text).to_owned())).collect();
    let filters = Filters {
        action: path.clone(),
        fields: vec![
            Field::new("q", Text::UserQuery, Control::Search, &filter.q)
                .id("user-q")
                .hint(Text::UsersSearchHint)
                .error(error("q")),
            Field::new("state", Text::State, Control::Select(states), &filter.state).error(error("state")),
            Field::new("from", Text::RegisteredFrom, Control::Date, &filter.from).error(error("from")),
            Field::new("to", Text::RegisteredTo, Control::Date, &filter.to).error(error("to")),
        ],
        presets: Vec::new(),
        region: "users",
    };
    let filtered = address.strip_prefix(&path).unwrap_or_default();
    let view = ListView {
        id: "users",
        caption: Text::Users,
        empty: Text::NoUsers,
        bulk: bulk(cx),
        export: Some(format!("{path}/export{filtered}")),
        href: address,
    };
    let body = html! {
        (layout::heading(cx.t(Text::Users), None, &html! {}))
        (lists::filters(cx, &filters))
        section.card aria-label=(cx.t(Text::Users)) {
            (lists::list(cx, &view, &COLUMNS, &users.listing, |user| picked(cx, user)))
        }
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Users), Place::Users, body))
}
