//! `yarrow serve`: runs the service.

use std::sync::Arc;

use clap::Args;

use super::{Common, announce, start_logging};
use yarrow::{
    app::{App, OpenMode},
    domain::operations::preflight,
    error::Result,
    http::serve,
    jobs::Schedule,
};

/// Run the service until SIGTERM or Ctrl-C
///
/// Prints its address on standard error when it is ready.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Runs the background jobs at short intervals, for tests.
    #[arg(long, hide = true)]
    fast_jobs: bool,
    /// Compiles the word list for the first text instead of at the start, for tests.
    #[arg(long, hide = true)]
    lazy_words: bool,
}

pub fn run(common: &Common, args: &ServeArgs) -> Result<()> {
    let config = common.load_for_service(preflight::faults)?.config;
    start_logging(&config.log)?;
    let announce = announce();
    let app = Arc::new(App::open(config, OpenMode::Server, &announce)?);
    let schedule = if args.fast_jobs { Schedule::fast() } else { Schedule::default() };
    let schedule = if args.lazy_words { schedule.without_words() } else { schedule };
    serve::run(&app, schedule, &announce)
}
