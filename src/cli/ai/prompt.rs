//! `yarrow ai prompt` and `yarrow ai test`: the instructions of the model, and a call with them.

use clap::Args;
use serde_json::{Value, json};

use super::super::{Common, cli_authority, key_values, or_empty, record_audit, row, table};
use liuyao::interpreter::View;

use crate::{
    app::App,
    config::configuration_error,
    domain::divination::{
        chart::{CastTime, DayStart},
        hexagram::{Cast, Lines},
        interpretation::{self, CastingQuestion},
        model_calls::{CallReport, Outcome, test_call},
        prompts::{PromptKind, PromptTemplate, Prompts},
        sessions::Method,
    },
    error::{Error, Result},
    providers::llm::{ModelMessage, ModelRequest},
    types::{JsonText, LanguageTag, Locale, TimeZone, Timestamp},
};

/// The templates to print.
#[derive(Debug, Args)]
pub struct PromptArgs {
    /// Print the texts too
    #[arg(long)]
    show: bool,
    /// Only those of this kind: interpretation or chat
    #[arg(long, value_parser = parse_kind)]
    kind: Option<PromptKind>,
    /// Only those in this language: zh or en
    #[arg(long, value_parser = parse_language)]
    lang: Option<Locale>,
}

/// The casting to interpret, if any.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Interpret this casting: six digits from the bottom line up, 6 to 9, such as 788976
    #[arg(long, value_name = "LINES", value_parser = parse_lines)]
    casting: Option<Lines>,
    /// Time of the casting, such as 2026-11-25T23:30; without it the chart has no time
    #[arg(long, value_name = "TIME", requires = "casting")]
    at: Option<String>,
    /// Time zone of the casting, such as Asia/Shanghai; default: `limits.time_zone`
    #[arg(long, value_name = "ZONE", requires = "at", value_parser = parse_zone)]
    zone: Option<TimeZone>,
    /// The question; without it the hexagram is read for itself
    #[arg(long, value_name = "TEXT", requires = "casting")]
    question: Option<String>,
    /// The topic of the question, such as career
    #[arg(long, value_name = "TEXT", requires = "casting")]
    question_type: Option<String>,
    /// Language of the interpretation: zh or en
    #[arg(long, requires = "casting", value_parser = parse_language, default_value = "zh")]
    lang: Locale,
    /// Print the prompt and make no call
    #[arg(long, requires = "casting")]
    prompt_only: bool,
}

/// The request of a test with its instructions' version.
struct TestPrompt {
    version: String,
    request: ModelRequest,
}

fn parse_kind(name: &str) -> Result<PromptKind, String> {
    PromptKind::from_name(name).ok_or_else(|| "must be interpretation or chat".to_owned())
}

fn parse_language(name: &str) -> Result<Locale, String> {
    Locale::from_name(name).ok_or_else(|| "must be zh or en".to_owned())
}

fn parse_lines(text: &str) -> Result<Lines, String> {
    text.trim().parse().map_err(|error| format!("{error}"))
}

fn parse_zone(name: &str) -> Result<TimeZone, String> {
    name.parse().map_err(|_| "is not a time zone, such as Asia/Shanghai".to_owned())
}

pub fn show(common: &Common, args: &PromptArgs) -> Result<()> {
    let prompts = Prompts::load(&common.load()?.config).map_err(|faults| configuration_error(&faults))?;
    let is_asked = |template: &PromptTemplate<'_>| {
        args.kind.is_none_or(|kind| kind == template.kind) && args.lang.is_none_or(|lang| lang == template.locale)
    };
    let templates: Vec<_> = prompts.all().filter(is_asked).collect();
    let to_json = |template: &PromptTemplate<'_>| {
        let mut value = json!({
            "kind": template.kind.name(), "lang": template.locale.name(), "version": template.version,
            "file": template.file,
        });
        if args.show {
            value["text"] = template.text.into();
        }
        value
    };
    common.output(&templates.iter().map(to_json).collect::<Vec<_>>(), || {
        if !args.show {
            let cells = |template: &PromptTemplate<'_>| {
                row![template.kind.name(), template.locale.name(), template.version, source(template)]
            };
            return table(["kind", "lang", "version", "source"], templates.iter().map(cells));
        }
        let text = |template: &PromptTemplate<'_>| {
            let (kind, lang) = (template.kind.name(), template.locale.name());
            format!("# {kind}, {lang}, version {}, {}\n\n{}", template.version, source(template), template.text)
        };
        templates.iter().map(text).collect::<Vec<_>>().join("\n\n")
    })
}

fn source(template: &PromptTemplate<'_>) -> String {
    template.file.map_or_else(|| "built in".to_owned(), |file| file.display().to_string())
}

pub fn test(common: &Common, app: &App, args: &TestArgs) -> Result<()> {
    let Some(lines) = args.casting else {
        let CallReport { outcome, failure } = test_call::make(&app.model_calls)?;
        record_audit(app, "ai test", None, cli_authority(None))?;
        common.output(&outcome_json(&outcome), || outcome_text(app, &outcome))?;
        return failure.map_or(Ok(()), Err);
    };
    let prompt = prompt(app, args, lines)?;
    if args.prompt_only {
        return common.output(&json!({ "prompt": prompt_json(&prompt) }), || prompt_text(&prompt));
    }
    let CallReport { outcome, failure } = test_call::run_test(&app.model_calls, prompt.request.clone())?;
    record_audit(app, "ai test", None, cli_authority(None))?;
    let mut json = outcome_json(&outcome);
    json["prompt"] = prompt_json(&prompt);
    common.output(&json, || format!("{}\n\n{}", prompt_text(&prompt), outcome_text(app, &outcome)))?;
    failure.map_or(Ok(()), Err)
}

/// Builds the prompt that an interpretation of a session with these lines has.
fn prompt(app: &App, args: &TestArgs, lines: Lines) -> Result<TestPrompt> {
    let zone = args.zone.clone().unwrap_or_else(|| app.core.config.limits.time_zone.clone());
    let at = args.at.as_deref().map(|text| Timestamp::parse(text, &zone)).transpose();
    let at = at.map_err(|fault| Error::field("at", fault))?;
    let question = CastingQuestion {
        question_type: args.question_type.clone(),
        question: args.question.as_deref().unwrap_or_default().trim().to_owned(),
        divination_data: Some(JsonText::from_stored(format!(r#"{{"lines":{:?}}}"#, lines.values()))),
        cast: Some(Cast::from_lines(lines)),
        cast_time: at.map(|at| CastTime { at, zone, day_start: DayStart::default() }),
        method: Some(Method::Manual.name()),
        locale: args.lang,
        tag: LanguageTag::default(),
        view: View::default(),
    };
    let request = interpretation::request_for_test(&app.model_calls, &question)?;
    Ok(TestPrompt { version: app.model_calls.prompts.version(PromptKind::Interpretation, args.lang), request })
}

fn prompt_json(prompt: &TestPrompt) -> Value {
    let message = |message: &ModelMessage| json!({ "role": message.role.name(), "content": message.content });
    json!({ "version": prompt.version, "messages": prompt.request.messages.iter().map(message).collect::<Vec<_>>() })
}

fn prompt_text(prompt: &TestPrompt) -> String {
    let message = |message: &ModelMessage| format!("# {}\n\n{}", message.role.name(), message.content);
    let messages: Vec<_> = prompt.request.messages.iter().map(message).collect();
    format!("# prompt version {}\n\n{}", prompt.version, messages.join("\n\n"))
}

fn outcome_json(outcome: &Outcome) -> Value {
    let (prompt_tokens, completion_tokens) = outcome.tokens();
    json!({
        "outcome": outcome.status.name(), "provider": outcome.provider, "model": outcome.model,
        "failover": outcome.failover, "errorClass": outcome.error_class, "firstTokenMs": outcome.first_token_ms(),
        "durationMs": outcome.duration_ms(), "promptTokens": prompt_tokens, "completionTokens": completion_tokens,
        "cost": outcome.cost.map(|cost| cost.to_string()), "text": outcome.text,
    })
}

fn outcome_text(app: &App, outcome: &Outcome) -> String {
    let (prompt_tokens, completion_tokens) = outcome.tokens();
    let unknown = || "unknown".to_owned();
    let milliseconds = |time: Option<i64>| time.map_or_else(unknown, |time| format!("{time} ms"));
    let number = |number: Option<i64>| number.map_or_else(unknown, |number| number.to_string());
    let cost = |cost| format!("{cost} {}", app.core.config.llm.currency);
    let found = [
        ("outcome", outcome.status.name().to_owned()),
        ("provider", format!("{} ({})", outcome.provider, outcome.model)),
        ("failover reason", outcome.failover.clone().unwrap_or_else(|| "no failover".to_owned())),
        ("first token", milliseconds(outcome.first_token_ms())),
        ("duration", milliseconds(Some(outcome.duration_ms()))),
        ("tokens in", number(prompt_tokens)),
        ("tokens out", number(completion_tokens)),
        ("cost", outcome.cost.map_or_else(unknown, cost)),
    ];
    format!("{}\n\n{}", key_values("test", found), or_empty(outcome.text.as_ref()))
}
