//! `yarrow moderation`: selects and compares the moderation services.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::{Common, PageArgs, check, choice::choice, cli_authority, record_audit, row, table};
use crate::{
    app::App,
    domain::moderation::{
        compare::{self, ComparedText, Comparison, TimedRuling},
        engine::ContentType,
        policy::{self, Service},
        shadow_mode, status,
    },
    error::Result,
    http::responses::{ShownDisagreement, TextTested},
    types::decimal_milliseconds,
};

/// Show and select the moderation service: local word list or external moderator
#[derive(Debug, Args)]
pub struct ModerationArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the active service and the state of both
    Status,
    /// Select the service that decides, from the next text on
    Switch {
        /// `external` moderator or `local` word list
        #[arg(value_parser = choice!(Service))]
        to: Service,
    },
    /// Select what happens when the external moderator fails
    Fallback {
        /// `on`: the local list decides; `off`: the request fails with 503
        to: OnOff,
    },
    /// Check texts with both services
    Compare {
        /// Texts to check
        #[arg(required = true)]
        text: Vec<String>,
        /// Content type of the texts
        #[arg(long, value_parser = choice!(ContentType), default_value = ContentType::Question.name())]
        content_type: ContentType,
    },
    /// Print masked texts on which the services disagreed, newest first
    Disagreements {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Probe both services; exit 5 if a configured one fails
    Health,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnOff {
    On,
    Off,
}

pub fn run(common: &Common, args: ModerationArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Status => status(common, &app),
        Action::Switch { to } => {
            let before = policy::switch(&app.core, &app.moderation.external, to).wait()?;
            let change = format!("{} to {}", before.service.name(), to.name());
            record_audit(&app, "moderation switch", None, cli_authority(Some(change)))?;
            status(common, &app)
        }
        Action::Fallback { to } => {
            let name = |falls_back| if falls_back { "on" } else { "off" };
            let falls_back = matches!(to, OnOff::On);
            let before = policy::set_fallback(&app.core, falls_back).wait()?;
            let change = format!("{} to {}", name(before.falls_back), name(falls_back));
            record_audit(&app, "moderation fallback", None, cli_authority(Some(change)))?;
            status(common, &app)
        }
        Action::Compare { text, content_type } => compare(common, &app, text, content_type),
        Action::Disagreements { page } => disagreements(common, &app, &page),
        Action::Health => health(common, &app),
    }
}

fn status(common: &Common, app: &App) -> Result<()> {
    let status = status::current(&app.moderation)?;
    let json = json!({
        "service": status.policy.service.name(), "useAliyun": status.policy.service == Service::External,
        "enableFallback": status.policy.falls_back, "wordCount": status.words.total,
        "allowedPhrases": status.words.allowed_phrases, "version": status.words.version,
        "provider": status.provider, "configured": status.is_configured, "shadowShare": status.sample_rate,
    });
    common.output(&json, || {
        let fallback = if status.policy.falls_back { "on" } else { "off" };
        let rows = [
            row!["active", status.policy.service.name()],
            row!["fallback", fallback],
            row!["external moderator", status.provider],
            row!["words", status.words.total],
            row!["shadow sample rate", status.sample_rate],
        ];
        table(["moderation", ""], rows)
    })
}

fn opinion(opinion: &TimedRuling, content_type: ContentType) -> Value {
    let mut json = json!(TextTested::of(content_type, opinion.ruling.clone()));
    json["found"] = json!(opinion.ruling.found);
    json["durationMs"] = json!(decimal_milliseconds(opinion.took));
    json
}

fn compare(common: &Common, app: &App, texts: Vec<String>, content_type: ContentType) -> Result<()> {
    let texts: Vec<_> = texts.into_iter().map(|content| ComparedText { content, content_type, user: None }).collect();
    let compared = compare::compare_all(&app.moderation, &texts)?;
    let one = |compared: &Comparison| {
        let external = match &compared.external {
            Ok(external) => opinion(external, content_type),
            Err(code) => json!({ "error": code }),
        };
        json!({ "local": opinion(&compared.local, content_type), "external": external, "agree": compared.agree() })
    };
    let json = match compared.as_slice() {
        [single] => one(single),
        many => json!({ "items": many.iter().map(one).collect::<Vec<_>>() }),
    };
    common.output(&json, || compared.iter().map(comparison).collect::<Vec<_>>().join("\n\n"))
}

fn comparison(compared: &Comparison) -> String {
    let verdict = |opinion: &TimedRuling| {
        let ruling = &opinion.ruling;
        let verdict = if ruling.allowed { "allows" } else { "refuses" };
        [verdict.to_owned(), ruling.found.join(", "), format!("{:.1} ms", opinion.took.as_secs_f64() * 1e3)]
    };
    let local = verdict(&compared.local);
    let external = match &compared.external {
        Ok(external) => verdict(external),
        Err(code) => ["fails".to_owned(), code.clone(), String::new()],
    };
    let row = |name: &str, [verdict, found, took]: [String; 3]| [name.to_owned(), verdict, found, took];
    table(["service", "verdict", "found", "took"], [row("local", local), row("external", external)])
}

fn disagreements(common: &Common, app: &App, page: &PageArgs) -> Result<()> {
    let listing = shadow_mode::disagreements(&app.core, page.page())?;
    record_audit(app, "moderation disagreements", None, cli_authority(None))?;
    common.output_page::<_, ShownDisagreement>(page.page(), listing, |listing| {
        let rows = listing.items.iter().map(|row| {
            let (refused_by, reasons) =
                if row.local_allowed { ("external", &row.labels) } else { ("local", &row.words) };
            row![row.at, row.content_type, row.decided_by, refused_by, reasons.join(", "), row.masked_text]
        });
        table(["at", "content type", "decided by", "refused by", "reasons", "masked text"], rows)
    })
}

fn health(common: &Common, app: &App) -> Result<()> {
    let health = status::check_health(&app.moderation)?;
    let probe = health.external.as_ref();
    let failure = probe.and_then(|probe| probe.failure.clone());
    let json = json!({
        "healthy": health.is_healthy(),
        "local": { "healthy": health.local_is_current, "durationMs": decimal_milliseconds(health.local_took) },
        "external": {
            "configured": probe.is_some(), "healthy": health.external_is_healthy(), "error": failure,
            "durationMs": probe.map(|probe| decimal_milliseconds(probe.took)),
        },
    });
    common.output(&json, || {
        let external = match probe {
            None => "not configured".to_owned(),
            Some(probe) => probe.failure.clone().unwrap_or_else(|| "healthy".to_owned()),
        };
        let local = if health.local_is_current { "healthy" } else { "behind the stored list" };
        table(["service", ""], [row!["local", local], row!["external", external]])
    })?;
    check(health.is_healthy(), "A moderation service is unhealthy.")
}
