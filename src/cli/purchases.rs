//! `yarrow purchases`: purchases in app stores.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    Common, PageArgs, choice::choice, cli_authority, find_user_id, key_values, name_missing, or_empty, record_audit,
    row, table,
};
use crate::{
    app::App,
    domain::money::purchases::{
        purchase::PurchaseState,
        queries::{self, BuyerPurchase},
        records::{self, PurchaseDetails, PurchaseFilter},
    },
    error::Result,
    http::{
        console::views::pages::rows,
        responses::{AdminPurchase, AdminPurchaseDetails, BuyerHistory},
    },
};

/// List purchases in app stores, and ask the stores about them
///
/// PURCHASE is the purchase's id, Apple's transaction id, or Google's order number.
#[derive(Debug, Args)]
pub struct PurchasesArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print purchases, newest first
    List {
        /// Only purchases of this user: id, phone number or email address
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Only purchases in this state
        #[arg(long, value_parser = choice!(PurchaseState))]
        state: Option<PurchaseState>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print a purchase with its notifications and ledger entries
    Show {
        /// Purchase id, Apple's transaction id, or Google's order number
        purchase: String,
    },
    /// Ask the App Store about all purchases of a buyer and apply their states
    ///
    /// Finds purchases that the app never reported, if they name an account of this service.
    History {
        /// Purchase id or Apple's transaction id of one of them
        purchase: String,
    },
    /// Ask the store about a purchase and apply its state
    ///
    /// An order number from Apple's mail (such as `MK5TTTVWJH`) finds purchases that were never reported.
    Query {
        /// Purchase id, Apple's transaction id or order number, or Google's order number
        purchase: String,
    },
}

fn print_history(common: &Common, app: &App, number: &str) -> Result<()> {
    let found = queries::history(&app.purchases, number).map_err(name_missing("Purchase", number))?;
    let user = found.iter().find_map(|found| found.purchase.as_ref()?.user);
    record_audit(app, "purchases history", user, cli_authority(None))?;
    common.output(&BuyerHistory::from(found.clone()), || {
        let rows = found.iter().map(|found| {
            let BuyerPurchase { store_number, store_product, purchased_at, is_refunded, purchase } = found;
            let state = purchase.as_ref().map_or("unknown", |purchase| purchase.state.name());
            let refunded = if *is_refunded { "yes" } else { "no" };
            row![store_number, store_product, or_empty(purchased_at.as_ref()), refunded, state]
        });
        table(["transaction", "product", "purchased", "refunded", "state here"], rows)
    })
}

pub fn run(common: &Common, args: PurchasesArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::History { purchase } => print_history(common, &app, &purchase),
        Action::List { user, state, page } => list(common, &app, user.as_deref(), state, &page),
        Action::Show { purchase } => {
            let details = records::find_details(&app.core, &purchase).map_err(name_missing("Purchase", &purchase))?;
            record_audit(&app, "purchases show", details.purchase.user, cli_authority(None))?;
            show(common, &details)
        }
        Action::Query { purchase } => {
            let found = queries::query(&app.purchases, &purchase).map_err(name_missing("Purchase", &purchase))?;
            record_audit(&app, "purchases query", found.user, cli_authority(None))?;
            common.output(&AdminPurchase::from(&found), || format!("purchase {}: {}", found.id, found.state.name()))
        }
    }
}

fn list(common: &Common, app: &App, user: Option<&str>, state: Option<PurchaseState>, page: &PageArgs) -> Result<()> {
    let user = user.map(|who| find_user_id(app, who)).transpose()?;
    let listing = records::list(&app.core, PurchaseFilter { user, state }, page.page())?;
    record_audit(app, "purchases list", user, cli_authority(None))?;
    common.output_list::<_, AdminPurchase>(page.page(), listing, rows::PURCHASE)
}

fn show(common: &Common, details: &PurchaseDetails) -> Result<()> {
    let json = json!(AdminPurchaseDetails::from(details));
    common.output(&json, || {
        let purchase = json["purchase"].as_object().into_iter().flatten();
        let messages = details
            .messages
            .iter()
            .map(|message| row![message.received_at, message.kind, message.verdict, message.message_id]);
        let entries =
            details.entries.iter().map(|entry| row![entry.seq, entry.kind.name(), entry.delta, entry.balance_after]);
        [
            key_values("purchase", purchase.map(|(name, value)| (name.as_str(), super::payments::plain(value)))),
            table(["received", "notification", "verdict", "id"], messages),
            table(["entry", "kind", "coins", "balance"], entries),
        ]
        .join("\n\n")
    })
}
