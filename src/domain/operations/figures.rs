//! Figures: daily sums for the charts of the console.
//!
//! A job reads new rows of each source in the order of their numbers, adds them to the sums, and stores the number of
//! the last row in the same transaction. So each row counts once, wherever the process is killed, and no view scans a
//! source. Days are those of `limits.time_zone`.
//!
//! The surprise: a rebuild recounts the ledger only. Users and violations are deleted over time, so their sums cannot be
//! counted again.

use std::collections::BTreeMap;

use jiff::ToSpan;

use crate::{
    core::Core,
    domain::{
        divination::budget,
        identity::users,
        moderation::violations,
        money::{
            ledger::{self, Asset, EntryKind, LedgerEntry},
            payments::orders,
        },
    },
    error::{Error, Fault, FieldCode, Result},
    store::{Read, Write},
    types::{Date, TimeZone, Timestamp, named_enum},
};

/// Source rows that one transaction counts.
const SLICE: u32 = 2_000;
/// The longest range of a query, in days.
pub const LONGEST_RANGE: i32 = 3_700;
/// The days of a query without a range.
const DEFAULT_DAYS: i64 = 30;

named_enum! {
    /// The name of a figure.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum FigureName {
        /// Registrations.
        NewUsers = "new_users",
        /// Coins of purchases, by the kind of the entry.
        CoinsSold = "coins_sold",
        /// Coins that refunds took back.
        CoinsReturned = "coins_returned",
        /// Coins spent on castings and interpretations, or exchanged.
        CoinsUsed = "coins_used",
        /// Coins given otherwise, such as bonuses and adjustments.
        CoinsGiven = "coins_given",
        /// Coins taken otherwise, such as resets and adjustments.
        CoinsTaken = "coins_taken",
        PointsSold = "points_sold",
        PointsReturned = "points_returned",
        PointsUsed = "points_used",
        PointsGiven = "points_given",
        PointsTaken = "points_taken",
        /// Castings that were paid with coins or points.
        Castings = "castings",
        /// Prices of credited orders in fen, by what they bring.
        Revenue = "revenue",
        /// Refused texts, by the type of the violation.
        Refusals = "refusals",
        /// Model calls, by provider, model and outcome.
        ModelCalls = "model_calls",
        /// Model calls of ten seconds or more, by provider and model.
        SlowModelCalls = "slow_model_calls",
        /// Tokens of model calls, by provider and model.
        ModelTokens = "model_tokens",
        /// Cost of model calls in millionths of the currency, by provider and model.
        ModelCost = "model_cost",
    }
}

named_enum! {
    /// The rows that a group of figures counts, and the name of their mark.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FigureSource {
        Ledger = "ledger",
        Users = "users",
        Violations = "violations",
    }
}

named_enum! {
    /// The length of the periods of a query.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum FigureGrouping {
        #[default]
        Day = "day",
        /// From Monday.
        Week = "week",
        Month = "month",
    }
}

/// The figures of some days, both ends included.
#[derive(Clone, Debug)]
pub struct FigureQuery {
    pub names: Vec<FigureName>,
    pub from: Date,
    pub to: Date,
    pub grouping: FigureGrouping,
}

/// The value of a figure in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureRow {
    /// The first day of the period.
    pub period: Date,
    pub name: FigureName,
    /// The part of the figure, such as the type of a violation; may be empty.
    pub key: String,
    pub value: i64,
}

/// Sums by figure, day and key.
type Sums = BTreeMap<(FigureName, Date, String), i64>;

impl FigureName {
    /// Returns the source of the stored figures; `None` for those that the daily usage of models contains.
    const fn source(self) -> Option<FigureSource> {
        match self {
            Self::NewUsers => Some(FigureSource::Users),
            Self::Refusals => Some(FigureSource::Violations),
            Self::ModelCalls | Self::SlowModelCalls | Self::ModelTokens | Self::ModelCost => None,
            _ => Some(FigureSource::Ledger),
        }
    }
}

impl FigureGrouping {
    /// Returns the first day of the period that contains a day.
    pub fn start_of(self, day: Date) -> Date {
        match self {
            Self::Day => day,
            Self::Week => day.checked_sub(i64::from(day.weekday().to_monday_zero_offset()).days()).unwrap_or(day),
            Self::Month => day.first_of_month(),
        }
    }
}

impl FigureQuery {
    /// Makes a query. Without names it contains all figures; without days, the last thirty.
    ///
    /// # Errors
    /// `invalid_parameters` for a range that ends before it starts or is too long.
    pub fn new(
        core: &Core,
        names: Option<Vec<FigureName>>,
        (from, to): (Option<Date>, Option<Date>),
        grouping: FigureGrouping,
    ) -> Result<Self> {
        let to = to.unwrap_or_else(|| core.config.limits.time_zone.today(core.clock.now()));
        let from = from.unwrap_or_else(|| to.checked_sub((DEFAULT_DAYS - 1).days()).unwrap_or(to));
        let fault = |message: String| Err(Error::field("from", Fault::new(FieldCode::OutOfRange, message)));
        if from > to {
            return fault("must not be after `to`".into());
        }
        if to.since(from).is_ok_and(|span| span.get_days() >= LONGEST_RANGE) {
            return fault(format!("must be less than {LONGEST_RANGE} days before `to`"));
        }
        Ok(Self { names: names.unwrap_or_else(|| FigureName::ALL.to_vec()), from, to, grouping })
    }
}

/// Parses a day such as `2026-01-31`.
///
/// # Errors
/// `invalid_format` for another text.
pub fn parse_day(text: &str) -> Result<Date, Fault> {
    let day = text.parse::<Date>().ok().filter(|day| day.to_string() == text);
    day.ok_or_else(|| Fault::new(FieldCode::InvalidFormat, "must be a day such as 2026-01-31"))
}

/// Returns figures by name, period and key. Periods without any are left out.
///
/// # Errors
/// Storage errors.
pub fn list(core: &Core, query: &FigureQuery) -> Result<Vec<FigureRow>> {
    let mut sums = Sums::new();
    let mut add = |name, day: &str, key: String, value: i64| -> Result<()> {
        let day = query.grouping.start_of(day.parse().map_err(Error::internal)?);
        *sums.entry((name, day, key)).or_default() += value;
        Ok(())
    };
    let (stored, counted): (Vec<FigureName>, Vec<FigureName>) =
        query.names.iter().copied().partition(|name| name.source().is_some());
    core.store.read(|tx| {
        for name in stored {
            let sql = "select day, key, value from figures where name = ?1 and day >= ?2 and day <= ?3";
            let rows = tx.all(sql, (name.name(), query.from.to_string(), query.to.to_string()), |row| {
                Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get::<i64>(2)?))
            })?;
            for (day, key, value) in rows {
                add(name, &day, key, value)?;
            }
        }
        Ok(())
    })?;
    if !counted.is_empty() {
        for row in budget::usage(core, query.from, query.to)? {
            for name in counted.iter().copied() {
                let model = format!("{}/{}", row.provider, row.model);
                let (key, value) = match name {
                    FigureName::ModelCalls => (format!("{model}/{}", row.outcome), row.calls),
                    FigureName::SlowModelCalls => (model, row.slow_calls),
                    FigureName::ModelTokens => (model, row.prompt_tokens + row.completion_tokens),
                    _ => (model, row.cost.0),
                };
                add(name, &row.day, key, i64::try_from(value).unwrap_or(i64::MAX))?;
            }
        }
    }
    Ok(sums.into_iter().map(|((name, period, key), value)| FigureRow { period, name, key, value }).collect())
}

/// Counts the rows that came since the last run, in slices. Stops between two slices when `is_running` turns false.
///
/// # Errors
/// Storage errors. Counted slices stay.
pub fn advance(core: &Core, is_running: &dyn Fn() -> bool) -> Result<()> {
    for source in FigureSource::ALL {
        while is_running() && core.store.read(|tx| has_new_rows_in(tx, source))? {
            let zone = core.config.limits.time_zone.clone();
            core.store.write(move |tx| count_slice_in(tx, source, &zone)).wait()?;
        }
    }
    Ok(())
}

/// Counts the ledger again, for example after a change of the time zone. Charts show partial sums meanwhile. The figures
/// of the other sources stay as they are. The revenue of purged orders is lost.
///
/// # Errors
/// Storage errors. After one, the server continues the count.
pub fn rebuild(core: &Core) -> Result<()> {
    core.store.write(forget_ledger_in).wait()?;
    advance(core, &|| true)
}

fn forget_ledger_in(tx: &Write<'_>) -> Result<()> {
    for name in FigureName::ALL.into_iter().filter(|name| name.source() == Some(FigureSource::Ledger)) {
        tx.execute("delete from figures where name = ?1", [name.name()])?;
    }
    tx.execute("delete from figure_marks where source = ?1", [FigureSource::Ledger.name()]).map(drop)
}

fn mark_in(tx: &Read<'_>, source: FigureSource) -> Result<i64> {
    let sql = "select through from figure_marks where source = ?1";
    Ok(tx.first(sql, [source.name()], |row| row.get(0))?.unwrap_or(0))
}

fn has_new_rows_in(tx: &Read<'_>, source: FigureSource) -> Result<bool> {
    let mark = mark_in(tx, source)?;
    Ok(match source {
        FigureSource::Ledger => ledger::last_number_in(tx)? > mark,
        FigureSource::Users => !users::registrations_after_in(tx, mark, 1)?.is_empty(),
        FigureSource::Violations => !violations::types_after_in(tx, mark, 1)?.is_empty(),
    })
}

fn count_slice_in(tx: &Write<'_>, source: FigureSource, zone: &TimeZone) -> Result<()> {
    let mark = mark_in(tx, source)?;
    let mut sums = Sums::new();
    let mut add = |name, at: Timestamp, key: &str, value: i64| {
        *sums.entry((name, zone.today(at), key.to_owned())).or_default() += value;
    };
    let mut last = mark;
    match source {
        FigureSource::Ledger => {
            for entry in ledger::entries_after_in(tx, mark, SLICE)? {
                last = entry.seq;
                add(name_of(&entry), entry.created_at, entry.kind.name(), entry.delta.abs());
                if matches!(entry.kind, EntryKind::Cast | EntryKind::Consume) {
                    add(FigureName::Castings, entry.created_at, entry.asset.name(), 1);
                }
                let price = price_in(tx, &entry)?;
                if price > 0 {
                    add(FigureName::Revenue, entry.created_at, entry.asset.name(), price);
                }
            }
        }
        FigureSource::Users => {
            for (id, at) in users::registrations_after_in(tx, mark, SLICE)? {
                last = id.0;
                add(FigureName::NewUsers, at, "", 1);
            }
        }
        FigureSource::Violations => {
            for (id, kind, at) in violations::types_after_in(tx, mark, SLICE)? {
                last = id;
                add(FigureName::Refusals, at, &kind, 1);
            }
        }
    }
    if last == mark {
        return Ok(());
    }
    tx.execute_each(
        "insert into figures (name, day, key, value) values (?1, ?2, ?3, ?4) \
         on conflict (name, day, key) do update set value = figures.value + excluded.value",
        sums.into_iter().map(|((name, day, key), value)| (name.name(), day.to_string(), key, value)),
    )?;
    let sql = "insert into figure_marks (source, through) values (?1, ?2) \
               on conflict (source) do update set through = excluded.through";
    tx.execute(sql, (source.name(), last)).map(drop)
}

/// Returns the figure to which an entry belongs. Each entry belongs to one, so the figures add up to the balances.
const fn name_of(entry: &LedgerEntry) -> FigureName {
    use EntryKind::{Cast, Consume, Exchange, Interpretation, PurchaseBonus, PurchaseBonusRefund, Refund, Topup};
    let is_coin = matches!(entry.asset, Asset::Coin);
    let (coins, points) = match entry.kind {
        Topup | PurchaseBonus => (FigureName::CoinsSold, FigureName::PointsSold),
        Refund | PurchaseBonusRefund => (FigureName::CoinsReturned, FigureName::PointsReturned),
        Consume | Cast | Interpretation => (FigureName::CoinsUsed, FigureName::PointsUsed),
        Exchange if entry.delta < 0 => (FigureName::CoinsUsed, FigureName::PointsUsed),
        _ if entry.delta > 0 => (FigureName::CoinsGiven, FigureName::PointsGiven),
        _ => (FigureName::CoinsTaken, FigureName::PointsTaken),
    };
    if is_coin { coins } else { points }
}

/// Returns the price in fen of the order that an entry credits, or 0.
fn price_in(tx: &Read<'_>, entry: &LedgerEntry) -> Result<i64> {
    let order_no = match &entry.reference {
        Some(reference) if entry.kind == EntryKind::Topup => reference.strip_prefix("order:"),
        _ => None,
    };
    let order = order_no.map(|order_no| orders::find_maybe_in(tx, order_no)).transpose()?.flatten();
    Ok(order.map_or(0, |order| order.amount.as_fen()))
}
