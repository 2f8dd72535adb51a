//! `yarrow config`: what is set, from where, and what could be.

use std::fmt::Write;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, row, table};
use yarrow::{
    config::{DECLARATIONS, Declaration, Shown},
    error::Result,
};

/// Show the settings, or a sample file with all of them.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print every setting with its value and where that comes from, secrets masked; exit 3 and every fault if something
    /// is wrong.
    Show,
    /// Print a commented file with every setting and its default.
    Sample,
}

pub fn run(common: &Common, args: &ConfigArgs) -> Result<()> {
    match args.action {
        Action::Show => show(common),
        Action::Sample => common.answer(&declared(), || sample().trim_end().to_owned()),
    }
}

/// The same facts as the sample file, for programs.
fn declared() -> Value {
    let row = |declaration: &Declaration| {
        json!({
            "name": declaration.name(), "variable": declaration.variable(), "flag": declaration.flag,
            "default": declaration.default, "shape": declaration.shape, "help": declaration.help,
        })
    };
    json!(DECLARATIONS.iter().map(row).collect::<Vec<_>>())
}

fn show(common: &Common) -> Result<()> {
    let shown = common.load()?.shown;
    let json =
        shown.iter().map(|Shown { name, value, origin }| json!({ "name": name, "value": value, "origin": origin }));
    common.answer(&json.collect::<Vec<_>>(), || {
        table(["setting", "value", "from"], shown.iter().map(|Shown { name, value, origin }| row![name, value, origin]))
    })
}

/// The sample file. Everything in it is commented out, so that it changes nothing until somebody means it.
fn sample() -> String {
    let mut sample = String::from(
        "# Settings of Yarrow. Each can also be an environment variable, which wins over this file:\n\
         # [llm] base_url is YARROW_LLM_BASE_URL, and YARROW_LLM_BASE_URL_FILE names a file that holds the value.\n\
         # There a list is a,b and a table key=value,key=value.\n",
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
        sample.push_str(&sample_of(declaration));
    }
    sample
}

fn sample_of(declaration: &Declaration) -> String {
    let value = (declaration.sample)();
    let value = if value.is_empty() { "\"\"".to_owned() } else { value };
    format!("# {} ({})\n# {} = {value}\n", declaration.help, declaration.shape, declaration.key)
}
