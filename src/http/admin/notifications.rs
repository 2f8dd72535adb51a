//! `/admin/notifications`: sends, lists and withdraws notifications.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::lists::StaffList;
use crate::{
    app::App,
    config::LimitsConfig,
    domain::messaging::notifications::{
        self, Audience, NotificationDraft, NotificationKind, Payload, SentNotification,
    },
    error::{Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        console::views::{
            cells::Column, context::ViewContext, layout::Place, list_page::Frame, pages::messages as view, texts::Text,
        },
        params::{
            AudienceName, JsonData, Moment, Nothing, NotificationText, NotificationTitle, Parameter, RowNumber, Rules,
            parameters,
        },
        reply::{Created, Json},
        request_context::RequestContext,
        v1::notifications::NotificationPayload,
    },
    types::{PageRequest, Paginated, Timestamp, UserId},
};

parameters! {
    SendNotificationParams(fields) {
        title: NotificationTitle = fields.required("title", "The title.");
        body: NotificationText = fields.required("body", "The text.");
        kind: Option<NotificationKind> = fields.optional("kind", "`system`, `account`, `activity` (default) or `promotion`. Users can switch off all but `system`.");
        payload: Option<Payload> = fields.optional("payload", "The action when the user taps it. Default: none.");
        expires_at: Option<Expiry> = fields.optional("expiresAt", "Time from which the notification is hidden; must be in the future. Default: never.");
        audience: Audience = {
            let name = fields.required("audience", "`all` for a broadcast, `users` for the users in `userIds`.");
            let user_ids = fields.list("userIds", "Ids of the recipients.");
            fields.cross_field(name.zip(user_ids), audience)
        };
    }

    NotificationParams(fields) {
        id: RowNumber = fields.path("id", "Id of the notification.");
    }
}

/// A sent notification with its number of readers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminNotification {
    #[schema(example = "42")]
    id: String,
    audience: AudienceName,
    kind: NotificationKind,
    #[schema(example = "六十四卦全新解读")]
    title: String,
    #[schema(example = "更新后即可使用。")]
    body: String,
    payload: NotificationPayload,
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-02-02T03:04:05.678Z")]
    expires_at: Option<Timestamp>,
    /// Recipients; null for a broadcast.
    #[schema(example = json!(null))]
    recipient_count: Option<u32>,
    /// Number of users who have read it.
    #[schema(example = 1200)]
    read_count: u32,
}

impl From<SentNotification> for AdminNotification {
    fn from(SentNotification { notification, recipients, readers }: SentNotification) -> Self {
        Self {
            id: notification.id.to_string(),
            audience: if notification.ordinal.is_some() { AudienceName::All } else { AudienceName::Users },
            kind: notification.kind,
            title: notification.title,
            body: notification.body,
            payload: notification.payload.into(),
            created_at: notification.created_at,
            expires_at: notification.expires_at,
            recipient_count: recipients,
            read_count: readers,
        }
    }
}

pub async fn send(context: RequestContext, send: SendNotificationParams) -> Result<Created<AdminNotification>> {
    let (NotificationTitle(title), NotificationText(body)) = (send.title, send.body);
    let draft = NotificationDraft {
        audience: send.audience,
        kind: send.kind.unwrap_or(NotificationKind::Activity),
        title,
        body,
        payload: send.payload.unwrap_or(Payload::None {}),
        expires_at: send.expires_at.map(|Expiry(time)| time),
    };
    Ok(Created(context.committed(notifications::send(&context.app.core, draft)).await?.into()))
}

fn audience(rules: &Rules<'_>, (name, users): (AudienceName, Vec<UserId>)) -> Result<Audience> {
    match (name, users.is_empty()) {
        (AudienceName::All, true) => Ok(Audience::Everybody),
        (AudienceName::Users, false) => {
            notifications::require_recipients(&rules.context.app.core, &users)?;
            Ok(Audience::Users(users))
        }
        (AudienceName::All, false) => {
            let message = ("must be left out for a notification to all", "发给所有人时不填");
            Err(Error::field("userIds", Fault::new(FieldCode::UnknownValue, message)))
        }
        (AudienceName::Users, true) => Err(Error::field(
            "userIds",
            Fault::new(FieldCode::Required, ("is required for `users`", "发给 `users` 时必填")),
        )),
    }
}

/// The sent notifications, below the form for a new one.
pub struct MessageList;

impl StaffList for MessageList {
    type Params = Nothing;
    type Filter = ();
    type Row = SentNotification;

    const PLACE: Place = Place::Messages;
    const EMPTY: Text = Text::NoMessages;
    const COLUMNS: &'static [Column<SentNotification>] = view::MESSAGE;

    fn filter(_: &RequestContext, _: Nothing) -> Result<()> {
        Ok(())
    }

    fn read(app: &App, (): &(), page: PageRequest) -> Result<Paginated<SentNotification>> {
        notifications::list_sent(&app.core, page)
    }

    fn frame(cx: &ViewContext, _: &App, _: Option<&()>) -> Result<Frame> {
        Ok(Frame { above: view::new_message(cx), ..Frame::default() })
    }
}

/// The notification that was withdrawn.
#[derive(Serialize, ToSchema)]
pub struct NotificationDeleted {
    #[schema(example = "42")]
    id: String,
    #[schema(example = true)]
    deleted: bool,
}

pub async fn delete(
    context: RequestContext,
    NotificationParams { id }: NotificationParams,
) -> Result<Json<NotificationDeleted>> {
    context.committed(notifications::delete(&context.app.core, id.0)).await?;
    Ok(Json(NotificationDeleted { id: id.0.to_string(), deleted: true }))
}

/// A notification's expiry time, which must be in the future.
pub struct Expiry(Timestamp);

impl Parameter for Expiry {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let Moment(time) = Moment::read(value, rules)?;
        notifications::require_future(time, rules.clock.now()).map(|()| Self(time))
    }

    fn schema(limits: &LimitsConfig) -> Value {
        Moment::schema(limits)
    }
}

impl Parameter for Payload {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let JsonData(json) = JsonData::read(value, rules)?;
        Self::parse(&json.content(), &rules.config.notifications.url_hosts)
    }

    fn schema(_: &LimitsConfig) -> Value {
        let variant = |name: &str, members: Value, required: Value| {
            let mut properties = json!({ "type": { "const": name } });
            if let (Some(properties), Value::Object(members)) = (properties.as_object_mut(), members) {
                properties.extend(members);
            }
            json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
        };
        let route = json!({ "route": { "type": "string" }, "params": { "type": "object" } });
        let url = json!({ "url": { "type": "string", "format": "uri" } });
        json!({
            "oneOf": [
                variant("none", json!({}), json!(["type"])),
                variant("open_route", route, json!(["type", "route"])),
                variant("open_url", url, json!(["type", "url"])),
            ],
            "example": { "type": "open_route", "route": "sessions/detail", "params": { "id": "7" } },
        })
    }
}
