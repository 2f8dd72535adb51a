//! Figures: daily sums for the charts of the console.
//!
//! A job reads new rows of each source in the order of their numbers, adds them to the sums, and stores the number of
//! the last row in the same transaction. So each row counts once, wherever the process is killed, and no view scans a
//! source. Days are those of `limits.time_zone`.
//!
//! Figures of model calls, refunds and requests are summed from rows that other modules keep by day or index.
//!
//! The surprise: a rebuild recounts the ledger only. Users, violations and entries of the network log are deleted over
//! time, so their sums cannot be counted again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Mutex,
};

use jiff::ToSpan;

use crate::{
    concurrency::lock::lock_unpoisoned,
    core::Core,
    domain::{
        divination::budget,
        identity::{codes::CodeMetrics, users},
        moderation::violations,
        money::{
            ledger::{self, Asset, EntryKind, LedgerEntry},
            payments::orders,
            purchases,
        },
        operations::{
            active_users,
            network_log::{self, NetworkLog, UserEntry},
            request_tallies::{self, RequestTally},
        },
    },
    error::{Error, Fault, FieldCode, Result, Sentence},
    store::{Pending, Read, Write},
    types::{Currency, Date, TimeInput, TimeZone, Timestamp, UserId, named_enum},
};

/// Source rows that one transaction counts.
const SLICE: u32 = 2_000;
/// Entries of the network log that one transaction counts.
const LOG_SLICE: usize = 10_000;
/// Percentages of requests whose duration is shown.
const PERCENTILES: [u64; 3] = [50, 95, 99];
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
        /// Different users with a request in the day, week or month.
        ActiveUsers = "active_users",
        /// Users of a week of registrations who were active in a later week: by week of registration, and by the number
        /// of the later week.
        Retention = "retention",
        /// Requests for codes that no limit refused.
        CodesAsked = "codes_asked",
        CodesSent = "codes_sent",
        CodesVerified = "codes_verified",
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
        /// Prices of credited orders and purchases in hundredths, by channel or store, currency and asset.
        Revenue = "revenue",
        /// Money returned for orders and purchases in hundredths, by channel or store, currency and asset; on the day of
        /// the first refund.
        Refunds = "refunds",
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
        Requests = "requests",
        /// Responses with a status of 500 or more.
        RequestErrors = "request_errors",
        /// Microseconds within which 50, 95 and 99 percent of the requests ended, by that percentage.
        RequestDuration = "request_duration",
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

/// The name of the mark of active users, whose rows are in the network log, another database.
const ACTIVE_USERS: &str = "active_users";

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

/// The key of a figure of money: `stripe/USD/coin`. Amounts in different currencies are never added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoneyPart {
    /// The payment channel or app store.
    pub channel: String,
    pub currency: Currency,
    pub asset: Asset,
}

impl fmt::Display for MoneyPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.channel, self.currency, self.asset.name())
    }
}

impl MoneyPart {
    fn parse(key: &str) -> Option<Self> {
        let mut parts = key.split('/');
        let (channel, currency, asset) = (parts.next()?, parts.next()?, parts.next()?);
        let (currency, asset) = (Currency::parse(currency).ok()?, Asset::from_name(asset)?);
        Some(Self { channel: channel.to_owned(), currency, asset })
    }
}

impl FigureRow {
    /// Returns the part of a figure of money.
    pub fn money_part(&self) -> Option<MoneyPart> {
        if self.name.is_money() { MoneyPart::parse(&self.key) } else { None }
    }

    /// Returns the currency of a figure of money.
    pub fn currency(&self) -> Option<Currency> {
        self.money_part().map(|part| part.currency)
    }
}

/// Returns the currencies of the rows, yuan first, and yuan alone without money.
pub fn currencies<'a>(rows: impl IntoIterator<Item = &'a FigureRow>) -> Vec<Currency> {
    let found: BTreeSet<_> = rows.into_iter().filter_map(FigureRow::currency).collect();
    if found.is_empty() {
        return vec![Currency::CNY];
    }
    let mut currencies: Vec<_> = found.into_iter().collect();
    currencies.sort_by_key(|currency| *currency != Currency::CNY);
    currencies
}

/// Sums by figure, day and key.
type Sums = BTreeMap<(FigureName, Date, String), i64>;

impl FigureName {
    /// Returns true if the values are money, in hundredths of the currency in the key.
    pub const fn is_money(self) -> bool {
        matches!(self, Self::Revenue | Self::Refunds)
    }

    const fn origin(self) -> Origin {
        match self {
            Self::NewUsers | Self::Refusals | Self::CodesAsked | Self::CodesSent | Self::CodesVerified => {
                Origin::Stored
            }
            Self::ActiveUsers => Origin::ActiveUsers,
            Self::Retention => Origin::Retention,
            Self::Refunds => Origin::Refunds,
            Self::ModelCalls | Self::SlowModelCalls | Self::ModelTokens | Self::ModelCost => Origin::ModelUsage,
            Self::Requests | Self::RequestErrors | Self::RequestDuration => Origin::RequestHours,
            _ => Origin::Ledger,
        }
    }
}

/// The storage of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Daily sums that cannot be counted again.
    Stored,
    /// Daily sums of ledger entries.
    Ledger,
    /// Sums by day, week and month.
    ActiveUsers,
    Retention,
    /// Refunded orders and purchases, by index.
    Refunds,
    ModelUsage,
    RequestHours,
}

/// The counts of codes that are in the figures already.
#[derive(Debug, Default)]
pub struct CountedCodes(Mutex<[u64; 3]>);

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
        let fault = |message: Sentence| Err(Error::field("from", Fault::new(FieldCode::OutOfRange, message)));
        if from > to {
            return fault(("must not be after `to`", "不能晚于 `to`").into());
        }
        if to.since(from).is_ok_and(|span| span.get_days() >= LONGEST_RANGE) {
            return fault(
                (
                    format!("must be less than {LONGEST_RANGE} days before `to`"),
                    format!("距 `to` 须少于 {LONGEST_RANGE} 天"),
                )
                    .into(),
            );
        }
        Ok(Self { names: names.unwrap_or_else(|| FigureName::ALL.to_vec()), from, to, grouping })
    }
}

impl FigureQuery {
    /// Returns the first moment of the range and the first one after it.
    pub fn bounds(&self, zone: &TimeZone) -> (Timestamp, Timestamp) {
        let start = |day| TimeInput::Day(day).in_zone(zone).ok();
        let end = self.to.tomorrow().ok().and_then(start);
        (start(self.from).unwrap_or(Timestamp(0)), end.unwrap_or(Timestamp(i64::MAX)))
    }
}

/// Parses a day such as `2026-01-31`.
///
/// # Errors
/// `invalid_format` for another text.
pub fn parse_day(text: &str) -> Result<Date, Fault> {
    let day = text.parse::<Date>().ok().filter(|day| day.to_string() == text);
    day.ok_or_else(|| {
        Fault::new(FieldCode::InvalidFormat, ("must be a day such as 2026-01-31", "须为日期，例如 2026-01-31"))
    })
}

/// Returns figures by name, period and key. Periods without any are left out.
///
/// # Errors
/// Storage errors.
pub fn list(core: &Core, query: &FigureQuery) -> Result<Vec<FigureRow>> {
    let mut sums = Sums::new();
    for name in query.names.iter().copied() {
        match name.origin() {
            Origin::Stored | Origin::Ledger => add_stored(core, query, name, &mut sums)?,
            Origin::ActiveUsers => add_active(core, query, &mut sums)?,
            Origin::Retention => add_retention(core, query, &mut sums)?,
            Origin::Refunds => add_refunds(core, query, &mut sums)?,
            Origin::ModelUsage | Origin::RequestHours => {}
        }
    }
    let has = |origin| query.names.iter().any(|name| name.origin() == origin);
    if has(Origin::ModelUsage) {
        add_model_usage(core, query, &mut sums)?;
    }
    if has(Origin::RequestHours) {
        add_requests(core, query, &mut sums)?;
    }
    Ok(sums.into_iter().map(|((name, period, key), value)| FigureRow { period, name, key, value }).collect())
}

fn add_stored(core: &Core, query: &FigureQuery, name: FigureName, sums: &mut Sums) -> Result<()> {
    let sql = "select day, key, value from figures where name = ?1 and day >= ?2 and day <= ?3";
    let rows = core.store.read(|tx| {
        tx.all(sql, (name.name(), query.from.to_string(), query.to.to_string()), |row| {
            Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get::<i64>(2)?))
        })
    })?;
    for (day, key, value) in rows {
        let day = day.parse().map_err(Error::internal)?;
        *sums.entry((name, query.grouping.start_of(day), key)).or_default() += value;
    }
    Ok(())
}

/// Adds the users of each period. They are no sum of days, so those of weeks and months are stored with their first day.
fn add_active(core: &Core, query: &FigureQuery, sums: &mut Sums) -> Result<()> {
    let sql = "select day, value from figures where name = ?1 and day >= ?2 and day <= ?3 and key = ?4";
    let first = query.grouping.start_of(query.from).to_string();
    let name = FigureName::ActiveUsers;
    let rows = core.store.read(|tx| {
        tx.all(sql, (name.name(), first, query.to.to_string(), query.grouping.name()), |row| {
            Ok((row.get::<String>(0)?, row.get::<i64>(1)?))
        })
    })?;
    for (day, value) in rows {
        sums.insert((name, day.parse().map_err(Error::internal)?, String::new()), value);
    }
    Ok(())
}

/// Adds the retention of the weeks of registration in the range.
fn add_retention(core: &Core, query: &FigureQuery, sums: &mut Sums) -> Result<()> {
    let today = core.config.limits.time_zone.today(core.clock.now());
    for row in active_users::retention(core, today)? {
        if row.week < FigureGrouping::Week.start_of(query.from) || row.week > query.to {
            continue;
        }
        for (later, users) in (1..).zip(row.kept) {
            sums.insert((FigureName::Retention, row.week, format!("{later:02}")), users);
        }
    }
    Ok(())
}

fn add_refunds(core: &Core, query: &FigureQuery, sums: &mut Sums) -> Result<()> {
    let zone = &core.config.limits.time_zone;
    let (from, to) = query.bounds(zone);
    let (of_orders, of_purchases) = core.store.read(|tx| {
        Ok((orders::refunds_between_in(tx, from, to)?, purchases::records::refunds_between_in(tx, from, to)?))
    })?;
    let of_orders = of_orders.into_iter().map(|refund| {
        let part = MoneyPart { channel: refund.channel, currency: refund.currency, asset: refund.asset };
        (refund.at, part, refund.amount.as_fen())
    });
    let of_purchases = of_purchases.into_iter().map(|refund| {
        let part =
            MoneyPart { channel: refund.store.name().to_owned(), currency: refund.currency, asset: refund.asset };
        (refund.at, part, refund.amount)
    });
    for (at, part, amount) in of_orders.chain(of_purchases) {
        let period = query.grouping.start_of(zone.today(at));
        *sums.entry((FigureName::Refunds, period, part.to_string())).or_default() += amount;
    }
    Ok(())
}

fn add_model_usage(core: &Core, query: &FigureQuery, sums: &mut Sums) -> Result<()> {
    for row in budget::usage(core, query.from, query.to)? {
        let day = row.day.parse().map_err(Error::internal)?;
        for name in query.names.iter().copied() {
            let model = format!("{}/{}", row.provider, row.model);
            let (key, value) = match name {
                FigureName::ModelCalls => (format!("{model}/{}", row.outcome), row.calls),
                FigureName::SlowModelCalls => (model, row.slow_calls),
                FigureName::ModelTokens => (model, row.prompt_tokens + row.completion_tokens),
                FigureName::ModelCost => (model, row.cost.0),
                _ => continue,
            };
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            *sums.entry((name, query.grouping.start_of(day), key)).or_default() += value;
        }
    }
    Ok(())
}

fn add_requests(core: &Core, query: &FigureQuery, sums: &mut Sums) -> Result<()> {
    let zone = &core.config.limits.time_zone;
    let (from, to) = query.bounds(zone);
    let mut periods: BTreeMap<Date, RequestTally> = BTreeMap::new();
    for (hour, tally) in core.store.read(|tx| request_tallies::hours_in(tx, from, to))? {
        periods.entry(query.grouping.start_of(zone.today(hour))).or_default().add(&tally);
    }
    let stored = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for (period, tally) in periods {
        for name in query.names.iter().copied() {
            match name {
                FigureName::Requests => drop(sums.insert((name, period, String::new()), stored(tally.requests))),
                FigureName::RequestErrors => drop(sums.insert((name, period, String::new()), stored(tally.errors))),
                FigureName::RequestDuration => {
                    let percentiles = PERCENTILES.into_iter().filter_map(|one| Some((one, tally.percentile(one)?)));
                    sums.extend(percentiles.map(|(one, value)| ((name, period, one.to_string()), stored(value))));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Counts the rows that came since the last run, in slices. Stops between two slices when `is_running` turns false.
///
/// # Errors
/// Storage errors. Counted slices stay.
pub fn advance(core: &Core, is_running: &dyn Fn() -> bool) -> Result<()> {
    for source in FigureSource::ALL {
        advance_source(core, source, is_running)?;
    }
    Ok(())
}

fn advance_source(core: &Core, source: FigureSource, is_running: &dyn Fn() -> bool) -> Result<()> {
    while is_running() && core.store.read(|tx| has_new_rows_in(tx, source))? {
        let zone = core.config.limits.time_zone.clone();
        core.store.write(move |tx| count_slice_in(tx, source, &zone)).wait()?;
    }
    Ok(())
}

/// Records the users of new entries of this process's network log as active. Entries of a log that began anew have lower
/// ids. Each copy of the service has a log and a mark of its own; a user whom several have seen is counted once.
///
/// # Errors
/// As [`advance`].
pub fn advance_active_users(core: &Core, log: &NetworkLog, is_running: &dyn Fn() -> bool) -> Result<()> {
    let source = active_users_source(core.store.copy_name());
    let stored = core.store.read(|tx| mark_in(tx, &source))?;
    let mut mark = if network_log::last_id(log)? < stored { 0 } else { stored };
    while is_running() {
        let entries = network_log::users_after(log, mark, LOG_SLICE)?;
        let Some(last) = entries.last() else { break };
        mark = last.id;
        let (zone, source) = (core.config.limits.time_zone.clone(), source.clone());
        core.store.write(move |tx| count_active_in(tx, &source, &entries, &zone)).wait()?;
    }
    Ok(())
}

fn active_users_source(copy: &str) -> String {
    if copy.is_empty() { ACTIVE_USERS.to_owned() } else { format!("{ACTIVE_USERS}:{copy}") }
}

fn count_active_in(tx: &Write<'_>, source: &str, entries: &[UserEntry], zone: &TimeZone) -> Result<()> {
    let mut days: BTreeMap<Date, Vec<UserId>> = BTreeMap::new();
    for entry in entries {
        if let Some(user) = entry.user {
            days.entry(zone.today(entry.at)).or_default().push(user);
        }
    }
    add_active_in(tx, days)?;
    entries.last().map_or(Ok(()), |last| set_mark_in(tx, source, last.id))
}

/// Records the users of days as active, and counts those that were not.
fn add_active_in(tx: &Write<'_>, days: BTreeMap<Date, Vec<UserId>>) -> Result<()> {
    let mut sums = Sums::new();
    for (day, users) in days {
        let newly = active_users::record_in(tx, day, users)?;
        for (grouping, count) in [
            (FigureGrouping::Day, newly.in_day),
            (FigureGrouping::Week, newly.in_week),
            (FigureGrouping::Month, newly.in_month),
        ] {
            if count > 0 {
                let key = (FigureName::ActiveUsers, grouping.start_of(day), grouping.name().to_owned());
                *sums.entry(key).or_default() += count;
            }
        }
    }
    add_in(tx, sums)
}

/// Counts sign-ins by code and active users of today that no request log or metric tells, such as those of the
/// demonstration's past.
pub fn add_activity(core: &Core, active: Vec<UserId>, codes: [u64; 3]) -> Pending<()> {
    let today = core.config.limits.time_zone.today(core.clock.now());
    core.store.write(move |tx| {
        add_in(tx, code_sums(today, codes))?;
        add_active_in(tx, BTreeMap::from([(today, active)]))
    })
}

/// Returns the figures of codes that were asked for, sent and verified.
fn code_sums(day: Date, counts: [u64; 3]) -> Sums {
    const NAMES: [FigureName; 3] = [FigureName::CodesAsked, FigureName::CodesSent, FigureName::CodesVerified];
    let sums = NAMES.into_iter().zip(counts).filter(|(_, count)| *count > 0);
    sums.map(|(name, count)| ((name, day, String::new()), i64::try_from(count).unwrap_or(i64::MAX))).collect()
}

/// Adds the codes that were counted since the last call to the figures of today. Blocks.
///
/// # Errors
/// Storage errors; the next call adds the same codes.
pub fn flush_codes(core: &Core, counted: &CountedCodes, metrics: &CodeMetrics) -> Result<()> {
    let mut counted = lock_unpoisoned(&counted.0);
    let counts = [metrics.asked.get(), metrics.sent.get(), metrics.verified.get()];
    let today = core.config.limits.time_zone.today(core.clock.now());
    let added = std::array::from_fn(|index| counts[index].saturating_sub(counted[index]));
    let sums = code_sums(today, added);
    if !sums.is_empty() {
        core.store.write(move |tx| add_in(tx, sums)).wait()?;
        *counted = counts;
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
    advance_source(core, FigureSource::Ledger, &|| true)
}

fn forget_ledger_in(tx: &Write<'_>) -> Result<()> {
    for name in FigureName::ALL.into_iter().filter(|name| name.origin() == Origin::Ledger) {
        tx.execute("delete from figures where name = ?1", [name.name()])?;
    }
    tx.execute("delete from figure_marks where source = ?1", [FigureSource::Ledger.name()]).map(drop)
}

fn mark_in(tx: &Read<'_>, source: &str) -> Result<i64> {
    let sql = "select through from figure_marks where source = ?1";
    Ok(tx.first(sql, [source], |row| row.get(0))?.unwrap_or(0))
}

fn has_new_rows_in(tx: &Read<'_>, source: FigureSource) -> Result<bool> {
    let mark = mark_in(tx, source.name())?;
    Ok(match source {
        FigureSource::Ledger => ledger::last_number_in(tx)? > mark,
        FigureSource::Users => !users::registrations_after_in(tx, mark, 1)?.is_empty(),
        FigureSource::Violations => !violations::types_after_in(tx, mark, 1)?.is_empty(),
    })
}

fn count_slice_in(tx: &Write<'_>, source: FigureSource, zone: &TimeZone) -> Result<()> {
    let mark = mark_in(tx, source.name())?;
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
                if let Some((part, price)) = price_in(tx, &entry)? {
                    add(FigureName::Revenue, entry.created_at, &part.to_string(), price);
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
    add_in(tx, sums)?;
    set_mark_in(tx, source.name(), last)
}

fn add_in(tx: &Write<'_>, sums: Sums) -> Result<()> {
    tx.execute_each(
        "insert into figures (name, day, key, value) values (?1, ?2, ?3, ?4) \
         on conflict (name, day, key) do update set value = figures.value + excluded.value",
        sums.into_iter().map(|((name, day, key), value)| (name.name(), day.to_string(), key, value)),
    )
    .map(drop)
}

fn set_mark_in(tx: &Write<'_>, source: &str, through: i64) -> Result<()> {
    let sql = "insert into figure_marks (source, through) values (?1, ?2) \
               on conflict (source) do update set through = excluded.through";
    tx.execute(sql, (source, through)).map(drop)
}

/// Returns the figure to which an entry belongs. Each entry belongs to one, so the figures add up to the balances.
const fn name_of(entry: &LedgerEntry) -> FigureName {
    use EntryKind::{
        Cast, Consume, Exchange, Interpretation, PurchaseBonus, PurchaseBonusRefund, Refund, RefundReversal, Topup,
    };
    let is_coin = matches!(entry.asset, Asset::Coin);
    let (coins, points) = match entry.kind {
        Topup | PurchaseBonus | RefundReversal => (FigureName::CoinsSold, FigureName::PointsSold),
        Refund | PurchaseBonusRefund => (FigureName::CoinsReturned, FigureName::PointsReturned),
        Consume | Cast | Interpretation => (FigureName::CoinsUsed, FigureName::PointsUsed),
        Exchange if entry.delta < 0 => (FigureName::CoinsUsed, FigureName::PointsUsed),
        _ if entry.delta > 0 => (FigureName::CoinsGiven, FigureName::PointsGiven),
        _ => (FigureName::CoinsTaken, FigureName::PointsTaken),
    };
    if is_coin { coins } else { points }
}

/// Returns the price in hundredths of the order or purchase that an entry credits. Purchases in a sandbox have another
/// kind of entry.
fn price_in(tx: &Read<'_>, entry: &LedgerEntry) -> Result<Option<(MoneyPart, i64)>> {
    let Some(reference) = entry.reference.as_deref().filter(|_| entry.kind == EntryKind::Topup) else {
        return Ok(None);
    };
    if let Some(order_no) = reference.strip_prefix("order:") {
        let order = orders::find_maybe_in(tx, order_no)?;
        return Ok(order.map(|order| {
            let part = MoneyPart { channel: order.channel, currency: order.currency, asset: entry.asset };
            (part, order.amount.as_fen())
        }));
    }
    if !purchases::records::is_of_store(entry) {
        return Ok(None);
    }
    let purchase = purchases::records::find_by_reference_in(tx, reference)?;
    Ok(purchase.and_then(|purchase| {
        let (price, currency) = purchase.price_in_hundredths()?;
        let channel = purchase.key.store.name().to_owned();
        Some((MoneyPart { channel, currency, asset: entry.asset }, price))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_kept_by_currency() {
        let row = |name, key: &str| FigureRow { period: Date::constant(2026, 1, 2), name, key: key.into(), value: 1 };
        let rows = ["stripe/USD/coin", "apple/EUR/point", "alipay/CNY/coin", "google/USD/coin"]
            .map(|key| row(FigureName::Revenue, key));
        assert_eq!(currencies(&rows).iter().map(ToString::to_string).collect::<Vec<_>>(), ["CNY", "EUR", "USD"]);
        assert_eq!(currencies(&[]), [Currency::CNY]);
        assert_eq!(rows[1].money_part().unwrap().to_string(), "apple/EUR/point");
        assert_eq!(row(FigureName::Castings, "coin").currency(), None);
    }
}
