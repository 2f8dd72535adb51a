//! A time range as what a report adds up: counted days, periods of ten minutes, and entries where the range begins or ends
//! inside a period. No request is in two of them.

use std::ops::ControlFlow;

use super::{
    blocks::{self, Key, Order, PERIOD},
    counted_days::{self, PERIODS_IN_DAY},
};
use crate::{error::Result, store::Read, types::Timestamp};

/// A half-open range of days, periods or times.
pub(super) type Span = (i64, i64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CountedRange {
    pub from: i64,
    pub to: i64,
    pub days: Vec<Span>,
    pub periods: Vec<Span>,
    pub entries: Vec<Span>,
}

impl CountedRange {
    pub fn find_in(tx: &Read<'_>, from: Timestamp, to: Timestamp) -> Result<Self> {
        let has_entries = |start, end| {
            let mut is_found = false;
            if start < end {
                blocks::each_row_in(tx, Key::All, (start, end), Order::OldestFirst, |_, _| {
                    is_found = true;
                    Ok(ControlFlow::Break(()))
                })?;
            }
            Ok(is_found)
        };
        let (whole, entries) = whole_periods(from.0, to.0, has_entries)?;
        let first_day = whole.0.div_euclid(PERIODS_IN_DAY) + i64::from(whole.0.rem_euclid(PERIODS_IN_DAY) > 0);
        let counted = counted_days::list_in(tx, first_day, whole.1.div_euclid(PERIODS_IN_DAY))?;
        let (days, periods) = split_at_days(whole, &counted);
        Ok(Self { from: from.0, to: to.0, days, periods, entries })
    }
}

/// Returns the whole periods of a time range, and the times before and after them. A period at an end of the range counts
/// as whole if it has no entries outside the range.
fn whole_periods(
    from: i64,
    to: i64,
    mut has_entries: impl FnMut(i64, i64) -> Result<bool>,
) -> Result<(Span, Vec<Span>)> {
    let (mut first, mut end) = (from.div_euclid(PERIOD), to.saturating_add(PERIOD - 1).div_euclid(PERIOD));
    first += i64::from(has_entries(first * PERIOD, from)?);
    end -= i64::from(has_entries(to, end * PERIOD)?);
    if first >= end {
        return Ok(((0, 0), vec![(from, to)]));
    }
    let rest = [(from, first * PERIOD), (end * PERIOD, to)];
    Ok(((first, end), rest.into_iter().filter(|(start, end)| start < end).collect()))
}

/// Splits whole periods into counted days and the periods between them.
fn split_at_days(whole: Span, counted: &[i64]) -> (Vec<Span>, Vec<Span>) {
    let (mut days, mut periods, mut next) = (Vec::<Span>::new(), Vec::new(), whole.0);
    for &day in counted {
        periods.push((next, day * PERIODS_IN_DAY));
        next = (day + 1) * PERIODS_IN_DAY;
        match days.last_mut() {
            Some(last) if last.1 == day => last.1 = day + 1,
            _ => days.push((day, day + 1)),
        }
    }
    periods.push((next, whole.1));
    periods.retain(|(start, end)| start < end);
    (days, periods)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_whole_periods_and_the_rest() {
        let of = |from: i64, to: i64, entry: i64| {
            whole_periods(from, to, |start, end| Ok((start..end).contains(&entry))).unwrap()
        };
        let (start, end) = (PERIOD - 5, 3 * PERIOD + 5);
        assert_eq!(of(PERIOD, 3 * PERIOD, 7), ((1, 3), vec![]));
        // Periods without entries outside the range are whole.
        assert_eq!(of(start, end, PERIOD), ((0, 4), vec![]));
        assert_eq!(of(start, end, 3), ((1, 4), vec![(start, PERIOD)]));
        assert_eq!(of(start, end, end), ((0, 3), vec![(3 * PERIOD, end)]));
        // A range inside one period.
        assert_eq!(of(7, 9, 8), ((0, 1), vec![]));
        assert_eq!(of(7, 9, 6), ((0, 0), vec![(7, 9)]));
        assert_eq!(of(7, 9, 9), ((0, 0), vec![(7, 9)]));
    }

    #[test]
    fn counted_days_replace_their_periods() {
        let day = |number: i64| number * PERIODS_IN_DAY;
        assert_eq!(split_at_days((3, day(2)), &[]), (vec![], vec![(3, day(2))]));
        assert_eq!(split_at_days((3, 3), &[]), (vec![], vec![]));
        assert_eq!(split_at_days((day(1), day(3)), &[1, 2]), (vec![(1, 3)], vec![]));
        let (days, periods) = split_at_days((7, day(9) + 5), &[1, 2, 5, 6, 7]);
        assert_eq!(days, [(1, 3), (5, 8)]);
        assert_eq!(periods, [(7, day(1)), (day(3), day(5)), (day(8), day(9) + 5)]);
    }
}
