//! `yarrow serve`: runs the service.

use std::sync::Arc;

use clap::Args;

use super::{Common, announce, start_logging};
use yarrow::{
    app::{App, OpenMode},
    domain::operations::preflight,
    error::Result,
    http::serve,
};

/// Run the service until SIGTERM or Ctrl-C
///
/// Prints its address on standard error when it is ready.
#[derive(Debug, Args)]
pub struct ServeArgs {}

pub fn run(common: &Common, _: &ServeArgs) -> Result<()> {
    let config = common.load_for_service(preflight::faults)?.config;
    start_logging(&config.log)?;
    let announce = announce();
    let app = Arc::new(App::open(config, OpenMode::Server, &announce)?);
    serve::run(&app, &announce)
}
