//! The reconciliation report: daily sums of a period, and every order whose money and coins disagree.
//!
//! Coins come from the ledger and money from the orders, so that a fault in either shows.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    domain::{
        money::{
            ledger::{self, Asset, EntryKind, LedgerEntry},
            payments::{
                Payments,
                order::{BONUS_SUFFIX, Order},
                orders, retention,
            },
            purchases::{
                self,
                report::{PurchaseDifference, PurchaseReport},
            },
        },
        operations::settings,
    },
    error::{Error, Result},
    providers::payment::OrderState,
    store::{Read, Write},
    types::{Currency, Date, Fen, Timestamp},
};

/// Orders read in one snapshot.
const BATCH_SIZE: u32 = 500;
/// Interval of the stored report.
const DAY: Duration = Duration::from_hours(24);
const LAST_REPORT: &str = "payments.report";
const COINS_OWED: &str = "coins_owed";
/// The kinds of entries that belong to orders or purchases.
const OF_ORDERS: [EntryKind; 5] = [
    EntryKind::Topup,
    EntryKind::Refund,
    EntryKind::PurchaseBonus,
    EntryKind::PurchaseBonusRefund,
    EntryKind::RefundReversal,
];
/// Ledger entries read in one snapshot.
const ENTRIES_PER_READ: i64 = 50_000;

/// Counts and sums over orders. Money is in hundredths; sums over several currencies count only yuan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub orders: u64,
    /// Orders with a payment.
    pub paid: u64,
    /// Orders with a credit.
    pub credited: u64,
    /// Orders with a refund.
    pub refunded: u64,
    /// Orders that can still be paid, or whose credit is pending.
    pub open: u64,
    pub closed: u64,
    pub in_review: u64,
    pub amount_paid: i64,
    pub amount_refunded: i64,
    pub coins: AssetSums,
    pub points: AssetSums,
}

/// Coins or points of orders, with their bonus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AssetSums {
    pub credited: i64,
    pub returned: i64,
    pub written_off: i64,
}

/// An order whose money and coins disagree, or a ledger entry without an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `credit_missing`, `credit_unpaid`, `credit_wrong`, `bonus_wrong`, `returns_wrong`, `coins_owed`, `refund_unpaid`
    /// (more refunded than paid), or `order_missing` and `purchase_missing` for a ledger entry without one.
    pub code: &'static str,
    /// For an entry without an order, the number in its reference, or empty. For a purchase, its reference.
    pub order_no: String,
    /// `None` for purchases and for an entry without an order.
    pub state: Option<OrderState>,
    /// The coins that the ledger should hold according to the money.
    pub coins_expected: i64,
    /// The coins that the ledger holds.
    pub coins_found: i64,
}

/// The report on the orders created in `[from, to)`.
#[derive(Clone, Debug)]
pub struct OrderReport {
    pub from: Timestamp,
    pub to: Timestamp,
    /// By the day of creation in the configured time zone.
    pub days: BTreeMap<Date, Sums>,
    pub total: Sums,
    /// The purchases in app stores, whose money is not in the sums of orders.
    pub purchases: PurchaseReport,
    /// By channel and currency.
    pub channels: BTreeMap<(String, Currency), Sums>,
    /// Those of orders, of purchases, and entries that belong to neither.
    pub differences: Vec<Difference>,
}

/// The stored summary of the last daily report on all orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DailyReport {
    /// Milliseconds since 1970.
    at: i64,
    /// Differences besides coins that users owe, which orders in review show.
    pub differences: u64,
}

/// Makes and stores the report on all orders if the last one is older than a day. Returns true if it did. Blocks.
///
/// # Errors
/// Storage errors.
pub fn run_if_due(payments: &Payments) -> Result<bool> {
    let (core, now) = (&payments.core, payments.core.clock.now());
    let last = core.store.read(last_in)?;
    if last.is_some_and(|last| Timestamp(last.at).is_within(DAY, now)) {
        return Ok(false);
    }
    let report = report(payments, Timestamp(0), now)?;
    let differences = report.differences.iter().filter(|difference| difference.code != COINS_OWED).count();
    if differences > 0 {
        tracing::error!(differences, "payments and ledger disagree; run `yarrow payments report`");
    }
    let daily = DailyReport { at: now.0, differences: u64::try_from(differences).map_err(Error::internal)? };
    core.store.write(move |tx| settings::put_json_in(tx, LAST_REPORT, &daily)).wait()?;
    Ok(true)
}

/// Returns the summary of the last daily report.
pub fn last_in(tx: &Read<'_>) -> Result<Option<DailyReport>> {
    settings::find_json_in(tx, LAST_REPORT)
}

/// Deletes the summary after a purge of the orders.
pub fn begin_anew_in(tx: &Write<'_>) -> Result<()> {
    settings::remove_in(tx, LAST_REPORT)
}

/// Compares all orders created in `[from, to)` with the ledger, and the ledger entries of that time with the orders.
/// Blocks.
pub fn report(payments: &Payments, from: Timestamp, to: Timestamp) -> Result<OrderReport> {
    let mut report = OrderReport {
        from,
        to,
        days: BTreeMap::new(),
        total: Sums::default(),
        purchases: purchases::report::report(&payments.core, from, to)?,
        channels: BTreeMap::new(),
        differences: Vec::new(),
    };
    // Ids start at 1, so this cursor precedes the first order of `from`.
    let mut last = (from, 0);
    loop {
        let read = payments.core.store.read(|tx| {
            let batch = orders::made_between_in(tx, last, to, BATCH_SIZE)?;
            for order in &batch {
                report.add_in(tx, payments, order)?;
            }
            Ok(batch.last().map(|order| (order.created_at, order.id)))
        })?;
        match read {
            Some(place) => last = place,
            None => break,
        }
    }
    report.differences.extend(report.purchases.differences.iter().map(of_purchase));
    report.find_orphans(payments)?;
    Ok(report)
}

impl OrderReport {
    fn add_in(&mut self, tx: &Read<'_>, payments: &Payments, order: &Order) -> Result<()> {
        let coins = OrderCoins::of_in(tx, order)?;
        let day = payments.core.config.limits.time_zone.today(order.created_at);
        let is_yuan = order.currency == Currency::CNY;
        self.days.entry(day).or_default().add(order, coins, is_yuan);
        self.total.add(order, coins, is_yuan);
        let of_channel = self.channels.entry((order.channel.clone(), order.currency));
        of_channel.or_default().add(order, coins, true);
        self.differences.extend(difference(order, coins));
        Ok(())
    }

    /// Searches the ledger for payment entries without an order, which the orders cannot show.
    fn find_orphans(&mut self, payments: &Payments) -> Result<()> {
        let (time, last) = ((self.from, self.to), payments.core.store.read(ledger::last_number_in)?);
        let mut first = 1;
        while first <= last {
            let numbers = first..first + ENTRIES_PER_READ;
            first = numbers.end;
            self.differences.extend(payments.core.store.read(|tx| orphans_in(tx, time, numbers))?);
        }
        Ok(())
    }
}

/// Returns the entries with these numbers that have no order.
fn orphans_in(tx: &Read<'_>, time: (Timestamp, Timestamp), numbers: Range<i64>) -> Result<Vec<Difference>> {
    let (mut orphans, cleared_until) = (Vec::new(), retention::purged_until_in(tx)?);
    for entry in ledger::entries_between_in(tx, OF_ORDERS, time, numbers)? {
        if purchases::records::is_of_store(&entry) {
            if !purchases::records::is_known_in(tx, &entry)? {
                let (order_no, coins_found) = (entry.reference.unwrap_or_default(), entry.delta);
                let code = "purchase_missing";
                orphans.push(Difference { code, order_no, state: None, coins_expected: 0, coins_found });
            }
            continue;
        }
        let reference = entry.reference.as_deref().unwrap_or_default();
        let order_no = reference.strip_prefix("order:").unwrap_or(reference);
        let order_no = order_no.split('/').next().unwrap_or_default();
        let is_known = match orders::find_maybe_in(tx, order_no)? {
            Some(order) => order.owns_entry(&entry),
            None => false,
        };
        // The order of an older entry may have been purged.
        if !is_known && entry.created_at > cleared_until {
            let (code, order_no, coins_found) = ("order_missing", order_no.to_owned(), entry.delta);
            orphans.push(Difference { code, order_no, state: None, coins_expected: 0, coins_found });
        }
    }
    Ok(orphans)
}

fn of_purchase(difference: &PurchaseDifference) -> Difference {
    Difference {
        code: difference.code,
        order_no: difference.reference.clone(),
        state: None,
        coins_expected: difference.expected,
        coins_found: difference.found,
    }
}

impl Sums {
    fn add(&mut self, order: &Order, coins: OrderCoins, counts_money: bool) {
        let count = |holds: bool| u64::from(holds);
        self.orders += 1;
        self.paid += count(order.paid_at.is_some());
        self.credited += count(order.credited_at.is_some());
        self.refunded += count(order.refunded > Fen::ZERO);
        self.open += count(matches!(order.state, OrderState::Created | OrderState::Paid));
        self.closed += count(order.state == OrderState::Closed);
        self.in_review += count(order.state == OrderState::Review);
        if counts_money {
            self.amount_paid += order.paid.as_fen();
            self.amount_refunded += order.refunded.as_fen();
        }
        let sums = match order.asset {
            Asset::Coin => &mut self.coins,
            Asset::Point => &mut self.points,
        };
        sums.credited += coins.credited + coins.bonus;
        sums.returned += coins.returned + coins.bonus_returned;
        sums.written_off += order.coins_written_off + order.bonus_written_off;
    }
}

/// The coins or points of an order according to the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OrderCoins {
    credited: i64,
    returned: i64,
    bonus: i64,
    bonus_returned: i64,
}

impl OrderCoins {
    fn of_in(tx: &Read<'_>, order: &Order) -> Result<Self> {
        let entries = orders::entries_in(tx, order)?;
        let sum = |kind| entries.iter().filter(|entry| entry.kind == kind).map(|entry| entry.delta).sum::<i64>();
        let (bonus_reversals, reversals): (Vec<_>, Vec<_>) = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::RefundReversal)
            .partition(|entry| entry.reference.as_deref().is_some_and(|reference| reference.ends_with(BONUS_SUFFIX)));
        let given_back = |entries: Vec<&LedgerEntry>| entries.iter().map(|entry| entry.delta).sum::<i64>();
        Ok(Self {
            credited: sum(EntryKind::Topup),
            returned: -sum(EntryKind::Refund) - given_back(reversals),
            bonus: sum(EntryKind::PurchaseBonus),
            bonus_returned: -sum(EntryKind::PurchaseBonusRefund) - given_back(bonus_reversals),
        })
    }
}

fn difference(order: &Order, coins: OrderCoins) -> Option<Difference> {
    let has_money = order.refunded < order.paid;
    let price = i64::from(order.coin_count);
    let (code, expected, found) = if coins.credited != 0 && order.paid_at.is_none() && order.credited_at.is_none() {
        ("credit_unpaid", 0, coins.credited)
    } else if coins.credited == 0 && (order.credited_at.is_some() || has_money) {
        ("credit_missing", price, 0)
    } else if coins.credited != 0 && coins.credited != price {
        ("credit_wrong", price, coins.credited)
    } else if coins.bonus != order.bonus_credited {
        ("bonus_wrong", order.bonus_credited, coins.bonus)
    } else if coins.returned != order.coins_returned {
        ("returns_wrong", order.coins_returned, coins.returned)
    } else if coins.bonus_returned != order.bonus_returned {
        ("returns_wrong", order.bonus_returned, coins.bonus_returned)
    } else if order.coins_owed() != 0 || order.bonus_owed() != 0 {
        let found = coins.returned + coins.bonus_returned;
        let returned = order.coins_returned + order.bonus_returned;
        (COINS_OWED, returned + order.coins_owed() + order.bonus_owed(), found)
    } else if order.refunded > order.paid {
        ("refund_unpaid", order.coins_returned, coins.returned)
    } else {
        return None;
    };
    let Order { order_no, state, .. } = order.clone();
    Some(Difference { code, order_no, state: Some(state), coins_expected: expected, coins_found: found })
}
