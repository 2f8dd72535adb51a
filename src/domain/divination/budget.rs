//! What model calls use and cost: counted by day and outcome, and bounded by daily budgets.
//!
//! A call reserves what it may use before it begins and settles what it did use when it is over, each in the
//! transaction that writes the call's own record. So calls that run at once cannot slip through together: a budget is
//! passed by one call at most. What a vendor did not count is estimated here, for the budget alone; what a crash cut
//! off counts as reserved. Days are those of the service's own time zone.

use serde_json::json;

use crate::{
    config::{self, TokenPrice},
    core::Core,
    domain::Each,
    error::{Code, Error, Result},
    providers::llm::{Request, Usage, offline},
    store::{Read, Row, Write},
    types::{Date, Micros, TimeZone, Timestamp, UserId},
};

/// The row that counts everybody.
const EVERYBODY: UserId = UserId(0);
/// Parts of a budget at which a warning is logged, in per cent.
const WARNINGS: [u64; 2] = [80, 50];
/// Days for which spending is kept; only today's is ever asked for.
const KEPT_DAYS: i64 = 35;

/// Tokens and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub tokens: u64,
    pub cost: Micros,
}

impl Amount {
    pub fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), cost: self.cost.plus(other.cost) }
    }
}

/// What a running call may use, until it is settled.
#[derive(Clone, Debug)]
pub struct Reservation {
    user: UserId,
    day: String,
    amount: Amount,
}

/// A call that is over, as it is counted.
#[derive(Clone, Debug)]
pub struct Used {
    /// `interpretation`, `chat` or `test`.
    pub kind: &'static str,
    pub provider: String,
    /// The model that was asked for: what answers may name is the vendor's choice, and without end.
    pub model: String,
    pub outcome: &'static str,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cost: Micros,
    pub duration_ms: i64,
    /// What the budgets are charged: as counted, or estimated where the vendor did not count.
    pub charged: Amount,
}

/// A part of a budget that was just passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Nobody for the budget over all.
    pub user: Option<UserId>,
    /// `tokens` or `cost`.
    pub of: &'static str,
    pub per_cent: u64,
}

/// The limits of one row of spending.
#[derive(Clone, Copy, Debug)]
struct Limits {
    tokens: Option<u64>,
    cost: Option<Micros>,
}

/// Calls of one kind on one day that ended alike.
#[derive(Clone, Debug)]
pub struct UsageRow {
    pub day: String,
    pub kind: String,
    pub provider: String,
    pub model: String,
    pub outcome: String,
    pub calls: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cost: Micros,
    pub duration_ms: u64,
}

impl Used {
    /// A call of which nobody knows what it used.
    pub fn interrupted(kind: &'static str, provider: String, model: String) -> Self {
        Self {
            kind,
            provider,
            model,
            outcome: "interrupted",
            prompt_tokens: 0,
            completion_tokens: 0,
            cost: Micros::default(),
            duration_ms: 0,
            charged: Amount::default(),
        }
    }
}

/// What was used in the days of `[from, to]`, by day, kind, provider, model and outcome.
pub fn usage(core: &Core, from: Date, to: Date) -> Result<Vec<UsageRow>> {
    core.store.read(|tx| {
        tx.all(
            "select day, kind, provider, model, outcome, calls, prompt_tokens, completion_tokens, cost_micros, \
             duration_ms from model_usage where day >= ?1 and day <= ?2 order by day, kind, provider, model, outcome",
            (from.to_string(), to.to_string()),
            usage_of,
        )
    })
}

/// What was spent today over all, running calls included.
pub fn spent_today(core: &Core) -> Result<Amount> {
    core.store.read(|tx| spent_in(tx, &core.config.limits.time_zone.today(tx.now).to_string(), EVERYBODY))
}

/// What the request may use at most: its own words, and the longest answer that it allows.
pub fn largest_use(settings: &config::Llm, provider: &str, model: &str, request: &Request) -> Amount {
    if provider == offline::NAME {
        return Amount::default();
    }
    let prompt = request.messages.iter().map(|message| estimated_tokens(&message.content)).sum();
    let completion = u64::from(request.max_tokens.unwrap_or(settings.max_tokens));
    amount(settings, model, prompt, completion)
}

/// What so many tokens are, and cost; nothing for a model without a price.
pub fn amount(settings: &config::Llm, model: &str, prompt_tokens: u64, completion_tokens: u64) -> Amount {
    let TokenPrice { prompt, completion } = settings.prices.get(model).copied().unwrap_or_default();
    let cost = prompt.of_tokens(prompt_tokens).plus(completion.of_tokens(completion_tokens));
    Amount { tokens: prompt_tokens.saturating_add(completion_tokens), cost }
}

/// What these counted tokens cost; nothing known for a model without a price.
pub fn cost(settings: &config::Llm, model: &str, usage: Usage) -> Option<Micros> {
    settings
        .prices
        .contains_key(model)
        .then(|| amount(settings, model, usage.prompt_tokens, usage.completion_tokens).cost)
}

/// About as many tokens as common models make of a text: one a Chinese character, one for four Latin letters.
pub fn estimated_tokens(text: &str) -> u64 {
    let (ascii, other) =
        text.chars().fold(
            (0_u64, 0_u64),
            |(ascii, other), character| {
                if character.is_ascii() { (ascii + 1, other) } else { (ascii, other + 1) }
            },
        );
    ascii.div_ceil(4) + other
}

/// Sets aside what a call may use.
///
/// # Errors
/// `budget_spent` when the user's budget or that over all is used up, running calls included.
pub fn reserve_in(
    tx: &Write<'_>,
    settings: &config::Llm,
    zone: &TimeZone,
    user: UserId,
    amount: Amount,
) -> Result<Reservation> {
    let day = zone.today(tx.now).to_string();
    let reservation = Reservation { user, day, amount };
    if amount == Amount::default() {
        return Ok(reservation);
    }
    for (who, limits) in [(EVERYBODY, over_all(settings)), (user, of_user(settings))] {
        let spent = spent_in(tx, &reservation.day, who)?;
        if limits.tokens.is_some_and(|most| spent.tokens >= most) || limits.cost.is_some_and(|most| spent.cost >= most)
        {
            let whose = if who == EVERYBODY { "the service" } else { "this user" };
            let detail = format!("What {whose} may spend on the language model today is spent.");
            return Err(Error::new(Code::BudgetSpent).detail(detail).retry_after(zone.tomorrow(tx.now).since(tx.now)));
        }
        tx.execute(
            "insert into model_spending (day, user_id, tokens, cost_micros, reserved_tokens, reserved_cost_micros) \
             values (?1, ?2, 0, 0, ?3, ?4) on conflict (day, user_id) do update set \
             reserved_tokens = reserved_tokens + excluded.reserved_tokens, \
             reserved_cost_micros = reserved_cost_micros + excluded.reserved_cost_micros",
            (&reservation.day, who.0, stored(amount.tokens), stored(amount.cost.0)),
        )?;
    }
    Ok(reservation)
}

/// Gives back what was set aside, counts what was used, and says which parts of a budget that passed.
pub fn settle_in(
    tx: &Write<'_>,
    settings: &config::Llm,
    reservation: &Reservation,
    used: &Used,
) -> Result<Vec<Warning>> {
    count_in(tx, &reservation.day, used)?;
    let mut warnings = Vec::new();
    if reservation.amount == Amount::default() && used.charged == Amount::default() {
        return Ok(warnings);
    }
    for (who, limits) in [(EVERYBODY, over_all(settings)), (reservation.user, of_user(settings))] {
        let after = charge_in(tx, reservation, who, used.charged)?;
        let whose = (who != EVERYBODY).then_some(who);
        let tokens = limits.tokens.and_then(|most| passed(after.tokens, used.charged.tokens, most));
        let cost = limits.cost.and_then(|most| passed(after.cost.0, used.charged.cost.0, most.0));
        warnings.extend(tokens.map(|per_cent| Warning { user: whose, of: "tokens", per_cent }));
        warnings.extend(cost.map(|per_cent| Warning { user: whose, of: "cost", per_cent }));
    }
    Ok(warnings)
}

/// Counts a call that reserved nothing: one that a crash cut off, or that no user made.
pub fn count_in(tx: &Write<'_>, day: &str, used: &Used) -> Result<()> {
    tx.execute(
        "insert into model_usage (day, kind, provider, model, outcome, calls, prompt_tokens, completion_tokens, \
         cost_micros, duration_ms) values (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9) \
         on conflict (day, kind, provider, model, outcome) do update set calls = calls + 1, \
         prompt_tokens = prompt_tokens + excluded.prompt_tokens, \
         completion_tokens = completion_tokens + excluded.completion_tokens, \
         cost_micros = cost_micros + excluded.cost_micros, duration_ms = duration_ms + excluded.duration_ms",
        (
            day,
            used.kind,
            &used.provider,
            &used.model,
            used.outcome,
            stored(used.prompt_tokens),
            stored(used.completion_tokens),
            stored(used.cost.0),
            used.duration_ms,
        ),
    )
    .map(drop)
}

/// Takes what all calls that no process runs any more had set aside as spent, whatever they were for: nobody knows how
/// much of it was used. For the transaction that ends their records.
pub fn take_reserved_as_spent_in(tx: &Write<'_>) -> Result<()> {
    tx.execute(
        "update model_spending set tokens = tokens + reserved_tokens, \
         cost_micros = cost_micros + reserved_cost_micros, reserved_tokens = 0, reserved_cost_micros = 0 \
         where reserved_tokens > 0",
        (),
    )
    .map(drop)
}

/// Deletes up to `limit` rows of spending that no budget is counted from any more.
pub fn delete_old_spending_in(tx: &Write<'_>, zone: &TimeZone, limit: u32) -> Result<usize> {
    let first_kept = zone.today(Timestamp(tx.now.0 - KEPT_DAYS * 86_400_000)).to_string();
    tx.execute(
        "delete from model_spending where (day, user_id) in \
         (select day, user_id from model_spending where day < ?1 order by day, user_id limit ?2)",
        (first_kept, limit),
    )
}

/// Deletes what counts the spending of a user who is being erased.
pub fn erase_user_in(tx: &Write<'_>, zone: &TimeZone, user: UserId) -> Result<usize> {
    // Older rows go by themselves, and there is no index to find them by.
    let today = zone.today(tx.now).to_string();
    tx.execute("delete from model_spending where day = ?1 and user_id = ?2", (today, user.0))
}

/// What the user's model calls used, day by day, the newest first.
pub fn export_in(tx: &Read<'_>, zone: &TimeZone, user: UserId, each: Each<'_>) -> Result<()> {
    let mut day = zone.today(tx.now);
    // Day by day, because the rows stand by day and there is no index over users.
    for _ in 0..=KEPT_DAYS {
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

fn over_all(settings: &config::Llm) -> Limits {
    Limits { tokens: settings.tokens_per_day, cost: settings.cost_per_day }
}

fn of_user(settings: &config::Llm) -> Limits {
    Limits { tokens: settings.user_tokens_per_day, cost: settings.user_cost_per_day }
}

/// The largest warning between what was spent before and what is spent now.
fn passed(after: u64, charged: u64, most: u64) -> Option<u64> {
    let before = after.saturating_sub(charged);
    let part = |per_cent: u64| (u128::from(most) * u128::from(per_cent)).div_ceil(100);
    WARNINGS
        .into_iter()
        .find(|per_cent| (u128::from(before)..u128::from(after)).contains(&part(*per_cent).saturating_sub(1)))
}

fn charge_in(tx: &Write<'_>, reservation: &Reservation, who: UserId, charged: Amount) -> Result<Amount> {
    // The row may be gone, if its user was erased meanwhile.
    let after = tx.first(
        "update model_spending set tokens = tokens + ?3, cost_micros = cost_micros + ?4, \
         reserved_tokens = case when reserved_tokens > ?5 then reserved_tokens - ?5 else 0 end, \
         reserved_cost_micros = case when reserved_cost_micros > ?6 then reserved_cost_micros - ?6 else 0 end \
         where day = ?1 and user_id = ?2 returning tokens, cost_micros",
        (
            &reservation.day,
            who.0,
            stored(charged.tokens),
            stored(charged.cost.0),
            stored(reservation.amount.tokens),
            stored(reservation.amount.cost.0),
        ),
        amount_of,
    )?;
    Ok(after.unwrap_or_default())
}

fn spent_in(tx: &Read<'_>, day: &str, who: UserId) -> Result<Amount> {
    let spent = tx.first(
        "select tokens + reserved_tokens, cost_micros + reserved_cost_micros from model_spending \
         where day = ?1 and user_id = ?2",
        (day, who.0),
        amount_of,
    )?;
    Ok(spent.unwrap_or_default())
}

fn stored(number: u64) -> i64 {
    // Sums of a day stay far below, also of numbers that a vendor invents.
    i64::try_from(number).unwrap_or(i64::MAX).min(1 << 48)
}

fn amount_of(row: &Row<'_>) -> rusqlite::Result<Amount> {
    Ok(Amount { tokens: unsigned(row.get(0)?), cost: Micros::from_stored(row.get(1)?) })
}

fn usage_of(row: &Row<'_>) -> rusqlite::Result<UsageRow> {
    Ok(UsageRow {
        day: row.get(0)?,
        kind: row.get(1)?,
        provider: row.get(2)?,
        model: row.get(3)?,
        outcome: row.get(4)?,
        calls: unsigned(row.get(5)?),
        prompt_tokens: unsigned(row.get(6)?),
        completion_tokens: unsigned(row.get(7)?),
        cost: Micros::from_stored(row.get(8)?),
        duration_ms: unsigned(row.get(9)?),
    })
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_warning_is_given_once_by_the_call_that_passes_it() {
        let warnings: Vec<_> = [(10, 10), (49, 39), (50, 1), (51, 1), (85, 34), (100, 15)]
            .into_iter()
            .map(|(after, charged)| passed(after, charged, 100))
            .collect();
        assert_eq!(warnings, [None, None, Some(50), None, Some(80), None]);
        assert_eq!(passed(200, 200, 100), Some(80), "the most telling one");
        assert_eq!(passed(0, 0, 100), None);
    }

    #[test]
    fn tokens_are_estimated_by_script() {
        assert_eq!((estimated_tokens(""), estimated_tokens("乾为天"), estimated_tokens("abcdefgh")), (0, 3, 2));
    }
}
