//! Money as whole millionths of a currency unit, and its decimal text: a token costs less than the smallest coin.

use std::{fmt, str::FromStr};

/// An amount of money in millionths of the currency of the price list; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MicroAmount(pub u64);

/// The error for a text that is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be digits with at most six decimals, such as 2 or 0.27")]
pub struct InvalidMicroAmount;

impl MicroAmount {
    const UNIT: u64 = 1_000_000;

    /// Returns the number for the database, which has no unsigned numbers.
    pub fn as_i64(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }

    /// Converts a number from the database.
    pub fn from_stored(number: i64) -> Self {
        Self(u64::try_from(number).unwrap_or(0))
    }

    /// Returns the cost of tokens at this price per million, rounded up so that use is never free.
    pub fn cost_of(self, tokens: u64) -> Self {
        let micros = (u128::from(self.0) * u128::from(tokens)).div_ceil(u128::from(Self::UNIT));
        Self(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl FromStr for MicroAmount {
    type Err = InvalidMicroAmount;

    fn from_str(text: &str) -> Result<Self, InvalidMicroAmount> {
        let (units, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_fit =
            |digits: &str, most| (1..=most).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        if !is_fit(units, 10) || !is_fit(decimals, 6) {
            return Err(InvalidMicroAmount);
        }
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| InvalidMicroAmount);
        Ok(Self(number(units)? * Self::UNIT + number(&format!("{decimals:0<6}"))?))
    }
}

/// Formats at least two decimals, without trailing zeros after them.
impl fmt::Display for MicroAmount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:06}", self.0 % Self::UNIT);
        let kept = decimals.trim_end_matches('0').len().max(2);
        write!(formatter, "{}.{}", self.0 / Self::UNIT, &decimals[..kept])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_agree() {
        let cases = [
            ("2", 2_000_000, "2.00"),
            ("0.27", 270_000, "0.27"),
            ("0.000001", 1, "0.000001"),
            ("1.5", 1_500_000, "1.50"),
        ];
        for (text, micros, shown) in cases {
            let amount: MicroAmount = text.parse().unwrap();
            assert_eq!((amount, amount.to_string().as_str()), (MicroAmount(micros), shown));
        }
        for text in ["", ".", "1.", ".5", "-1", "1e3", "0.0000001", "1,5", "99999999999", " 1"] {
            assert_eq!(text.parse::<MicroAmount>(), Err(InvalidMicroAmount), "{text:?}");
        }
    }

    #[test]
    fn cost_of_tokens_is_never_zero() {
        let price: MicroAmount = "0.27".parse().unwrap();
        assert_eq!(
            (price.cost_of(0), price.cost_of(1), price.cost_of(1_000_000)),
            (MicroAmount(0), MicroAmount(1), price)
        );
        assert_eq!(MicroAmount(u64::MAX).cost_of(u64::MAX), MicroAmount(u64::MAX));
    }
}
