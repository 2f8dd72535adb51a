//! `yarrow openapi`: the API document, without a running service.

use clap::Args;

use super::{Common, print};
use yarrow::{error::Result, http};

/// Print the OpenAPI document.
#[derive(Debug, Args)]
pub struct OpenapiArgs {}

pub fn run(common: &Common, _: &OpenapiArgs) -> Result<()> {
    print(&http::document(&common.load()?.config, &http::endpoints()))
}
