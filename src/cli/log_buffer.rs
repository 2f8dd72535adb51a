//! A tracing layer that hands the events of the log to a buffer, from which the server stores the newest.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::layer::{Context, Layer};

use crate::{
    clock::Clock,
    domain::operations::server_log::{LogBuffer, LogEvent, LogLevel},
};

/// A layer that records each event in a buffer.
pub struct BufferLayer {
    pub buffer: Arc<LogBuffer>,
    pub clock: Clock,
}

impl<S: Subscriber> Layer<S> for BufferLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = FieldTexts::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        self.buffer.record(LogEvent {
            at: self.clock.now(),
            level: level_of(*metadata.level()),
            target: metadata.target().to_owned(),
            message: fields.message,
            fields: fields.others,
        });
    }
}

fn level_of(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

/// The values of an event as texts.
#[derive(Default)]
struct FieldTexts {
    message: String,
    others: BTreeMap<String, String>,
}

impl FieldTexts {
    fn put(&mut self, field: &Field, text: String) {
        if field.name() == "message" {
            self.message = text;
        } else {
            self.others.insert(field.name().to_owned(), text);
        }
    }
}

impl Visit for FieldTexts {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}"));
    }
}
