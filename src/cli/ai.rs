//! `yarrow ai`: usage, cost, ratings, instructions and a test of the language model.

mod prompt;

use std::collections::BTreeMap;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use self::prompt::{PromptArgs, TestArgs};
use super::{Common, row, table};
use crate::{
    app::App,
    domain::divination::budget::{self, UsageRow},
    error::{Error, Fault, FieldCode, Result},
    types::{Date, MicroAmount},
};

/// Length of the longest bar, in characters.
const MAX_BAR_LENGTH: u64 = 40;

/// Show usage, cost and ratings of the language model, or test it
#[derive(Debug, Args)]
pub struct AiArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print calls, tokens and cost, and today's budgets
    ///
    /// Example: yarrow ai usage --days 30 --by model
    Usage {
        /// Number of days, including today
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=3_660))]
        days: u16,
        /// Group rows by
        #[arg(long, value_enum, default_value_t = By::Day)]
        by: By,
    },
    /// Print the templates of the model's instructions, with their versions and files; needs no data directory
    ///
    /// Example: yarrow ai prompt --show --kind interpretation --lang en
    Prompt(PromptArgs),
    /// Make one real call to the configured model and time it; exit 1 if it fails
    ///
    /// With a casting it sends the prompt of an interpretation. It prints prompt and answer, and keeps no record.
    ///
    /// Example: yarrow ai test --casting 788976 --at 2026-11-25T23:30 --zone Asia/Shanghai --question 今年换工作合适吗？
    Test(TestArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    Day,
    Model,
    Outcome,
    Kind,
}

/// Sums over rows of usage.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    calls: u64,
    prompt_tokens: u64,
    completion_tokens: u64,
    cost: MicroAmount,
    duration_ms: u64,
}

pub fn run(common: &Common, args: &AiArgs) -> Result<()> {
    match &args.action {
        Action::Usage { days, by } => usage(common, &common.open()?, *days, *by),
        Action::Prompt(args) => prompt::show(common, args),
        Action::Test(args) => prompt::test(common, &common.open()?, args),
    }
}

fn usage(common: &Common, app: &App, days: u16, by: By) -> Result<()> {
    let today = app.core.config.limits.time_zone.today(app.core.clock.now());
    let span = jiff::Span::new().days(i64::from(days) - 1);
    let from = today.checked_sub(span).map_err(|_| {
        Error::field(
            "days",
            Fault::new(
                FieldCode::OutOfRange,
                ("reaches back before the earliest supported date", "早于最早支持的日期"),
            ),
        )
    })?;
    let rows = budget::usage(&app.core, from, today)?;
    let grouped = grouped(&rows, by, from, today);
    let spent = budget::spent_today(&app.core)?;
    let llm = &app.core.config.llm;
    let items = grouped.iter().map(|(name, sums)| sums_json(by, name, sums));
    let json = json!({
        "from": from.to_string(), "to": today.to_string(), "by": by.name(), "currency": llm.currency,
        "items": items.collect::<Vec<_>>(),
        "today": {
            "tokens": spent.tokens, "tokensPerDay": llm.tokens_per_day,
            "cost": spent.cost.to_string(), "costPerDay": llm.cost_per_day.map(|cost| cost.to_string()),
        },
    });
    common.output(&json, || {
        let header = [by.name(), "calls", "tokens in", "tokens out", llm.currency.as_str(), "mean ms"];
        let shown = table(header, grouped.iter().map(|(name, sums)| sums_row(name, sums)));
        let budgets = budgets(app, spent);
        format!("{shown}\n\n{}\n\n{budgets}", bars(&grouped))
    })
}

/// Sums the rows by group. By day, days without calls are included.
fn grouped(rows: &[UsageRow], by: By, from: Date, to: Date) -> BTreeMap<String, Sums> {
    let mut grouped: BTreeMap<String, Sums> = BTreeMap::new();
    if by == By::Day {
        let days = from.series(jiff::Span::new().days(1)).take_while(|day| *day <= to);
        grouped.extend(days.map(|day| (day.to_string(), Sums::default())));
    }
    for row in rows {
        let name = match by {
            By::Day => row.day.clone(),
            By::Model => format!("{}/{}", row.provider, row.model),
            By::Outcome => row.outcome.clone(),
            By::Kind => row.kind.clone(),
        };
        grouped.entry(name).or_default().add(row);
    }
    grouped
}

impl Sums {
    fn add(&mut self, row: &UsageRow) {
        self.calls += row.calls;
        self.prompt_tokens += row.prompt_tokens;
        self.completion_tokens += row.completion_tokens;
        self.cost = self.cost.plus(row.cost);
        self.duration_ms += row.duration_ms;
    }

    fn mean_ms(&self) -> u64 {
        self.duration_ms.checked_div(self.calls).unwrap_or(0)
    }
}

impl By {
    const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Outcome => "outcome",
            Self::Kind => "kind",
        }
    }
}

fn sums_json(by: By, name: &str, sums: &Sums) -> Value {
    let mut value = json!({
        "calls": sums.calls, "promptTokens": sums.prompt_tokens, "completionTokens": sums.completion_tokens,
        "cost": sums.cost.to_string(), "meanDurationMs": sums.mean_ms(),
    });
    value[by.name()] = name.into();
    value
}

fn sums_row(name: &str, sums: &Sums) -> [String; 6] {
    let Sums { calls, prompt_tokens, completion_tokens, cost, .. } = sums;
    row![name, calls, prompt_tokens, completion_tokens, cost, sums.mean_ms()]
}

/// Formats a bar chart of the calls per group.
fn bars(grouped: &BTreeMap<String, Sums>) -> String {
    let most = grouped.values().map(|sums| sums.calls).max().unwrap_or(0).max(1);
    let widest = grouped.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    let bar = |(name, sums): (&String, &Sums)| {
        let length = usize::try_from((sums.calls * MAX_BAR_LENGTH).div_ceil(most)).unwrap_or(0);
        format!("{name:widest$} {} {}", "█".repeat(length), sums.calls)
    };
    grouped.iter().map(bar).collect::<Vec<_>>().join("\n")
}

fn budgets(app: &App, spent: budget::Amount) -> String {
    let of = |limit: Option<String>| limit.map_or_else(|| "no limit".to_owned(), |limit| format!("of {limit}"));
    let llm = &app.core.config.llm;
    format!(
        "today, including estimates for running and unmetered calls: {} tokens ({}), {} {} ({})",
        spent.tokens,
        of(llm.tokens_per_day.map(|tokens| tokens.to_string())),
        spent.cost,
        llm.currency,
        of(llm.cost_per_day.map(|cost| cost.to_string())),
    )
}
