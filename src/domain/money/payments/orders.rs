//! Orders of products, with the terms at the time of the order.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use crate::{
    config::PaymentConfig,
    core::Core,
    domain::money::{
        ledger::{self, Asset, EntryKind, LedgerEntry},
        payments::{Payments, order::Order},
        products::{self, Product, ProductId},
    },
    error::{Code, Error, Result},
    providers::payment::{CHANNELS, OrderState, PayerClient, PaymentGateway, PaymentInstruction},
    store::{Pending, Read, Row, RowError, RowResult, Write},
    types::{
        Currency, CursorRange, CursorSlice, Fen, Locale, PageRequest, Paginated, Timestamp, UserId, random_digits,
    },
};

/// Selects the columns that [`order_row`] reads.
macro_rules! select_orders {
    ($rest:literal) => {
        concat!(
            "select order_no, user_id, channel, amount_fen, coin_count, state, reason, trade_no, refunded_fen, \
             coins_returned, coins_written_off, returns, checks, next_check_at, created_at, expires_at, paid_at, \
             credited_at, closed_at, refunded_at, id, paid_fen, app_id, settled_at, product_id, product_version, asset, \
             bonus, first_bonus, subject, bonus_credited, bonus_returned, bonus_written_off, provider_ref, currency from payment_orders ",
            $rest
        )
    };
}

/// A range of prices, both ends included, in any currency.
#[derive(Clone, Copy, Debug, Default)]
pub struct AmountRange {
    pub min: Option<Fen>,
    pub max: Option<Fen>,
}

impl AmountRange {
    /// Returns the range that meets all conditions that are given.
    pub fn new(exact: Option<Fen>, min: Option<Fen>, max: Option<Fen>) -> Self {
        let upper = [exact, max].into_iter().flatten().min();
        Self { min: exact.max(min), max: upper }
    }

    const fn is_open(self) -> bool {
        self.min.is_none() && self.max.is_none()
    }

    /// Returns the price if there is only one.
    fn exact(self) -> Option<Fen> {
        self.min.filter(|min| Some(*min) == self.max)
    }
}

/// A filter on orders.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderFilter {
    pub user: Option<UserId>,
    pub state: Option<OrderState>,
    pub amount: AmountRange,
    /// Created at this time or later.
    pub from: Option<Timestamp>,
    /// Created before this time.
    pub to: Option<Timestamp>,
}

impl OrderFilter {
    pub fn of_user(user: UserId) -> Self {
        Self { user: Some(user), ..Self::default() }
    }
}

/// The money that went back for an order.
#[derive(Clone, Debug)]
pub struct OrderRefundSum {
    /// The time of the first refund.
    pub at: Timestamp,
    pub channel: String,
    pub currency: Currency,
    pub asset: Asset,
    pub amount: Fen,
}

/// The product to order.
#[derive(Clone, Debug)]
pub enum OrderedProduct {
    ById(ProductId),
    /// By its price and number of coins, as the first API generation names it.
    Package {
        amount: Fen,
        coin_count: u32,
    },
}

/// Returns the user's recent open order for this product, or creates one. `locale` is the language of the name that the
/// buyer sees; `channel` is that of the payment, or the default one. An order is reused for the same client only.
///
/// # Errors
/// `unknown_product`, or `unknown_package` for a pair that is not in the price list; both also for a product without a
/// price in the channel's currency. `invalid_parameters` for a channel that takes no new orders.
pub fn create(
    payments: &Payments,
    user: UserId,
    ordered: OrderedProduct,
    channel: Option<&str>,
    client: &PayerClient,
    locale: Locale,
) -> Result<Pending<Order>> {
    let config = Arc::clone(&payments.core.config);
    let gateway = Arc::clone(&payments.channels.for_new_order(channel)?.gateway);
    let payer = gateway.payer(client);
    Ok(payments.core.store.write_without_savepoint(move |tx| {
        let (channel, app_id) = (gateway.name(), gateway.app_id());
        let settings = &config.payment;
        let (product, amount) = match &ordered {
            OrderedProduct::ById(id) => products::find_for_sale_in(tx, settings, id)?,
            OrderedProduct::Package { amount, coin_count } => {
                products::find_package_in(tx, settings, *amount, *coin_count)?
            }
        };
        let amount = gateway.price(amount).ok_or(match ordered {
            OrderedProduct::ById(_) => Code::UnknownProduct,
            OrderedProduct::Package { .. } => Code::UnknownPackage,
        })?;
        let made_since = tx.now.minus(settings.order_reuse);
        let terms = &product.terms;
        let subject = terms.subject(locale);
        let shown = (payer.as_str(), subject.as_str());
        let made_by = (channel, app_id, gateway.currency());
        if let Some(order) = find_open_in(tx, user, made_by, &product, amount, shown, made_since)? {
            return Ok(order);
        }
        let next_check_at = settings.checks.first().map(|age| tx.now.plus(*age).0);
        let expires_at = tx.now.plus(time_to_pay(settings, gateway.as_ref()));
        let order_no = new_order_no(&day_of(tx.now))?;
        tx.execute(
            "insert into payment_orders (order_no, user_id, channel, amount_fen, coin_count, state, next_check_at, \
             created_at, expires_at, app_id, product_id, product_version, asset, bonus, first_bonus, subject, currency, \
             payer) \
             values (?1, ?2, ?3, ?4, ?5, 'created', ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
            (
                &order_no,
                user.0,
                channel,
                amount.as_fen(),
                terms.quantity,
                next_check_at,
                tx.now.0,
                expires_at.0,
                app_id,
                product.id.as_str(),
                product.version,
                terms.asset.name(),
                terms.bonus,
                terms.first_bonus,
                &subject,
                gateway.currency().code(),
                &payer,
            ),
        )?;
        find_in(tx, &order_no)
    }))
}

/// Returns the time in which an order can be paid. A provider with a minimum counts it from the last time at which the
/// order may be handed out again.
fn time_to_pay(settings: &PaymentConfig, gateway: &dyn PaymentGateway) -> Duration {
    match gateway.min_payment_time() {
        Duration::ZERO => settings.order_lifetime,
        min => settings.order_lifetime.max(settings.order_reuse + min),
    }
}

/// Returns what the client needs to pay the order. Blocks on the provider for some channels.
///
/// # Errors
/// Those of the provider; the order stays and can be prepared again.
pub fn prepare(payments: &Payments, order: &Order, client: &PayerClient) -> Result<PaymentInstruction> {
    let channel = payments.channels.of(order)?;
    if !channel.gateway.prepares_online() {
        return Ok(channel.gateway.prepare(&order.request(), client)?);
    }
    let _permit = payments.calls.try_acquire()?;
    let prepared = payments.ask(order, |gateway, _| gateway.prepare(&order.request(), client))??;
    if prepared.provider_ref.is_some() && prepared.provider_ref != order.provider_ref {
        let (order_no, reference) = (order.order_no.clone(), prepared.provider_ref.clone());
        payments
            .core
            .store
            .write(move |tx| {
                let values = (&order_no, &reference);
                tx.execute("update payment_orders set provider_ref = ?2 where order_no = ?1", values).map(drop)
            })
            .wait()?;
    }
    Ok(prepared)
}

/// Finds an order by its number or by the provider's.
pub fn find(payments: &Payments, number: &str) -> Result<Order> {
    payments.core.store.read(|tx| {
        if let Some(order) = find_maybe_in(tx, number)? {
            return Ok(order);
        }
        for channel in CHANNELS {
            if let Some(order) = find_by_trade_in(tx, channel, number)? {
                return Ok(order);
            }
        }
        Err(Code::NotFound.into())
    })
}

/// Finds an order of this user.
///
/// # Errors
/// `not_found` for another user's order.
pub fn find_own(core: &Core, user: UserId, order_no: &str) -> Result<Order> {
    let found = core.store.read(|tx| find_maybe_in(tx, order_no))?;
    found.filter(|order| order.user == user).ok_or_else(|| Code::NotFound.into())
}

/// Returns a page of the user's orders by cursor, newest first.
pub fn of_user(core: &Core, user: UserId, span: CursorRange) -> Result<CursorSlice<Order>> {
    let rows = core.store.read(|tx| {
        tx.all(
            select_orders!("where user_id = ?1 and id < ?2 order by id desc limit ?3"),
            (user.0, span.upper_bound(), span.rows_to_read()),
            order_row,
        )
    })?;
    Ok(span.slice(rows, |order| order.id))
}

/// Lists orders, newest first.
pub fn list(core: &Core, filter: OrderFilter, page: PageRequest) -> Result<Paginated<Order>> {
    core.store.read(|tx| list_in(tx, filter, page))
}

/// Counts the orders in review.
pub fn in_review_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select count(*) from payment_orders where state = 'review'", (), |row| row.get(0))
}

/// Returns the refunded amounts of orders whose first refund was in `[from, to)`.
pub fn refunds_between_in(tx: &Read<'_>, from: Timestamp, to: Timestamp) -> Result<Vec<OrderRefundSum>> {
    let sql = "select refunded_at, channel, currency, asset, refunded_fen from payment_orders \
               where refunded_at is not null and refunded_at >= ?1 and refunded_at < ?2";
    tx.all(sql, (from.0, to.0), |row| {
        Ok(OrderRefundSum {
            at: Timestamp(row.get(0)?),
            channel: row.get(1)?,
            currency: row.get_parsed(2, |code| Currency::parse(code).ok())?,
            asset: row.get_parsed(3, Asset::from_name)?,
            amount: Fen::from_fen(row.get(4)?).unwrap_or(Fen::ZERO),
        })
    })
}

pub fn find_in(tx: &Read<'_>, order_no: &str) -> Result<Order> {
    find_maybe_in(tx, order_no)?.ok_or_else(|| Code::NotFound.into())
}

/// Returns the ledger entries of the order's credit and claw-backs.
pub fn entries_in(tx: &Read<'_>, order: &Order) -> Result<Vec<LedgerEntry>> {
    let mut entries = Vec::new();
    let mut add = |kind, reference: &str| -> Result<()> {
        entries.extend(ledger::find_by_reference_in(tx, order.asset, kind, reference)?);
        Ok(())
    };
    for kind in [EntryKind::Topup, EntryKind::PurchaseBonus] {
        add(kind, &order.credit_reference())?;
    }
    for reference in (1..=order.returns).map(|number| order.return_reference(number)) {
        add(EntryKind::Refund, &reference)?;
        add(EntryKind::PurchaseBonusRefund, &reference)?;
    }
    for reference in (1..=order.returns).flat_map(|number| order.reversal_references(number)) {
        add(EntryKind::RefundReversal, &reference)?;
    }
    Ok(entries)
}

/// Returns those of the numbers that are orders.
pub fn known_in<'number>(tx: &Read<'_>, numbers: impl IntoIterator<Item = &'number str>) -> Result<BTreeSet<String>> {
    let mut known = BTreeSet::new();
    for number in numbers {
        if find_maybe_in(tx, number)?.is_some() {
            known.insert(number.to_owned());
        }
    }
    Ok(known)
}

pub fn find_maybe_in(tx: &Read<'_>, order_no: &str) -> Result<Option<Order>> {
    tx.first(select_orders!("where order_no = ?1"), [order_no], order_row)
}

pub(super) fn find_by_trade_in(tx: &Read<'_>, channel: &str, trade_no: &str) -> Result<Option<Order>> {
    tx.first(select_orders!("where channel = ?1 and trade_no = ?2"), (channel, trade_no), order_row)
}

/// Lets the job query an order at once, whatever its state.
pub(super) fn query_soon_in(tx: &Write<'_>, order: Order) -> Result<()> {
    store_in(tx, &Order { next_check_at: Some(tx.now), ..order })
}

/// Stores the mutable columns of an order.
pub(super) fn store_in(tx: &Write<'_>, order: &Order) -> Result<()> {
    let changed = tx.execute(
        "update payment_orders set state = ?2, reason = ?3, trade_no = ?4, refunded_fen = ?5, coins_returned = ?6, \
         coins_written_off = ?7, returns = ?8, checks = ?9, next_check_at = ?10, paid_at = ?11, credited_at = ?12, \
         closed_at = ?13, refunded_at = ?14, paid_fen = ?15, settled_at = ?16 where order_no = ?1",
        (
            &order.order_no,
            order.state.name(),
            &order.reason,
            &order.trade_no,
            order.refunded.as_fen(),
            order.coins_returned,
            order.coins_written_off,
            order.returns,
            order.checks,
            order.next_check_at.map(|at| at.0),
            order.paid_at.map(|at| at.0),
            order.credited_at.map(|at| at.0),
            order.closed_at.map(|at| at.0),
            order.refunded_at.map(|at| at.0),
            order.paid.as_fen(),
            order.settled_at.map(|at| at.0),
        ),
    )?;
    if changed != 1 {
        return Err(Error::internal("an order that was just read is missing"));
    }
    // A statement of its own, because one takes 16 values at most. Without a credited bonus all three stay 0.
    if order.bonus_credited == 0 {
        return Ok(());
    }
    tx.execute(
        "update payment_orders set bonus_credited = ?2, bonus_returned = ?3, bonus_written_off = ?4 where order_no = ?1",
        (&order.order_no, order.bonus_credited, order.bonus_returned, order.bonus_written_off),
    )
    .map(drop)
}

/// Records a query on behalf of the user. Returns false if the last one was too recent.
pub(super) fn claim_query_in(tx: &Write<'_>, order_no: &str, not_since: Timestamp) -> Result<bool> {
    let taken = tx.execute(
        "update payment_orders set asked_at = ?2 where order_no = ?1 and \
         (asked_at is null or asked_at <= ?3 or asked_at > ?2)",
        (order_no, tx.now.0, not_since.0),
    )?;
    Ok(taken == 1)
}

/// Permits another query immediately, because the provider could not be reached.
pub(super) fn release_query_in(tx: &Write<'_>, order_no: &str) -> Result<()> {
    tx.execute("update payment_orders set asked_at = null where order_no = ?1", [order_no]).map(drop)
}

/// Returns the orders of a gateway whose query is due. A time beyond `latest` was set while the clock was ahead, so it
/// is due as well.
pub(super) fn due_in(tx: &Read<'_>, channel: &str, latest: Duration, limit: u32) -> Result<Vec<Order>> {
    let mut due = tx.all(
        select_orders!("where channel = ?1 and next_check_at <= ?2 order by next_check_at limit ?3"),
        (channel, tx.now.0, limit),
        order_row,
    )?;
    due.extend(tx.all(
        select_orders!("where channel = ?1 and next_check_at > ?2 order by next_check_at limit ?3"),
        (channel, tx.now.plus(latest).0, limit),
        order_row,
    )?);
    Ok(due)
}

/// Returns the orders created before `to` and after the cursor `after` (a time and an id), oldest first.
pub(super) fn made_between_in(tx: &Read<'_>, after: (Timestamp, i64), to: Timestamp, limit: u32) -> Result<Vec<Order>> {
    tx.all(
        select_orders!("where (created_at, id) > (?1, ?2) and created_at < ?3 order by created_at, id limit ?4"),
        (after.0.0, after.1, to.0, limit),
        order_row,
    )
}

/// Returns the orders of a channel that were paid in `[from, to)`.
pub(super) fn paid_between_in(tx: &Read<'_>, channel: &str, from: Timestamp, to: Timestamp) -> Result<Vec<Order>> {
    tx.all(select_orders!("where channel = ?1 and paid_at >= ?2 and paid_at < ?3"), (channel, from.0, to.0), order_row)
}

fn list_in(tx: &Read<'_>, filter: OrderFilter, page: PageRequest) -> Result<Paginated<Order>> {
    let (size, offset) = (page.size, page.offset());
    let (user, state) = (filter.user.map(|user| user.0), filter.state.map(OrderState::name));
    if !filter.amount.is_open() || filter.from.is_some() || filter.to.is_some() {
        return list_between_in(tx, filter, page);
    }
    let count = |row: &Row<'_>| row.get(0);
    Ok(match (user, state) {
        (None, None) => Paginated {
            items: tx.all(select_orders!("order by id desc limit ?1 offset ?2"), (size, offset), order_row)?,
            total: tx.one("select count(*) from payment_orders", (), count)?,
        },
        (Some(user), None) => Paginated {
            items: tx.all(
                select_orders!("where user_id = ?1 order by id desc limit ?2 offset ?3"),
                (user, size, offset),
                order_row,
            )?,
            total: tx.one("select count(*) from payment_orders where user_id = ?1", [user], count)?,
        },
        (None, Some(state)) => Paginated {
            items: tx.all(
                select_orders!("where state = ?1 order by id desc limit ?2 offset ?3"),
                (state, size, offset),
                order_row,
            )?,
            total: tx.one("select count(*) from payment_orders where state = ?1", [state], count)?,
        },
        (Some(user), Some(state)) => Paginated {
            items: tx.all(
                select_orders!("where user_id = ?1 and state = ?2 order by id desc limit ?3 offset ?4"),
                (user, state, size, offset),
                order_row,
            )?,
            total: tx.one(
                // The expression keeps the planner on the user's index: a user has few orders, a state has most of all.
                "select count(*) from payment_orders where user_id = ?1 and state || '' = ?2",
                (user, state),
                count,
            )?,
        },
    })
}

/// Lists orders of a time range, with one statement for each index.
fn list_between_in(tx: &Read<'_>, filter: OrderFilter, page: PageRequest) -> Result<Paginated<Order>> {
    let (size, offset) = (page.size, page.offset());
    let (from, to) = (filter.from.map_or(0, |from| from.0), filter.to.map_or(i64::MAX, |to| to.0));
    let (state, amount) = (filter.state.map(OrderState::name), filter.amount.exact().map(Fen::as_fen));
    let (min, max) = (filter.amount.min.map_or(0, Fen::as_fen), filter.amount.max.map_or(i64::MAX, Fen::as_fen));
    let count = |row: &Row<'_>| row.get(0);
    Ok(match (filter.user.map(|user| user.0), amount, state) {
        // The plus keeps the planner on the user's index: a user has few orders.
        (Some(user), _, state) => Paginated {
            items: tx.all(
                select_orders!(
                    "where user_id = ?1 and created_at + 0 >= ?2 and created_at + 0 < ?3 and (state = ?4 or ?4 is null) \
                     and amount_fen + 0 >= ?5 and amount_fen + 0 <= ?6 order by id desc limit ?7 offset ?8"
                ),
                (user, from, to, state, min, max, size, offset),
                order_row,
            )?,
            total: tx.one(
                "select count(*) from payment_orders where user_id = ?1 and created_at + 0 >= ?2 and created_at + 0 < ?3 \
                 and (state = ?4 or ?4 is null) and amount_fen + 0 >= ?5 and amount_fen + 0 <= ?6",
                (user, from, to, state, min, max),
                count,
            )?,
        },
        (None, Some(amount), state) => Paginated {
            items: tx.all(
                select_orders!(
                    "where amount_fen = ?1 and created_at >= ?2 and created_at < ?3 and (state = ?4 or ?4 is null) \
                     order by created_at desc, id desc limit ?5 offset ?6"
                ),
                (amount, from, to, state, size, offset),
                order_row,
            )?,
            total: tx.one(
                "select count(*) from payment_orders where amount_fen = ?1 and created_at >= ?2 and created_at < ?3 \
                 and (state = ?4 or ?4 is null)",
                (amount, from, to, state),
                count,
            )?,
        },
        // A range of prices has no order by time, so the index by time is read with the prices in it.
        (None, None, state) if !filter.amount.is_open() => Paginated {
            items: tx.all(
                select_orders!(
                    "where created_at >= ?1 and created_at < ?2 and amount_fen + 0 >= ?3 and amount_fen + 0 <= ?4 \
                     and (state = ?5 or ?5 is null) order by created_at desc, id desc limit ?6 offset ?7"
                ),
                (from, to, min, max, state, size, offset),
                order_row,
            )?,
            total: tx.one(
                "select count(*) from payment_orders where created_at >= ?1 and created_at < ?2 \
                 and amount_fen + 0 >= ?3 and amount_fen + 0 <= ?4 and (state = ?5 or ?5 is null)",
                (from, to, min, max, state),
                count,
            )?,
        },
        (None, None, Some(state)) => Paginated {
            items: tx.all(
                select_orders!(
                    "where state = ?1 and created_at >= ?2 and created_at < ?3 \
                     order by created_at desc, id desc limit ?4 offset ?5"
                ),
                (state, from, to, size, offset),
                order_row,
            )?,
            total: tx.one(
                "select count(*) from payment_orders where state = ?1 and created_at >= ?2 and created_at < ?3",
                (state, from, to),
                count,
            )?,
        },
        (None, None, None) => Paginated {
            items: tx.all(
                select_orders!(
                    "where created_at >= ?1 and created_at < ?2 order by created_at desc, id desc limit ?3 offset ?4"
                ),
                (from, to, size, offset),
                order_row,
            )?,
            total: tx.one(
                "select count(*) from payment_orders where created_at >= ?1 and created_at < ?2",
                (from, to),
                count,
            )?,
        },
    })
}

/// Calls `each` with every order of a user, oldest first.
pub(super) fn each_of_user_in(tx: &Read<'_>, user: UserId, each: &mut dyn FnMut(Order) -> Result<()>) -> Result<()> {
    tx.each(select_orders!("where user_id = ?1 order by id"), [user.0], |row| each(order_row(row)?))
}

/// Finds a reusable order. Skips orders with a future time: after a clock correction they would be reused for too long.
fn find_open_in(
    tx: &Write<'_>,
    user: UserId,
    (channel, app_id, currency): (&str, &str, Currency),
    product: &Product,
    amount: Fen,
    (payer, subject): (&str, &str),
    made_since: Timestamp,
) -> Result<Option<Order>> {
    // The version of a product of the settings does not change with its price.
    tx.first(
        select_orders!(
            "where state = 'created' and user_id = ?1 and product_id = ?2 and product_version = ?3 and amount_fen = ?4 \
             and coin_count = ?5 and created_at > ?6 and created_at <= ?7 and channel = ?8 and app_id = ?9 \
             and currency = ?10 and payer = ?11 and subject = ?12 order by created_at desc limit 1"
        ),
        (
            user.0,
            product.id.as_str(),
            product.version,
            amount.as_fen(),
            product.terms.quantity,
            made_since.0,
            tx.now.0,
            channel,
            app_id,
            currency.code(),
            payer,
            subject,
        ),
        order_row,
    )
}

/// Returns the day and 16 random digits: hard to guess and sorted by day.
fn new_order_no(day: &str) -> Result<String> {
    Ok(format!("{day}{}", random_digits(16)?.reveal()))
}

fn day_of(now: Timestamp) -> String {
    now.to_string().chars().filter(char::is_ascii_digit).take(8).collect()
}

fn order_row(row: &Row<'_>) -> RowResult<Order> {
    let fen = |index| -> RowResult<Fen> {
        let amount: i64 = row.get(index)?;
        Fen::from_fen(amount).map_err(|_| RowError::Invalid)
    };
    let time = |index| -> RowResult<Option<Timestamp>> { Ok(row.get::<Option<i64>>(index)?.map(Timestamp)) };
    Ok(Order {
        order_no: row.get(0)?,
        user: UserId(row.get(1)?),
        channel: row.get(2)?,
        amount: fen(3)?,
        coin_count: row.get(4)?,
        state: row.get_parsed(5, OrderState::from_name)?,
        reason: row.get(6)?,
        trade_no: row.get(7)?,
        refunded: fen(8)?,
        coins_returned: row.get(9)?,
        coins_written_off: row.get(10)?,
        returns: row.get(11)?,
        checks: row.get(12)?,
        next_check_at: time(13)?,
        created_at: Timestamp(row.get(14)?),
        expires_at: Timestamp(row.get(15)?),
        paid_at: time(16)?,
        credited_at: time(17)?,
        closed_at: time(18)?,
        refunded_at: time(19)?,
        id: row.get(20)?,
        paid: fen(21)?,
        app_id: row.get(22)?,
        settled_at: time(23)?,
        product_id: row.get(24)?,
        product_version: row.get(25)?,
        asset: row.get_parsed(26, Asset::from_name)?,
        bonus: row.get(27)?,
        first_bonus: row.get(28)?,
        subject: row.get(29)?,
        bonus_credited: row.get(30)?,
        bonus_returned: row.get(31)?,
        bonus_written_off: row.get(32)?,
        provider_ref: row.get(33)?,
        currency: row.get_parsed(34, |code| Currency::parse(code).ok())?,
    })
}
