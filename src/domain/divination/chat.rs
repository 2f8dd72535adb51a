//! Chat turns with the language model: one call, one record, and no text stored.
//!
//! The client sends the conversation; the service adds a system message about the user that the client cannot replace,
//! and an opaque reference in place of the user id. Only the user's last message is screened, because clients can make up
//! everything before it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use liuyao::script::verbatim;

use crate::{
    domain::{
        Each,
        divination::{
            help::{self, Asker, HelpAnswer, HelpOccasion},
            model_calls::{
                self, CallReport, ModelCaller, ModelCalls, Outcome,
                hourly_limit::{self, UserCall},
                running_calls::{self, NewCall},
            },
            prompts::{PromptKind, Prompts},
        },
        identity::users::{self, Gender, Profile},
        moderation::{
            self, ScreenedField,
            engine::ContentType,
            reviews,
            risk::{Risk, classify},
        },
    },
    error::Result,
    providers::llm::{
        Flow, MessageRole, ModelMessage, ModelRequest, OutputChunk, Sampling, TokenUsage, builtin::Written,
    },
    store::{
        Read, Write,
        sliding_window::{PURGE_BATCH, WindowUse, is_purge_due},
    },
    types::{Date, LanguageTag, Locale, MicroAmount, Timestamp, UserId},
};

/// A conversation to be continued by the model.
#[derive(Clone)]
pub struct Conversation {
    /// Messages of user and model, the user's last; never empty.
    pub messages: Vec<ModelMessage>,
    pub stream: bool,
    pub sampling: Sampling,
    /// Limited by the setting.
    pub max_tokens: Option<u32>,
    pub locale: Locale,
    /// The region and script that the client prefers.
    pub tag: LanguageTag,
}

/// Messages of the user that decide whether a conversation needs help.
const RISK_MESSAGES: usize = 3;

/// A prepared call, whose record is written.
pub struct PreparedChat {
    pub trace_id: String,
    /// True if the answer begins with the service's own words, which no document of the provider has.
    pub is_of_service: bool,
    /// The calls that the user has left, if this one was counted.
    pub budget_use: Option<WindowUse>,
    user: UserId,
    request: ModelRequest,
}

/// The risk of a conversation, and the message that has it.
#[derive(Clone, Debug)]
pub struct ChatRisk {
    pub risk: Risk,
    message: String,
}

/// The complete answer of the model.
#[derive(Clone, Debug)]
pub struct ChatAnswer {
    pub text: String,
    /// The model that answered.
    pub model: String,
    /// `stop`, or `length` if the token limit cut the text.
    pub finish_reason: String,
    /// The usage that the provider reported, if any.
    pub usage: Option<TokenUsage>,
    pub finished_at: Timestamp,
}

/// The facts about a user that a model gets: name, gender and a ten-year age band, without number or address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Introduction {
    pub nickname: Option<String>,
    pub gender: Option<Gender>,
    /// A ten-year band, such as `30-39`.
    pub age: Option<String>,
}

/// The data about a user that a provider gets with a conversation.
#[derive(Clone, Debug)]
pub struct ChatContext {
    /// The opaque reference by which the provider knows the user.
    pub reference: String,
    pub introduction: Introduction,
    /// The system message before the conversation, with the introduction in it.
    pub message: String,
}

/// Screens the user's last message, reserves the budget and writes the record.
///
/// # Errors
/// `content_rejected` if moderation rejects the message; `too_many_requests`; `budget_spent`.
pub fn prepare(
    calls: &ModelCalls,
    user: UserId,
    mut conversation: Conversation,
    risk: Option<ChatRisk>,
) -> Result<PreparedChat> {
    // Checked here to reject the call before moderation is asked, and again when the call is counted.
    let allowed = calls.core.config.llm.calls_per_user_hour;
    let asker = Asker::find(&calls.core, user, conversation.tag, conversation.locale)?;
    conversation.locale = asker.locale.unwrap_or(conversation.locale);
    let answer_to = |risk: &ChatRisk| calls.help_for(risk.risk, &risk.message, &asker, HelpOccasion::Chat);
    let help = risk.as_ref().map(answer_to);
    let is_limited = help.as_ref().is_none_or(|help| !help.is_whole);
    let profile = calls.core.store.read(|tx| {
        if is_limited {
            hourly_limit::check_in(tx, user, UserCall::Chat, allowed)?;
        }
        users::profile_in(tx, user)
    })?;
    let last = conversation.messages.last().map(|message| message.content.as_str()).unwrap_or_default();
    let field = ScreenedField { name: "messages", content_type: ContentType::Question, text: last };
    let written = asker.language_of(last);
    let risk = risk.map(|risk| risk.risk);
    let mut screening = match moderation::screen_question(&calls.moderation, user, risk, &[field]) {
        Ok(screening) => screening,
        Err(refusal) => return refusal.record::<PreparedChat>(&calls.core).wait(),
    };
    let reviewed = screening.take_reviews();
    if let (Some(masked), Some(last)) = (screening.replacement("messages"), conversation.messages.last_mut()) {
        last.content = masked;
    }
    let trace_id = model_calls::new_trace_id()?;
    let message_count = conversation.messages.len();
    let version = calls.prompts.version(PromptKind::Chat, conversation.locale);
    let class = help.as_ref().map(|help| help.class);
    let request = request(calls, &trace_id, &profile, conversation, help, written);
    let call = calls.new_call(user, UserCall::Chat, &request);
    let config = Arc::clone(&calls.core.config);
    let begin = calls.core.store.write_without_savepoint(move |tx| {
        users::require_in(tx, user)?;
        let check = || hourly_limit::check_in(tx, user, UserCall::Chat, allowed);
        let before = is_limited.then(check).transpose()?;
        running_calls::begin_in(tx, &config, &call)?;
        // Nothing fails from here on.
        if is_limited {
            hourly_limit::count_in(tx, user, UserCall::Chat)?;
        }
        reviews::add_in(tx, &reviewed)?;
        let id = begin_in(tx, &call, message_count, &version)?;
        delete_surplus_in(tx, user, id, config.max_records_per_user())?;
        Ok(before.map(WindowUse::with_another))
    });
    let budget_use = begin.wait()?;
    if let Some(class) = class {
        calls.help.count(class);
    }
    Ok(PreparedChat { trace_id, is_of_service: class.is_some(), budget_use, user, request })
}

/// Returns the gravest risk of the user's last messages.
pub fn risk_of(messages: &[ModelMessage]) -> Option<ChatRisk> {
    let of_user = messages.iter().rev().filter(|message| message.role == MessageRole::User);
    let risks = of_user.take(RISK_MESSAGES).filter_map(|message| Some((classify(&message.content)?, message)));
    risks.min_by_key(|(risk, _)| *risk).map(|(risk, message)| ChatRisk { risk, message: message.content.clone() })
}

/// Calls the model and finishes the record, whatever the outcome. Blocks on the provider.
///
/// `sink` gets each chunk of the output, with the provider's own documents if it sent any.
///
/// # Errors
/// `provider_failed`, `provider_unavailable` or `provider_timeout`, or `content_rejected` if moderation rejects the
/// answer, each with the trace id.
pub fn run(
    calls: &ModelCalls,
    prepared: &PreparedChat,
    sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
) -> Result<ChatAnswer> {
    let caller = ModelCaller { user: Some(prepared.user), kind: UserCall::Chat.name() };
    let CallReport { outcome, failure } = model_calls::run(calls, caller, prepared.request.clone(), sink);
    let (model, usage) = (outcome.model.clone(), outcome.usage);
    let (text, finish_reason) = (outcome.text.clone().unwrap_or_default(), outcome.finish_reason.clone());
    let finished_at = finish(calls, prepared, outcome)?;
    match failure {
        None => {
            let finish_reason = finish_reason.unwrap_or_else(|| "stop".to_owned());
            Ok(ChatAnswer { text, model, finish_reason, usage, finished_at })
        }
        Some(error) => Err(error.with_trace_id(&prepared.trace_id)),
    }
}

/// Exports the user's calls without their texts, oldest first.
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

/// Returns the data about this user that a provider would get, for administrators.
///
/// # Errors
/// `not_found`.
pub fn context(calls: &ModelCalls, user: UserId, locale: Locale) -> Result<ChatContext> {
    let core = &calls.core;
    let profile = core.store.read(|tx| {
        users::find_in(tx, user)?;
        users::profile_in(tx, user)
    })?;
    let introduction = introduction(&profile, core.config.limits.time_zone.today(core.clock.now()));
    let message = message(&calls.prompts, locale, &introduction);
    Ok(ChatContext { reference: model_calls::user_reference(core, user), introduction, message })
}

fn introduction(profile: &Profile, today: Date) -> Introduction {
    let gender = Some(profile.gender).filter(|gender| *gender != Gender::Unknown);
    let nickname = Some(profile.nickname.clone()).filter(|nickname| !nickname.is_empty());
    let birthday = profile.birthday.as_deref().and_then(|birthday| birthday.parse::<Date>().ok());
    Introduction { nickname, gender, age: birthday.map(|birthday| age_band(birthday, today)) }
}

fn message(prompts: &Prompts, locale: Locale, introduction: &Introduction) -> String {
    prompts.chat(locale, &json!(introduction).to_string())
}

/// Returns the ten-year band of an age, such as `30-39`.
fn age_band(birthday: Date, today: Date) -> String {
    let had_birthday = (today.month(), today.day()) >= (birthday.month(), birthday.day());
    let age = (i32::from(today.year()) - i32::from(birthday.year()) - i32::from(!had_birthday)).max(0);
    let decade = age / 10 * 10;
    format!("{decade}-{}", decade + 9)
}

fn request(
    calls: &ModelCalls,
    trace_id: &str,
    profile: &Profile,
    conversation: Conversation,
    help: Option<HelpAnswer>,
    written: Written,
) -> ModelRequest {
    let core = &calls.core;
    let today = core.config.limits.time_zone.today(core.clock.now());
    let about_user = verbatim(&json!(introduction(profile, today)).to_string());
    let content = calls.prompts.chat(conversation.locale, &about_user);
    let content = written.convert(&help::with_rule(content, help.as_ref(), conversation.locale));
    let system = ModelMessage { role: MessageRole::System, content };
    let limit = core.config.llm.max_tokens;
    ModelRequest {
        trace_id: trace_id.to_owned(),
        user_reference: model_calls::user_reference(core, profile.id),
        messages: std::iter::once(system).chain(conversation.messages).collect(),
        stream: conversation.stream,
        with_documents: true,
        sampling: Sampling {
            temperature: conversation.sampling.temperature.or(core.config.llm.temperature),
            ..conversation.sampling
        },
        max_tokens: Some(conversation.max_tokens.map_or(limit, |asked| asked.min(limit))),
        time_left: None,
        reading: None,
        written,
        service_answer: help.map(HelpAnswer::into_service_answer),
    }
}

fn finish(calls: &ModelCalls, prepared: &PreparedChat, outcome: Outcome) -> Result<Timestamp> {
    let trace_id = prepared.trace_id.clone();
    let config = Arc::clone(&calls.core.config);
    model_calls::store_outcome(calls, &prepared.trace_id, move |tx| {
        let Some(warnings) = outcome.settle_in(tx, &config.llm, &trace_id)? else { return Ok(None) };
        Ok(finish_in(tx, &trace_id, &outcome)?.then_some((tx.now, warnings)))
    })
}

/// Deletes finished records beyond the user's newest `kept`, a few at a time.
fn delete_surplus_in(tx: &Write<'_>, user: UserId, newest: i64, kept: u32) -> Result<()> {
    if !is_purge_due(newest, kept) {
        return Ok(());
    }
    tx.execute(
        "delete from chats where id in (select id from chats where user_id = ?1 \
         order by created_at desc, id desc limit ?2 offset ?3) and status <> 'running'",
        (user.0, PURGE_BATCH, kept),
    )
    .map(drop)
}

/// Returns the id of the record.
fn begin_in(tx: &Write<'_>, call: &NewCall, messages: usize, version: &str) -> Result<i64> {
    tx.insert(
        "insert into chats (trace_id, user_id, messages, status, provider, model, prompt_version, created_at) \
         values (?1, ?2, ?3, 'running', ?4, ?5, ?6, ?7)",
        (
            &call.trace_id,
            call.user.0,
            i64::try_from(messages).unwrap_or(i64::MAX),
            call.provider,
            &call.model,
            version,
            tx.now.0,
        ),
    )
}

/// Finishes a record. Returns false if it is not in the state "running".
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
            outcome.cost.map(MicroAmount::as_i64),
            &outcome.failover,
            outcome.first_token_ms(),
            outcome.duration_ms(),
            &outcome.error_class,
            tx.now.0,
        ),
    )?;
    Ok(finished == 1)
}

/// Marks the record of a running call as interrupted.
pub fn interrupt_in(tx: &Write<'_>, trace_id: &str) -> Result<()> {
    tx.execute(
        "update chats set status = 'interrupted', error_class = 'interrupted', finished_at = ?2 \
         where trace_id = ?1 and status = 'running'",
        (trace_id, tx.now.0),
    )
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_disclosed_as_ten_year_band() {
        let today = jiff::civil::date(2026, 3, 1);
        let band = |text: &str| age_band(text.parse().unwrap(), today);
        assert_eq!((band("1996-03-01").as_str(), band("1996-03-02").as_str()), ("30-39", "20-29"));
        assert_eq!((band("2026-02-28").as_str(), band("1925-01-01").as_str()), ("0-9", "100-109"));
    }
}
