//! `yarrow config`: shows settings and their origins, and a sample file.

use std::fmt::Write;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, row, table};
use crate::{
    config::{DECLARATIONS, Declaration, ResolvedSetting},
    domain::operations::preflight,
    error::Result,
};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Characters of a value in the table.
const MAX_WIDTH: usize = 60;

/// Show the active settings, or a sample file
#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print every setting with its value and origin, secrets masked; exit 3 if the configuration is invalid
    Show,
    /// Print a commented TOML file with every setting and its default
    ///
    /// Example: yarrow config sample > yarrow.toml
    Sample,
}

pub fn run(common: &Common, args: &ConfigArgs) -> Result<()> {
    match args.action {
        Action::Show => show(common),
        Action::Sample => common.output(&declarations_json(), || sample().trim_end().to_owned()),
    }
}

/// Returns the declarations of all settings, as JSON.
fn declarations_json() -> Value {
    let row = |declaration: &Declaration| {
        json!({
            "name": declaration.name(), "variable": declaration.variable(), "flag": declaration.flag,
            "default": declaration.default, "shape": declaration.shape, "help": declaration.help,
        })
    };
    json!(DECLARATIONS.iter().map(row).collect::<Vec<_>>())
}

fn show(common: &Common) -> Result<()> {
    let shown = common.load_for_service(preflight::faults)?.shown;
    let to_json = |setting: &ResolvedSetting| json!({ "name": setting.name, "value": setting.to_json(), "origin": setting.origin.to_string() });
    common.output(&shown.iter().map(to_json).collect::<Vec<_>>(), || {
        let rows = shown.iter().map(|ResolvedSetting { name, value, origin }| row![name, shorten(value), origin]);
        table(["setting", "value", "from"], rows)
    })
}

/// Cuts a value that is wide on a terminal, such as a public key, for the table. `--json` prints it in full.
fn shorten(value: &str) -> String {
    if value.width() <= MAX_WIDTH {
        return value.to_owned();
    }
    let mut width = 0;
    let fits = |character: &char| {
        width += character.width().unwrap_or_default();
        width < MAX_WIDTH
    };
    value.chars().take_while(fits).chain(['…']).collect()
}

/// Returns the sample file. Every setting is commented out, so the file as it is changes nothing.
fn sample() -> String {
    let mut sample = String::from(
        "# Settings of Yarrow. Each setting is also an environment variable, which overrides this file:\n\
         # [llm] base_url is YARROW_LLM_BASE_URL; YARROW_LLM_BASE_URL_FILE names a file that contains the value.\n\
         # In the environment a list is a,b and a table is key=value,key=value.\n",
    );
    let mut section = None;
    for declaration in DECLARATIONS {
        if section != Some(declaration.section) {
            section = Some(declaration.section);
            // Writing into a String cannot fail.
            let _ = write!(sample, "\n#{}\n", declaration.section_help);
            if !declaration.section.is_empty() {
                let _ = writeln!(sample, "[{}]", declaration.section);
            }
        }
        sample.push_str(&sample_setting(declaration));
    }
    sample
}

fn sample_setting(declaration: &Declaration) -> String {
    let value = (declaration.sample)();
    let value = if value.is_empty() { "\"\"".to_owned() } else { value };
    format!("# {} ({})\n# {} = {value}\n", declaration.help, declaration.shape, declaration.key)
}
