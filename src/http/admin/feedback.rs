//! `/admin/feedback`: feedback from users.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::administrators::AdminName;
use crate::{
    domain::messaging::feedback::{self, FeedbackChange, FeedbackFilter, FeedbackState, FeedbackThread, NewReply},
    error::Result,
    http::{
        numbered_page::NumberedPage,
        params::{Clearable, FeedbackText, PageNumber, PageSize, Reason, RowNumber, page, parameters},
        reply::{Json, Replayable},
        request_context::RequestContext,
        v0::feedback::FeedbackSender,
    },
    types::{Timestamp, UserId},
};

parameters! {
    ListFeedbackParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "Only feedback with this user id, verified or claimed.");
        state: Option<FeedbackState> = fields.optional("state", "Only feedback in this state.");
        assignee: Option<AdminName> = fields.optional("assignee", "Only feedback of this administrator.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Feedback on a page.");
    }

    ChangeFeedbackParams(fields) {
        id: RowNumber = fields.path("id", "Id of the feedback.");
        state: Option<FeedbackState> = fields.optional("state", "The new state.");
        assignee: Option<Clearable<AdminName>> = fields.optional("assignee", "The administrator who works on it; an empty text: nobody.");
        reason: Option<Reason> = fields.optional("reason", "Reason, stored in the audit event.");
    }

    ReplyToFeedbackParams(fields) {
        id: RowNumber = fields.path("id", "Id of the feedback.");
        text: FeedbackText = fields.required("text", "The reply, sent to the user as a notification.");
        state: Option<FeedbackState> = fields.optional("state", "The state after the reply. Default: `in_progress` if it was open.");
        reason: Option<Reason> = fields.optional("reason", "Reason, stored in the audit event.");
    }
}

/// A reply of the staff.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownFeedbackReply {
    #[schema(example = "admin:alice")]
    author: String,
    #[schema(example = "已加入小六壬，请更新应用。")]
    content: String,
    #[schema(value_type = String, format = DateTime, example = "2026-01-03T03:04:05.678Z")]
    created_at: Timestamp,
}

/// A feedback entry.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminFeedback {
    #[schema(example = "7")]
    id: String,
    #[serde(flatten)]
    sender: FeedbackSender,
    /// True if the user was signed in. Otherwise id and number are unverified.
    #[schema(example = true)]
    is_verified: bool,
    #[schema(example = "请加上小六壬。")]
    content: String,
    created_at: Timestamp,
    state: FeedbackState,
    /// The administrator who works on it.
    #[schema(example = "alice")]
    assignee: Option<String>,
    /// Oldest first.
    replies: Vec<ShownFeedbackReply>,
}

impl From<FeedbackThread> for AdminFeedback {
    fn from(thread: FeedbackThread) -> Self {
        Self::from(&thread)
    }
}

impl From<&FeedbackThread> for AdminFeedback {
    fn from(FeedbackThread { feedback, replies }: &FeedbackThread) -> Self {
        let reply = |reply: &feedback::FeedbackReply| ShownFeedbackReply {
            author: reply.author.clone(),
            content: reply.content.clone(),
            created_at: reply.created_at,
        };
        Self {
            id: feedback.id.to_string(),
            sender: feedback.into(),
            is_verified: feedback.is_verified,
            content: feedback.content.clone(),
            created_at: feedback.created_at,
            state: feedback.state,
            assignee: feedback.assignee.clone(),
            replies: replies.iter().map(reply).collect(),
        }
    }
}

pub async fn list(context: RequestContext, params: ListFeedbackParams) -> Result<Json<NumberedPage<AdminFeedback>>> {
    let page = page(&context, params.page, params.size);
    if let Some(user) = params.user_id {
        context.meta.subject.get_or_init(|| user);
    }
    let assignee = params.assignee.map(|AdminName(name)| name);
    let filter = FeedbackFilter { user: params.user_id, state: params.state, assignee };
    let found = context.report(move |app| feedback::list(&app.core, &filter, page)).await?;
    Ok(NumberedPage::of(page, found))
}

pub async fn change(context: RequestContext, params: ChangeFeedbackParams) -> Result<Json<AdminFeedback>> {
    let RowNumber(id) = params.id;
    name_subject(&context, id)?;
    context.authority(params.reason.map(|Reason(reason)| reason))?;
    let change = FeedbackChange {
        state: params.state,
        assignee: params.assignee.map(|Clearable(name)| name.map(|AdminName(name)| name)),
    };
    Ok(Json(context.committed(feedback::change(&context.app.core, id, change)).await?.into()))
}

pub async fn reply(context: RequestContext, params: ReplyToFeedbackParams) -> Result<Replayable<AdminFeedback>> {
    let (RowNumber(id), FeedbackText(content), state) = (params.id, params.text, params.state);
    name_subject(&context, id)?;
    let by = context.authority(params.reason.map(|Reason(reason)| reason))?;
    context
        .respond_once(
            StatusCode::CREATED,
            |thread: &FeedbackThread| thread.into(),
            |app, once| feedback::reply(&app.core, id, NewReply { author: by.actor, content, state }, once),
        )
        .await
}

/// Names the user of the feedback in the audit.
pub fn name_subject(context: &RequestContext, id: i64) -> Result<()> {
    if let Some(user) = feedback::user_of(&context.app.core, id)? {
        context.meta.subject.get_or_init(|| user);
    }
    Ok(())
}
