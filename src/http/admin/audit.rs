//! `/admin/audit`: the audit events of administrators and commands.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::lists::StaffList;
use crate::{
    app::App,
    config::LimitsConfig,
    domain::operations::{
        admins::roles::Role,
        audit::{self, AuditFilter, StoredAuditEvent},
    },
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        console::views::{
            cells::Column,
            context::ViewContext,
            layout::Place,
            list_page::{FilterField, Frame},
            pages::rows,
            texts::Text,
        },
        params::{Parameter, Rules, TimeRange, optional_time_range, parameters, text},
        request_context::RequestContext,
    },
    types::{PageRequest, Paginated, Timestamp, UserId, clean},
};

parameters! {
    ListAuditParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "Only events about this user.");
        actor: Option<Actor> = fields.optional("actor", "Only events of this actor.");
        time: TimeRange = optional_time_range(fields, "Rows of this time or later.", "Rows before this time; a whole day is included.");
    }
}

/// An audit event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    #[schema(example = "42")]
    id: String,
    at: Timestamp,
    /// `admin:NAME`, `key:LABEL`, `cli`, or `unknown` for a sign-in with an unknown name.
    #[schema(example = "admin:root")]
    actor: String,
    /// Method and endpoint, or the command.
    #[schema(example = "POST /coin/increase/phone")]
    action: String,
    /// The user concerned, if the event is about one user.
    user_id: Option<UserId>,
    #[schema(example = "compensation for a failed cast")]
    reason: Option<String>,
    /// The response's status. For commands 200 if done, 202 if started and possibly done.
    #[schema(example = 200)]
    outcome: u16,
    #[schema(example = "203.0.113.9")]
    client_ip: Option<String>,
    #[schema(example = "9f86d081884c7d6500000017")]
    request_id: String,
    /// The user of the machine who ran the command.
    #[schema(example = "ming")]
    system_user: Option<String>,
}

impl From<StoredAuditEvent> for AuditRow {
    fn from(StoredAuditEvent { id, at, event }: StoredAuditEvent) -> Self {
        Self {
            id: id.to_string(),
            at,
            actor: event.actor,
            action: event.action,
            user_id: event.user,
            reason: event.reason,
            outcome: event.outcome,
            client_ip: event.client_ip,
            request_id: event.request_id,
            system_user: event.system_user,
        }
    }
}

/// Roles other than owner see only their own events.
pub struct AuditList;

impl StaffList for AuditList {
    type Params = ListAuditParams;
    type Filter = AuditFilter;
    type Row = StoredAuditEvent;

    const PLACE: Place = Place::Audit;
    const EMPTY: Text = Text::NoAudit;
    const COLUMNS: &'static [Column<StoredAuditEvent>] = rows::AUDIT;

    fn fields(cx: &ViewContext) -> Vec<FilterField> {
        let actor = FilterField::new("actor", Text::Actor).hint(Text::ActorHint);
        let [from, to] = FilterField::range(Text::From, Text::To);
        let fields = [actor, FilterField::new("userId", Text::UserId), from, to];
        fields.into_iter().skip(usize::from(!cx.is_owner())).collect()
    }

    fn filter(context: &RequestContext, params: ListAuditParams) -> Result<AuditFilter> {
        context.name_subject(params.user_id);
        let own = context.admin()?;
        let actor = params.actor.map(|Actor(actor)| actor);
        let actor = if own.role() == Role::Owner { actor } else { Some(own.actor()) };
        Ok(AuditFilter { user: params.user_id, actor, from: params.time.from(), to: params.time.to() })
    }

    fn read(app: &App, filter: &AuditFilter, page: PageRequest) -> Result<Paginated<StoredAuditEvent>> {
        audit::list(&app.core, filter, page)
    }

    fn frame(cx: &ViewContext, _: &App, _: Option<&AuditFilter>) -> Result<Frame> {
        let lead = cx.t(if cx.is_owner() { Text::AuditLead } else { Text::AuditOwnLead });
        Ok(Frame { lead: Some(lead.to_owned()), ..Frame::default() })
    }
}

/// The acting administrator, API key or command.
pub struct Actor(String);

impl Parameter for Actor {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let actor = clean(&text(value)?, 100)?;
        let is_kind = ["cli", "unknown"].contains(&actor.as_str());
        if is_kind || ["admin:", "key:"].iter().any(|kind| actor.starts_with(kind)) {
            return Ok(Self(actor));
        }
        let message = (
            "must be `admin:NAME`, `key:LABEL`, `cli` or `unknown`",
            "须为 `admin:NAME`、`key:LABEL`、`cli` 或 `unknown`",
        );
        Err(Fault::new(FieldCode::InvalidFormat, message))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": 100, "example": "admin:root" })
    }
}
