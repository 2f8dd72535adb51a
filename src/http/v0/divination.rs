//! `/divination`: interpretations and their records.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    error::Result,
    http::{
        call::Call,
        narration::{Interpretation, Usage, narrate},
        params::{Claims, DivinationData, Label, PageNumber, PageSize, Question, TraceId, page, parameters},
        reply::Json,
        stream::JsonOrStream,
    },
    ops::interpretation::{self, Record},
    providers::llm::Flow,
    types::{JsonText, Timestamp, UserId},
};

parameters! {
    Interpret {
        user_id: optional UserId = "userId", "The caller's own id.";
        question_type: optional Label = "questionType", "What the question is about.";
        question: required Question = "question", "The question. Screened before a model sees it.";
        divination_data: optional DivinationData = "divinationData", "The casting: lines, names or anything that says what was cast.";
    }

    OfUser {
        user_id: path UserId = "userId", "The caller's own id.";
        page: optional PageNumber = "page", "Number of the page.";
        size: optional PageSize = "size", "Records on a page.";
    }

    OfTrace {
        trace_id: path TraceId = "traceId", "The trace id that the interpretation answered with.";
    }
}

pub async fn interpret(call: Call, ask: Interpret) -> Result<JsonOrStream<Interpretation>> {
    let user = call.acting_for(&Claims::of_user(ask.user_id))?;
    let question = interpretation::Question {
        question_type: ask.question_type.map(|Label(text)| text),
        question: ask.question.0,
        divination_data: ask.divination_data.map(|DivinationData(json)| json),
        locale: call.locale,
    };
    if !call.wants_stream {
        let record = call.blocking(move |app| {
            let _permit = app.calls.enter(user)?;
            let prepared = interpretation::prepare(app, user, question)?;
            interpretation::run(app, &prepared, &mut |_| Flow::Continue)
        });
        return Ok(JsonOrStream::Json(record.await?.into()));
    }
    // What is wrong with the request is answered as a problem; only what comes after that is part of the stream.
    let permit = call.app.calls.enter(user)?;
    let prepared = call.blocking(move |app| interpretation::prepare(app, user, question)).await?;
    let trace_id = prepared.trace_id.clone();
    let run = move |app: &App, sink: &mut dyn FnMut(&str) -> Flow| interpretation::run(app, &prepared, sink);
    Ok(JsonOrStream::Stream(narrate(&call, &trace_id, permit, run)))
}

/// The record of an interpretation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterpretationRecord {
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    trace_id: String,
    #[schema(value_type = String, example = "10001")]
    user_id: UserId,
    #[schema(example = "career")]
    question_type: Option<String>,
    #[schema(example = "今年换工作合适吗？")]
    question: String,
    /// As it was sent.
    #[schema(value_type = Option<Object>, example = json!({"lines": [7, 8, 8, 8, 7, 6]}))]
    divination_data: Option<JsonText>,
    /// `running`, `succeeded`, `failed`, `cancelled` (the client left) or `interrupted` (the service stopped).
    #[schema(example = "succeeded")]
    status: &'static str,
    #[schema(example = "builtin")]
    provider: String,
    #[schema(example = "builtin-1")]
    model: String,
    /// Version of the instructions that the model was given.
    #[schema(example = "1")]
    prompt_version: String,
    #[schema(example = "水雷屯：万事起头难……")]
    result: Option<String>,
    usage: Usage,
    /// Milliseconds until the first piece of the answer.
    #[schema(example = 1)]
    first_token_ms: Option<i64>,
    #[schema(example = 2)]
    duration_ms: Option<i64>,
    /// What kind of failure it was.
    #[schema(example = "timed_out")]
    error_class: Option<String>,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:04:05.678Z")]
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:05.680Z")]
    finished_at: Option<Timestamp>,
}

impl From<Record> for InterpretationRecord {
    fn from(record: Record) -> Self {
        Self {
            usage: record.usage.into(),
            trace_id: record.trace_id,
            user_id: record.user,
            question_type: record.question_type,
            question: record.question,
            divination_data: record.divination_data,
            status: record.status.name(),
            provider: record.provider,
            model: record.model,
            prompt_version: record.prompt_version,
            result: record.result,
            first_token_ms: record.first_token_ms,
            duration_ms: record.duration_ms,
            error_class: record.error_class,
            created_at: record.created_at,
            finished_at: record.finished_at,
        }
    }
}

/// One page of records, newest first.
#[derive(Serialize, ToSchema)]
pub struct RecordPage {
    items: Vec<InterpretationRecord>,
    #[schema(example = 1)]
    page: u32,
    #[schema(example = 20)]
    size: u32,
    /// Records on all pages.
    #[schema(example = 1)]
    total: i64,
}

pub async fn list_of_user(call: Call, of: OfUser) -> Result<Json<RecordPage>> {
    let user = call.subject_id(&Claims::of_user(Some(of.user_id)))?;
    let page = page(&call, of.page, of.size);
    let found = interpretation::list_of_user(&call.app, user, page)?;
    let items = found.items.into_iter().map(Into::into).collect();
    Ok(Json(RecordPage { items, page: page.number, size: page.size, total: found.total }))
}

pub async fn find_by_trace(call: Call, of: OfTrace) -> Result<Json<InterpretationRecord>> {
    let owner = call.admin().is_err().then(|| call.user()).transpose()?;
    let record = interpretation::find_by_trace(&call.app, owner, &of.trace_id.0)?;
    call.context.subject.get_or_init(|| record.user);
    Ok(Json(record.into()))
}
