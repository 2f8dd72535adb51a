//! `yarrow openapi`: prints the OpenAPI document without a running server.

use clap::Args;

use super::{Common, print};
use yarrow::{error::Result, http};

/// Print the OpenAPI 3.1 document
#[derive(Debug, Args)]
pub struct OpenapiArgs {}

pub fn run(common: &Common, _: &OpenapiArgs) -> Result<()> {
    print(&http::document(&common.load()?.config, &http::endpoints()))
}
