//! Numbers that are no contacts: dates, times, ranges, decimals, amounts, versions, line titles, counting, sayings.

use super::{atoms::Atom, numbers::Group};

/// Numbers used for their pronunciation ("I love you for ever").
const SAYINGS: &[&[u8]] =
    &[&[5, 2, 0, 1, 3, 1, 4], &[1, 3, 1, 4, 5, 2, 0], &[5, 2, 1, 1, 3, 1, 4], &[2, 0, 1, 3, 1, 4]];
/// Units after a number.
const UNITS: &str = "元块万亿千百个人位名次字年月日号天时点分秒岁米斤克公里层楼页章集期届条件张本份只台套款种件%‰℃°";

/// Signs between the parts of a date, and between years.
const DATE_SIGNS: &str = "-./—–、~·|_→";

/// Returns the number of groups at the start of the chain that form an innocent number; 0 if there is none.
pub(super) fn length(chain: &[Group], atoms: &[Atom]) -> usize {
    let rules: [fn(&[Group]) -> usize; 11] =
        [compact_date, clock, score, date, years, standard, thousands, version, decimal, dimensions, hexagrams];
    let titles = line_titles(chain, atoms);
    rules.iter().map(|rule| rule(chain)).chain([titles]).max().unwrap_or(0)
}

/// Returns true for digits that are chosen for their pattern: repeated, counted up or down, round, or a saying.
pub(super) fn is_pattern(digits: &[u8]) -> bool {
    let mut counts = [0; 10];
    for &digit in digits {
        counts[usize::from(digit)] += 1;
    }
    let most = counts.into_iter().max().unwrap_or(0);
    let zeros = digits.iter().rev().take_while(|&&digit| digit == 0).count();
    let steps =
        |step: i16| digits.windows(2).all(|pair| (i16::from(pair[0]) + step).rem_euclid(10) == i16::from(pair[1]));
    most + 1 >= digits.len()
        || zeros >= 5
        || steps(1)
        || steps(-1)
        || is_doubled(digits)
        || is_square(digits)
        || is_saying(digits)
}

/// Returns true for 492357816: all digits from 1 to 9, as in the Luoshu.
fn is_square(digits: &[u8]) -> bool {
    digits.len() == 9 && (1..=9).all(|digit| digits.contains(&digit))
}

/// Returns true if the groups are the numbers from 1 to their count in any order, as in the Hetu: 1 6 2 7 3 8 4 9 5 10.
pub(super) fn is_arrangement(chain: &[Group]) -> bool {
    let is_in = |value: usize| chain.iter().any(|group| group.value().is_some_and(|other| other as usize == value));
    (5..=12).contains(&chain.len()) && (1..=chain.len()).all(is_in)
}

/// Returns true for 146·258·369 and for 816 357 492: three rows of three digits that are in order or have one sum, as in
/// tables and squares. An account number seldom has them.
pub(super) fn are_rows(groups: &[Group]) -> bool {
    let is_row = |(index, group): (usize, &Group)| {
        group.digits.len() == 3 && (index == 0 || matches!(group.gap.as_str(), " " | "·" | "/" | "|"))
    };
    let is_in_order = |group: &Group| {
        let [first, second, third] = group.digits[..] else { return false };
        first < second && second < third || first > second && second > third
    };
    let sum = |group: &Group| group.digits.iter().map(|&digit| u32::from(digit)).sum::<u32>();
    let have_one_sum = || groups.windows(2).all(|pair| sum(&pair[0]) == sum(&pair[1]));
    groups.len() == 3 && groups.iter().enumerate().all(is_row) && (groups.iter().all(is_in_order) || have_one_sum())
}

pub(super) fn is_saying(digits: &[u8]) -> bool {
    SAYINGS.contains(&digits)
}

/// Returns true for 1122334455.
fn is_doubled(digits: &[u8]) -> bool {
    digits.len().is_multiple_of(2)
        && digits.chunks(2).all(|pair| pair[0] == pair[1])
        && digits.chunks(2).collect::<Vec<_>>().windows(2).all(|pairs| pairs[0][0] + 1 == pairs[1][0])
}

/// Returns true if a unit follows the number, which ends with the atom `last`.
pub(super) fn has_unit(atoms: &[Atom], last: usize) -> bool {
    let after = atoms[last + 1..].iter().find(|atom| atom.plain != ' ');
    after.is_some_and(|atom| UNITS.contains(atom.plain) && !atom.is_numeral())
}

fn is_year(group: &Group) -> bool {
    group.digits.len() == 4 && matches!(group.digits[..2], [1, 8 | 9] | [2, 0])
}

fn is_within(group: &Group, limit: u32) -> bool {
    group.digits.len() <= 2 && group.value().is_some_and(|value| (1..=limit).contains(&value))
}

fn joins(gap: &str, signs: &str) -> bool {
    let gap = gap.trim();
    gap.is_empty() || gap.chars().all(|sign| signs.contains(sign))
}

/// 19900517, 19900517 0830 and 199005170830.
fn compact_date(chain: &[Group]) -> usize {
    let Some(group) = chain.first().filter(|group| is_compact_date(group)) else { return 0 };
    let is_time = |group: &Group| {
        matches!(group.digits.len(), 4 | 6) && group.digits[0] * 10 + group.digits[1] <= 24 && group.digits[2] <= 5
    };
    let Some(next) = chain.get(1) else { return 1 };
    let is_range = joins(&next.gap, "-~—–至到") && is_compact_date(next) && group.digits.len() == next.digits.len();
    1 + usize::from(is_time(next) || is_range).max(clock(&chain[1..]))
}

fn is_compact_date(group: &Group) -> bool {
    let digits = &group.digits;
    let pair = |index: usize| digits[index] * 10 + digits[index + 1];
    matches!(digits.len(), 8 | 12 | 14)
        && matches!(pair(0), 18..=20)
        && (1..=12).contains(&pair(4))
        && (1..=31).contains(&pair(6))
        && (digits.len() == 8 || pair(8) <= 24 && pair(10) <= 59)
}

/// 9:00, 9:00-18:00 and 08:00:30.
fn clock(chain: &[Group]) -> usize {
    let is_minute = |group: &Group| {
        group.gap.trim() == ":" && group.digits.len() == 2 && group.value().is_some_and(|value| value < 60)
    };
    let Some(hour) =
        chain.first().filter(|hour| hour.digits.len() <= 2 && hour.value().is_some_and(|value| value <= 24))
    else {
        return 0;
    };
    let minutes = chain[1..].iter().take(2).take_while(|group| is_minute(group)).count();
    if minutes == 0 || hour.digits.is_empty() { 0 } else { 1 + minutes }
}

/// 6:4 and 21∶19.
fn score(chain: &[Group]) -> usize {
    let is_short = |group: &Group| group.digits.len() <= 2;
    match chain {
        [first, second, ..] if is_short(first) && is_short(second) && matches!(second.gap.trim(), ":" | "∶") => 2,
        _ => 0,
    }
}

/// 1990-5-17, 2026.01.01 08:00 and 5.17-6.18.
fn date(chain: &[Group]) -> usize {
    let (Some(first), Some(second)) = (chain.first(), chain.get(1)) else { return 0 };
    if is_year(first) && is_within(second, 12) && joins(&second.gap, DATE_SIGNS) {
        let day = chain.get(2).filter(|day| is_within(day, 31) && joins(&day.gap, DATE_SIGNS));
        let length = if day.is_some() { 3 } else { 2 };
        return length + chain.get(length).map_or(0, |_| clock(&chain[length..]).max(hours(&chain[length..])));
    }
    if is_year(first) && is_month_and_day(second) && joins(&second.gap, DATE_SIGNS) {
        return 2;
    }
    if is_within(first, 12) && is_within(second, 31) && joins(&second.gap, "-./") && !second.gap.trim().is_empty() {
        let year = chain.get(2).is_some_and(|year| is_year(year) && joins(&year.gap, "-./"));
        return 2 + usize::from(year);
    }
    0
}

/// The 0517 of 1990 0517.
fn is_month_and_day(group: &Group) -> bool {
    matches!(group.digits[..], [a, b, c, d] if (1..=12).contains(&(a * 10 + b)) && (1..=31).contains(&(c * 10 + d)))
}

/// The hour and minute after a date with spaces.
fn hours(chain: &[Group]) -> usize {
    match chain {
        [hour, minute, ..] if is_within(hour, 24) && minute.digits.len() == 2 && minute.gap == " " => 2,
        [time, ..] if time.digits.len() == 4 && time.gap == " " => 1,
        _ => 0,
    }
}

/// 2005-2008, and lists of years.
fn years(chain: &[Group]) -> usize {
    let later = chain.iter().skip(1).take_while(|group| is_year(group) && joins(&group.gap, "-~—–/、,·|_→")).count();
    if later > 0 && chain.first().is_some_and(is_year) { 1 + later } else { 0 }
}

/// ISO 9001:2015.
fn standard(chain: &[Group]) -> usize {
    match chain {
        [number, year, ..] if number.digits.len() <= 5 && year.gap == ":" && is_year(year) => 2,
        _ => 0,
    }
}

/// 1,000,000.50.
fn thousands(chain: &[Group]) -> usize {
    let Some(first) = chain.first().filter(|first| first.digits.len() <= 3) else { return 0 };
    let later = chain[1..].iter().take_while(|group| group.gap == "," && group.digits.len() == 3).count();
    if later == 0 || first.digits.is_empty() {
        return 0;
    }
    1 + later + chain.get(1 + later).map_or(0, |cents| usize::from(cents.gap == "."))
}

/// 1.2.3 and 192.168.1.1.
fn version(chain: &[Group]) -> usize {
    let later = chain.iter().skip(1).take(4).take_while(|group| group.gap == ".").count();
    let is_short = |group: &Group| group.digits.len() <= 3;
    if (2..=3).contains(&later) && chain[..=later].iter().all(is_short) { 1 + later } else { 0 }
}

/// 3.1415926, and a range of decimals.
fn decimal(chain: &[Group]) -> usize {
    let is_point = |index: usize| chain.get(index).is_some_and(|group| group.gap == ".");
    if !is_point(1) || is_point(2) {
        return 0;
    }
    let is_range = chain.get(2).is_some_and(|next| joins(&next.gap, "-~—–")) && is_point(3) && !is_point(4);
    if is_range { 4 } else { 2 }
}

/// 1680*1050, and fractions.
fn dimensions(chain: &[Group]) -> usize {
    let is_joined = |group: &&Group| matches!(group.gap.trim(), "*" | "×" | "/") && group.digits.len() <= 5;
    let later = chain.iter().skip(1).take(2).take_while(is_joined).count();
    if later > 0 && chain[0].digits.len() <= 5 { 1 + later } else { 0 }
}

/// 788876 777888: the lines of hexagrams.
fn hexagrams(chain: &[Group]) -> usize {
    let is_lines = |group: &&Group| group.digits.len() == 6 && group.digits.iter().all(|digit| (6..=9).contains(digit));
    chain.iter().take_while(is_lines).count()
}

/// 初九 六二 九三: titles of lines. The first digit may follow 初, 上 or 用.
fn line_titles(chain: &[Group], atoms: &[Atom]) -> usize {
    let is_line = |digit: u8| matches!(digit, 6 | 9);
    let is_title = |group: &&Group| {
        let before = group.first.checked_sub(1).map(|index| atoms[index].plain);
        let rest = match (before, &group.digits[..]) {
            (Some('初' | '上' | '用'), [first, rest @ ..]) if is_line(*first) => rest,
            (_, digits) => digits,
        };
        let is_numeral = atoms[group.first..=group.last].iter().all(Atom::is_numeral);
        is_numeral && rest.chunks(2).all(|pair| matches!(pair, [6 | 9, 2..=5]))
    };
    chain.iter().take_while(is_title).count()
}
