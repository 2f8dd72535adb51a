//! `yarrow moderation`: selects and compares the moderation services.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, choice::choice, cli_authority, record_audit};
use crate::{
    app::App,
    domain::moderation::{
        compare::{self, ComparedText, Comparison, TimedRuling},
        engine::ContentType,
        policy::{self, Service},
        status,
    },
    error::Result,
    http::responses::TextTested,
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
    /// Select the service that decides, from the next text on
    Switch {
        /// `external` moderator or `local` word list
        #[arg(value_parser = choice!(Service))]
        to: Service,
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
}

pub fn run(common: &Common, args: ModerationArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Switch { to } => {
            let before = policy::switch(&app.core, &app.moderation.external, to).wait()?;
            let change = format!("{} to {}", before.service.name(), to.name());
            record_audit(&app, "moderation switch", None, cli_authority(Some(change)))?;
            status(common, &app)
        }
        Action::Compare { text, content_type } => compare(common, &app, text, content_type),
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
    common.show(&json)
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
    common.show(&json)
}
