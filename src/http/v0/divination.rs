//! `/divination`: interpretations and their records.

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use liuyao::interpreter::View;

use crate::{
    app::App,
    domain::{
        divination::{
            budget::SLOW_CALL_MS,
            help::Asker,
            interpretation::{self, CallRecord},
            model_calls::CallStatus,
        },
        identity::preferences,
        moderation::risk::classify_question,
    },
    error::{Error, Fault, FieldCode, Result},
    http::{
        cast_moment::{CastMoment, cast_moment},
        claims::Claims,
        content_negotiation::language_tag,
        interpretation_response::{self, ModelRun, Prepared},
        interpretation_sse::{CastingShown, Interpretation, RatingResponse, UsageResponse},
        numbered_page::NumberedPage,
        params::{
            DivinationData, Label, PageNumber, PageSize, Question, TimeRange, TraceId, page, parameters,
            required_time_range,
        },
        reply::Json,
        request_context::RequestContext,
        sse::JsonOrStream,
    },
    types::{JsonText, PhoneNumber, Timestamp, UserId},
};

parameters! {
    InterpretParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        phone_number: Option<PhoneNumber> = fields.optional("phoneNumber", "The caller's own number.");
        question_type: Option<Label> = fields.optional("questionType", "The topic of the question.");
        question: Option<Question> = fields.usual("question", "The question. Screened before a model sees it. Without one, the hexagram is read for itself.");
        divination_data: Option<DivinationData> = fields.usual("divinationData", "The casting: lines, hexagram names, or any structure that contains them. Required without a question.");
        moment: CastMoment = cast_moment(fields, "Time of the casting, for its chart. Without an offset it is read in `timeZone`.");
    }

    UserRecordsParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id; for users, their own.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Records on a page.");
    }

    PhoneRecordsParams(fields) {
        phone_number: PhoneNumber = fields.path("phoneNumber", "The user's number; for users, their own.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Records on a page.");
    }

    UserRecordsPeriodParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id; for users, their own.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Records on a page.");
        time: TimeRange = required_time_range(fields, "Calls that started at this time or later.", "Calls that started before this time; a whole day is included.");
    }

    TraceParams(fields) {
        trace_id: TraceId = fields.path("traceId", "The trace id from the interpretation's response.");
    }

    FailedCallsParams(fields) {
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Records on a page.");
    }

    SlowCallsParams(fields) {
        duration_ms: Option<u32> = fields.optional("durationMs", "Minimum duration in milliseconds. Default: 10000.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Records on a page.");
    }

    CountUserRecordsParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id; for users, their own.");
    }

    CountPeriodParams(fields) {
        time: TimeRange = required_time_range(fields, "Calls that started at this time or later.", "Calls that started before this time; a whole day is included.");
    }
}

pub async fn interpret(context: RequestContext, ask: InterpretParams) -> Result<JsonOrStream<Interpretation>> {
    let user = context.acting_for(&Claims { user_id: ask.user_id, phone_number: ask.phone_number, id: None })?;
    if ask.question.is_none() && ask.divination_data.is_none() {
        return Err(Error::field(
            "question",
            Fault::new(FieldCode::Required, ("or `divinationData` is required", "须填写本项或 `divinationData`")),
        ));
    }
    let (locale, tag) = (context.locale(), language_tag(&context.headers));
    let time = ask.moment.into_time();
    let question = ask.question.map_or_else(String::new, |Question(text)| text);
    let question_type = ask.question_type.map(|Label(text)| text);
    let risk = classify_question(&question, question_type.as_deref());
    let prepare = move |app: &App| {
        let locale = preferences::locale(&app.core, user, locale)?;
        let written = Asker::find(&app.core, user, tag, locale)?.written(&question, locale);
        let question = interpretation::CastingQuestion {
            question_type,
            question,
            divination_data: ask.divination_data.map(|DivinationData(json)| json),
            cast: None,
            cast_time: time.clone(),
            method: None,
            locale,
            tag,
            view: View::default(),
        };
        let prepared = interpretation::prepare(&app.model_calls, user, question)?;
        let (trace_id, provider, model) = (prepared.trace_id.clone(), prepared.provider, prepared.model.clone());
        let casting = prepared.cast.map(|cast| Box::new(CastingShown::of(cast, time.as_ref(), written)));
        let run: ModelRun = Box::new(move |app, sink| interpretation::run(&app.model_calls, &prepared, sink));
        Ok(Prepared { trace_id, provider, model, casting, run })
    };
    interpretation_response::interpret(&context, user, risk, prepare).await
}

/// The record of an interpretation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterpretationRecord {
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    trace_id: String,
    user_id: UserId,
    #[schema(example = "career")]
    question_type: Option<String>,
    #[schema(example = "今年换工作合适吗？")]
    question: String,
    /// The data as sent.
    #[schema(value_type = Option<serde_json::Value>, example = json!({"lines": [7, 8, 8, 8, 7, 6]}))]
    divination_data: Option<JsonText<'static>>,
    status: CallStatus,
    #[schema(example = "builtin")]
    provider: String,
    #[schema(example = "builtin-1")]
    model: String,
    /// Version of the prompt.
    #[schema(example = "2")]
    prompt_version: String,
    #[schema(example = "水雷屯：万事起头难……")]
    result: Option<String>,
    /// `stop`, or `length` if the token limit cut the result; null if there is no result or the reason is unknown.
    #[schema(example = "stop")]
    finish_reason: Option<String>,
    usage: UsageResponse,
    /// Milliseconds until the first piece of the answer.
    #[schema(example = 1)]
    first_token_ms: Option<i64>,
    #[schema(example = 2)]
    duration_ms: Option<i64>,
    /// The cost by the server's price list; null if the tokens or the price are unknown.
    #[schema(example = "0.0042")]
    cost: Option<String>,
    /// The primary model's failure, if the fallback was called.
    #[schema(example = "busy")]
    failover: Option<String>,
    /// The kind of failure.
    #[schema(example = "timed_out")]
    error_class: Option<String>,
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:05.680Z")]
    finished_at: Option<Timestamp>,
    /// The user's rating; null if there is none.
    rating: Option<RatingResponse>,
}

impl From<CallRecord> for InterpretationRecord {
    fn from(record: CallRecord) -> Self {
        Self {
            usage: UsageResponse::from(&record),
            trace_id: record.trace_id,
            user_id: record.user,
            question_type: record.question_type,
            question: record.question,
            divination_data: record.divination_data,
            status: record.status,
            provider: record.provider,
            model: record.model,
            prompt_version: record.prompt_version,
            result: record.result,
            finish_reason: record.finish_reason,
            first_token_ms: record.first_token_ms,
            duration_ms: record.duration_ms,
            cost: record.cost.map(|cost| cost.to_string()),
            failover: record.failover,
            error_class: record.error_class,
            created_at: record.created_at,
            finished_at: record.finished_at,
            rating: record.rating.map(Into::into),
        }
    }
}

/// A number of records.
#[derive(Serialize, ToSchema)]
pub struct RecordCount {
    #[schema(example = 1)]
    count: i64,
}

pub async fn list_of_user(
    context: RequestContext,
    params: UserRecordsParams,
) -> Result<Json<NumberedPage<InterpretationRecord>>> {
    let user = context.subject_id(&Claims::of_user(Some(params.user_id)))?;
    let page = page(&context, params.page, params.size);
    Ok(NumberedPage::of(page, interpretation::list_of_user(&context.app.core, user, page)?))
}

pub async fn list_of_phone(
    context: RequestContext,
    params: PhoneRecordsParams,
) -> Result<Json<NumberedPage<InterpretationRecord>>> {
    let user = context.subject_id(&Claims::of_phone(Some(params.phone_number)))?;
    let page = page(&context, params.page, params.size);
    Ok(NumberedPage::of(page, interpretation::list_of_user(&context.app.core, user, page)?))
}

pub async fn list_of_user_between(
    context: RequestContext,
    params: UserRecordsPeriodParams,
) -> Result<Json<NumberedPage<InterpretationRecord>>> {
    let user = context.subject_id(&Claims::of_user(Some(params.user_id)))?;
    let page = page(&context, params.page, params.size);
    let found =
        interpretation::list_of_user_between(&context.app.core, user, params.time.from(), params.time.to(), page)?;
    Ok(NumberedPage::of(page, found))
}

pub async fn find_by_trace(context: RequestContext, params: TraceParams) -> Result<Json<InterpretationRecord>> {
    let owner = (!context.is_admin()).then(|| context.user()).transpose()?;
    let record = interpretation::find_by_trace(&context.app.core, owner, &params.trace_id.0)?;
    context.meta.subject.get_or_init(|| record.user);
    Ok(Json(record.into()))
}

pub async fn list_failed(
    context: RequestContext,
    params: FailedCallsParams,
) -> Result<Json<NumberedPage<InterpretationRecord>>> {
    let page = page(&context, params.page, params.size);
    let found = context.report(move |app| interpretation::list_failed(&app.core, page)).await?;
    Ok(NumberedPage::of(page, found))
}

pub async fn list_slow(
    context: RequestContext,
    params: SlowCallsParams,
) -> Result<Json<NumberedPage<InterpretationRecord>>> {
    let page = page(&context, params.page, params.size);
    let duration = Duration::from_millis(params.duration_ms.unwrap_or(SLOW_CALL_MS).into());
    let found = context.report(move |app| interpretation::list_slow(&app.core, duration, page)).await?;
    Ok(NumberedPage::of(page, found))
}

pub async fn count_of_user(context: RequestContext, params: CountUserRecordsParams) -> Result<Json<RecordCount>> {
    let user = context.subject_id(&Claims::of_user(Some(params.user_id)))?;
    Ok(Json(RecordCount { count: interpretation::count_of_user(&context.app.core, user)? }))
}

pub async fn count_between(context: RequestContext, params: CountPeriodParams) -> Result<Json<RecordCount>> {
    let (start, end) = (params.time.from(), params.time.to());
    let count = context.report(move |app| interpretation::count_between(&app.core, start, end)).await?;
    Ok(Json(RecordCount { count }))
}
