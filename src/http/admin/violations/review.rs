//! `/admin/violations/review`: texts that passed and wait for a moderator; and rejected texts that were innocent.

use serde::Serialize;
use utoipa::ToSchema;

use super::ShownViolation;
use crate::{
    domain::moderation::{
        acquittals::{self, Acquittal},
        phrase_warning::PhraseWarning,
        reviews::{self, BulkDecision, Review, ReviewDecision, ReviewFault, ReviewOutcome, ReviewState},
    },
    error::{Error, Fault, FieldCode, Result},
    http::{
        numbered_page::NumberedPage,
        openapi::enums::{ContentTypeName, MatchWayName},
        params::{ListedWord, PageNumber, PageSize, Reason, RowNumber, Rules, page, parameters},
        reply::Json,
        request_context::RequestContext,
    },
    types::{Timestamp, UserId},
};

parameters! {
    ListReviewsParams(fields) {
        state: Option<ReviewState> = fields.optional("state", "`waiting` (default), `upheld` or `acquitted`.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Texts on a page.");
    }

    DecideReviewsParams(fields) {
        decision: ReviewDecision = fields.required("decision", "`uphold`: the suspicion was right; `acquit`: the text is innocent.");
        reason: Reason = fields.required("reason", "The reason, for the audit; a user whose nickname is cleared is told.");
        phrase: Option<ListedWord> = fields.optional("phrase", "A phrase to allow from now on; with `acquit` only.");
        ids: ReviewIds = {
            let ids = fields.list("ids", "Numbers of the texts.");
            fields.cross_field(ids, review_ids)
        };
    }

    UndoReviewsParams(fields) {
        ids: ReviewIds = {
            let ids = fields.list("ids", "Numbers of the texts.");
            fields.cross_field(ids, review_ids)
        };
    }

    AcquitParams(fields) {
        id: RowNumber = fields.path("id", "The number of the rejected text.");
        reason: Reason = fields.required("reason", "The reason, for the audit.");
        phrase: Option<ListedWord> = fields.optional("phrase", "A phrase to allow from now on.");
    }

    UndoAcquittalParams(fields) {
        id: RowNumber = fields.path("id", "The number of the rejected text.");
    }
}

/// The texts that a request decides about.
pub struct ReviewIds(Vec<i64>);

fn review_ids(_: &Rules<'_>, ids: Vec<RowNumber>) -> Result<ReviewIds> {
    if ids.is_empty() {
        return Err(Error::field(
            "ids",
            Fault::new(FieldCode::Required, ("must name at least one text", "至少须选一条文本")),
        ));
    }
    Ok(ReviewIds(ids.into_iter().map(|RowNumber(id)| id).collect()))
}

/// A text in review.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownReview {
    #[schema(example = "7")]
    id: String,
    user_id: UserId,
    #[schema(value_type = ContentTypeName)]
    content_type: String,
    /// The type of the first word found; `watched` for a user whose every text is reviewed.
    #[schema(example = "gambling")]
    violation_type: String,
    #[schema(example = json!(["赌博"]))]
    matched_words: Vec<String>,
    /// The ways in which the words were found.
    #[schema(value_type = Vec<MatchWayName>)]
    ways: Vec<String>,
    /// The text as written; empty a day after the decision.
    #[schema(example = "一起du博吧")]
    text: String,
    #[schema(example = "一起***吧")]
    masked_text: String,
    #[schema(example = "local")]
    provider: String,
    created_at: Timestamp,
    state: ReviewState,
    #[schema(value_type = Option<String>, format = DateTime, example = json!(null))]
    decided_at: Option<Timestamp>,
    #[schema(example = json!(null))]
    decided_by: Option<String>,
    /// The violation that was recorded when the suspicion was upheld.
    #[schema(example = json!(null))]
    violation_id: Option<String>,
}

impl From<Review> for ShownReview {
    fn from(review: Review) -> Self {
        Self {
            id: review.id.to_string(),
            user_id: review.user,
            content_type: review.content_type,
            violation_type: review.violation_type,
            matched_words: review.words,
            ways: review.ways,
            text: review.excerpt,
            masked_text: review.masked_text,
            provider: review.provider,
            created_at: review.at,
            state: review.state,
            decided_at: review.decided_at,
            decided_by: review.decided_by,
            violation_id: review.violation.map(|id| id.to_string()),
        }
    }
}

pub async fn list(context: RequestContext, params: ListReviewsParams) -> Result<Json<NumberedPage<ShownReview>>> {
    let page = page(&context, params.page, params.size);
    let state = params.state.unwrap_or(ReviewState::Waiting);
    let found = context.report(move |app| reviews::list(&app.core, state, page)).await?;
    Ok(NumberedPage::of(page, found))
}

/// The outcome for one text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewResult {
    #[schema(example = "7")]
    pub id: String,
    /// The new state; null if nothing changed.
    pub state: Option<ReviewState>,
    /// `not_found`; `already_exists` for a text that somebody decided about before; `already_undone` without a decision to
    /// undo; `too_late` to undo one.
    #[schema(example = json!(null))]
    pub error: Option<&'static str>,
    /// `does_not_acquit` if the allowed phrase does not cover every match in the text; absent otherwise.
    #[schema(example = "does_not_acquit", required = false, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<&'static str>,
}

impl From<ReviewOutcome> for ReviewResult {
    fn from(outcome: ReviewOutcome) -> Self {
        Self {
            id: outcome.id.to_string(),
            state: outcome.result.ok(),
            error: outcome.result.err().map(ReviewFault::name),
            warning: outcome.warning.map(PhraseWarning::name),
        }
    }
}

/// The outcomes, in the order of the request.
#[derive(Serialize, ToSchema)]
pub struct ReviewResults {
    pub items: Vec<ReviewResult>,
}

pub async fn decide(context: RequestContext, params: DecideReviewsParams) -> Result<Json<ReviewResults>> {
    let (Reason(reason), ReviewIds(ids)) = (params.reason, params.ids);
    name_subject(&context, &ids)?;
    let by = context.authority(Some(reason))?;
    let phrase = params.phrase.map(|ListedWord(phrase)| phrase);
    let has_phrase = phrase.is_some();
    let bulk = BulkDecision { ids, decision: params.decision, phrase };
    let mut outcomes = context.committed(reviews::decide(&context.app.core, bulk, by)).await?;
    if has_phrase {
        outcomes = context.blocking(move |app| acquittals::apply_phrase(&app.moderation, outcomes)).await?;
    }
    Ok(Json(ReviewResults { items: outcomes.into_iter().map(Into::into).collect() }))
}

pub async fn undo(context: RequestContext, params: UndoReviewsParams) -> Result<Json<ReviewResults>> {
    let ReviewIds(ids) = params.ids;
    name_subject(&context, &ids)?;
    let outcomes = context.committed(reviews::undo(&context.app.core, ids)).await?;
    Ok(Json(ReviewResults { items: outcomes.into_iter().map(Into::into).collect() }))
}

/// Names the user in the audit if all texts are of one.
fn name_subject(context: &RequestContext, ids: &[i64]) -> Result<()> {
    let users = reviews::users_of(&context.app.core, ids)?;
    if let Some(first) = users.first().filter(|first| users.iter().all(|user| user == *first)) {
        context.meta.subject.get_or_init(|| *first);
    }
    Ok(())
}

/// An acquitted text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcquittedViolation {
    #[serde(flatten)]
    violation: ShownViolation,
    /// `switches_off_word` for a phrase that is a listed word; `contains_no_word` for one without a listed word;
    /// `does_not_acquit` for one that does not cover every match in the text.
    #[schema(example = json!(null))]
    warning: Option<&'static str>,
}

impl From<Acquittal> for AcquittedViolation {
    fn from(acquittal: Acquittal) -> Self {
        let warning = acquittal.warning.map(PhraseWarning::name);
        Self { violation: acquittal.violation.into(), warning }
    }
}

pub async fn acquit(context: RequestContext, params: AcquitParams) -> Result<Json<AcquittedViolation>> {
    let (RowNumber(id), Reason(reason)) = (params.id, params.reason);
    let by = context.authority(Some(reason))?;
    let phrase = params.phrase.map(|ListedWord(phrase)| phrase);
    let acquitted =
        context.blocking(move |app| acquittals::acquit(&app.moderation, id, phrase.as_deref(), &by)).await?;
    context.meta.subject.get_or_init(|| acquitted.violation.user);
    Ok(Json(acquitted.into()))
}

pub async fn undo_acquittal(context: RequestContext, params: UndoAcquittalParams) -> Result<Json<ShownViolation>> {
    let RowNumber(id) = params.id;
    let found = context.committed(acquittals::undo(&context.app.core, id)).await?;
    context.meta.subject.get_or_init(|| found.user);
    Ok(Json(found.into()))
}
