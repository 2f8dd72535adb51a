//! `yarrow points`: balances of points.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Common, PageArgs, authority, check, find_user, ledger, record, shown};
use yarrow::{
    app::App,
    domain::money::{
        ledger::{Asset, Discrepancy, Repair},
        points::{self, LARGEST_ADJUSTMENT},
    },
    error::Result,
    http::answers::LedgerIssue,
    types::counted,
};

/// Show and correct balances of points. WHO is a user's id, phone number or email address.
#[derive(Debug, Args)]
pub struct PointsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print a balance and its entries, newest first.
    Show {
        /// The user: id, phone number or email address.
        who: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Add points, or take them with a number below zero, and print the new balance.
    Adjust {
        /// The user: id, phone number or email address.
        who: String,
        /// How many; less than nothing takes them.
        #[arg(allow_negative_numbers = true, value_parser = adjustment)]
        points: i64,
        /// Why, for the audit.
        #[arg(long, value_parser = super::reason)]
        reason: String,
    },
    /// Take a wrong balance from its entries again, and open the account that was closed for it.
    Repair {
        /// The user: id, phone number or email address.
        who: String,
        /// Why, for the audit.
        #[arg(long, value_parser = super::reason)]
        reason: Option<String>,
    },
}

pub fn run(common: &Common, args: PointsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Show { who, page } => ledger::show(common, &app, "points show", &who, Asset::Point, &page),
        Action::Adjust { who, points, reason } => {
            let (user, by) = (find_user(&app, &who)?.id, authority(Some(reason)));
            let balance = points::adjust(&app, user, points, by.clone()).wait()?;
            record(&app, "points adjust", Some(user), by)?;
            common.answer(&json!({ "userId": user, "balance": balance }), || balance.to_string())
        }
        Action::Repair { who, reason } => repair(common, &app, &who, reason),
    }
}

fn repair(common: &Common, app: &App, who: &str, reason: Option<String>) -> Result<()> {
    let (user, by) = (find_user(app, who)?.id, authority(reason));
    let repair = points::repair(app, user, by.clone()).wait()?;
    record(app, "points repair", Some(user), by)?;
    let discrepancies: &[Discrepancy] = if let Repair::Broken(found) = &repair { found } else { &[] };
    let balance = points::balance(app, user)?;
    let json = json!({
        "userId": user,
        "balance": balance,
        "repaired": matches!(repair, Repair::Repaired { .. }),
        "discrepancies": shown::<_, LedgerIssue>(discrepancies),
    });
    common.answer(&json, || match &repair {
        Repair::Sound => format!("{balance}; there was nothing to repair"),
        Repair::Repaired { before, after } => format!("{after}; it was {before}"),
        Repair::Broken(found) => {
            let places = counted(found.len(), "place", "places");
            format!("the entries are wrong in {places}; the account is closed")
        }
    })?;
    check(discrepancies.is_empty(), "The entries of the account are wrong; only a backup can mend them.")
}

fn adjustment(text: &str) -> Result<i64, String> {
    let range = -LARGEST_ADJUSTMENT..=LARGEST_ADJUSTMENT;
    let points = text.parse().ok().filter(|points| *points != 0 && range.contains(points));
    points.ok_or_else(|| format!("must be a whole number from -{LARGEST_ADJUSTMENT} to {LARGEST_ADJUSTMENT}, not 0"))
}
