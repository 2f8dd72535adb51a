//! Sets up logging to standard error.

use std::{io::IsTerminal, sync::Arc};

use serde_json::json;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use super::{Common, Streams, log_buffer::BufferLayer, log_writer::LogWriter};
use crate::{
    clock::Clock,
    config::{LogConfig, LogFormat},
    domain::operations::server_log::LogBuffer,
    error::{Error, Result},
};

const DROPPED: &str = "log lines were dropped because nothing read them";

impl Common {
    /// Starts to log to standard error, with the configured format and level.
    pub fn start_logging(&self, settings: &LogConfig) -> Result<()> {
        match self.streams {
            Streams::OfProcess => start(settings, None),
            Streams::Given(_) => Ok(()),
        }
    }

    /// Starts to log like [`Self::start_logging`]. The buffer receives each event too.
    pub fn start_buffered_logging(&self, settings: &LogConfig, buffer: Arc<LogBuffer>) -> Result<()> {
        match self.streams {
            Streams::OfProcess => start(settings, Some(buffer)),
            Streams::Given(_) => Ok(()),
        }
    }
}

fn start(settings: &LogConfig, buffer: Option<Arc<LogBuffer>>) -> Result<()> {
    let filter: Targets = settings.level.parse().map_err(Error::internal)?;
    let buffer = buffer.map(|buffer| BufferLayer { buffer, clock: Clock::default() });
    let registry = tracing_subscriber::registry().with(filter).with(buffer);
    // Colours only on a terminal: in a journal or a file they are noise.
    let lines = tracing_subscriber::fmt::layer().with_ansi(std::io::stderr().is_terminal());
    let started = match settings.format {
        LogFormat::Text => {
            let format_dropped = |lost| format!(" WARN yarrow::cli: {DROPPED} lost={lost}\n");
            registry.with(lines.with_writer(move || LogWriter { format_dropped })).try_init()
        }
        LogFormat::Json => {
            let format_dropped = |lost| format!("{}\n", json!({ "level": "WARN", "message": DROPPED, "lost": lost }));
            registry.with(lines.with_writer(move || LogWriter { format_dropped }).json().flatten_event(true)).try_init()
        }
    };
    started.map_err(Error::internal)
}
