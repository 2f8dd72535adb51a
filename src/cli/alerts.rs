//! `yarrow alerts`: the state of alert rules, and a test message.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Common, or_empty, row, table};
use crate::{
    domain::operations::{
        alerts::{self, ActiveAlert, AlertContent, Finding},
        health::HealthSnapshot,
    },
    error::Result,
};

/// List alert rules and their state, or send a test message
#[derive(Debug, Args)]
pub struct AlertsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the alert rules, with the firing ones and since when
    ///
    /// Only the running server knows whether a provider is down; for those rules its last message is shown.
    List,
}

pub fn run(common: &Common, args: &AlertsArgs) -> Result<()> {
    match args.action {
        Action::List => list(common),
    }
}

fn list(common: &Common) -> Result<()> {
    let app = common.open()?;
    let snapshot = HealthSnapshot::collect(&app.health)?;
    let findings = alerts::evaluate(&app.health, &snapshot);
    let active = app.core.store.read(alerts::active_in)?;
    let rows: Vec<_> = findings
        .into_iter()
        .map(|Finding { rule, is_firing, fact }| {
            let notified = active.get(&rule);
            let firing = is_firing.then(|| AlertContent::from(alerts::with_advice(&app.core, fact)));
            (rule, firing.or_else(|| notified.map(|alert| alert.content.clone())), notified)
        })
        .collect();
    let items: Vec<_> = rows
        .iter()
        .map(|(rule, firing, notified)| {
            json!({
                "rule": rule, "firing": firing.is_some(), "detail": firing.as_ref().map(|content| &content.detail),
                "values": firing.as_ref().and_then(AlertContent::values),
                "since": notified.map(ActiveAlert::since), "toldAt": notified.map(ActiveAlert::notified_at),
            })
        })
        .collect();
    common.output(&json!({ "items": items, "total": items.len() }), || {
        let rows = rows.iter().map(|(rule, firing, notified)| {
            let (state, detail) = firing.as_ref().map_or(("quiet", ""), |content| ("firing", &content.detail));
            row![rule, state, or_empty(notified.map(ActiveAlert::since)), detail]
        });
        table(["rule", "state", "since", "detail"], rows)
    })
}
