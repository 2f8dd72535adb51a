//! `yarrow payments`: orders, callbacks, refunds and manual decisions.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Common, check, cli_authority, name_missing, record_audit, time_range};
use crate::{
    app::App,
    domain::money::payments::{
        report::{self, OrderReport},
        sandbox::{self, Delivery, TestPayment},
    },
    error::Result,
    http::responses::{PaymentReport, Rehearsed, ReportSums},
    types::pluralize,
};

/// List, settle, refund and reconcile payment orders
///
/// ORDER is the order number, or the provider's trade number.
#[derive(Debug, Args)]
pub struct PaymentsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Reconcile the orders of a time range with the ledger; exit 5 if they disagree
    ///
    /// Example: yarrow payments report --from 2026-01-01 --to 2026-01-31
    Report {
        /// Orders created at or after this time, such as 2026-01-01
        #[arg(long)]
        from: String,
        /// Orders created before this time, or on this day
        #[arg(long)]
        to: String,
        /// Print the daily sums as comma-separated values
        #[arg(long)]
        csv: bool,
    },
    /// Pay an order in the sandbox; no money moves
    SandboxPay {
        /// Order number, or the provider's trade number
        order: String,
        /// Pay even if the order has expired
        #[arg(long)]
        late: bool,
        /// Simulate a lost callback
        #[arg(long, conflicts_with = "deliver_to")]
        lost: bool,
        /// Deliver the callback by HTTP, such as to <http://127.0.0.1:8080/payment/notify>
        #[arg(long, value_name = "URL")]
        deliver_to: Option<String>,
    },
}

pub fn run(common: &Common, args: PaymentsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Report { from, to, csv } => print_report(common, &app, &from, &to, csv),
        Action::SandboxPay { order, late, lost, deliver_to } => {
            let delivery = match deliver_to {
                Some(address) => Delivery::To(address),
                None if lost => Delivery::Lost,
                None => Delivery::Here,
            };
            sandbox_pay(common, &app, &order, &TestPayment { late, delivery })
        }
    }
}

fn sandbox_pay(common: &Common, app: &App, order_no: &str, payment: &TestPayment) -> Result<()> {
    let paid = sandbox::pay(&app.payments, order_no, payment).map_err(name_missing("Order", order_no))?;
    record_audit(app, "payments sandbox-pay", Some(paid.order.user), cli_authority(None))?;
    common.show(&Rehearsed::from(paid))
}

fn print_report(common: &Common, app: &App, from: &str, to: &str, csv: bool) -> Result<()> {
    let (from, to) = time_range(app, ("from", Some(from)), ("to", Some(to)))?;
    let report = report::report(&app.payments, from.unwrap_or_default(), to.unwrap_or_default())?;
    record_audit(app, "payments report", None, cli_authority(None))?;
    if csv && !common.json {
        common.print(&comma_separated(&report))?;
    } else {
        common.show(&PaymentReport::from(&report))?;
    }
    let orders = pluralize(report.differences.len(), "order", "orders");
    check(report.differences.is_empty(), format!("Money and coins disagree for {orders}."))
}

/// The columns of a report as comma-separated values.
const COLUMNS: [&str; 16] = [
    "day",
    "orders",
    "paid",
    "credited",
    "refunded",
    "open",
    "closed",
    "inReview",
    "amountPaid",
    "amountRefunded",
    "coinsCredited",
    "coinsReturned",
    "coinsWrittenOff",
    "pointsCredited",
    "pointsReturned",
    "pointsWrittenOff",
];

/// Formats the daily sums of a report, followed by the total. No value needs quoting.
fn comma_separated(report: &OrderReport) -> String {
    let days = report.days.iter().map(|(day, sums)| (day.to_string(), sums));
    let rows = days.chain([("total".to_owned(), &report.total)]).map(|(day, sums)| {
        let mut row = json!(ReportSums::from(sums));
        row["day"] = json!(day);
        COLUMNS.map(|name| row[name].as_str().map_or_else(|| row[name].to_string(), str::to_owned)).join(",")
    });
    std::iter::once(COLUMNS.join(",")).chain(rows).collect::<Vec<_>>().join("\n")
}
