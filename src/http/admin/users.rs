//! `/admin/users`: finds users, and the acts of the staff on one user.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::lists::StaffList;
use crate::{
    app::App,
    config::LimitsConfig,
    domain::{
        identity::{
            directory::{self, COUNTED, ListedUser, UserCursor, UserFilter, UserSlice, UserState},
            staff_acts,
            staff_notes::{self, StaffNote},
            suspensions::{self, Suspension},
            tokens,
            users::{self, listing::RegistrationRange},
        },
        operations::admins::roles::Role,
    },
    error::{Error, Fault, Result},
    http::{
        body::RawValue,
        console::views::{
            cells::Column,
            context::ViewContext,
            format::ShownCount,
            forms::Control,
            layout::Place,
            list_page::{FilterField, Frame},
            lists::Rows,
            pages::users as view,
            texts::Text,
        },
        params::{
            DeviceId, FOREIGN_PAGES, Moment, PageSize, Parameter, Reason, RowNumber, Rules, StaffNoteText, TimeRange,
            UserQuery, optional_time_range, parameters, text,
        },
        reply::{Json, Replayable},
        request_context::RequestContext,
        v1::auth::Devices,
    },
    types::{PhoneNumber, SuspensionScope, UserId, clean},
};

/// The largest number of characters of a cursor.
const CURSOR_LENGTH: usize = 512;

parameters! {
    ListUsersParams(fields) {
        query: Option<UserQuery> = fields.optional("q", "An id, a phone number, an email address, or the beginning of a nickname.");
        state: Option<UserState> = fields.optional("state", "`active` or `suspended`.");
        limit: Option<PageSize> = fields.optional("limit", "Maximum users in the response.");
        cursor: Option<UserCursor> = fields.optional("cursor", "`nextCursor` of the previous response.");
        registered: TimeRange = optional_time_range(fields, "Users registered at this time or later.", "Users registered before this time; a whole day is included.");
    }

    OneUserParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
    }

    SuspendUserParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
        reason: Reason = fields.required("reason", "The reason. The user is told, and the audit keeps it.");
        ends_at: Option<Moment> = fields.optional("endsAt", "The end of the suspension. Default: until it is lifted.");
        scope: Option<SuspensionScope> = fields.optional("scope", "The part of the service. Default: `account`.");
    }

    ActOnUserParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
        reason: Option<Reason> = fields.optional("reason", "Reason, stored in the audit event.");
    }

    LiftSuspensionParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
        reason: Option<Reason> = fields.optional("reason", "Reason, stored in the audit event.");
        scope: Option<SuspensionScope> = fields.optional("scope", "The scope of the suspension. Default: `account`.");
    }

    ResetNicknameParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
        reason: Reason = fields.required("reason", "The reason. The user is told, and the audit keeps it.");
    }

    AddNoteParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
        content: StaffNoteText = fields.required("content", "The note.");
    }

    RemoveNoteParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
        id: RowNumber = fields.path("id", "Id of the note.");
        reason: Option<Reason> = fields.optional("reason", "Reason, stored in the audit event.");
    }

    SignOutDeviceParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
        id: DeviceId = fields.path("id", "The device's id.");
        reason: Option<Reason> = fields.optional("reason", "Reason, stored in the audit event.");
    }

    MoveToPhoneParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
        phone_number: PhoneNumber = fields.required("phoneNumber", "The new number, in any spelling. No account may have it.");
        reason: Reason = fields.required("reason", "How the person was checked. The audit keeps it.");
    }
}

/// A page of the list of users.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminUserList {
    items: Vec<ListedUser>,
    /// The number of matches, at most 10 000. Null with a filter by state.
    #[schema(example = 1)]
    total: Option<u32>,
    /// True if there are more than `total`.
    #[schema(example = false)]
    is_total_capped: bool,
    /// Send it as `cursor` to get the next page. Null at the end of the list.
    #[schema(example = json!(null))]
    next_cursor: Option<String>,
}

impl From<UserSlice> for AdminUserList {
    fn from(slice: UserSlice) -> Self {
        Self {
            items: slice.items,
            total: slice.total.map(|total| total.min(COUNTED)),
            is_total_capped: slice.total.is_some_and(|total| total > COUNTED),
            next_cursor: slice.next.map(|cursor| cursor.to_string()),
        }
    }
}

pub async fn list(context: RequestContext, mut params: ListUsersParams) -> Result<Json<AdminUserList>> {
    let (limit, cursor) = (params.limit.take(), params.cursor.take());
    let limit = limit.map_or(context.app.core.config.limits.page_size, |PageSize(limit)| limit);
    let filter = UserList::filter(&context, params)?;
    let found = context.report(move |app| directory::list(&app.core, &filter, cursor.as_ref(), limit)).await?;
    Ok(Json(found.into()))
}

pub struct UserList;

impl StaffList for UserList {
    type Params = ListUsersParams;
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

    fn filter(_: &RequestContext, params: ListUsersParams) -> Result<UserFilter> {
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

/// The suspensions of a user, newest first.
#[derive(Serialize, ToSchema)]
pub struct SuspensionList {
    items: Vec<Suspension>,
}

pub async fn list_suspensions(context: RequestContext, params: OneUserParams) -> Result<Json<SuspensionList>> {
    let user = subject(&context, params.user_id);
    let items = suspensions::list(&context.app.core, user)?;
    Ok(Json(SuspensionList { items }))
}

pub async fn suspend(context: RequestContext, params: SuspendUserParams) -> Result<Replayable<Suspension>> {
    let (user, Reason(reason)) = (subject(&context, params.user_id), params.reason);
    let (by, ends_at) = (context.authority(Some(reason))?, params.ends_at.map(|Moment(at)| at));
    let scope = params.scope.unwrap_or(SuspensionScope::Account);
    context
        .respond_once(StatusCode::CREATED, Suspension::clone, |app, once| {
            suspensions::suspend(&app.core, user, scope, ends_at, by, once)
        })
        .await
}

pub async fn lift_suspension(context: RequestContext, params: LiftSuspensionParams) -> Result<Json<Suspension>> {
    let user = subject(&context, params.user_id);
    let by = context.authority(params.reason.map(|Reason(reason)| reason))?;
    let scope = params.scope.unwrap_or(SuspensionScope::Account);
    let lifted = context.committed(suspensions::lift(&context.app.core, user, scope, by)).await?;
    Ok(Json(lifted))
}

/// The notes about a user, newest first.
#[derive(Serialize, ToSchema)]
pub struct StaffNoteList {
    items: Vec<StaffNote>,
}

pub async fn list_notes(context: RequestContext, params: OneUserParams) -> Result<Json<StaffNoteList>> {
    let user = subject(&context, params.user_id);
    Ok(Json(StaffNoteList { items: staff_notes::list(&context.app.core, user)? }))
}

pub async fn add_note(context: RequestContext, params: AddNoteParams) -> Result<Replayable<StaffNote>> {
    let (user, StaffNoteText(content)) = (subject(&context, params.user_id), params.content);
    let author = context.admin()?.actor();
    context
        .respond_once(StatusCode::CREATED, StaffNote::clone, |app, once| {
            staff_notes::add(&app.core, user, author, content, once)
        })
        .await
}

/// The note that was removed.
#[derive(Serialize, ToSchema)]
pub struct StaffNoteRemoved {
    #[schema(example = "7")]
    id: String,
    #[schema(example = true)]
    removed: bool,
}

pub async fn remove_note(context: RequestContext, params: RemoveNoteParams) -> Result<Json<StaffNoteRemoved>> {
    let (user, RowNumber(id)) = (subject(&context, params.user_id), params.id);
    context.authority(params.reason.map(|Reason(reason)| reason))?;
    let author = remover(&context)?;
    context.committed(staff_notes::remove(&context.app.core, user, id, author)).await?;
    Ok(Json(StaffNoteRemoved { id: id.to_string(), removed: true }))
}

/// Returns the author whose notes the caller may remove; none for owners, who may remove all.
pub fn remover(context: &RequestContext) -> Result<Option<String>> {
    let admin = context.admin()?;
    Ok((admin.role() != Role::Owner).then(|| admin.actor()))
}

/// The user's nickname is empty.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NicknameCleared {
    user_id: UserId,
    /// Always empty.
    #[schema(example = "")]
    nickname: &'static str,
}

impl NicknameCleared {
    pub fn of(user_id: UserId) -> Self {
        Self { user_id, nickname: "" }
    }
}

pub async fn reset_nickname(context: RequestContext, params: ResetNicknameParams) -> Result<Json<NicknameCleared>> {
    let (user, Reason(reason)) = (subject(&context, params.user_id), params.reason);
    let by = context.authority(Some(reason))?;
    context.committed(staff_acts::reset_nickname(&context.app.core, user, by)).await?;
    Ok(Json(NicknameCleared::of(user)))
}

pub async fn list_devices(context: RequestContext, params: OneUserParams) -> Result<Json<Devices>> {
    let user = subject(&context, params.user_id);
    context.app.core.store.read(|tx| users::find_in(tx, user))?;
    Ok(Json(Devices::of(tokens::list_devices(&context.app.core, user, None)?)))
}

/// The number of devices that were signed out.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevicesSignedOut {
    pub user_id: UserId,
    #[schema(example = 2)]
    pub signed_out: usize,
}

pub async fn sign_out_everywhere(context: RequestContext, params: ActOnUserParams) -> Result<Json<DevicesSignedOut>> {
    sign_out(&context, params.user_id, params.reason, None).await
}

pub async fn sign_out_device(context: RequestContext, params: SignOutDeviceParams) -> Result<Json<DevicesSignedOut>> {
    sign_out(&context, params.user_id, params.reason, Some(params.id.0)).await
}

async fn sign_out(
    context: &RequestContext,
    user: UserId,
    reason: Option<Reason>,
    device: Option<String>,
) -> Result<Json<DevicesSignedOut>> {
    let user_id = subject(context, user);
    context.authority(reason.map(|Reason(reason)| reason))?;
    let signed_out = context.committed(staff_acts::sign_out(&context.app.core, user_id, device)).await?;
    Ok(Json(DevicesSignedOut { user_id, signed_out }))
}

/// The account has the new number, and its devices are signed out.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhoneMoved {
    pub user_id: UserId,
    #[schema(value_type = String, example = "13900139000")]
    pub phone_number: PhoneNumber,
}

pub async fn move_to_phone(context: RequestContext, params: MoveToPhoneParams) -> Result<Replayable<PhoneMoved>> {
    let (user, Reason(reason)) = (subject(&context, params.user_id), params.reason);
    let (by, phone_number) = (context.authority(Some(reason))?, params.phone_number);
    let shown = phone_number.clone();
    let moved = move |user: &UserId| PhoneMoved { user_id: *user, phone_number: shown.clone() };
    context
        .respond_once(StatusCode::OK, moved, |app, once| {
            staff_acts::move_to_phone(&app.core, user, phone_number, by, once)
        })
        .await
}

/// Names the user in the audit.
fn subject(context: &RequestContext, user: UserId) -> UserId {
    *context.meta.subject.get_or_init(|| user)
}

impl Parameter for UserCursor {
    const FOREIGN_NAMES: &[&str] = FOREIGN_PAGES;

    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        Self::parse(&clean(&text(value)?, CURSOR_LENGTH)?)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": CURSOR_LENGTH, "example": "NDI6MTc2NzMyMzA0NTY3OA" })
    }
}
