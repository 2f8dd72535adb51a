//! `/api/v1/changes`: what changed in the caller's data since a cursor.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::operations::{
        changes::{self, ChangesCursor},
        deletions::{DeletedKind, Deletion},
    },
    error::{Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{PageSize, Parameter, Rules, parameters, text},
        reply::Json,
        request_context::RequestContext,
        v0::divination_history::HistoryRecordResponse,
        v1::{notifications::NotificationResponse, preferences::PreferencesResponse, sessions::SessionResponse},
    },
    types::{Timestamp, clean},
};

/// The most characters of a cursor of changes.
const MAX_CURSOR: usize = 256;

parameters! {
    ListChangesParams(fields) {
        since: Option<ChangesCursor> = {
            let sent = fields.optional("since", "`cursor` of the previous response. Without it, returns everything.");
            fields.cross_field(sent, since)
        };
        limit: Option<PageSize> = fields.optional("limit", "Maximum number of rows. The largest possible by default.");
    }
}

/// The changes of the caller's data since a cursor. Apply `deleted` first, then everything else in place of what the
/// app has stored.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeSet {
    deleted: Vec<DeletedItem>,
    /// Absent if unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    balances: Option<BalancesShown>,
    /// Absent if unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    preferences: Option<PreferencesResponse>,
    /// New and changed sessions, as in the list of sessions.
    sessions: Vec<SessionResponse>,
    /// New and changed history records.
    history: Vec<HistoryRecordResponse<'static>>,
    /// New notifications and those that were read, of all kinds: the app hides the kinds that the preferences switch
    /// off, and those that have expired.
    notifications: Vec<NotificationResponse>,
    /// Absent unless all notifications were marked as read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    read_mark: Option<ReadMarkShown>,
    /// Send it as `since` of the next request.
    #[schema(example = "AAABm3c2dQAAAAAAAAAAAA")]
    cursor: String,
    /// True if there are more changes: ask for them at once.
    #[schema(example = false)]
    more: bool,
}

/// Something that was deleted.
#[derive(Serialize, ToSchema)]
pub struct DeletedItem {
    kind: DeletedKind,
    #[schema(example = "9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061")]
    id: String,
}

/// The balances of the caller.
#[derive(Serialize, ToSchema)]
#[schema(as = Balances)]
pub struct BalancesShown {
    #[schema(example = 100)]
    points: i64,
    #[schema(example = 0)]
    coins: i64,
}

/// The last time at which all notifications were marked as read.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ReadMark)]
pub struct ReadMarkShown {
    /// The id of the last notification that is read.
    #[schema(example = "42")]
    through: String,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T09:04:05.678Z")]
    read_at: Timestamp,
}

impl From<changes::Balances> for BalancesShown {
    fn from(changes::Balances { points, coins }: changes::Balances) -> Self {
        Self { points, coins }
    }
}

impl From<Deletion> for DeletedItem {
    fn from(Deletion { kind, subject, .. }: Deletion) -> Self {
        Self { kind, id: subject }
    }
}

pub async fn list(context: RequestContext, params: ListChangesParams) -> Result<Json<ChangeSet>> {
    let core = &context.app.core;
    let user = context.current_user()?;
    let limit = params.limit.map_or(core.config.limits.page_size_max, |PageSize(limit)| limit);
    let found = changes::list(core, user, params.since, limit)?;
    Ok(Json(ChangeSet {
        deleted: found.deletions.into_iter().map(Into::into).collect(),
        balances: found.balances.map(Into::into),
        preferences: found.preferences.map(Into::into),
        sessions: found.sessions.iter().map(Into::into).collect(),
        history: found.history.into_iter().map(|record| HistoryRecordResponse::new(user, record)).collect(),
        notifications: found.notifications.into_iter().map(Into::into).collect(),
        read_mark: found.read_mark.map(|mark| ReadMarkShown { through: mark.through.to_string(), read_at: mark.at }),
        cursor: found.cursor.to_text(&core.keys, user.id),
        more: found.has_more,
    }))
}

fn since(rules: &Rules<'_>, sent: Option<ChangesPosition>) -> Result<Option<ChangesCursor>> {
    let user = rules.context.user()?;
    let read = |ChangesPosition(text): ChangesPosition| {
        ChangesCursor::from_text(&rules.context.app.core.keys, user, &text).ok_or_else(|| {
            let message =
                ("must be a `cursor` that this endpoint returned to this user", "须为此接口返回给该用户的 `cursor`");
            Error::field("since", Fault::new(FieldCode::InvalidFormat, message))
        })
    };
    sent.map(read).transpose()
}

/// The cursor as it was sent.
pub struct ChangesPosition(String);

impl Parameter for ChangesPosition {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        clean(&text(value)?, MAX_CURSOR).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": MAX_CURSOR, "example": "AAABm3c2dQAAAAAAAAAAAA" })
    }
}
