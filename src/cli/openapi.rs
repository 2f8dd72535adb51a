//! `yarrow openapi`: prints the OpenAPI document without a running server.

use clap::Args;

use super::Common;
use crate::{
    error::Result,
    http::{self, DocumentAudience},
};

/// Print the OpenAPI 3.1 document
#[derive(Debug, Args)]
pub struct OpenapiArgs {
    /// Leave out the endpoints of administrators and payment providers
    #[arg(long)]
    app: bool,
}

pub fn run(common: &Common, args: &OpenapiArgs) -> Result<()> {
    let audience = if args.app { DocumentAudience::App } else { DocumentAudience::All };
    common.print(&http::document(&common.load()?.config, &http::select(http::endpoints(), audience)))
}
