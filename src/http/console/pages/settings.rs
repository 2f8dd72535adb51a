//! The settings of the running server, read-only.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{
    config::{DECLARATIONS, ResolvedSetting, SettingOrigin},
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
        let texts = [&setting.name, row.detail];
        let is_found = texts.into_iter().any(|text| text.to_lowercase().contains(&wanted));
        if !is_found || is_changed_only && setting.origin == SettingOrigin::Default {
            continue;
        }
        // Settings at the top level are paths.
        let section = setting.name.split_once('.').map_or("paths", |(section, _)| section).to_owned();
        match sections.last_mut() {
            Some((last, rows)) if *last == section => rows.push(row),
            _ => sections.push((section, vec![row])),
        }
    }
    ok(view::page(&console.view()?, &Settings { query, is_changed_only, sections }))
}

fn row(setting: &ResolvedSetting) -> SettingRow {
    let declaration = DECLARATIONS.iter().find(|declaration| declaration.name() == setting.name);
    SettingRow { setting: setting.clone(), detail: declaration.map_or("", |declaration| declaration.help) }
}
