//! `/feedback`: feedback to the operators, with or without a token.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::messaging::feedback::{self, Author, Feedback},
    error::Result,
    http::{
        claims::Claims,
        params::{FeedbackText, parameters},
        reply::Json,
        request_context::RequestContext,
        request_meta::Caller,
    },
    types::{PhoneNumber, Timestamp, UserId},
};

parameters! {
    SubmitFeedbackParams(fields) {
        user_id: Option<UserId> = fields.optional("user_id", "Id of the sender. With a token, must be the token's user.");
        same_user_id: Option<UserId> = fields.alias("userId");
        phone_number: Option<PhoneNumber> = fields.optional("phone_number", "Phone number of the sender. With a token, must be the token's user's.");
        same_phone_number: Option<PhoneNumber> = fields.alias("phoneNumber");
        content: FeedbackText = fields.required("content", "The feedback.");
    }
}

/// Stored feedback.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackReceived {
    #[schema(example = "7")]
    id: String,
    #[serde(flatten)]
    sender: FeedbackSender,
    #[schema(example = "请加上小六壬。")]
    content: String,
    created_at: Timestamp,
}

/// The sender of feedback, unverified without a token. Each name comes in both spellings; the API document has one, because
/// generated clients turn both into the same name.
#[derive(Serialize, ToSchema)]
pub struct FeedbackSender {
    user_id: Option<UserId>,
    #[schema(example = "13800138000")]
    phone_number: Option<String>,
    #[serde(rename = "userId")]
    #[schema(ignore)]
    same_user_id: Option<UserId>,
    #[serde(rename = "phoneNumber")]
    #[schema(ignore)]
    same_phone_number: Option<String>,
}

impl From<&Feedback> for FeedbackSender {
    fn from(feedback: &Feedback) -> Self {
        let (user_id, phone_number) = (feedback.user, feedback.phone_number.clone());
        Self { user_id, same_user_id: user_id, same_phone_number: phone_number.clone(), phone_number }
    }
}

pub async fn submit(context: RequestContext, submit: SubmitFeedbackParams) -> Result<Json<FeedbackReceived>> {
    let author = author(&context, &submit)?;
    let FeedbackText(content) = submit.content;
    let kept = context.committed(feedback::submit(&context.app.core, author, content)).await?;
    let sender = (&kept).into();
    Ok(Json(FeedbackReceived { id: kept.id.to_string(), sender, content: kept.content, created_at: kept.created_at }))
}

fn author(context: &RequestContext, submit: &SubmitFeedbackParams) -> Result<Author> {
    let phone_numbers = [&submit.phone_number, &submit.same_phone_number];
    if matches!(context.caller, Caller::Anonymous) {
        return Ok(Author::Anonymous {
            client: context.meta.client,
            user: submit.user_id.or(submit.same_user_id),
            phone_number: phone_numbers.into_iter().flatten().next().cloned(),
        });
    }
    for phone_number in phone_numbers {
        let (user_id, id) = (submit.user_id, submit.same_user_id);
        context.acting_for(&Claims { user_id, id, phone_number: phone_number.clone() })?;
    }
    Ok(Author::User(context.current_user()?.clone()))
}
