//! `yarrow payments`: orders, callbacks, refunds and manual decisions.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::{
    Common, PageArgs, RangeArgs, check, choice::choice, cli_authority, find_user_id, http_rows, key_values, list_of,
    name_missing, or_empty, record_audit, row, table, time_range,
};
use crate::{
    app::App,
    domain::{
        money::payments::{
            bills::{self, BillCheck},
            callbacks::{self, Callback},
            decisions::{self, Decision},
            order::Order,
            order_details::{self, OrderDetails},
            orders::{self, AmountRange, OrderFilter},
            reconcile,
            refunds::{self, Refund, RefundRequestSpec},
            report::{self, OrderReport},
            sandbox::{self, Delivery, TestPayment},
        },
        operations::{figures::parse_day, idempotency::IdempotentRequest},
    },
    error::{Error, Result},
    http::{
        console::views::pages::rows,
        responses::{
            AdminOrder, CallbackReceipt, CheckedBill, CheckedBills, OrderEntry, OrderInquiry, OrderRefunded,
            PaymentReport, Rehearsed, ReportSums,
        },
    },
    providers::payment::OrderState,
    store::Pending,
    types::{Fen, pluralize},
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
    /// Print orders, newest first
    List {
        /// Only orders of this user: id, phone number or email address
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Only orders in this state
        #[arg(long, value_parser = choice!(OrderState))]
        state: Option<OrderState>,
        /// Only orders with this price, such as 6.00, in any currency
        #[arg(long)]
        amount: Option<Fen>,
        /// Only orders with this price or a higher one
        #[arg(long)]
        min_amount: Option<Fen>,
        /// Only orders with this price or a lower one
        #[arg(long)]
        max_amount: Option<Fen>,
        #[command(flatten)]
        range: RangeArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print an order with its refunds, callbacks and ledger entries
    Show {
        /// Order number, or the provider's trade number
        order: String,
    },
    /// Print the callbacks received from the provider, newest first
    Callbacks {
        /// Only callbacks about this order
        #[arg(long)]
        order: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Query the provider about an order and settle it accordingly
    Query {
        /// Order number, or the provider's trade number
        order: String,
    },
    /// Resolve an order in state `review`
    ///
    /// Example: yarrow payments settle 20260102030405000001 write-off --reason "goodwill"
    Settle {
        /// Order number, or the provider's trade number
        order: String,
        /// Decision about the order
        #[arg(value_enum)]
        decision: SettleDecision,
        /// Reason, for the audit
        #[arg(long, value_parser = super::parse_reason)]
        reason: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Refund an order and take back the coins that it bought
    ///
    /// Example: yarrow payments refund 20260102030405000001 --amount 6.00 --reason "bought twice"
    Refund {
        /// Order number, or the provider's trade number
        order: String,
        /// Amount in the order's currency, such as 6.00; default: the whole remaining amount
        #[arg(long)]
        amount: Option<Fen>,
        /// Refund number of your choice; repeating a command with the same number refunds once
        #[arg(long)]
        number: Option<String>,
        /// Reason, for the audit and the buyer
        #[arg(long, value_parser = super::parse_reason)]
        reason: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Process a stored callback again
    Replay {
        /// Callback number, from `yarrow payments callbacks`
        callback: i64,
    },
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
    /// Compare the providers' bills of a day with orders and refunds; exit 5 if they differ
    ///
    /// Differences move their orders to review. Example: yarrow payments bill --day 2026-01-31
    Bill {
        /// The day in Shanghai, such as 2026-01-31
        #[arg(long)]
        day: String,
        /// Only the bill of this channel
        #[arg(long)]
        channel: Option<String>,
    },
    /// Print the checked bills with their differences, newest day first
    Bills {
        #[command(flatten)]
        page: PageArgs,
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

/// The decisions about an order in review, under the names of the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SettleDecision {
    /// Give the user the coins
    Credit,
    /// Leave the order as it is and write off the coins that are owed
    #[value(alias = "dismiss")]
    WriteOff,
    /// Take back the coins that are owed, as far as the balance allows
    #[value(alias = "collect")]
    ClawBack,
    /// Record that all money was returned outside of this service
    #[value(alias = "returned-elsewhere")]
    RefundedExternally,
}

impl From<SettleDecision> for Decision {
    fn from(decision: SettleDecision) -> Self {
        match decision {
            SettleDecision::Credit => Self::Credit,
            SettleDecision::WriteOff => Self::WriteOff,
            SettleDecision::ClawBack => Self::ClawBack,
            SettleDecision::RefundedExternally => Self::RefundedExternally,
        }
    }
}

pub fn run(common: &Common, args: PaymentsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::List { user, state, amount, min_amount, max_amount, range, page } => {
            let user = user.map(|who| find_user_id(&app, &who)).transpose()?;
            let (from, to) = range.bounds(&app)?;
            let amount = AmountRange::new(amount, min_amount, max_amount);
            list(common, &app, OrderFilter { user, state, amount, from, to }, &page)
        }
        Action::Show { order } => {
            let file = order_details::find(&app.payments, &order).map_err(name_missing("Order", &order))?;
            record_audit(&app, "payments show", Some(file.order.user), cli_authority(None))?;
            show(common, &file)
        }
        Action::Callbacks { order, page } => list_callbacks(common, &app, order, &page),
        Action::Query { order } => query(common, &app, &order),
        Action::Settle { order, decision, reason, yes } => {
            common.confirm(yes, &format!("Settle order {order}?"))?;
            settle(common, &app, &order, decision.into(), reason)
        }
        Action::Refund { order, amount, number, reason, yes } => {
            let sum = amount.map_or_else(|| "the remaining amount".to_owned(), |amount| amount.to_string());
            common.confirm(yes, &format!("Refund {sum} of order {order}?"))?;
            refund(common, &app, RefundRequestSpec { order_no: order, amount, refund_no: number }, reason)
        }
        Action::Replay { callback } => replay(common, &app, callback),
        Action::Report { from, to, csv } => print_report(common, &app, &from, &to, csv),
        Action::Bill { day, channel } => check_bills(common, &app, &day, channel.as_deref()),
        Action::Bills { page } => list_bills(common, &app, &page),
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

fn list(common: &Common, app: &App, filter: OrderFilter, page: &PageArgs) -> Result<()> {
    let user = filter.user;
    let listing = orders::list(&app.core, filter, page.page())?;
    record_audit(app, "payments list", user, cli_authority(None))?;
    common.output_list::<_, AdminOrder>(page.page(), listing, rows::ORDER)
}

fn show(common: &Common, file: &OrderDetails) -> Result<()> {
    let json = json!({
        "order": AdminOrder::from(&file.order), "refunds": file.refunds,
        "callbacks": file.callbacks, "entries": http_rows::<_, OrderEntry>(&file.entries),
    });
    common.output(&json, || {
        let order = json["order"].as_object().into_iter().flatten();
        let refunds: Vec<_> = file.refunds.iter().map(|refund| (refund.clone(), file.order.currency)).collect();
        [
            key_values("order", order.map(|(name, value)| (name.as_str(), plain(value)))),
            list_of(rows::REFUND, &refunds),
            callback_table(&file.callbacks),
            list_of(rows::ENTRY, &file.entries),
        ]
        .join("\n\n")
    })
}

fn list_callbacks(common: &Common, app: &App, order_no: Option<String>, page: &PageArgs) -> Result<()> {
    let listing = callbacks::list(&app.core, &callbacks::CallbackFilter { order_no, verdict: None }, page.page())?;
    record_audit(app, "payments callbacks", None, cli_authority(None))?;
    common.output_page::<_, Callback>(page.page(), listing, |listing| callback_table(&listing.items))
}

fn query(common: &Common, app: &App, order_no: &str) -> Result<()> {
    let inquiry = reconcile::inquire(&app.payments, order_no).map_err(name_missing("Order", order_no))?;
    record_audit(app, "payments query", Some(inquiry.order.user), cli_authority(None))?;
    common.output(&OrderInquiry::from(inquiry.clone()), || {
        let status = inquiry.trade.as_ref().map_or("no trade", |trade| trade.status.name());
        format!("provider: {status}; {}", state_text(&inquiry.order))
    })
}

fn settle(common: &Common, app: &App, order_no: &str, decision: Decision, reason: String) -> Result<()> {
    let by = cli_authority(Some(reason));
    let order_no = orders::find(&app.payments, order_no).map_err(name_missing("Order", order_no))?.order_no;
    let once = IdempotentRequest::without_key(None);
    let order = decisions::settle(&app.payments, &order_no, decision, by.clone(), once).wait()?.fresh()?;
    record_audit(app, "payments settle", Some(order.user), by)?;
    common.output(&AdminOrder::from(&order), || state_text(&order))
}

fn refund(common: &Common, app: &App, spec: RefundRequestSpec, reason: String) -> Result<()> {
    let by = cli_authority(Some(reason));
    let order = orders::find(&app.payments, &spec.order_no).map_err(name_missing("Order", &spec.order_no))?;
    let spec = RefundRequestSpec { order_no: order.order_no, ..spec };
    // The provider may refund although this command is killed before it gets the reply.
    super::record_audit_start(app, "payments refund", Some(order.user), by.clone())?;
    let refunded = refunds::refund(&app.payments, &spec, &by, IdempotentRequest::without_key(None))?.fresh()?;
    record_audit(app, "payments refund", Some(refunded.order.user), by)?;
    common.output(&OrderRefunded::from(&refunded), || {
        let (Refund { refund_no, amount, state, .. }, currency) = (&refunded.refund, refunded.order.currency);
        format!("refund {refund_no} of {amount} {currency}: {}; {}", state.name(), state_text(&refunded.order))
    })
}

fn replay(common: &Common, app: &App, callback: i64) -> Result<()> {
    let receipt = callbacks::replay(&app.payments, callback)
        .and_then(Pending::wait)
        .map_err(name_missing("Callback", callback))?;
    record_audit(app, "payments replay", None, cli_authority(None))?;
    let text = format!("{} {}", receipt.verdict.name(), or_empty(receipt.reason.as_ref()));
    common.output(&CallbackReceipt::from(receipt), || text.trim().to_owned())
}

fn sandbox_pay(common: &Common, app: &App, order_no: &str, payment: &TestPayment) -> Result<()> {
    let paid = sandbox::pay(&app.payments, order_no, payment).map_err(name_missing("Order", order_no))?;
    record_audit(app, "payments sandbox-pay", Some(paid.order.user), cli_authority(None))?;
    common.output(&Rehearsed::from(paid.clone()), || {
        let callback = paid.answer.as_deref().map_or_else(
            || "callback lost".to_owned(),
            |response| format!("callback delivered, response `{response}`"),
        );
        format!("{callback}; {}", state_text(&paid.order))
    })
}

fn print_report(common: &Common, app: &App, from: &str, to: &str, csv: bool) -> Result<()> {
    let (from, to) = time_range(app, ("from", Some(from)), ("to", Some(to)))?;
    let report = report::report(&app.payments, from.unwrap_or_default(), to.unwrap_or_default())?;
    record_audit(app, "payments report", None, cli_authority(None))?;
    if csv && !common.json {
        common.print(&comma_separated(&report))?;
    } else {
        common.output(&PaymentReport::from(&report), || report_text(&report))?;
    }
    let orders = pluralize(report.differences.len(), "order", "orders");
    check(report.differences.is_empty(), format!("Money and coins disagree for {orders}."))
}

fn check_bills(common: &Common, app: &App, day: &str, channel: Option<&str>) -> Result<()> {
    let day = parse_day(day).map_err(|fault| Error::field("day", fault))?;
    let checked = bills::check(&app.payments, channel, day)?;
    record_audit(app, "payments bill", None, cli_authority(None))?;
    let count: usize = checked.iter().map(|check| check.differences.len()).sum();
    common.output(&CheckedBills::from(checked.clone()), || bills_text(&checked))?;
    check(count == 0, format!("Bills and orders disagree in {}.", pluralize(count, "place", "places")))
}

fn list_bills(common: &Common, app: &App, page: &PageArgs) -> Result<()> {
    let listing = bills::list(&app.core, page.page())?;
    record_audit(app, "payments bills", None, cli_authority(None))?;
    common.output_page::<_, CheckedBill>(page.page(), listing, |listing| bills_text(&listing.items))
}

fn bills_text(checked: &[BillCheck]) -> String {
    let bills = checked.iter().map(|check| {
        let BillCheck { channel, day, payments, refunds, amount_paid, amount_refunded, fees, .. } = check;
        row![day, channel, payments, amount_paid, refunds, amount_refunded, fees, check.differences.len()]
    });
    let differences = checked.iter().flat_map(|check| &check.differences).map(|found| {
        let yuan = |amount: Option<Fen>| amount.map_or_else(String::new, |amount| amount.to_string());
        row![
            found.code.name(),
            found.order_no,
            or_empty(found.refund_no.as_ref()),
            yuan(found.billed),
            yuan(found.recorded)
        ]
    });
    let differences = table(["difference", "order", "refund", "billed", "recorded"], differences);
    let header = ["day", "channel", "payments", "yuan in", "refunds", "yuan refunded", "fees", "differences"];
    format!("{}\n\n{differences}", table(header, bills))
}

/// The columns of a report: the name in JSON and CSV, and the heading in a table.
const COLUMNS: [(&str, &str); 16] = [
    ("day", "day"),
    ("orders", "orders"),
    ("paid", "paid"),
    ("credited", "credited"),
    ("refunded", "refunded"),
    ("open", "open"),
    ("closed", "closed"),
    ("inReview", "review"),
    ("amountPaid", "yuan in"),
    ("amountRefunded", "yuan refunded"),
    ("coinsCredited", "coins"),
    ("coinsReturned", "coins returned"),
    ("coinsWrittenOff", "written off"),
    ("pointsCredited", "points"),
    ("pointsReturned", "points returned"),
    ("pointsWrittenOff", "written off"),
];

/// The daily sums of a report, followed by the total.
fn report_rows(report: &OrderReport) -> impl Iterator<Item = [String; 16]> {
    let days = report.days.iter().map(|(day, sums)| (day.to_string(), sums));
    days.chain([("total".to_owned(), &report.total)]).map(|(day, sums)| {
        let mut row = json!(ReportSums::from(sums));
        row["day"] = json!(day);
        COLUMNS.map(|(name, _)| plain(&row[name]))
    })
}

/// Formats the report as CSV. No value needs quoting.
fn comma_separated(report: &OrderReport) -> String {
    let header = COLUMNS.map(|(name, _)| name.to_owned());
    [header].into_iter().chain(report_rows(report)).map(|row| row.join(",")).collect::<Vec<_>>().join("\n")
}

fn report_text(report: &OrderReport) -> String {
    let differences = report.differences.iter().map(|difference| {
        let state = difference.state.map_or("", OrderState::name);
        row![difference.code, difference.order_no, state, difference.coins_expected, difference.coins_found]
    });
    let differences = table(["difference", "order", "state", "coins expected", "coins found"], differences);
    let purchases = report.purchases.groups.iter().map(|(group, sums)| {
        let amount = |milli: i64| format!("{}.{:02}", milli / 1000, milli % 1000 / 10);
        row![
            group.store.name(),
            group.product_id,
            group.currency,
            sums.purchases,
            sums.refunded,
            amount(sums.amount_milli),
            amount(sums.amount_refunded_milli),
            sums.credited,
            sums.returned,
            sums.written_off
        ]
    });
    let purchases = table(
        ["store", "product", "currency", "purchases", "refunded", "in", "back", "credited", "returned", "written off"],
        purchases,
    );
    let channels = report.channels.iter().map(|((channel, currency), sums)| {
        let sums = json!(ReportSums::from(sums));
        let [paid, refunded] = ["amountPaid", "amountRefunded"].map(|name| plain(&sums[name]));
        row![channel, currency, plain(&sums["orders"]), plain(&sums["paid"]), paid, refunded]
    });
    let channels = table(["channel", "currency", "orders", "paid", "in", "refunded"], channels);
    let days = table(COLUMNS.map(|(_, heading)| heading), report_rows(report));
    format!("{days}\n\n{channels}\n\n{purchases}\n\n{differences}")
}

fn state_text(order: &Order) -> String {
    format!("order: {}", order.state.name())
}

fn callback_table(callbacks: &[Callback]) -> String {
    let rows: Vec<_> = callbacks.iter().map(|callback| (callback.clone(), true)).collect();
    list_of(rows::CALLBACK, &rows)
}

/// Formats a JSON value without quotes.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
