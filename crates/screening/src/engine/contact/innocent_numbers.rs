//! Numbers that are no contacts: dates, times, ranges, decimals, amounts, versions, line titles, counting, sayings.

use super::{
    atoms::{Atom, spells},
    cues,
    digit_group::Group,
};

/// Numbers used for their pronunciation ("I love you for ever"), of which sayings consist.
const SAYINGS: &[&[u8]] = &[
    &[5, 2, 0],
    &[5, 2, 1],
    &[5, 3, 0],
    &[2, 0, 1, 3, 1, 4],
    &[1, 3, 1, 4],
    &[3, 3, 4, 4],
    &[7, 7, 5, 8],
    &[9, 4, 2, 0],
];
/// Words before a number that is no account: of papers and goods, and of numbers from which a hexagram is cast.
const LABELS: &[&str] = &[
    "编号",
    "证号",
    "考号",
    "成绩",
    "分数",
    "开奖",
    "考试",
    "双色球",
    "大乐透",
    "七星彩",
    "排列",
    "福彩",
    "体彩",
    "点券",
    "积分",
    "序号",
    "单号",
    "订单",
    "订单号",
    "学号",
    "工号",
    "票号",
    "股票",
    "代码",
    "基金",
    "邮编",
    "邮政编码",
    "no",
    "isbn",
    "报数",
    "起卦",
    "占卦",
    "摇卦",
    "数字",
    "随机数",
    "卦数",
    "尾号",
    "人口",
    "销量",
    "阅读",
    "播放",
    "排名",
    "粉丝",
];
/// Maximum characters between a label and its number.
const WIDEST_LABEL_GAP: usize = 3;
/// Maximum numbers that are looked at together, which bounds the work.
const MAX_SEQUENCE: usize = 16;
/// Minimum length of a progression that has numbers of one digit.
const MIN_PROGRESSION: usize = 5;
/// Minimum digits of a number that repeats its first ones.
const SHORTEST_PERIODIC: usize = 6;
/// Units after a number.
const UNITS: &str = "元块万亿千百个人位名次字年月日号天时点分秒岁米斤克公里层楼页章集期届条件张本份只台套款种件%‰℃°";

/// Signs between the parts of a date, and between years.
const DATE_SIGNS: &str = "-./—–、~·|_→";

/// Returns the number of groups at the start of the chain that form an innocent number; 0 if there is none.
pub(super) fn length(chain: &[Group], atoms: &[Atom]) -> usize {
    let rules: [fn(&[Group]) -> usize; 13] = [
        compact_date,
        clock,
        score,
        date,
        years,
        standard,
        thousands,
        decimal,
        dimensions,
        hexagrams,
        equation,
        range,
        measures,
    ];
    let with_atoms = [
        line_titles(chain, atoms),
        national_standard(chain, atoms),
        version(chain, atoms),
        marks(chain, atoms),
        unannounced_progression(chain, atoms),
    ];
    rules.iter().map(|rule| rule(chain)).chain(with_atoms).max().unwrap_or(0)
}

/// Returns true if the groups begin with a complete date or are a decimal, so that their digits are no phone number.
pub(super) fn is_date_or_decimal(chain: &[Group]) -> bool {
    let is_date = || is_year(&chain[0]) && chain.get(1).is_some_and(|next| !next.gap.trim().is_empty());
    is_date() && date(chain) > 2 || chain[0].digits.len() == 1 && chain.len() == 2 && decimal(chain) == 2
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
        || has_regular_steps(digits)
        || is_periodic(digits)
        || is_doubled(digits)
        || is_binary(digits)
        || is_square(digits)
        || is_saying(digits)
        || is_counted(digits)
}

/// Returns true for 13579 24680 and 111222333: parts of three digits or more, each with one step between its digits.
fn has_regular_steps(digits: &[u8]) -> bool {
    let step = |index: usize| (digits[index + 1] + 10 - digits[index]) % 10;
    let mut start = 0;
    while start + 2 < digits.len() {
        let end = (start + 1..digits.len() - 1).find(|&index| step(index) != step(start)).unwrap_or(digits.len() - 1);
        if end < start + 2 || matches!(step(start), 3..=7) {
            return false;
        }
        start = end + 1;
    }
    start == digits.len()
}

/// Returns true for 24681012: numbers with one difference, one after another.
fn is_counted(digits: &[u8]) -> bool {
    let value = |part: &[u8]| part.iter().fold(0, |value, digit| value * 10 + u32::from(*digit));
    let counts = |first: usize, second: usize| {
        let (start, next) = (value(&digits[..first]), value(&digits[first..second]));
        let step = next.checked_sub(start).filter(|step| *step > 0);
        step.is_some_and(|step| {
            let written = (0..).map(|index| start + index * step).flat_map(|value| value.to_string().into_bytes());
            written.zip(digits).all(|(written, digit)| written - b'0' == *digit)
        })
    };
    digits.len() >= SHORTEST_PERIODIC && (1..=2).any(|first| (first..=2).any(|second| counts(first, first + second)))
}

/// Returns true for 12121212 and 123123123.
fn is_periodic(digits: &[u8]) -> bool {
    digits.len() >= SHORTEST_PERIODIC && (1..=3).any(|period| digits[period..] == digits[..digits.len() - period])
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

/// Returns true for 03 07 12 19 25 31: five numbers or more of two digits, each greater than the one before.
pub(super) fn are_ascending(chain: &[Group]) -> bool {
    let pairs = chain.windows(2).take(MAX_SEQUENCE);
    let is_next = |pair: &&[Group]| pair.iter().all(|group| group.digits.len() == 2) && pair[0].digits < pair[1].digits;
    pairs.take_while(is_next).count() >= 4
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

/// Returns true for numbers that consist of sayings, none of which begins another. Of any length, so it does not recurse.
pub(super) fn is_saying(mut digits: &[u8]) -> bool {
    while let Some(rest) = SAYINGS.iter().find_map(|saying| digits.strip_prefix(*saying)) {
        digits = rest;
    }
    digits.is_empty()
}

/// Returns true if a word before the number says that it is no account.
pub(super) fn is_labelled(atoms: &[Atom], first: usize) -> bool {
    let is_between = |atom: &&Atom| !atom.plain.is_alphanumeric() || "是为了号".contains(atom.plain);
    let gap = atoms[..first].iter().rev().take(WIDEST_LABEL_GAP).take_while(is_between).count();
    // A label may end with a character that can also stand between it and the number.
    (first - gap..=first).any(|end| {
        LABELS
            .iter()
            .any(|label| end.checked_sub(label.chars().count()).is_some_and(|start| spells(atoms, start, label)))
    })
}

/// Returns true for 77889966.
fn is_doubled(digits: &[u8]) -> bool {
    digits.len().is_multiple_of(2) && digits.chunks(2).all(|pair| pair[0] == pair[1])
}

/// Returns true for 010101 101010: the lines of hexagrams, broken and whole.
fn is_binary(digits: &[u8]) -> bool {
    digits.iter().all(|&digit| digit <= 1)
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
        let rest = &chain[length..];
        let is_other_date = rest.first().is_some_and(is_year) && date(rest) > 2;
        return length + if rest.is_empty() || is_other_date { 0 } else { clock(rest).max(hours(rest)) };
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

/// GB 18030-2022.
fn national_standard(chain: &[Group], atoms: &[Atom]) -> usize {
    match chain {
        [number, year, ..] if number.digits.len() <= 5 && year.gap == "-" && is_year(year) => {
            let before = atoms[..number.first].iter().rev().find(|atom| atom.plain != ' ');
            if before.is_some_and(|atom| atom.plain.is_ascii_alphabetic()) { 2 } else { 0 }
        }
        _ => 0,
    }
}

/// 3+3+2=8 and 2^10=1024.
fn equation(chain: &[Group]) -> usize {
    let chain = &chain[..chain.len().min(MAX_SEQUENCE)];
    let is_sign = |group: &&Group| {
        let gap = group.gap.trim();
        !gap.is_empty() && gap.chars().all(|sign| "+-−×*/÷=≈^.".contains(sign))
    };
    let length = 1 + chain.iter().skip(1).take_while(is_sign).count();
    if chain[1..length].iter().any(|group| group.gap.contains(['=', '≈', '^'])) { length } else { 0 }
}

/// 8000-12000 and 0830-1730: round amounts and times.
fn range(chain: &[Group]) -> usize {
    let is_round = |group: &Group| matches!(group.digits.len(), 3..=7) && group.digits.ends_with(&[0, 0]);
    let is_time = |group: &Group| match group.digits[..] {
        [a, b, c, d] => a * 10 + b <= 24 && c <= 5 && matches!(d, 0 | 5),
        _ => false,
    };
    match chain {
        [first, second, ..] if joins(&second.gap, "-~—–/至到") && !second.gap.trim().is_empty() => {
            let is_range = is_round(first) && is_round(second) || is_time(first) && is_time(second);
            if is_range { 2 } else { 0 }
        }
        _ => 0,
    }
}

/// 178-65-26: height, weight and age.
fn measures(chain: &[Group]) -> usize {
    let is_within = |group: &Group, from: u32, to: u32| group.value().is_some_and(|value| (from..=to).contains(&value));
    match chain {
        [height, weight, age, ..]
            if weight.gap.trim() == age.gap.trim()
                && is_within(height, 140, 210)
                && is_within(weight, 35, 120)
                && is_within(age, 10, 99) =>
        {
            3
        }
        _ => 0,
    }
}

/// 98 95 87 92 100: four numbers or more up to 150 that no cue announces.
fn marks(chain: &[Group], atoms: &[Atom]) -> usize {
    let is_mark = |(index, group): &(usize, &Group)| {
        matches!(group.digits.len(), 2..=3)
            && group.digits[0] > 0
            && group.value().is_some_and(|value| value <= 150)
            && (*index == 0 || matches!(group.gap.as_str(), " " | "、" | ","))
    };
    let length = chain.iter().enumerate().take(MAX_SEQUENCE).take_while(is_mark).count();
    if length >= 4 && cues::before(atoms, chain[0].first).is_none() { length } else { 0 }
}

/// A progression that no cue announces as an account number.
fn unannounced_progression(chain: &[Group], atoms: &[Atom]) -> usize {
    // Digits in the middle of a number are none.
    let length = if chain[0].gap.is_empty() { progression(chain) } else { 0 };
    if length > 0 && cues::before(atoms, chain[0].first).is_some() { 0 } else { length }
}

/// 10 20 30 40, 1024 2048 4096 and 1 1 2 3 5 8: numbers with one difference or ratio, or each the sum of the two before.
fn progression(chain: &[Group]) -> usize {
    let values: Vec<u32> = chain.iter().take(MAX_SEQUENCE).map_while(Group::value).collect();
    let length = |follows: &dyn Fn(u32, u32, u32) -> bool| {
        let later = values.windows(3).take_while(|three| follows(three[0], three[1], three[2])).count();
        if later > 0 { later + 2 } else { 0 }
    };
    let is_even = |a: u32, b: u32, c: u32| b > a && b - a == c.saturating_sub(b);
    let is_multiple = |a: u32, b: u32, c: u32| b > a && u64::from(b) * u64::from(b) == u64::from(a) * u64::from(c);
    let is_sum = |a: u32, b: u32, c: u32| a > 0 && a + b == c;
    let regular = length(&is_even).max(length(&is_multiple));
    let is_short = |length: &usize| *length < MIN_PROGRESSION && values[..*length].iter().any(|&value| value < 10);
    let sums = Some(length(&is_sum)).filter(|length| *length >= MIN_PROGRESSION);
    Some(regular).filter(|length| !is_short(length)).max(sums).unwrap_or(0)
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

/// 1.2.3 and 192.168.1.1, but not 847.291.063 after a cue.
fn version(chain: &[Group], atoms: &[Atom]) -> usize {
    let is_triple = |group: &Group| group.digits.len() == 3;
    if chain.iter().take(3).all(is_triple) && cues::before(atoms, chain[0].first).is_some() {
        return 0;
    }
    let later = chain.iter().skip(1).take(4).take_while(|group| group.gap == ".").count();
    let is_short = |group: &Group| group.digits.len() <= 3;
    if (2..=3).contains(&later) && chain[..=later].iter().all(is_short) { 1 + later } else { 0 }
}

/// 3.1415926, and a range of decimals.
fn decimal(chain: &[Group]) -> usize {
    let is_point = |index: usize| chain.get(index).is_some_and(|group| group.gap == ".");
    // The end of 847.291.063 is no decimal.
    let is_triple = |group: &Group| group.digits.len() == 3;
    if !is_point(1) || is_point(2) || is_point(0) && chain.iter().take(2).all(is_triple) {
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
