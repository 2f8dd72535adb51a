//! `/api/v1/sessions`: castings, made and kept by the service.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    app::App,
    config::Limits,
    domain::{
        divination::{
            hexagram::{Cast, Line, Lines},
            sessions::{
                self, Casting, Method, NewSession, SessionDraft,
                interpretation::{self, Preparation},
            },
        },
        identity::preferences,
    },
    error::{Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        cursor_page::{CursorList, CursorPage, span},
        interpretation_response::{ModelRun, Prepared, interpret as interpret_prepared, respond_with_stored},
        interpretation_sse::Interpretation,
        params::{Label, MaybeInvalid, PageSize, Parameter, Question, Rules, parameters, text, whole_number},
        reply::{Json, NoContent, Replayable},
        request_context::RequestContext,
        sse::JsonOrStream,
        v1::hexagrams::HexagramShown,
    },
    types::{Cursor, TimeInput, TimeZone, Timestamp, clean},
};

const SESSIONS: CursorList = CursorList("sessions");
/// Characters in the name of a time zone.
const TIME_ZONE: usize = 64;
/// Maximum lead of a client's clock over the service's.
const AHEAD: Duration = Duration::from_hours(24);

parameters! {
    CastSession(fields) {
        question: Question = fields.required("question", "The question. Moderated before the casting.");
        question_type: Option<Label> = fields.optional("questionType", "The topic of the question.");
        casting: Casting = {
            let method = fields.required("method", "`three_coins` and `yarrow_stalks` cast on the server, each with its own odds; `manual` takes `lines`.");
            let lines = fields.list("lines", "With `manual`, the six lines from the bottom: 6 old yin, 7 young yang, 8 young yin, 9 old yang.");
            fields.cross_field(method.zip(lines), casting)
        };
        moment: CastMoment = {
            let cast_at = fields.optional("castAt", "Time of the casting. Default: now. Without an offset it is read in `timeZone`.");
            let time_zone = fields.optional("timeZone", "Time zone of the user, an IANA name.");
            fields.cross_field(cast_at.zip(time_zone), cast_moment)
        };
    }

    OfSessions(fields) {
        limit: Option<PageSize> = fields.optional("limit", "Maximum number of sessions.");
        before: Option<i64> = {
            let cursor = fields.optional("cursor", "`nextCursor` of the previous response.");
            fields.cross_field(cursor, before)
        };
    }

    OfSession(fields) {
        id: SessionId = fields.path("id", "The session's id.");
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
    #[schema(value_type = Method)]
    method: &'static str,
    /// From the bottom: 6 old yin, 7 young yang, 8 young yin, 9 old yang.
    #[schema(min_items = 6, max_items = 6, example = json!([7, 8, 8, 8, 7, 6]))]
    lines: [u8; 6],
    hexagram: SessionHexagrams,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:04:05.678Z")]
    cast_at: Timestamp,
    #[schema(example = "Asia/Shanghai")]
    time_zone: String,
    #[schema(example = 10)]
    points_spent: i64,
    /// Time at which an interpretation succeeded.
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:05:06.789Z")]
    interpreted_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:04:05.678Z")]
    created_at: Timestamp,
    /// The interpretation that succeeded, when one session is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    interpretation: Option<Interpretation>,
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
            method: session.method.name(),
            lines: session.cast.lines().values(),
            hexagram: session.cast.into(),
            cast_at: session.cast_at,
            time_zone: session.time_zone.clone(),
            points_spent: session.points_spent,
            interpreted_at: session.interpretation.as_ref().map(|interpreted| interpreted.at),
            created_at: session.created_at,
            interpretation: None,
            balance: None,
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

pub async fn cast(context: RequestContext, cast: CastSession) -> Result<Replayable<SessionResponse>> {
    let user = context.user()?;
    let CastMoment { cast_at, time_zone } = cast.moment;
    let draft = SessionDraft {
        question: cast.question.0,
        question_type: cast.question_type.map(|Label(text)| text),
        casting: cast.casting,
        cast_at,
        time_zone,
    };
    let shown =
        |new: &NewSession| SessionResponse { balance: Some(new.balance), ..SessionResponse::from(&new.session) };
    context
        .screened_once(StatusCode::CREATED, shown, move |app, once| sessions::cast(&app.moderation, user, draft, once))
        .await
}

pub async fn list(context: RequestContext, of: OfSessions) -> Result<Json<CursorPage<SessionResponse>>> {
    let span = span(&context, of.before, of.limit);
    let slice = sessions::list(&context.app, context.user()?, span)?;
    SESSIONS.page(&context, slice, |session| SessionResponse::from(&session))
}

fn before(rules: &Rules<'_>, cursor: Option<Cursor>) -> Result<Option<i64>> {
    SESSIONS.position(rules.context, cursor)
}

pub async fn find(context: RequestContext, of: OfSession) -> Result<Json<SessionResponse>> {
    let session = sessions::find(&context.app, context.user()?, &of.id.0)?;
    let interpretation = interpretation::stored(&context.app, &session)?.map(Into::into);
    Ok(Json(SessionResponse { interpretation, ..SessionResponse::from(&session) }))
}

pub async fn delete(context: RequestContext, of: OfSession) -> Result<NoContent> {
    context.committed(sessions::delete(&context.app, context.user()?, of.id.0)).await?;
    Ok(NoContent)
}

pub async fn interpret(context: RequestContext, of: OfSession) -> Result<JsonOrStream<Interpretation>> {
    let (user, asked, id) = (context.user()?, context.locale(), of.id.0);
    // A stored interpretation needs no model call.
    if let Some(record) = interpretation::stored(&context.app, &sessions::find(&context.app, user, &id)?)? {
        return Ok(respond_with_stored(&context, record));
    }
    let prepare = move |app: &App| {
        let locale = preferences::locale(app, user, asked)?;
        Ok(match interpretation::prepare(&app.model_calls, user, &id, locale)? {
            Preparation::Stored(record) => Prepared::Stored(record),
            Preparation::Pending(pending) => {
                let trace_id = pending.prepared.trace_id.clone();
                let run: ModelRun = Box::new(move |app, sink| interpretation::run(&app.model_calls, &pending, sink));
                Prepared::Pending { trace_id, run }
            }
        })
    };
    interpret_prepared(&context, user, prepare).await
}

/// Returns the casting if method and lines are consistent.
fn casting(_: &Rules<'_>, (method, lines): (Method, Vec<CastLine>)) -> Result<Casting> {
    let fault = |code, message: &str| Err(Error::field("lines", Fault::new(code, message)));
    match method {
        Method::ThreeCoins | Method::YarrowStalks if !lines.is_empty() => {
            fault(FieldCode::UnknownValue, "are taken with the method `manual` only")
        }
        Method::ThreeCoins => Ok(Casting::ThreeCoins),
        Method::YarrowStalks => Ok(Casting::YarrowStalks),
        Method::Manual => {
            let lines: Vec<_> = lines.into_iter().map(|CastLine(line)| line).collect();
            match (<[Line; 6]>::try_from(lines.as_slice()), lines.len()) {
                (Ok(six), _) => Ok(Casting::Manual(Lines::new(six))),
                (_, 0) => fault(FieldCode::Required, "are required with the method `manual`"),
                (_, 1..=5) => fault(FieldCode::TooShort, "must be six"),
                _ => fault(FieldCode::TooMany, "must be six"),
            }
        }
    }
}

/// The time and time zone of a casting.
pub struct CastMoment {
    cast_at: Option<Timestamp>,
    time_zone: TimeZone,
}

/// Reads the time where the user is: as the request says, or else as the user's preferences do.
fn cast_moment(
    rules: &Rules<'_>,
    (cast_at, time_zone): (Option<MaybeInvalid<CastAt>>, Option<MaybeInvalid<TimeZone>>),
) -> Result<CastMoment> {
    let (time_zone, no_zone) = match time_zone.map(|MaybeInvalid(zone)| zone) {
        Some(Ok(zone)) => (zone, None),
        // Any zone will do to see whether the time is a fault, too.
        Some(Err(fault)) => (rules.config.limits.time_zone.clone(), Some(fault.in_field("timeZone"))),
        None => (preferences::time_zone(&rules.context.app, rules.context.user()?)?, None),
    };
    let in_zone =
        |MaybeInvalid(cast_at): MaybeInvalid<CastAt>| near(cast_at?.0.in_zone(&time_zone)?, rules.clock.now());
    match (cast_at.map(in_zone).transpose(), no_zone) {
        (Ok(cast_at), None) => Ok(CastMoment { cast_at, time_zone }),
        (cast_at, no_zone) => {
            let no_time = cast_at.err().map(|fault| fault.in_field("castAt"));
            Err(Error::fields(no_time.into_iter().chain(no_zone).collect()))
        }
    }
}

fn near(at: Timestamp, now: Timestamp) -> Result<Timestamp, Fault> {
    if (Timestamp(0)..=now.plus(AHEAD)).contains(&at) {
        return Ok(at);
    }
    Err(Fault::new(FieldCode::OutOfRange, "must be from 1970 to a day from now"))
}

/// A line as it was cast.
pub struct CastLine(Line);

impl Parameter for CastLine {
    const LIST_LENGTH: Option<(usize, usize)> = Some((6, 6));

    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let value = whole_number(value, 6..=9_u8)?;
        Line::try_from(value).map(Self).map_err(|_| Fault::new(FieldCode::OutOfRange, "must be 6, 7, 8 or 9"))
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["integer", "string"], "minimum": 6, "maximum": 9, "example": 7 })
    }
}

/// A time that may have to be read in a zone that is not known yet.
pub struct CastAt(TimeInput);

impl Parameter for CastAt {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        TimeInput::parse(&text(value)?).map(Self)
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "example": "2026-01-02T11:04:05+08:00" })
    }
}

impl Parameter for TimeZone {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let name = clean(&text(value)?, TIME_ZONE)?;
        // Only IANA names: offsets and custom rules are not in the time zone database.
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte));
        let zone = name.parse().ok().filter(|_| is_name);
        zone.ok_or_else(|| {
            Fault::new(FieldCode::UnknownValue, "must be the IANA name of a time zone, such as Asia/Shanghai")
        })
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "maxLength": TIME_ZONE, "example": "Asia/Shanghai" })
    }
}

/// The id of a session: 32 hexadecimal digits.
pub struct SessionId(String);

impl Parameter for SessionId {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = text(value)?.trim().to_ascii_lowercase();
        if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self(id));
        }
        Err(Fault::new(FieldCode::InvalidFormat, "must be 32 hexadecimal digits"))
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-fA-F]{32}$", "example": "9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061" })
    }
}
