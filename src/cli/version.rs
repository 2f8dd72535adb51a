//! `yarrow version`: what this program was built from, for reports of faults.

use clap::Args;
use serde_json::{Map, Value};

use super::Common;
use yarrow::{error::Result, store};

/// Print version, commit, target, compiler, SQLite and schema.
#[derive(Debug, Args)]
pub struct VersionArgs {}

pub fn run(common: &Common, _: &VersionArgs) -> Result<()> {
    let facts = facts();
    let json: Map<_, _> = facts.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str()))).collect();
    common
        .answer(&json, || facts.iter().map(|(name, value)| format!("{name:<8} {value}")).collect::<Vec<_>>().join("\n"))
}

/// The facts, by their names in JSON.
pub fn facts() -> [(&'static str, String); 7] {
    [
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("commit", env!("BUILT_COMMIT").into()),
        ("profile", env!("BUILT_PROFILE").into()),
        ("target", env!("BUILT_TARGET").into()),
        ("compiler", env!("BUILT_RUSTC").into()),
        ("sqlite", store::sqlite_version().into()),
        ("schema", store::SCHEMA_VERSION.to_string()),
    ]
}
