//! `yarrow payments`: orders, what came in about them, and what a person decides.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{
    Common, PageArgs, authority, blank, check, choice::choice, confirm, facts, find_user_id, print, record, row, shown,
    table, time, unknown,
};
use yarrow::{
    app::App,
    domain::{
        money::payments::{
            callbacks::{self, Callback},
            decisions::{self, Decision},
            order::Order,
            orders::{self, OrderFile},
            reconcile,
            refunds::{self, Refund, Wish},
            report::{self, Report},
            sandbox::{self, Delivery, Rehearsal},
        },
        operations::idempotency::{Answered, Once},
    },
    error::{Error, Result},
    http::answers::{
        AdminCallback, AdminOrder, AdminRefund, CallbackReceipt, OrderEntry, OrderInquiry, OrderRefunded,
        PaymentReport, Rehearsed, ReportSums,
    },
    providers::payment::OrderState,
    store::Pending,
    types::{Fen, counted, in_order},
};

/// Show and settle payment orders. ORDER is an order's number, or the provider's.
#[derive(Debug, Args)]
pub struct PaymentsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print orders, newest first.
    List {
        /// Only orders of this user: an id, a phone number or an email address.
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Only orders in this state.
        #[arg(long, value_parser = choice!(OrderState))]
        state: Option<OrderState>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Print everything that is known of an order.
    Show {
        /// The order's number, or the provider's.
        order: String,
    },
    /// Print notifications as they came, newest first.
    Callbacks {
        /// Only those about this order.
        #[arg(long)]
        order: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Ask the provider about an order, and settle it by the answer.
    Query {
        /// The order's number, or the provider's.
        order: String,
    },
    /// Let an order out of review.
    Settle {
        /// The order's number, or the provider's.
        order: String,
        /// `credit` gives the coins; `dismiss` leaves the order as it is and writes off the coins that are owed;
        /// `collect` takes back as many of those as there are; `returned-elsewhere` says that all the money was
        /// returned in another way.
        #[arg(value_parser = choice!(Decision))]
        decision: Decision,
        /// Why, for the audit.
        #[arg(long, value_parser = super::reason)]
        reason: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Return money, and take back the coins that it bought.
    Refund {
        /// The order's number, or the provider's.
        order: String,
        /// Yuan to return; everything that is left if it is not said.
        #[arg(long)]
        amount: Option<Fen>,
        /// A number of your own choice: under one number money goes back once.
        #[arg(long)]
        number: Option<String>,
        /// Why, for the audit and for the buyer.
        #[arg(long, value_parser = super::reason)]
        reason: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Judge a kept notification again.
    Replay {
        /// The callback's number, as `payments callbacks` shows it.
        callback: i64,
    },
    /// Reconcile the orders of a time with the ledger. Exit 5 if some do not agree.
    Report {
        /// Orders made at this time or later, such as 2026-01-01.
        #[arg(long)]
        from: String,
        /// Orders made before this time.
        #[arg(long)]
        to: String,
        /// Print the days as comma-separated values.
        #[arg(long)]
        csv: bool,
    },
    /// Pay an order in the sandbox, which costs nothing.
    SandboxPay {
        /// The order's number, or the provider's.
        order: String,
        /// Pay although the time for it has passed.
        #[arg(long)]
        late: bool,
        /// Let the notification be lost.
        #[arg(long, conflicts_with = "deliver_to")]
        lost: bool,
        /// Deliver the notification by HTTP, such as to `http://127.0.0.1:8080/payment/notify`.
        #[arg(long, value_name = "URL")]
        deliver_to: Option<String>,
    },
}

pub fn run(common: &Common, args: PaymentsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::List { user, state, page } => list(common, &app, user.as_deref(), state, &page),
        Action::Show { order } => {
            let file = orders::file(&app, &order).map_err(unknown("order", &order))?;
            record(&app, "payments show", Some(file.order.user), authority(None))?;
            show(common, &file)
        }
        Action::Callbacks { order, page } => list_callbacks(common, &app, order, &page),
        Action::Query { order } => query(common, &app, &order),
        Action::Settle { order, decision, reason, yes } => {
            confirm(yes, &format!("Settle order {order}?"))?;
            settle(common, &app, &order, decision, reason)
        }
        Action::Refund { order, amount, number, reason, yes } => {
            let sum = amount.map_or_else(|| "everything that is left".to_owned(), |amount| format!("{amount} yuan"));
            confirm(yes, &format!("Return {sum} of order {order}?"))?;
            refund(common, &app, Wish { order_no: order, amount, refund_no: number }, reason)
        }
        Action::Replay { callback } => replay(common, &app, callback),
        Action::Report { from, to, csv } => make_report(common, &app, &from, &to, csv),
        Action::SandboxPay { order, late, lost, deliver_to } => {
            let delivery = match deliver_to {
                Some(address) => Delivery::To(address),
                None if lost => Delivery::Lost,
                None => Delivery::Here,
            };
            sandbox_pay(common, &app, &order, &Rehearsal { late, delivery })
        }
    }
}

fn list(common: &Common, app: &App, user: Option<&str>, state: Option<OrderState>, page: &PageArgs) -> Result<()> {
    let user = user.map(|who| find_user_id(app, who)).transpose()?;
    let filter = orders::Filter { user, state };
    let found = orders::list(app, filter, page.page())?;
    record(app, "payments list", user, authority(None))?;
    common.answer_page::<_, AdminOrder>(page.page(), found, |found| {
        table(["order", "user", "yuan", "coins", "state", "why", "made"], found.items.iter().map(order_row))
    })
}

fn show(common: &Common, file: &OrderFile) -> Result<()> {
    let json = json!({
        "order": AdminOrder::from(&file.order), "refunds": shown::<_, AdminRefund>(&file.refunds),
        "callbacks": shown::<_, AdminCallback>(&file.callbacks), "entries": shown::<_, OrderEntry>(&file.entries),
    });
    common.answer(&json, || {
        let order = json["order"].as_object().into_iter().flatten();
        let refunds = file
            .refunds
            .iter()
            .map(|refund| row![refund.refund_no, refund.amount, refund.progress.name(), refund.reason]);
        let entries =
            file.entries.iter().map(|entry| row![entry.seq, entry.kind.name(), entry.delta, entry.balance_after]);
        [
            facts("order", order.map(|(name, value)| (name.as_str(), plain(value)))),
            table(["refund", "yuan", "state", "reason"], refunds),
            callback_table(&file.callbacks),
            table(["entry", "kind", "coins", "balance"], entries),
        ]
        .join("\n\n")
    })
}

fn list_callbacks(common: &Common, app: &App, order_no: Option<String>, page: &PageArgs) -> Result<()> {
    let found = callbacks::list(app, &callbacks::Filter { order_no, verdict: None }, page.page())?;
    record(app, "payments callbacks", None, authority(None))?;
    common.answer_page::<_, AdminCallback>(page.page(), found, |found| callback_table(&found.items))
}

fn query(common: &Common, app: &App, order_no: &str) -> Result<()> {
    let inquiry = reconcile::inquire(app, order_no).map_err(unknown("order", order_no))?;
    record(app, "payments query", Some(inquiry.order.user), authority(None))?;
    common.answer(&OrderInquiry::from(inquiry.clone()), || {
        let status = inquiry.trade.as_ref().map_or("no trade", |trade| trade.status.name());
        format!("the provider says {status}; {}", standing(&inquiry.order))
    })
}

fn settle(common: &Common, app: &App, order_no: &str, decision: Decision, reason: String) -> Result<()> {
    let by = authority(Some(reason));
    let order_no = orders::find(app, order_no).map_err(unknown("order", order_no))?.order_no;
    let order = done_now(decisions::settle(app, &order_no, decision, by.clone(), Once::unkeyed(None)).wait()?)?;
    record(app, "payments settle", Some(order.user), by)?;
    common.answer(&AdminOrder::from(&order), || standing(&order))
}

fn done_now<T>(answered: Answered<T>) -> Result<T> {
    match answered {
        Answered::Now(done) => Ok(done),
        Answered::Before(_) => Err(Error::internal("a command without a key was answered by an earlier one")),
    }
}

fn refund(common: &Common, app: &App, wish: Wish, reason: String) -> Result<()> {
    let by = authority(Some(reason));
    let order = orders::find(app, &wish.order_no).map_err(unknown("order", &wish.order_no))?;
    let wish = Wish { order_no: order.order_no, ..wish };
    // The money may go back without this command hearing of it, which must not leave the audit without who asked for
    // it.
    super::record_beginning(app, "payments refund", Some(order.user), by.clone())?;
    let done = done_now(refunds::refund(app, &wish, &by, Once::unkeyed(None))?)?;
    record(app, "payments refund", Some(done.order.user), by)?;
    common.answer(&OrderRefunded::from(&done), || {
        let Refund { refund_no, amount, progress, .. } = &done.refund;
        format!("refund {refund_no} of {amount} yuan: {}; {}", progress.name(), standing(&done.order))
    })
}

fn replay(common: &Common, app: &App, callback: i64) -> Result<()> {
    let receipt = callbacks::replay(app, callback).and_then(Pending::wait).map_err(unknown("callback", callback))?;
    record(app, "payments replay", None, authority(None))?;
    let said = format!("{} {}", receipt.verdict.name(), blank(receipt.reason.as_ref()));
    common.answer(&CallbackReceipt::from(receipt), || said.trim().to_owned())
}

fn sandbox_pay(common: &Common, app: &App, order_no: &str, rehearsal: &Rehearsal) -> Result<()> {
    let done = sandbox::pay(app, order_no, rehearsal).map_err(unknown("order", order_no))?;
    record(app, "payments sandbox-pay", Some(done.order.user), authority(None))?;
    common.answer(&Rehearsed::from(done.clone()), || {
        let answer = done.answer.as_deref().map_or_else(
            || "the notification was lost".to_owned(),
            |answer| format!("the notification was answered with `{answer}`"),
        );
        format!("{answer}; {}", standing(&done.order))
    })
}

fn make_report(common: &Common, app: &App, from: &str, to: &str, csv: bool) -> Result<()> {
    let (from, to) = (time(app, "from", from)?, time(app, "to", to)?);
    in_order(("from", from), ("to", to))?;
    let report = report::report(app, from, to)?;
    record(app, "payments report", None, authority(None))?;
    if csv && !common.json {
        print(&comma_separated(&report))?;
    } else {
        common.answer(&PaymentReport::from(&report), || report_text(&report))?;
    }
    let orders = counted(report.differences.len(), "order", "orders");
    check(report.differences.is_empty(), format!("Money and coins do not agree in {orders}."))
}

/// The columns of a report: their names in JSON and comma-separated, and in a table.
const COLUMNS: [(&str, &str); 13] = [
    ("day", "day"),
    ("orders", "orders"),
    ("paid", "paid"),
    ("credited", "credited"),
    ("refunded", "refunded"),
    ("open", "open"),
    ("closed", "closed"),
    ("inReview", "review"),
    ("amountPaid", "yuan in"),
    ("amountRefunded", "yuan back"),
    ("coinsCredited", "coins"),
    ("coinsReturned", "returned"),
    ("coinsWrittenOff", "let go"),
];

/// The days of a report, and the total as the last.
fn report_rows(report: &Report) -> impl Iterator<Item = [String; 13]> {
    let days = report.days.iter().map(|(day, sums)| (day.to_string(), sums));
    days.chain([("total".to_owned(), &report.total)]).map(|(day, sums)| {
        let mut row = json!(ReportSums::from(sums));
        row["day"] = json!(day);
        COLUMNS.map(|(name, _)| plain(&row[name]))
    })
}

/// No value needs quoting.
fn comma_separated(report: &Report) -> String {
    let header = COLUMNS.map(|(name, _)| name.to_owned());
    [header].into_iter().chain(report_rows(report)).map(|row| row.join(",")).collect::<Vec<_>>().join("\n")
}

fn report_text(report: &Report) -> String {
    let differences = report.differences.iter().map(|found| {
        let state = found.state.map_or("", OrderState::name);
        row![found.code, found.order_no, state, found.coins_expected, found.coins_found]
    });
    let differences = table(["difference", "order", "state", "coins expected", "coins found"], differences);
    format!("{}\n\n{differences}", table(COLUMNS.map(|(_, heading)| heading), report_rows(report)))
}

fn standing(order: &Order) -> String {
    format!("the order is {}", order.state.name())
}

fn order_row(order: &Order) -> [String; 7] {
    let Order { order_no, user, amount, coin_count, state, reason, created_at, .. } = order;
    row![order_no, user, amount, coin_count, state.name(), blank(reason.as_ref()), created_at]
}

fn callback_table(callbacks: &[Callback]) -> String {
    let rows = callbacks.iter().map(|callback| {
        let is_genuine = if callback.is_genuine { "yes" } else { "no" };
        row![callback.id, callback.received_at, is_genuine, callback.verdict, blank(callback.reason.as_ref())]
    });
    table(["callback", "received", "genuine", "verdict", "why"], rows)
}

/// A value as a person reads it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
