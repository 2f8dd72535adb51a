//! Hexagrams of all casts against an independent table, and statistical tests of the casting methods.

use yarrow::{
    domain::divination::hexagram::{Cast, Hexagram, Line, Lines, Trigram, three_coins, yarrow_stalks},
    types::fill_random,
};

/// Lines of the trigrams, bottom up: qian, zhen, kan, gen, kun, xun, li, dui.
const TRIGRAMS: [([bool; 3], &str); 8] = [
    ([true, true, true], "☰"),
    ([true, false, false], "☳"),
    ([false, true, false], "☵"),
    ([false, false, true], "☶"),
    ([false, false, false], "☷"),
    ([false, true, true], "☴"),
    ([true, false, true], "☲"),
    ([true, true, false], "☱"),
];

/// King Wen numbers: a row for each lower trigram, a column for each upper one, in the order above.
const NUMBERS: [[u8; 8]; 8] = [
    [1, 34, 5, 26, 11, 9, 14, 43],
    [25, 51, 3, 27, 24, 42, 21, 17],
    [6, 40, 29, 4, 7, 59, 64, 47],
    [33, 62, 39, 52, 15, 53, 56, 31],
    [12, 16, 8, 23, 2, 20, 35, 45],
    [44, 32, 48, 18, 46, 57, 50, 28],
    [13, 55, 63, 22, 36, 37, 30, 49],
    [10, 54, 60, 41, 19, 61, 38, 58],
];

fn place_of(lines: &[bool]) -> usize {
    TRIGRAMS.iter().position(|(known, _)| known == lines).unwrap()
}

/// Looks up the number of six lines.
fn number(lines: [bool; 6]) -> u8 {
    NUMBERS[place_of(&lines[..3])][place_of(&lines[3..])]
}

/// Returns all 4^6 casts: every hexagram with every set of changing lines.
fn all_casts() -> impl Iterator<Item = [u8; 6]> {
    (0..4_u32.pow(6)).map(|number| std::array::from_fn(|place| u8::try_from(number >> (2 * place) & 3).unwrap() + 6))
}

fn cast_of(values: [u8; 6]) -> Cast {
    Cast::from_lines(Lines::try_from(values).unwrap())
}

#[test]
fn every_cast_matches_the_table() {
    let mut count = 0;
    for values in all_casts() {
        let cast = cast_of(values);
        let now = values.map(|value| value % 2 == 1);
        let then = values.map(|value| matches!(value, 6 | 7));
        assert_eq!(cast.primary().number(), number(now), "{values:?}");
        let changing: Vec<u8> =
            (1..).zip(values).filter(|(_, value)| matches!(value, 6 | 9)).map(|(place, _)| place).collect();
        assert_eq!(cast.changing(), changing, "{values:?}");
        assert_eq!(cast.relating().map(Hexagram::number), (!changing.is_empty()).then(|| number(then)), "{values:?}");
        let inner = [now[1], now[2], now[3], now[2], now[3], now[4]];
        assert_eq!(cast.nuclear().number(), number(inner), "{values:?}");
        let (lower, upper) = (cast.primary().lower(), cast.primary().upper());
        assert_eq!((lower.sign(), upper.sign()), (TRIGRAMS[place_of(&now[..3])].1, TRIGRAMS[place_of(&now[3..])].1));
        count += 1;
    }
    assert_eq!(count, 64 * 64);
}

#[test]
fn changing_twice_restores_the_hexagram() {
    for values in all_casts() {
        let cast = cast_of(values);
        let Some(relating) = cast.relating() else { continue };
        // The changed lines change again: old yin becomes old yang and vice versa.
        let back = cast_of(values.map(|value| match value {
            6 => 9,
            9 => 6,
            still => still,
        }));
        assert_eq!((back.primary(), back.relating()), (relating, Some(cast.primary())), "{values:?}");
        assert_eq!(back.changing(), cast.changing());
        assert_eq!(relating.with_lines_changed(&cast.changing()), cast.primary());
        assert_eq!(cast.primary().differing_positions(relating), cast.changing());
    }
}

#[test]
fn a_hexagram_consists_of_its_two_trigrams() {
    let trigrams: Vec<_> = Trigram::all().collect();
    assert_eq!(trigrams.len(), 8);
    let mut seen = [false; 65];
    for hexagram in Hexagram::all() {
        assert_eq!(Hexagram::from_trigrams(hexagram.upper(), hexagram.lower()), hexagram);
        let lines = [hexagram.lower().figure(), hexagram.upper().figure()].concat();
        assert_eq!(hexagram.figure()[..], lines);
        assert_eq!(Hexagram::from_figure(hexagram.figure()), hexagram);
        assert_eq!(Hexagram::from_sign(hexagram.sign().chars().next().unwrap()), Some(hexagram));
        assert!(!std::mem::replace(&mut seen[usize::from(hexagram.number())], true));
    }
    assert!(seen[1..].iter().all(|seen| *seen));
}

#[test]
fn nuclear_hexagrams_commute_with_inversion_and_end_in_a_cycle() {
    for hexagram in Hexagram::all() {
        let turned_over = |hexagram: Hexagram| {
            let mut lines = hexagram.figure();
            lines.reverse();
            Hexagram::from_figure(lines)
        };
        let complement = |hexagram: Hexagram| hexagram.with_lines_changed(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(complement(hexagram).nuclear(), complement(hexagram.nuclear()));
        assert_eq!(turned_over(hexagram).nuclear(), turned_over(hexagram.nuclear()));
        // The first and the last line do not matter.
        assert_eq!(hexagram.with_lines_changed(&[1]).nuclear(), hexagram.nuclear());
        assert_eq!(hexagram.with_lines_changed(&[6]).nuclear(), hexagram.nuclear());
        // After two steps only lines three and four remain.
        let figure = hexagram.figure();
        let end = match (figure[2], figure[3]) {
            (true, true) => 1,
            (false, false) => 2,
            (true, false) => 63,
            (false, true) => 64,
        };
        let twice = hexagram.nuclear().nuclear();
        assert_eq!(twice.number(), end, "{}", hexagram.number());
        assert_eq!(twice.nuclear().nuclear(), twice);
    }
}

#[test]
fn king_wen_pairs_are_inversions_or_complements() {
    for first in Hexagram::all().step_by(2) {
        let second = Hexagram::from_number(first.number() + 1).unwrap();
        let mut over = first.figure();
        over.reverse();
        let expected = if over == first.figure() { first.figure().map(|line| !line) } else { over };
        assert_eq!(second.figure(), expected, "{}", first.number());
    }
}

/// Thresholds that chance exceeds less than once in 10^9 runs over all comparisons: chi-square quantiles with 3 and 15
/// degrees of freedom.
const FAR_FOR_A_LINE: f64 = 51.0;
const FAR_FOR_A_PAIR: f64 = 85.0;

type Source = fn(fn(&mut [u8]) -> yarrow::error::Result<()>) -> yarrow::error::Result<Lines>;

#[test]
fn a_large_sample_follows_the_odds_of_each_line_and_pair_of_lines() {
    const CASTS: u32 = 200_000;
    let methods: [(Source, [u32; 4]); 2] = [(three_coins, [2, 6, 6, 2]), (yarrow_stalks, [1, 5, 7, 3])];
    for (cast, odds) in methods {
        let mut lines = [[0_u32; 4]; 6];
        let mut pairs = [[[0_u32; 4]; 4]; 5];
        for _ in 0..CASTS {
            let kinds = cast(fill_random).unwrap().as_array().map(|line: Line| usize::from(line.value() - 6));
            for (place, kind) in kinds.into_iter().enumerate() {
                lines[place][kind] += 1;
            }
            for (place, pair) in kinds.windows(2).enumerate() {
                pairs[place][pair[0]][pair[1]] += 1;
            }
        }
        let off = |found: u32, parts: u32, of: u32| {
            let expected = f64::from(CASTS) * f64::from(parts) / f64::from(of);
            (f64::from(found) - expected).powi(2) / expected
        };
        for (place, counts) in lines.iter().enumerate() {
            let distance: f64 = counts.iter().zip(odds).map(|(found, odd)| off(*found, odd, 16)).sum();
            assert!(distance < FAR_FOR_A_LINE, "line {}: {counts:?}, {distance}", place + 1);
        }
        for (place, counts) in pairs.iter().enumerate() {
            let rows = counts.iter().zip(odds);
            let distance: f64 = rows
                .flat_map(|(row, odd)| row.iter().zip(odds).map(move |(found, other)| off(*found, odd * other, 256)))
                .sum();
            assert!(distance < FAR_FOR_A_PAIR, "lines {} and {}: {counts:?}, {distance}", place + 1, place + 2);
        }
    }
}
