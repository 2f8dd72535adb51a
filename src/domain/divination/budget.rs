//! Usage and cost of model calls: daily counters, and daily budgets for all users and for each.
//!
//! A call reserves its maximum usage before it begins and settles its actual usage at its end, each in the transaction
//! that writes the call's record. Concurrent calls therefore overspend a budget by one call at most. Usage that a provider
//! does not report is estimated for the budget only; an interrupted call is charged its reservation. Days follow the
//! service's time zone.

use serde_json::json;

use crate::{
    config::{self, TokenPrice},
    core::Core,
    domain::Each,
    error::{Code, Error, Result},
    providers::llm::{ModelRequest, TokenUsage, offline},
    store::{Read, Row, RowResult, Write},
    types::{Date, MicroAmount, TimeZone, Timestamp, UserId},
};

/// The user id of the row that counts all users.
const ALL_USERS: UserId = UserId(0);
/// Percentages of a budget at which a warning is logged, the highest first.
const WARNING_PERCENTAGES: [u64; 2] = [80, 50];
/// The duration from which a call is slow, in milliseconds.
pub const SLOW_CALL_MS: u32 = 10_000;
/// Days for which spending is stored, although only today's is read.
const RETENTION_DAYS: i64 = 35;

/// A number of tokens and their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub tokens: u64,
    pub cost: MicroAmount,
}

impl Amount {
    pub fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), cost: self.cost.plus(other.cost) }
    }
}

/// The amount that a running call may use, until it is settled.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// `None` if the account was deleted meanwhile.
    pub user: Option<UserId>,
    pub day: String,
    pub amount: Amount,
}

/// The usage of a finished call, as counted.
#[derive(Clone, Debug)]
pub struct CallUsage {
    /// `interpretation`, `chat` or `test`.
    pub kind: &'static str,
    pub provider: String,
    /// The requested model: the names that providers return are unbounded.
    pub model: String,
    pub outcome: &'static str,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cost: MicroAmount,
    pub duration_ms: i64,
    /// The amount charged to the budgets: as the provider counted, or estimated.
    pub charged: Amount,
}

/// A warning percentage that a call has just crossed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetWarning {
    /// `None` for the budget of all users.
    pub user: Option<UserId>,
    /// `tokens` or `cost`.
    pub resource: &'static str,
    pub percent: u64,
}

/// The limits that apply to one row of spending.
#[derive(Clone, Copy, Debug)]
struct Limits {
    tokens: Option<u64>,
    cost: Option<MicroAmount>,
}

/// The calls of one day with equal kind, provider, model and outcome.
#[derive(Clone, Debug)]
pub struct UsageRow {
    pub day: String,
    pub kind: String,
    pub provider: String,
    pub model: String,
    pub outcome: String,
    pub calls: u64,
    pub slow_calls: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cost: MicroAmount,
    pub duration_ms: u64,
}

impl CallUsage {
    /// The usage of an interrupted call, which is unknown, so that its reservation is charged.
    pub fn interrupted(kind: &'static str, provider: String, model: String, reserved: Amount) -> Self {
        Self {
            kind,
            provider,
            model,
            outcome: "interrupted",
            prompt_tokens: 0,
            completion_tokens: 0,
            cost: MicroAmount::default(),
            duration_ms: 0,
            charged: reserved,
        }
    }
}

/// Returns the usage of the days from `from` to `to`, both included, by day, kind, provider, model and outcome.
pub fn usage(core: &Core, from: Date, to: Date) -> Result<Vec<UsageRow>> {
    core.store.read(|tx| {
        tx.all(
            "select day, kind, provider, model, outcome, calls, slow_calls, prompt_tokens, completion_tokens, \
             cost_micros, duration_ms from model_usage where day >= ?1 and day <= ?2 order by day, kind, provider, model, outcome",
            (from.to_string(), to.to_string()),
            usage_of,
        )
    })
}

/// Returns the amount spent today by all users, including the reservations of running calls.
pub fn spent_today(core: &Core) -> Result<Amount> {
    core.store.read(|tx| spent_in(tx, &core.config.limits.time_zone.today(tx.now).to_string(), ALL_USERS))
}

/// Returns the maximum usage of a request: its prompt and the longest answer that it allows.
pub fn max_usage(settings: &config::LlmConfig, provider: &str, model: &str, request: &ModelRequest) -> Amount {
    if provider == offline::NAME {
        return Amount::default();
    }
    let prompt = request.messages.iter().map(|message| estimate_tokens(&message.content)).sum();
    let completion = u64::from(request.max_tokens.unwrap_or(settings.max_tokens));
    amount(settings, model, prompt, completion)
}

/// Returns the tokens with their cost, which is zero for a model without a price.
pub fn amount(settings: &config::LlmConfig, model: &str, prompt_tokens: u64, completion_tokens: u64) -> Amount {
    let TokenPrice { prompt, completion } = settings.prices.get(model).copied().unwrap_or_default();
    let cost = prompt.cost_of(prompt_tokens).plus(completion.cost_of(completion_tokens));
    Amount { tokens: prompt_tokens.saturating_add(completion_tokens), cost }
}

/// Returns the cost of the usage that a provider reported; `None` for a model without a price.
pub fn cost(settings: &config::LlmConfig, model: &str, usage: TokenUsage) -> Option<MicroAmount> {
    settings
        .prices
        .contains_key(model)
        .then(|| amount(settings, model, usage.prompt_tokens, usage.completion_tokens).cost)
}

/// Estimates tokens like common models: one for a Chinese character, one for four Latin letters.
pub fn estimate_tokens(text: &str) -> u64 {
    let (ascii, other) =
        text.chars().fold(
            (0_u64, 0_u64),
            |(ascii, other), character| {
                if character.is_ascii() { (ascii + 1, other) } else { (ascii, other + 1) }
            },
        );
    ascii.div_ceil(4) + other
}

/// Reserves the amount that a call may use, and returns the day whose budget it is. Changes nothing if it fails.
///
/// # Errors
/// `budget_spent` if the budget of the user or of all users is used up, counting running calls.
pub fn reserve_in(
    tx: &Write<'_>,
    settings: &config::LlmConfig,
    zone: &TimeZone,
    user: UserId,
    amount: Amount,
) -> Result<String> {
    let day = zone.today(tx.now).to_string();
    if amount == Amount::default() {
        return Ok(day);
    }
    let owners = [(ALL_USERS, global_limits(settings)), (user, user_limits(settings))];
    for (owner, limits) in owners {
        let spent = spent_in(tx, &day, owner)?;
        if limits.tokens.is_some_and(|limit| spent.tokens >= limit)
            || limits.cost.is_some_and(|limit| spent.cost >= limit)
        {
            let detail = if owner == ALL_USERS {
                ("Today's language model budget of the service is used up.", "今日的模型额度已用完。")
            } else {
                ("Today's language model budget of this user is used up.", "您今日的模型额度已用完。")
            };
            return Err(Error::new(Code::BudgetSpent).detail(detail).retry_after(zone.tomorrow(tx.now).since(tx.now)));
        }
    }
    for (owner, _) in owners {
        tx.execute(
            "insert into model_spending (day, user_id, tokens, cost_micros, reserved_tokens, reserved_cost_micros) \
             values (?1, ?2, 0, 0, ?3, ?4) on conflict (day, user_id) do update set \
             reserved_tokens = model_spending.reserved_tokens + excluded.reserved_tokens, \
             reserved_cost_micros = model_spending.reserved_cost_micros + excluded.reserved_cost_micros",
            (&day, owner.0, stored(amount.tokens), stored(amount.cost.0)),
        )?;
    }
    Ok(day)
}

/// Releases the reservation, charges the actual usage, and returns the warnings that this call caused.
pub fn settle_in(
    tx: &Write<'_>,
    settings: &config::LlmConfig,
    reservation: &Reservation,
    usage: &CallUsage,
) -> Result<Vec<BudgetWarning>> {
    count_in(tx, &reservation.day, usage)?;
    let mut warnings = Vec::new();
    if reservation.amount == Amount::default() && usage.charged == Amount::default() {
        return Ok(warnings);
    }
    let of_user = reservation.user.map(|user| (Some(user), user_limits(settings)));
    for (user, limits) in [(None, global_limits(settings))].into_iter().chain(of_user) {
        let after = charge_in(tx, reservation, user.unwrap_or(ALL_USERS), usage.charged)?;
        let tokens = limits.tokens.and_then(|limit| crossed_percentage(after.tokens, usage.charged.tokens, limit));
        let cost = limits.cost.and_then(|limit| crossed_percentage(after.cost.0, usage.charged.cost.0, limit.0));
        warnings.extend(tokens.map(|percent| BudgetWarning { user, resource: "tokens", percent }));
        warnings.extend(cost.map(|percent| BudgetWarning { user, resource: "cost", percent }));
    }
    Ok(warnings)
}

/// Counts a call without a reservation, such as the operator's test call.
pub fn count_in(tx: &Write<'_>, day: &str, usage: &CallUsage) -> Result<()> {
    tx.execute(
        "insert into model_usage (day, kind, provider, model, outcome, calls, prompt_tokens, completion_tokens, \
         cost_micros, duration_ms, slow_calls) values (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10) \
         on conflict (day, kind, provider, model, outcome) do update set calls = model_usage.calls + 1, \
         slow_calls = model_usage.slow_calls + excluded.slow_calls, \
         prompt_tokens = model_usage.prompt_tokens + excluded.prompt_tokens, \
         completion_tokens = model_usage.completion_tokens + excluded.completion_tokens, \
         cost_micros = model_usage.cost_micros + excluded.cost_micros, \
         duration_ms = model_usage.duration_ms + excluded.duration_ms",
        (
            day,
            usage.kind,
            &usage.provider,
            &usage.model,
            usage.outcome,
            stored(usage.prompt_tokens),
            stored(usage.completion_tokens),
            stored(usage.cost.0),
            usage.duration_ms,
            i64::from(usage.duration_ms >= i64::from(SLOW_CALL_MS)),
        ),
    )
    .map(drop)
}

/// Deletes up to `limit` rows of spending that is too old to be read.
pub fn delete_old_spending_in(tx: &Write<'_>, zone: &TimeZone, limit: u32) -> Result<usize> {
    let first_day = zone.today(Timestamp(tx.now.0 - RETENTION_DAYS * 86_400_000)).to_string();
    tx.execute(
        "delete from model_spending where (day, user_id) in \
         (select day, user_id from model_spending where day < ?1 order by day, user_id limit ?2)",
        (first_day, limit),
    )
}

/// Deletes today's spending of a user whose account is deleted.
pub fn erase_user_in(tx: &Write<'_>, zone: &TimeZone, user: UserId) -> Result<usize> {
    // Older rows expire, and no index finds them by user.
    let today = zone.today(tx.now).to_string();
    tx.execute("delete from model_spending where day = ?1 and user_id = ?2", (today, user.0))
}

/// Exports the user's usage by day, newest first.
pub fn export_in(tx: &Read<'_>, zone: &TimeZone, user: UserId, each: Each<'_>) -> Result<()> {
    let mut day = zone.today(tx.now);
    // One query a day, because the table has no index by user.
    for _ in 0..=RETENTION_DAYS {
        let of_day = "select tokens, cost_micros from model_spending where day = ?1 and user_id = ?2";
        let found: Option<(i64, i64)> =
            tx.first(of_day, (day.to_string(), user.0), |row| Ok((row.get(0)?, row.get(1)?)))?;
        if let Some((tokens, cost)) = found {
            each(json!({ "day": day.to_string(), "tokens": tokens, "costMicros": cost }))?;
        }
        day = day.yesterday().map_err(Error::internal)?;
    }
    Ok(())
}

fn global_limits(settings: &config::LlmConfig) -> Limits {
    Limits { tokens: settings.tokens_per_day, cost: settings.cost_per_day }
}

fn user_limits(settings: &config::LlmConfig) -> Limits {
    Limits { tokens: settings.user_tokens_per_day, cost: settings.user_cost_per_day }
}

/// Returns the highest warning percentage that this charge crossed.
fn crossed_percentage(after: u64, charged: u64, limit: u64) -> Option<u64> {
    let before = after.saturating_sub(charged);
    let threshold = |percent: u64| (u128::from(limit) * u128::from(percent)).div_ceil(100);
    WARNING_PERCENTAGES
        .into_iter()
        .find(|percent| (u128::from(before)..u128::from(after)).contains(&threshold(*percent).saturating_sub(1)))
}

fn charge_in(tx: &Write<'_>, reservation: &Reservation, owner: UserId, charged: Amount) -> Result<Amount> {
    tx.execute(
        "update model_spending set tokens = tokens + ?3, cost_micros = cost_micros + ?4, \
         reserved_tokens = case when reserved_tokens > ?5 then reserved_tokens - ?5 else 0 end, \
         reserved_cost_micros = case when reserved_cost_micros > ?6 then reserved_cost_micros - ?6 else 0 end \
         where day = ?1 and user_id = ?2",
        (
            &reservation.day,
            owner.0,
            stored(charged.tokens),
            stored(charged.cost.0),
            stored(reservation.amount.tokens),
            stored(reservation.amount.cost.0),
        ),
    )?;
    // The row is missing if the user was deleted meanwhile.
    let sql = "select tokens, cost_micros from model_spending where day = ?1 and user_id = ?2";
    Ok(tx.first(sql, (&reservation.day, owner.0), amount_of)?.unwrap_or_default())
}

fn spent_in(tx: &Read<'_>, day: &str, owner: UserId) -> Result<Amount> {
    let spent = tx.first(
        "select tokens + reserved_tokens, cost_micros + reserved_cost_micros from model_spending \
         where day = ?1 and user_id = ?2",
        (day, owner.0),
        amount_of,
    )?;
    Ok(spent.unwrap_or_default())
}

/// Returns a number as it is stored.
pub(super) fn stored(number: u64) -> i64 {
    // Limits numbers that a provider makes up, so that daily sums cannot overflow.
    i64::try_from(number).unwrap_or(i64::MAX).min(1 << 48)
}

/// Reads an amount from the first two columns.
pub(super) fn amount_of(row: &Row<'_>) -> RowResult<Amount> {
    Ok(Amount { tokens: unsigned(row.get(0)?), cost: MicroAmount::from_stored(row.get(1)?) })
}

fn usage_of(row: &Row<'_>) -> RowResult<UsageRow> {
    Ok(UsageRow {
        day: row.get(0)?,
        kind: row.get(1)?,
        provider: row.get(2)?,
        model: row.get(3)?,
        outcome: row.get(4)?,
        calls: unsigned(row.get(5)?),
        slow_calls: unsigned(row.get(6)?),
        prompt_tokens: unsigned(row.get(7)?),
        completion_tokens: unsigned(row.get(8)?),
        cost: MicroAmount::from_stored(row.get(9)?),
        duration_ms: unsigned(row.get(10)?),
    })
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_once_in_the_call_that_crosses_a_percentage() {
        let warnings: Vec<_> = [(10, 10), (49, 39), (50, 1), (51, 1), (85, 34), (100, 15)]
            .into_iter()
            .map(|(after, charged)| crossed_percentage(after, charged, 100))
            .collect();
        assert_eq!(warnings, [None, None, Some(50), None, Some(80), None]);
        assert_eq!(crossed_percentage(200, 200, 100), Some(80), "the highest one");
        assert_eq!(crossed_percentage(0, 0, 100), None);
    }

    #[test]
    fn estimates_tokens_by_script() {
        assert_eq!((estimate_tokens(""), estimate_tokens("乾为天"), estimate_tokens("abcdefgh")), (0, 3, 2));
    }
}
