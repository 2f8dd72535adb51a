//! The instants at which the twelve months of the solar year begin (节), for 1900 to 2100.
//!
//! `assets/solar-terms.tsv` has Unix seconds, as a public calendar library computes them. Three other sources are within 62
//! seconds, which [`super::calendar`] allows for. Months and years are counted from the first instant of the table.

use crate::hexagram::table;

/// Unix seconds, ascending. The first is 小寒 of 1900.
static INSTANTS: [i64; 201 * 12] = instants();

/// Returns the number of months that began until this second, minus one: 0 from 小寒 1900, -1 before.
pub(super) fn month_at(second: i64) -> i64 {
    let began = INSTANTS.partition_point(|instant| *instant <= second);
    i64::try_from(began).unwrap_or_default() - 1
}

#[allow(clippy::large_stack_arrays, reason = "evaluated by the compiler")]
const fn instants() -> [i64; 201 * 12] {
    let cells: [[&str; 13]; 201] = table::cells(include_str!("../../../../assets/solar-terms.tsv"));
    let mut instants = [0; 201 * 12];
    let mut place = 0;
    while place < 201 * 12 {
        let (row, column) = (place / 12, place % 12);
        table::assert_number(cells[row][0], 1900 + row);
        instants[place] = table::integer(cells[row][column + 1]);
        assert!(place == 0 || instants[place - 1] < instants[place], "the instants are not ascending");
        place += 1;
    }
    instants
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: &str = include_str!("../../../../tests/vectors/chart/solar-terms.tsv");

    #[test]
    fn every_instant_is_within_75_seconds_of_three_other_sources() {
        let rows: Vec<Vec<&str>> = SOURCES.lines().skip(1).map(|line| line.split('\t').collect()).collect();
        assert_eq!(rows.len(), INSTANTS.len());
        for (row, instant) in rows.iter().zip(INSTANTS) {
            let differences = row[2..].iter().map(|cell| instant - cell.parse::<i64>().unwrap());
            let near = differences.filter(|difference| difference.abs() <= 75).count();
            assert_eq!(near, 3, "{row:?} {instant}");
        }
    }

    #[test]
    fn months_begin_at_their_instant() {
        assert_eq!(month_at(INSTANTS[0] - 1), -1);
        assert_eq!(month_at(INSTANTS[0]), 0);
        assert_eq!(month_at(INSTANTS[2411] - 1), 2410);
        assert_eq!((month_at(i64::MIN), month_at(i64::MAX)), (-1, 2411));
    }
}
