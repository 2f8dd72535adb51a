//! Conversations with the language model, passed on as the vendor speaks: one call, one record, and none of the words.
//!
//! The client brings what was said; the service adds who it is talking to, in a message of its own that the client
//! cannot replace, and hands the vendor an opaque reference in place of the user. Only the user's last words are
//! screened: what stands before them, clients make up as they like.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use crate::{
    core::Core,
    domain::{
        Each,
        divination::{
            budget::{self, Reservation, Used},
            model_calls::{
                self, Asker, ModelCalls, Outcome, Ran,
                hourly::{self, Counted},
            },
        },
        identity::users::{self, Gender, Profile},
        moderation::{self, Field, engine::ContentType},
    },
    error::Result,
    providers::llm::{Flow, Message, Piece, Request, Role, Usage},
    store::{Read, Write, sliding_window::PURGE_BATCH},
    types::{Date, Locale, Micros, TimeZone, Timestamp, UserId},
};

const KIND: &str = "chat";
/// The version of the instructions, kept with every record.
const PROMPT_VERSION: &str = "1";
const CHINESE: &str = include_str!("../../../assets/prompts/chat.zh.txt");
const ENGLISH: &str = include_str!("../../../assets/prompts/chat.en.txt");

/// What a user wants to say, and how it is to be answered.
#[derive(Clone)]
pub struct Conversation {
    /// Turns of user and model, the user's last; never empty.
    pub messages: Vec<Message>,
    pub stream: bool,
    pub temperature: Option<f64>,
    /// Bounded by the setting, whatever is asked for.
    pub max_tokens: Option<u32>,
    pub locale: Locale,
}

/// A call that may run, with its record written.
pub struct Prepared {
    pub trace_id: String,
    user: UserId,
    request: Request,
    reservation: Reservation,
}

/// What is told of an answer once it is over.
#[derive(Clone, Debug)]
pub struct Answered {
    pub text: String,
    /// The model that answered.
    pub model: String,
    /// `stop`, or `length` when the limit of tokens cut the text.
    pub finish_reason: String,
    /// As the provider counted; nothing where it did not say.
    pub usage: Option<Usage>,
    pub finished_at: Timestamp,
}

/// What the service tells a model about a user: a name, a gender and an age within ten years; no number, no address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Introduction {
    pub nickname: Option<String>,
    pub gender: Option<&'static str>,
    /// `30-39`.
    pub age: Option<String>,
}

/// What goes with a conversation beside what is said in it.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// By which the vendor knows the user.
    pub reference: String,
    pub introduction: Introduction,
    /// The message that the service puts before the conversation, with the introduction in it.
    pub message: String,
}

/// Screens what the user said last and writes the record of a call that is about to begin.
///
/// # Errors
/// `content_rejected` if it may not stand; `too_many_requests`; `budget_spent`. Then no model is asked.
pub fn prepare(calls: &ModelCalls, user: UserId, conversation: Conversation) -> Result<Prepared> {
    // Before anybody is asked about the text; what holds is asked again below.
    let allowed = calls.core.config.llm.calls_per_user_hour;
    calls.core.store.read(|tx| hourly::require_open_in(tx, user, Counted::Conversations, allowed))?;
    let last = conversation.messages.last().map(|message| message.content.as_str()).unwrap_or_default();
    let field = Field { name: "messages", content_type: ContentType::Question, text: last };
    if let Some(refusal) = moderation::screen(&calls.moderation, user, &[field]) {
        return refusal.record::<Prepared>(&calls.core).wait();
    }
    let profile = calls.core.store.read(|tx| users::profile_in(tx, user))?;
    let trace_id = model_calls::new_trace_id()?;
    let spoken = conversation.messages.len();
    let request = request(&calls.core, &trace_id, &profile, conversation);
    let amount = model_calls::largest_use(calls, &request);
    let config = Arc::clone(&calls.core.config);
    let (traced, provider, model) = (trace_id.clone(), calls.models.name(), calls.models.model().to_owned());
    let begin = calls.core.store.write(move |tx| {
        hourly::take_in(tx, user, Counted::Conversations, allowed)?;
        let reservation = budget::reserve_in(tx, &config.llm, &config.limits.time_zone, user, amount)?;
        begin_in(tx, &traced, user, spoken, (provider, &model))?;
        make_room_in(tx, user, config.records_kept())?;
        Ok(reservation)
    });
    Ok(Prepared { trace_id, user, request, reservation: begin.wait()? })
}

/// Asks the model and finishes the record, whatever came of it. Blocks on the provider.
///
/// `sink` gets what arrives, with the vendor's own documents where it sent any.
///
/// # Errors
/// `provider_failed`, `provider_unavailable` or `provider_timeout`, or `content_rejected` for an answer that may not
/// stand, each with the trace id.
pub fn run(calls: &ModelCalls, prepared: &Prepared, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Result<Answered> {
    let asker = Asker { user: Some(prepared.user), kind: KIND };
    let Ran { outcome, failure } = model_calls::run(calls, asker, prepared.request.clone(), sink);
    let (model, usage) = (outcome.model.clone(), outcome.usage);
    let (text, finish_reason) = (outcome.text.clone().unwrap_or_default(), outcome.finish_reason.clone());
    let finished_at = finish(calls, prepared, outcome)?;
    match failure {
        None => {
            let finish_reason = finish_reason.unwrap_or_else(|| "stop".to_owned());
            Ok(Answered { text, model, finish_reason, usage, finished_at })
        }
        Some(error) => Err(error.of_trace(&prepared.trace_id)),
    }
}

/// The user's calls, oldest first: when, of which model, how it ended, and the tokens of question and answer.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    tx.each(
        "select trace_id, messages, status, provider, model, prompt_tokens, completion_tokens, duration_ms, created_at, \
         finished_at from chats where user_id = ?1 order by created_at, id",
        [user.0],
        |row| {
            each(json!({
                "traceId": row.get::<String>(0)?,
                "messages": row.get::<i64>(1)?,
                "status": row.get::<String>(2)?,
                "provider": row.get::<String>(3)?,
                "model": row.get::<String>(4)?,
                "promptTokens": row.get::<Option<i64>>(5)?,
                "completionTokens": row.get::<Option<i64>>(6)?,
                "durationMs": row.get::<Option<i64>>(7)?,
                "createdAt": Timestamp(row.get(8)?),
                "finishedAt": row.get::<Option<i64>>(9)?.map(Timestamp),
            }))
        },
    )
}

/// What would go with a conversation of this user, for whoever wants to see what a vendor learns.
///
/// # Errors
/// `not_found`.
pub fn attachment(core: &Core, user: UserId, locale: Locale) -> Result<Attachment> {
    let profile = core.store.read(|tx| {
        users::find_in(tx, user)?;
        users::profile_in(tx, user)
    })?;
    let introduction = introduction(&profile, core.config.limits.time_zone.today(core.clock.now()));
    let message = message(locale, &introduction);
    Ok(Attachment { reference: model_calls::reference(core, user), introduction, message })
}

fn introduction(profile: &Profile, today: Date) -> Introduction {
    let gender = Some(profile.gender).filter(|gender| *gender != Gender::Unknown).map(Gender::name);
    let nickname = Some(profile.nickname.clone()).filter(|nickname| !nickname.is_empty());
    let birthday = profile.birthday.as_deref().and_then(|birthday| birthday.parse::<Date>().ok());
    Introduction { nickname, gender, age: birthday.map(|birthday| age_band(birthday, today)) }
}

fn message(locale: Locale, introduction: &Introduction) -> String {
    let instructions = match locale {
        Locale::Chinese => CHINESE,
        Locale::English => ENGLISH,
    };
    format!("{}\n{}", instructions.trim(), json!(introduction))
}

/// `30-39`.
fn age_band(birthday: Date, today: Date) -> String {
    let had_it = (today.month(), today.day()) >= (birthday.month(), birthday.day());
    let age = (i32::from(today.year()) - i32::from(birthday.year()) - i32::from(!had_it)).max(0);
    let decade = age / 10 * 10;
    format!("{decade}-{}", decade + 9)
}

fn request(core: &Core, trace_id: &str, profile: &Profile, conversation: Conversation) -> Request {
    let today = core.config.limits.time_zone.today(core.clock.now());
    let content = message(conversation.locale, &introduction(profile, today));
    let own = Message { role: Role::System, content };
    let most = core.config.llm.max_tokens;
    Request {
        trace_id: trace_id.to_owned(),
        user_reference: model_calls::reference(core, profile.id),
        messages: std::iter::once(own).chain(conversation.messages).collect(),
        stream: conversation.stream,
        is_told_documents: true,
        temperature: conversation.temperature.or(core.config.llm.temperature),
        max_tokens: Some(conversation.max_tokens.map_or(most, |asked| asked.min(most))),
        time_left: None,
        reading: None,
    }
}

fn finish(calls: &ModelCalls, prepared: &Prepared, outcome: Outcome) -> Result<Timestamp> {
    let (trace_id, reservation) = (prepared.trace_id.clone(), prepared.reservation.clone());
    let config = Arc::clone(&calls.core.config);
    model_calls::write_down(calls, &prepared.trace_id, move |tx| {
        if !finish_in(tx, &trace_id, &outcome)? {
            return Ok(None);
        }
        Ok(Some((tx.now, outcome.settle_in(tx, &config.llm, &reservation)?)))
    })
}

/// Deletes what is over beyond the user's newest `kept`, a few at a time.
fn make_room_in(tx: &Write<'_>, user: UserId, kept: u32) -> Result<()> {
    tx.execute(
        "delete from chats where id in (select id from chats where user_id = ?1 \
         order by created_at desc, id desc limit ?2 offset ?3) and status <> 'running'",
        (user.0, PURGE_BATCH, kept),
    )
    .map(drop)
}

fn begin_in(
    tx: &Write<'_>,
    trace_id: &str,
    user: UserId,
    messages: usize,
    (provider, model): (&str, &str),
) -> Result<()> {
    users::require_in(tx, user)?;
    tx.execute(
        "insert into chats (trace_id, user_id, messages, status, provider, model, prompt_version, created_at) \
         values (?1, ?2, ?3, 'running', ?4, ?5, ?6, ?7)",
        (trace_id, user.0, i64::try_from(messages).unwrap_or(i64::MAX), provider, model, PROMPT_VERSION, tx.now.0),
    )
    .map(drop)
}

/// Writes what came of a call; false if the record does not say that it runs.
fn finish_in(tx: &Write<'_>, trace_id: &str, outcome: &Outcome) -> Result<bool> {
    let (prompt_tokens, completion_tokens) = outcome.tokens();
    let finished = tx.execute(
        "update chats set status = ?2, provider = ?3, model = ?4, prompt_tokens = ?5, completion_tokens = ?6, \
         cost_micros = ?7, failover = ?8, first_token_ms = ?9, duration_ms = ?10, error_class = ?11, \
         finished_at = ?12 where trace_id = ?1 and status = 'running'",
        (
            trace_id,
            outcome.status.name(),
            outcome.provider,
            &outcome.model,
            prompt_tokens,
            completion_tokens,
            outcome.cost.map(Micros::as_i64),
            &outcome.failover,
            outcome.first_token_ms(),
            outcome.duration_ms(),
            &outcome.error_class,
            tx.now.0,
        ),
    )?;
    Ok(finished == 1)
}

/// Says of all calls that run that they were interrupted, counts them, and says how many they were.
pub fn close_interrupted_in(tx: &Write<'_>, zone: &TimeZone) -> Result<usize> {
    let closed = tx.all(
        "update chats set status = 'interrupted', error_class = 'interrupted', finished_at = ?1 \
         where status = 'running' returning provider, model, created_at",
        [tx.now.0],
        |row| Ok((row.get(0)?, row.get(1)?, Timestamp(row.get(2)?))),
    )?;
    let count = closed.len();
    for (provider, model, created_at) in closed {
        let used = Used::interrupted(KIND, provider, model);
        budget::count_in(tx, &zone.today(created_at).to_string(), &used)?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_within_ten_years() {
        let today = jiff::civil::date(2026, 3, 1);
        let band = |text: &str| age_band(text.parse().unwrap(), today);
        assert_eq!((band("1996-03-01").as_str(), band("1996-03-02").as_str()), ("30-39", "20-29"));
        assert_eq!((band("2026-02-28").as_str(), band("1925-01-01").as_str()), ("0-9", "100-109"));
    }
}
