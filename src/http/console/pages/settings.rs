//! The settings of the running server, read-only.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    config::{DECLARATIONS, DEMO_ORIGIN, Declaration, ResolvedSetting},
    error::Result,
    http::console::{
        request::{ConsoleRequest, ok},
        views::pages::settings::{self as view, SettingRow, Settings},
    },
};

pub async fn list(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let query = console.query.get("q").to_owned();
    let is_changed_only = console.query.get("changed") == "true";
    let wanted = query.to_lowercase();
    let mut sections: Vec<(String, Vec<SettingRow>)> = Vec::new();
    // The settings are in the order of the declarations, so those of a section follow each other.
    for setting in &console.context.app.settings {
        let row = row(setting);
        let is_found = [&row.name, &row.detail].into_iter().any(|text| text.to_lowercase().contains(&wanted));
        if !is_found || is_changed_only && row.source == "default" {
            continue;
        }
        // Settings at the top level are paths.
        let section = row.name.split_once('.').map_or("paths", |(section, _)| section).to_owned();
        match sections.last_mut() {
            Some((last, rows)) if *last == section => rows.push(row),
            _ => sections.push((section, vec![row])),
        }
    }
    ok(view::page(&console.view()?, &Settings { query, is_changed_only, sections }))
}

/// Returns the source of a value. A configuration file may be named like a variable or a flag.
fn source_of(declaration: &Declaration, origin: &str) -> &'static str {
    let variable = declaration.variable();
    let is_flag = declaration.flag.is_some_and(|flag| origin.strip_prefix("--") == Some(flag));
    match origin {
        "default" => "default",
        DEMO_ORIGIN => "demo",
        _ if is_flag => "command_line",
        _ if origin == variable || origin.strip_suffix("_FILE") == Some(&variable) => "environment",
        _ => "file",
    }
}

fn row(setting: &ResolvedSetting) -> SettingRow {
    let ResolvedSetting { name, value, origin } = setting;
    let declaration = DECLARATIONS.iter().find(|declaration| declaration.name() == *name);
    let source = declaration.map_or("file", |declaration| source_of(declaration, origin));
    let help = declaration.map_or("", |found| found.help);
    SettingRow { name: name.clone(), value: value.clone(), source: source.to_owned(), detail: help.to_owned() }
}
