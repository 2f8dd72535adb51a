//! `/admin/feedback`: feedback from users.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::messaging::feedback::{self, Feedback, FeedbackFilter},
    error::Result,
    http::{
        numbered_page::NumberedPage,
        params::{PageNumber, PageSize, page, parameters},
        reply::Json,
        request_context::RequestContext,
    },
    types::{Timestamp, UserId},
};

parameters! {
    ListFeedbackParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "Only feedback with this user id, verified or claimed.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Feedback on a page.");
    }
}

/// A feedback entry.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminFeedback {
    #[schema(example = "7")]
    id: String,
    #[schema(value_type = Option<String>, example = "10001")]
    user_id: Option<UserId>,
    /// Unverified if the sender was not signed in.
    #[schema(example = "13800138000")]
    phone_number: Option<String>,
    /// True if the user was signed in. Otherwise id and number are unverified.
    #[schema(example = true)]
    is_verified: bool,
    #[schema(example = "请加上小六壬。")]
    content: String,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:04:05.678Z")]
    created_at: Timestamp,
}

impl From<Feedback> for AdminFeedback {
    fn from(feedback: Feedback) -> Self {
        Self {
            id: feedback.id.to_string(),
            user_id: feedback.user,
            phone_number: feedback.phone_number,
            is_verified: feedback.is_verified,
            content: feedback.content,
            created_at: feedback.created_at,
        }
    }
}

pub async fn list(context: RequestContext, params: ListFeedbackParams) -> Result<Json<NumberedPage<AdminFeedback>>> {
    let page = page(&context, params.page, params.size);
    if let Some(user) = params.user_id {
        context.meta.subject.get_or_init(|| user);
    }
    let filter = params.user_id.map_or(FeedbackFilter::All, FeedbackFilter::Of);
    let found = context.report(move |app| feedback::list(&app.core, &filter, page)).await?;
    Ok(NumberedPage::of(page, found))
}
