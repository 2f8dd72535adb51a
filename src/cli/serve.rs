//! `yarrow serve`: runs the service.

use std::sync::Arc;

use clap::Args;

use super::Common;
use crate::{
    app::{App, OpenMode},
    config::{Config, LoadedConfig, proxy_variables},
    domain::operations::{preflight, server_log::LogBuffer},
    error::Result,
    http::serve::{self, Stop},
    jobs::Schedule,
};

/// Run the service until SIGTERM or Ctrl-C
///
/// Prints its address on standard error when it is ready.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    schedule: ScheduleArgs,
}

/// Hidden options for tests.
#[derive(Debug, Args)]
pub(super) struct ScheduleArgs {
    /// Run the background jobs at short intervals
    #[arg(long, hide = true)]
    fast_jobs: bool,
    /// Compile the word list for the first text and not at the start
    #[arg(long, hide = true)]
    lazy_words: bool,
}

impl ScheduleArgs {
    pub(super) fn schedule(&self) -> Schedule {
        let schedule = if self.fast_jobs { Schedule::fast() } else { Schedule::default() };
        if self.lazy_words { schedule.without_words() } else { schedule }
    }
}

pub fn run(common: &Common, args: &ServeArgs) -> Result<()> {
    let LoadedConfig { config, service_links, shown } = common.load_for_service(preflight::faults)?;
    let server_log: Arc<LogBuffer> = Arc::default();
    common.start_buffered_logging(&config.log, Arc::clone(&server_log))?;
    if !service_links.is_empty() {
        let variables = service_links.join(", ");
        tracing::warn!(variables, "ignored variables that Kubernetes makes for its Services; see enableServiceLinks");
    }
    let proxies = proxy_variables();
    if !proxies.is_empty() {
        tracing::warn!(variables = proxies.join(", "), "outgoing proxies are not used; providers are called directly");
    }
    let announce = common.announce();
    let app = App::open(config, OpenMode::Server, &announce)?.with_settings(shown).with_server_log(server_log);
    let app = Arc::new(app);
    for (section, is_for_development) in app.core.config.drivers() {
        if is_for_development {
            let [effect, _] = Config::development_effect(section);
            tracing::warn!(section, effect, "this driver is for development");
        }
    }
    serve::run(&app, args.schedule.schedule(), Stop::Signals, &announce)
}
