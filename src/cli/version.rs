//! `yarrow version`: build information for bug reports.

use clap::Args;
use serde_json::{Map, Value};

use super::Common;
use crate::{error::Result, store};

/// Print version, commit, target, compiler, SQLite and schema version
#[derive(Debug, Args)]
pub struct VersionArgs {}

pub fn run(common: &Common, _: &VersionArgs) -> Result<()> {
    let facts = build_info();
    let json: Map<_, _> = facts.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str()))).collect();
    common
        .output(&json, || facts.iter().map(|(name, value)| format!("{name:<8} {value}")).collect::<Vec<_>>().join("\n"))
}

/// Returns the build information, by name.
fn build_info() -> [(&'static str, String); 7] {
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
