//! `yarrow payments`: orders, what came in about them, and what a person decides.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{
    Common, PageArgs, authority, choice::choice, confirm, find_user_id, paged, print, record, table, time, unknown,
};
use yarrow::{
    app::App,
    error::{Code, Error, Result},
    ops::{
        idempotency::{Answered, Once},
        payment::{
            callbacks::{self, Callback},
            decisions::{self, Decision},
            order::Order,
            orders::{self, OrderFile},
            reconcile,
            refunds::{self, Refund, Wish},
            report::{self, Difference, Report, Sums},
            sandbox::{self, Delivery, Rehearsal},
        },
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
    let items: Vec<Value> = found.items.iter().map(order_json).collect();
    common.answer(&paged(page.page(), &items, found.total), || {
        table(["order", "user", "yuan", "coins", "state", "why", "made"], found.items.iter().map(order_row))
    })
}

fn show(common: &Common, file: &OrderFile) -> Result<()> {
    let entries = file.entries.iter().map(|entry| {
        json!({
            "seq": entry.seq, "kind": entry.kind.name(), "delta": entry.delta, "balanceAfter": entry.balance_after,
            "createdAt": entry.created_at,
        })
    });
    let json = json!({
        "order": order_json(&file.order),
        "refunds": file.refunds.iter().map(refund_json).collect::<Vec<_>>(),
        "callbacks": file.callbacks.iter().map(callback_json).collect::<Vec<_>>(),
        "entries": entries.collect::<Vec<_>>(),
    });
    common.answer(&json, || {
        let facts = order_json(&file.order);
        let facts = facts.as_object().into_iter().flatten().map(|(name, value)| [name.clone(), plain(value)]);
        let refunds = file.refunds.iter().map(|refund| {
            let state = refund.progress.name().to_owned();
            [refund.refund_no.clone(), refund.amount.to_string(), state, refund.reason.clone()]
        });
        let entries = file.entries.iter().map(|entry| {
            let sums = [entry.delta.to_string(), entry.balance_after.to_string()];
            let [delta, balance] = sums;
            [entry.seq.to_string(), entry.kind.name().to_owned(), delta, balance]
        });
        [
            table(["order", ""], facts),
            table(["refund", "yuan", "state", "reason"], refunds),
            table(["callback", "received", "genuine", "verdict", "why"], file.callbacks.iter().map(callback_row)),
            table(["entry", "kind", "coins", "balance"], entries),
        ]
        .join("\n\n")
    })
}

fn list_callbacks(common: &Common, app: &App, order_no: Option<String>, page: &PageArgs) -> Result<()> {
    let found = callbacks::list(app, &callbacks::Filter { order_no, verdict: None }, page.page())?;
    record(app, "payments callbacks", None, authority(None))?;
    let items: Vec<Value> = found.items.iter().map(callback_json).collect();
    common.answer(&paged(page.page(), &items, found.total), || {
        table(["callback", "received", "genuine", "verdict", "why"], found.items.iter().map(callback_row))
    })
}

fn query(common: &Common, app: &App, order_no: &str) -> Result<()> {
    let inquiry = reconcile::inquire(app, order_no).map_err(unknown("order", order_no))?;
    record(app, "payments query", Some(inquiry.order.user), authority(None))?;
    let trade = inquiry.trade.as_ref().map(
        |trade| json!({ "tradeNo": trade.trade_no, "status": trade.status.name(), "amount": trade.amount.to_string() }),
    );
    let verdict = inquiry.outcome.verdict.name();
    let json = json!({
        "order": order_json(&inquiry.order), "trade": trade, "verdict": verdict, "reason": inquiry.outcome.reason,
    });
    common.answer(&json, || {
        let status = inquiry.trade.as_ref().map_or("no trade", |trade| trade.status.name());
        format!("the provider says {status}; the order is {}", inquiry.order.state.name())
    })
}

fn settle(common: &Common, app: &App, order_no: &str, decision: Decision, reason: String) -> Result<()> {
    let by = authority(Some(reason));
    let order_no = orders::find(app, order_no).map_err(unknown("order", order_no))?.order_no;
    let order = done_now(decisions::settle(app, &order_no, decision, by.clone(), Once::unkeyed(None)).wait()?)?;
    record(app, "payments settle", Some(order.user), by)?;
    show_order(common, &order)
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
    let json = json!({ "refund": refund_json(&done.refund), "order": order_json(&done.order) });
    common.answer(&json, || {
        let Refund { refund_no, amount, progress, .. } = &done.refund;
        let state = progress.name();
        format!("refund {refund_no} of {amount} yuan: {state}; the order is {}", done.order.state.name())
    })
}

fn replay(common: &Common, app: &App, callback: i64) -> Result<()> {
    let receipt = callbacks::replay(app, callback).and_then(Pending::wait).map_err(unknown("callback", callback))?;
    record(app, "payments replay", None, authority(None))?;
    let verdict = receipt.verdict.name();
    let json = json!({
        "id": receipt.id.to_string(), "verdict": verdict, "reason": receipt.reason, "orderNo": receipt.order_no,
        "acknowledged": receipt.is_acknowledged(),
    });
    common.answer(&json, || format!("{verdict} {}", receipt.reason.as_deref().unwrap_or_default()).trim().to_owned())
}

fn sandbox_pay(common: &Common, app: &App, order_no: &str, rehearsal: &Rehearsal) -> Result<()> {
    let done = sandbox::pay(app, order_no, rehearsal).map_err(unknown("order", order_no))?;
    record(app, "payments sandbox-pay", Some(done.order.user), authority(None))?;
    let json = json!({ "order": order_json(&done.order), "answer": done.answer });
    common.answer(&json, || {
        let answer = done.answer.as_deref().map_or_else(
            || "the notification was lost".to_owned(),
            |answer| format!("the notification was answered with `{answer}`"),
        );
        format!("{answer}; the order is {}", done.order.state.name())
    })
}

fn make_report(common: &Common, app: &App, from: &str, to: &str, csv: bool) -> Result<()> {
    let (from, to) = (time(app, "from", from)?, time(app, "to", to)?);
    in_order(("from", from), ("to", to))?;
    let report = report::report(app, from, to)?;
    record(app, "payments report", None, authority(None))?;
    if csv && !common.json {
        print(comma_separated(&report).trim_end())?;
    } else {
        common.answer(&report_json(&report), || report_text(&report))?;
    }
    match report.differences.len() {
        0 => Ok(()),
        some => {
            let orders = counted(some, "order", "orders");
            Err(Error::new(Code::ChecksFailed).detail(format!("Money and coins do not agree in {orders}.")))
        }
    }
}

const SUMS: [&str; 12] = [
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
];

fn sums(sums: &Sums) -> [String; 12] {
    let yuan = |fen: i64| Fen::from_fen(fen).unwrap_or(Fen::ZERO).to_string();
    let counts = [sums.orders, sums.paid, sums.credited, sums.refunded, sums.open, sums.closed, sums.in_review];
    let coins = [sums.coins_credited, sums.coins_returned, sums.coins_written_off];
    let [orders, paid, credited, refunded, open, closed, in_review] = counts.map(|count| count.to_string());
    let [coins_credited, coins_returned, coins_written_off] = coins.map(|count| count.to_string());
    let (amount_paid, amount_refunded) = (yuan(sums.amount_paid), yuan(sums.amount_refunded));
    [
        orders,
        paid,
        credited,
        refunded,
        open,
        closed,
        in_review,
        amount_paid,
        amount_refunded,
        coins_credited,
        coins_returned,
        coins_written_off,
    ]
}

/// The days, and the total in the last line. No value needs quoting.
fn comma_separated(report: &Report) -> String {
    let mut text = format!("day,{}\n", SUMS.join(","));
    let days = report.days.iter().map(|(day, found)| (day.to_string(), found));
    for (day, found) in days.chain([("total".to_owned(), &report.total)]) {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{day},{}", sums(found).join(","));
    }
    text
}

fn report_text(report: &Report) -> String {
    let days = report.days.iter().map(|(day, found)| (day.to_string(), found));
    let rows = days.chain([("total".to_owned(), &report.total)]).map(|(day, found)| {
        let [orders, paid, credited, refunded, open, closed, review, money, back, coins, returned, off] = sums(found);
        [day, orders, paid, credited, refunded, open, closed, review, money, back, coins, returned, off]
    });
    let header = [
        "day",
        "orders",
        "paid",
        "credited",
        "refunded",
        "open",
        "closed",
        "review",
        "yuan in",
        "yuan back",
        "coins",
        "returned",
        "let go",
    ];
    let differences = report.differences.iter().map(|found| {
        let coins = [found.coins_expected.to_string(), found.coins_found.to_string()];
        let [expected, found_coins] = coins;
        [found.code.to_owned(), found.order_no.clone(), state_of(found).to_owned(), expected, found_coins]
    });
    let differences = table(["difference", "order", "state", "coins expected", "coins found"], differences);
    format!("{}\n\n{differences}", table(header, rows))
}

fn state_of(found: &Difference) -> &'static str {
    found.state.map_or("", OrderState::name)
}

fn report_json(report: &Report) -> Value {
    let named = |found: &Sums| -> serde_json::Map<String, Value> {
        let is_money = |name: &str| name.starts_with("amount");
        let value = |name: &str, text: String| match text.parse::<i64>() {
            Ok(number) if !is_money(name) => json!(number),
            _ => json!(text),
        };
        SUMS.into_iter().zip(sums(found)).map(|(name, text)| (name.to_owned(), value(name, text))).collect()
    };
    let days = report.days.iter().map(|(day, found)| {
        let mut day = serde_json::Map::from_iter([("day".to_owned(), json!(day.to_string()))]);
        day.extend(named(found));
        Value::Object(day)
    });
    let differences = report.differences.iter().map(|found| {
        json!({
            "code": found.code, "orderNo": found.order_no, "state": found.state.map(OrderState::name),
            "coinsExpected": found.coins_expected, "coinsFound": found.coins_found,
        })
    });
    json!({
        "from": report.from, "to": report.to, "total": named(&report.total), "days": days.collect::<Vec<_>>(),
        "differences": differences.collect::<Vec<_>>(),
    })
}

fn show_order(common: &Common, order: &Order) -> Result<()> {
    common.answer(&order_json(order), || format!("the order is {}", order.state.name()))
}

fn order_row(order: &Order) -> [String; 7] {
    [
        order.order_no.clone(),
        order.user.to_string(),
        order.amount.to_string(),
        order.coin_count.to_string(),
        order.state.name().to_owned(),
        order.reason.clone().unwrap_or_default(),
        order.created_at.to_string(),
    ]
}

fn order_json(order: &Order) -> Value {
    json!({
        "orderNo": order.order_no, "userId": order.user, "channel": order.channel, "appId": order.app_id,
        "amount": order.amount.to_string(), "coinCount": order.coin_count, "state": order.state.name(),
        "status": order.state.name(),
        "reason": order.reason, "tradeNo": order.trade_no, "paid": order.paid.to_string(),
        "refunded": order.refunded.to_string(),
        "coinsReturned": order.coins_returned, "coinsWrittenOff": order.coins_written_off, "checks": order.checks,
        "nextCheckAt": order.next_check_at, "createdAt": order.created_at, "expiresAt": order.expires_at,
        "paidAt": order.paid_at, "creditedAt": order.credited_at, "closedAt": order.closed_at,
        "refundedAt": order.refunded_at,
    })
}

fn refund_json(refund: &Refund) -> Value {
    json!({
        "refundNo": refund.refund_no, "amount": refund.amount.to_string(), "state": refund.progress.name(),
        "reason": refund.reason, "actor": refund.actor, "failure": refund.failure, "createdAt": refund.created_at,
        "finishedAt": refund.finished_at,
    })
}

fn callback_row(callback: &Callback) -> [String; 5] {
    [
        callback.id.to_string(),
        callback.received_at.to_string(),
        if callback.is_genuine { "yes" } else { "no" }.to_owned(),
        callback.verdict.clone(),
        callback.reason.clone().unwrap_or_default(),
    ]
}

fn callback_json(callback: &Callback) -> Value {
    json!({
        "id": callback.id.to_string(), "receivedAt": callback.received_at, "channel": callback.channel,
        "isGenuine": callback.is_genuine, "verdict": callback.verdict, "reason": callback.reason,
        "orderNo": callback.order_no, "tradeNo": callback.trade_no, "notifyId": callback.notify_id,
        "replayOf": callback.replay_of.map(|id| id.to_string()), "form": String::from_utf8_lossy(&callback.form),
    })
}

/// A value as a person reads it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
