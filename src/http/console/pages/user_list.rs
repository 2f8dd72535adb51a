//! The list of users.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::bulk::{BulkForm, or_rejected};
use crate::{
    app::App,
    domain::{
        identity::{
            directory::{self, COUNTED, ListedUser, UserCursor, UserFilter, UserState},
            staff_acts, suspensions,
            users::listing::RegistrationRange,
        },
        operations::{admins::roles::Right, idempotency::IdempotentRequest},
    },
    error::{Code, Error, Result},
    http::{
        admin::lists::StaffList,
        console::{
            request::ConsoleRequest,
            views::{
                cells::Column,
                context::{ViewContext, user_href},
                format::ShownCount,
                forms::Control,
                layout::Place,
                list_page::{FilterField, Frame},
                lists::Rows,
                pages::users as view,
                texts::Text,
            },
        },
        params::{TimeRange, UserQuery, optional_time_range, parameters},
        request_context::RequestContext,
    },
    types::{SuspensionScope, Timestamp, UserId},
};

parameters! {
    SearchUsersParams(fields) {
        query: Option<UserQuery> = fields.optional("q", "An id, a phone number, an email address, or the beginning of a nickname.");
        state: Option<UserState> = fields.optional("state", "Only users in this state.");
        registered: TimeRange = optional_time_range(fields, "Users registered at this time or later.", "Users registered before this time.");
    }
}

pub struct UserList;

impl StaffList for UserList {
    type Params = SearchUsersParams;
    type Filter = UserFilter;
    type Row = ListedUser;

    const PLACE: Place = Place::Users;
    const EMPTY: Text = Text::NoUsers;
    const COLUMNS: &'static [Column<ListedUser>] = view::USER;

    fn fields(_: &ViewContext) -> Vec<FilterField> {
        let range = FilterField::range(Text::RegisteredFrom, Text::RegisteredTo);
        let [from, to] = range.map(|field| field.control(Control::Date));
        let query = FilterField::new("q", Text::UserQuery).control(Control::Search).hint(Text::UsersSearchHint);
        vec![query, FilterField::new("state", Text::State).choice(UserState::ALL), from, to]
    }

    fn filter(_: &RequestContext, params: SearchUsersParams) -> Result<UserFilter> {
        let registered = RegistrationRange { from: params.registered.from(), to: params.registered.to() };
        Ok(UserFilter { query: params.query.map(|UserQuery(query)| query), state: params.state, registered })
    }

    fn rows(app: &App, filter: &UserFilter, cursor: Option<&str>, size: u32) -> Result<Rows<ListedUser>> {
        let cursor = cursor.map(UserCursor::parse).transpose().map_err(|fault| Error::field("cursor", fault))?;
        let found = directory::list(&app.core, filter, cursor.as_ref(), size)?;
        Ok(Rows {
            items: found.items,
            total: found.total.map(|total| ShownCount::up_to(COUNTED, total.into())),
            next: found.next.map(|cursor| cursor.to_string()),
            is_later: cursor.is_some(),
        })
    }

    fn frame(cx: &ViewContext, _: &App, _: Option<&UserFilter>) -> Result<Frame> {
        Ok(Frame { bulk: view::bulk(cx), ..Frame::default() })
    }

    fn pick(user: &ListedUser) -> Option<String> {
        Some(user.id.to_string())
    }
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
