//! `/api/v1/sessions`: castings, made and kept by the service.

pub mod card;

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    app::App,
    config::LimitsConfig,
    domain::divination::{
        chart::{Chart, PlumBlossom, chart_of},
        hexagram::{Cast, Line, Lines},
        sessions::{
            self, Casting, Method, NewSession, SessionAnnotation, SessionDraft, SessionSearch,
            interpretation::{self, InterpretationRequest, SessionInterpretations, TRACE_ID},
        },
    },
    error::{Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        cast_moment::{CastMoment, cast_moment},
        classic_response::Classic,
        content_negotiation::language_tag,
        cursor_page::{CursorList, CursorPage, span},
        interpretation_sse::Interpretation,
        openapi::chart::{ChartShape, DerivationShape},
        params::{
            Flag, Label, PageSize, Parameter, Question, Rules, SearchText, SessionNote, SessionTitle, parameters, text,
            whole_number,
        },
        reply::{Json, NoContent, Replayable},
        request_context::RequestContext,
        session_interpretation::{self, MaybeReplayed},
        v1::hexagrams::HexagramShown,
    },
    providers::llm::builtin::Written,
    types::{Cursor, Timestamp},
};

const SESSIONS: CursorList = CursorList("sessions");
/// The largest number to cast from.
const MAX_NUMBER: u32 = 999_999_999;

parameters! {
    CastSessionParams(fields) {
        question: Question = fields.required("question", "The question. Moderated before the casting.");
        question_type: Option<Label> = fields.optional("questionType", "The topic of the question.");
        casting: Casting = {
            let method = fields.required("method", "`three_coins` and `yarrow_stalks` cast on the server, each with its own odds; `manual` takes `lines`; `time` and `numbers` derive the lines from `castAt` or `numbers` (梅花易数).");
            let lines = fields.list("lines", "With `manual`, the six lines from the bottom: 6 old yin, 7 young yang, 8 young yin, 9 old yang.");
            let numbers = fields.list("numbers", "With `numbers`, one to three numbers: for the upper trigram, the lower trigram and the changing line. Without the third their sum chooses the line; without the second the double hour of `castAt` chooses the lower trigram.");
            fields.cross_field(method.zip(lines).zip(numbers), casting)
        };
        moment: CastMoment = cast_moment(fields, "Time of the casting. Default: now. Without an offset it is read in `timeZone`.");
    }

    ListSessionsParams(fields) {
        search: Option<SearchText> = fields.optional("search", "Only sessions whose question, title and note contain all of these words. A page may then have fewer sessions than `limit`, or none, and a next page.");
        limit: Option<PageSize> = fields.optional("limit", "Maximum number of sessions.");
        before: Option<i64> = {
            let cursor = fields.optional("cursor", "`nextCursor` of the previous response.");
            fields.cross_field(cursor, before)
        };
    }

    SessionParams(fields) {
        id: SessionId = fields.path("id", "The session's id.");
    }

    AnnotateSessionParams(fields) {
        id: SessionId = fields.path("id", "The session's id.");
        title: Option<SessionTitle> = fields.usual("title", "The user's title of the session. Moderated. An empty text deletes it.");
        note: Option<SessionNote> = fields.optional("note", "The user's note about the session. Moderated. An empty text deletes it.");
    }

    InterpretSessionParams(fields) {
        id: SessionId = fields.path("id", "The session's id.");
        again: Option<Flag> = fields.optional("again", "True for another interpretation, even if there is one. Earlier ones are kept.");
    }
}

/// A casting.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Session)]
pub struct SessionResponse {
    #[schema(example = "9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061")]
    id: String,
    #[schema(example = "今年换工作合适吗？")]
    question: String,
    #[schema(example = "career")]
    question_type: Option<String>,
    /// The user's own title.
    #[schema(example = "换工作")]
    title: Option<String>,
    /// The user's own note.
    #[schema(example = "三月面试后再看。")]
    note: Option<String>,
    #[schema(value_type = Method)]
    method: &'static str,
    /// From the bottom: 6 old yin, 7 young yang, 8 young yin, 9 old yang.
    #[schema(min_items = 6, max_items = 6, example = json!([7, 8, 8, 8, 7, 6]))]
    lines: [u8; 6],
    hexagram: SessionHexagrams,
    cast_at: Timestamp,
    #[schema(example = "Asia/Shanghai")]
    time_zone: String,
    #[schema(example = 10)]
    points_spent: i64,
    /// Time of the newest interpretation that succeeded.
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:05:06.789Z")]
    interpreted_at: Option<Timestamp>,
    created_at: Timestamp,
    /// The derivation of a casting by time or by numbers, when one session is made or asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = DerivationShape, nullable = false)]
    derivation: Option<PlumBlossom>,
    /// The chart, when one session is made or asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ChartShape, nullable = false)]
    chart: Option<Chart>,
    /// The classical texts, when one session is made or asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    classic: Option<Classic>,
    /// The newest interpretation that succeeded, when one session is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    interpretation: Option<Interpretation>,
    /// All interpretations that succeeded, newest first, when one session is made or asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    interpretations: Option<Vec<Interpretation>>,
    /// The number of further interpretations that are possible, when one session is made or asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 2)]
    remaining_interpretations: Option<u32>,
    /// The points that the next interpretation costs, when one session is made or asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 0)]
    next_interpretation_points: Option<u32>,
    /// The remaining points. Only in the response to a new casting.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 80)]
    balance: Option<i64>,
}

/// The hexagrams of six lines.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionHexagrams {
    primary: HexagramShown,
    /// Positions of the changing lines, 1 at the bottom.
    #[schema(example = json!([6]))]
    changing: Vec<u8>,
    /// The hexagram after the changes. Absent when no line changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    relating: Option<HexagramShown>,
    nuclear: HexagramShown,
}

impl From<&sessions::Session> for SessionResponse {
    fn from(session: &sessions::Session) -> Self {
        Self {
            id: session.id.clone(),
            question: session.question.clone(),
            question_type: session.question_type.clone(),
            title: session.title.clone(),
            note: session.note.clone(),
            method: session.method.name(),
            lines: session.cast.lines().values(),
            hexagram: session.cast.into(),
            cast_at: session.cast_at,
            time_zone: session.time_zone.clone(),
            points_spent: session.points_spent,
            interpreted_at: session.interpretation.as_ref().map(|interpreted| interpreted.at),
            created_at: session.created_at,
            derivation: None,
            chart: None,
            classic: None,
            interpretation: None,
            interpretations: None,
            remaining_interpretations: None,
            next_interpretation_points: None,
            balance: None,
        }
    }
}

impl SessionResponse {
    /// Returns a session with chart, texts and interpretations.
    fn whole(session: &sessions::Session, interpretations: SessionInterpretations, written: Written) -> Self {
        let SessionInterpretations { items, remaining, next_points } = interpretations;
        Self {
            interpretation: items.first().cloned().map(Into::into),
            interpretations: Some(items.into_iter().map(Into::into).collect()),
            remaining_interpretations: Some(remaining),
            next_interpretation_points: Some(next_points),
            derivation: session.derivation(),
            chart: Some(chart_of(&session.cast, session.cast_time().as_ref())),
            classic: Some(Classic::of(session.cast, written)),
            ..session.into()
        }
    }
}

impl From<Cast> for SessionHexagrams {
    fn from(cast: Cast) -> Self {
        Self {
            primary: cast.primary().into(),
            changing: cast.changing(),
            relating: cast.relating().map(Into::into),
            nuclear: cast.nuclear().into(),
        }
    }
}

pub async fn cast(context: RequestContext, cast: CastSessionParams) -> Result<Replayable<SessionResponse>> {
    let user = context.user()?;
    let written = context.written(&cast.question.0)?;
    let CastMoment { cast_at, time_zone, day_start } = cast.moment;
    let draft = SessionDraft {
        question: cast.question.0,
        question_type: cast.question_type.map(|Label(text)| text),
        casting: cast.casting,
        cast_at,
        time_zone,
        day_start,
    };
    let limit = context.app.core.config.llm.interpretations_per_session;
    let shown = move |new: &NewSession| SessionResponse {
        balance: Some(new.balance),
        ..SessionResponse::whole(&new.session, SessionInterpretations::none(limit), written)
    };
    context
        .screened_once(StatusCode::CREATED, shown, move |app, once| sessions::cast(&app.moderation, user, draft, once))
        .await
}

pub async fn list(context: RequestContext, params: ListSessionsParams) -> Result<Json<CursorPage<SessionResponse>>> {
    let span = span(&context, params.before, params.limit);
    let (core, user) = (&context.app.core, context.user()?);
    let slice = match params.search {
        Some(SearchText(words)) => sessions::search(core, user, &SessionSearch::new(&words), span)?,
        None => sessions::list(core, user, span)?,
    };
    SESSIONS.page(&context, slice, |session| SessionResponse::from(&session))
}

fn before(rules: &Rules<'_>, cursor: Option<Cursor>) -> Result<Option<i64>> {
    SESSIONS.position(rules.context, cursor)
}

pub async fn find(context: RequestContext, params: SessionParams) -> Result<Json<SessionResponse>> {
    let user = context.user()?;
    let session = sessions::find(&context.app.core, user, &params.id.0)?;
    let interpretations = interpretation::list(&context.app.core, &session)?;
    let written = context.written(&session.question)?;
    Ok(Json(SessionResponse::whole(&session, interpretations, written)))
}

pub async fn annotate(context: RequestContext, params: AnnotateSessionParams) -> Result<Json<SessionResponse>> {
    let user = context.user()?;
    let annotation = SessionAnnotation {
        title: params.title.map(|SessionTitle(text)| text),
        note: params.note.map(|SessionNote(text)| text),
    };
    let annotate = move |app: &App| sessions::annotate(&app.moderation, user, params.id.0, annotation);
    Ok(Json(SessionResponse::from(&context.screened(annotate).await?)))
}

pub async fn delete(context: RequestContext, params: SessionParams) -> Result<NoContent> {
    context.committed(sessions::delete(&context.app.core, context.user()?, params.id.0)).await?;
    Ok(NoContent)
}

pub async fn interpret(context: RequestContext, params: InterpretSessionParams) -> Result<MaybeReplayed> {
    let named = |trace_id: &String| json!({ TRACE_ID: trace_id });
    let request = InterpretationRequest {
        user: context.user()?,
        session_id: params.id.0,
        locale: context.locale(),
        tag: language_tag(&context.headers),
        again: params.again.is_some_and(|Flag(again)| again),
        once: context.once(StatusCode::OK, named)?,
    };
    session_interpretation::interpret(&context, request).await
}

/// Returns the casting if method, lines and numbers are consistent.
fn casting(_: &Rules<'_>, ((method, lines), numbers): ((Method, Vec<CastLine>), Vec<CastNumber>)) -> Result<Casting> {
    let fault =
        |field, code, message: (&'static str, &'static str)| Err(Error::field(field, Fault::new(code, message)));
    if method != Method::Manual && !lines.is_empty() {
        return fault(
            "lines",
            FieldCode::UnknownValue,
            ("are taken with the method `manual` only", "仅在起卦方式为 `manual` 时填写"),
        );
    }
    if method != Method::Numbers && !numbers.is_empty() {
        return fault(
            "numbers",
            FieldCode::UnknownValue,
            ("are taken with the method `numbers` only", "仅在起卦方式为 `numbers` 时填写"),
        );
    }
    match method {
        Method::ThreeCoins => Ok(Casting::ThreeCoins),
        Method::YarrowStalks => Ok(Casting::YarrowStalks),
        Method::Time => Ok(Casting::Time),
        Method::Manual => {
            let lines: Vec<_> = lines.into_iter().map(|CastLine(line)| line).collect();
            match (<[Line; 6]>::try_from(lines.as_slice()), lines.len()) {
                (Ok(six), _) => Ok(Casting::Manual(Lines::new(six))),
                (_, 0) => fault(
                    "lines",
                    FieldCode::Required,
                    ("are required with the method `manual`", "起卦方式为 `manual` 时必填"),
                ),
                (_, 1..=5) => fault("lines", FieldCode::TooShort, ("must be six", "须为六个")),
                _ => fault("lines", FieldCode::TooMany, ("must be six", "须为六个")),
            }
        }
        Method::Numbers => match numbers.len() {
            0 => fault(
                "numbers",
                FieldCode::Required,
                ("are required with the method `numbers`", "起卦方式为 `numbers` 时必填"),
            ),
            1..=3 => Ok(Casting::Numbers(numbers.into_iter().map(|CastNumber(number)| number).collect())),
            _ => fault("numbers", FieldCode::TooMany, ("must be one to three", "须为一到三个")),
        },
    }
}

/// A number to cast from.
pub struct CastNumber(u32);

impl Parameter for CastNumber {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 1..=MAX_NUMBER).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": MAX_NUMBER, "example": 38 })
    }
}

/// A line as it was cast.
pub struct CastLine(Line);

impl Parameter for CastLine {
    const LIST_LENGTH: Option<(usize, usize)> = Some((6, 6));

    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let value = whole_number(value, 6..=9_u8)?;
        Line::try_from(value)
            .map(Self)
            .map_err(|_| Fault::new(FieldCode::OutOfRange, ("must be 6, 7, 8 or 9", "须为 6、7、8 或 9")))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 6, "maximum": 9, "example": 7 })
    }
}

/// The id of a session: 32 hexadecimal digits.
pub struct SessionId(pub String);

impl Parameter for SessionId {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = text(value)?.trim().to_ascii_lowercase();
        if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self(id));
        }
        Err(Fault::new(FieldCode::InvalidFormat, ("must be 32 hexadecimal digits", "须为 32 位十六进制数字")))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-fA-F]{32}$", "example": "9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061" })
    }
}
