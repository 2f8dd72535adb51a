//! `yarrow man`: manual pages.

use std::path::PathBuf;

use clap::Args;

use serde_json::json;

use super::{Common, program};
use crate::{
    error::{Error, Result},
    store::files::file_error,
};

/// Print the manual page, or write the pages of all commands
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Existing directory for `yarrow.1`, `yarrow-serve.1` and so on
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
}

pub fn run(common: &Common, args: &ManArgs) -> Result<()> {
    if let Some(directory) = &args.out_dir {
        clap_mangen::generate_to(program(), directory).map_err(|error| file_error(directory, error))?;
        // Silent on success, except with `--json`.
        return if common.json { common.print(&json!({ "directory": directory }).to_string()) } else { Ok(()) };
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(program()).render(&mut page).map_err(Error::internal)?;
    let page = String::from_utf8(page).map_err(Error::internal)?;
    common.output(&json!({ "page": page }), || page.trim_end().to_owned())
}
