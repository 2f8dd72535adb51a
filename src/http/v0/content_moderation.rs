//! `/content-moderation`: checks a question before it is sent.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    domain::moderation::{self, engine::ContentType},
    error::Result,
    http::{
        admin::sensitive_words::FoundWord,
        claims::Claims,
        openapi::enums::ContentTypeName,
        params::{Question, parameters},
        reply::Json,
        request_context::RequestContext,
    },
    types::UserId,
};

parameters! {
    CheckQuestionParams(fields) {
        question: Question = fields.required("question", "The question to check.");
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id; for administrators, the id of any user.");
    }
}

/// The decision about a question.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionChecked {
    #[schema(example = true)]
    allowed: bool,
    #[schema(value_type = ContentTypeName)]
    content_type: &'static str,
    /// The service that decided: `local`, or the external service's name.
    #[schema(example = "local")]
    provider: &'static str,
    /// True if the external service failed and the local list decided instead.
    #[schema(example = false)]
    degraded: bool,
    /// The matches; for administrators only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    matches: Option<Vec<FoundWord>>,
}

pub async fn check_question(context: RequestContext, ask: CheckQuestionParams) -> Result<Json<QuestionChecked>> {
    let claims = Claims::of_user(ask.user_id);
    let is_admin = context.is_admin();
    let user = match (is_admin, ask.user_id) {
        (true, None) => None,
        _ => Some(context.subject_id(&claims)?),
    };
    let Question(question) = ask.question;
    // A check by an administrator records no violation.
    let author = user.filter(|_| !is_admin);
    let checked = question.clone();
    let check = move |app: &App| {
        author.map_or(Ok(()), |user| moderation::check_rate_limits(&app.moderation, user, 1))?;
        moderation::moderate(&app.moderation, ContentType::Question, &checked, user)
    };
    let ruling = context.judged(check).await?;
    if let Some(user) = author.filter(|_| !ruling.allowed || ruling.needs_review) {
        let recorded = moderation::record(&context.app.core, user, ContentType::Question, &question, &ruling);
        context.committed(recorded).await?;
    }
    Ok(Json(QuestionChecked {
        allowed: ruling.allowed,
        content_type: ContentType::Question.name(),
        provider: ruling.provider,
        degraded: ruling.degraded,
        matches: is_admin.then(|| ruling.matches.into_iter().map(Into::into).collect()),
    }))
}
