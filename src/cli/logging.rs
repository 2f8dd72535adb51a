//! The log of a command, on standard error.

use std::io::IsTerminal;

use serde_json::json;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use super::log_lines::LogLines;
use yarrow::{
    config::{Log, LogFormat},
    error::{Error, Result},
};

/// Sends log lines to standard error from here on.
pub fn start_logging(settings: &Log) -> Result<()> {
    let filter: Targets = settings.level.parse().map_err(Error::internal)?;
    let registry = tracing_subscriber::registry().with(filter);
    // Colours are for terminals; in a journal or a file they are noise.
    let is_terminal = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_ansi(is_terminal);
    let started = match settings.format {
        LogFormat::Text => {
            let told_lost = |lost| format!(" WARN yarrow::cli: nobody read the log; lines are missing lost={lost}\n");
            registry.with(lines.with_writer(move || LogLines { told_lost })).try_init()
        }
        LogFormat::Json => {
            let told_lost = |lost| {
                let message = "nobody read the log; lines are missing";
                format!("{}\n", json!({ "level": "WARN", "message": message, "lost": lost }))
            };
            registry.with(lines.with_writer(move || LogLines { told_lost }).json().flatten_event(true)).try_init()
        }
    };
    started.map_err(Error::internal)
}
