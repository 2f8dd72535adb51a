//! Casts six lines at random, with the exact odds of the two traditional methods.
//!
//! Owns no random source: the caller passes a function that fills a buffer, and its error is returned unchanged. Each
//! line uses the low bits of its own byte. 8 and 16 divide 256, so the odds are exact and no byte is rejected.

use super::line::{Line, Lines};

/// Casts six lines with three coins: 6, 7, 8 and 9 have the odds 1 : 3 : 3 : 1.
///
/// `fill` must fill the whole buffer with uniformly random bytes. Its error is returned.
pub fn three_coins<E>(fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Lines, E> {
    cast(fill, coin_line)
}

/// Casts six lines with fifty yarrow stalks. In sixteenths, old yin has the odds 1, young yang 5, young yin 7 and old
/// yang 3.
///
/// `fill` must fill the whole buffer with uniformly random bytes. Its error is returned.
pub fn yarrow_stalks<E>(fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Lines, E> {
    cast(fill, yarrow_line)
}

fn cast<E>(fill: impl FnOnce(&mut [u8]) -> Result<(), E>, line: fn(u8) -> Line) -> Result<Lines, E> {
    let mut bytes = [0; 6];
    fill(&mut bytes)?;
    Ok(Lines::new(bytes.map(line)))
}

/// Each of three bits is a coin: no heads yield 6, three heads 9.
fn coin_line(byte: u8) -> Line {
    match (byte & 0b111).count_ones() {
        0 => Line::OldYin,
        1 => Line::YoungYang,
        2 => Line::YoungYin,
        _ => Line::OldYang,
    }
}

fn yarrow_line(byte: u8) -> Line {
    match byte & 0b1111 {
        0 => Line::OldYin,
        1..=5 => Line::YoungYang,
        6..=12 => Line::YoungYin,
        _ => Line::OldYang,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const CASTS: u32 = 60_000;

    /// A generator with a fixed seed (xorshift, high byte), so that the test is deterministic.
    struct Generator(u64);

    impl Generator {
        fn fill(&mut self, buffer: &mut [u8]) {
            for byte in buffer {
                self.0 ^= self.0 << 13;
                self.0 ^= self.0 >> 7;
                self.0 ^= self.0 << 17;
                *byte = self.0.to_be_bytes()[0];
            }
        }
    }

    fn exact_counts(line: fn(u8) -> Line) -> [u32; 4] {
        let mut counts = [0; 4];
        for byte in 0..=u8::MAX {
            counts[usize::from(line(byte).value() - 6)] += 1;
        }
        counts
    }

    /// Pearson's statistic for each of the six lines, with three degrees of freedom each.
    fn chi_squares(odds: [u32; 4], mut cast: impl FnMut(&mut Generator) -> Result<Lines, Infallible>) -> [f64; 6] {
        let mut generator = Generator(0x9E37_79B9_7F4A_7C15);
        let mut counts = [[0_u32; 4]; 6];
        for _ in 0..CASTS {
            let Ok(lines) = cast(&mut generator);
            for (place, value) in counts.iter_mut().zip(lines.values()) {
                place[usize::from(value - 6)] += 1;
            }
        }
        let total: u32 = odds.iter().sum();
        counts.map(|observed| {
            observed
                .iter()
                .zip(odds)
                .map(|(observed, odd)| {
                    let expected = f64::from(CASTS) * f64::from(odd) / f64::from(total);
                    (f64::from(*observed) - expected).powi(2) / expected
                })
                .sum()
        })
    }

    #[test]
    fn coins_have_exact_odds_over_all_bytes() {
        assert_eq!(exact_counts(coin_line), [32, 96, 96, 32]);
    }

    #[test]
    fn yarrow_stalks_have_exact_odds_over_all_bytes() {
        assert_eq!(exact_counts(yarrow_line), [16, 80, 112, 48]);
    }

    /// 16.27 is the 0.999 quantile of chi-square with three degrees of freedom.
    #[test]
    fn every_line_of_many_casts_follows_the_odds() {
        let coins = chi_squares([1, 3, 3, 1], |generator| {
            three_coins(|buffer| {
                generator.fill(buffer);
                Ok(())
            })
        });
        let yarrow = chi_squares([1, 5, 7, 3], |generator| {
            yarrow_stalks(|buffer| {
                generator.fill(buffer);
                Ok(())
            })
        });
        for statistic in coins.into_iter().chain(yarrow) {
            assert!(statistic < 16.27, "chi-square {statistic}");
        }
    }

    #[test]
    fn the_first_byte_decides_the_bottom_line() {
        let lines = three_coins(|buffer| {
            buffer.copy_from_slice(&[0, 1, 3, 7, 0xF8, 0xFF]);
            Ok::<_, Infallible>(())
        });
        assert_eq!(lines.map(|lines| lines.to_string()), Ok("678969".into()));
    }

    #[test]
    fn returns_the_error_of_the_random_source() {
        assert_eq!(three_coins(|_| Err("no entropy")), Err("no entropy"));
        assert_eq!(yarrow_stalks(|_| Err("no entropy")), Err("no entropy"));
    }
}
