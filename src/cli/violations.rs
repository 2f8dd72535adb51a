//! `yarrow violations`: texts rejected by moderation.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Common, cli_authority, find_user_id, name_missing, record_audit};
use crate::{
    app::App,
    domain::moderation::violations::{self, FREQUENT_DAYS, FREQUENT_THRESHOLD},
    error::Result,
    http::responses::UserViolations,
    types::PageRequest,
};

/// List and count texts rejected by moderation; delete old records
#[derive(Debug, Args)]
pub struct ViolationsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Count violations by type and list frequent violators
    Stats {
        /// Only of this user: id, phone number or email address
        #[arg(long, value_name = "WHO", conflicts_with_all = ["days", "threshold"])]
        user: Option<String>,
        /// Number of days in which frequent violations are counted
        #[arg(long, default_value_t = FREQUENT_DAYS, value_parser = clap::value_parser!(u32).range(1..))]
        days: u32,
        /// Number of violations that make a frequent violator
        #[arg(long, default_value_t = FREQUENT_THRESHOLD, value_parser = clap::value_parser!(u32).range(1..))]
        threshold: u32,
    },
}

pub fn run(common: &Common, args: ViolationsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Stats { user: Some(who), .. } => of_user(common, &app, &who),
        Action::Stats { user: None, days, threshold } => statistics(common, &app, days, threshold),
    }
}

fn of_user(common: &Common, app: &App, who: &str) -> Result<()> {
    let user = find_user_id(app, who)?;
    let counts = violations::of_user(&app.core, user).map_err(name_missing("User", who))?;
    record_audit(app, "violations stats", Some(user), cli_authority(None))?;
    common.show(&UserViolations::of(user, counts))
}

fn statistics(common: &Common, app: &App, days: u32, threshold: u32) -> Result<()> {
    let types = violations::types(&app.core)?;
    let frequent = violations::frequent(&app.core, days, threshold, PageRequest::of_newest(50))?;
    record_audit(app, "violations stats", None, cli_authority(None))?;
    let json = json!({
        "types": types, "days": days, "threshold": threshold,
        "frequentViolators": frequent.items,
    });
    common.show(&json)
}
