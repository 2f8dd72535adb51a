//! Money as whole fen (hundredths of a yuan), and its decimal text.
//!
//! No floating point is involved. A provider's text is parsed digit by digit, and forms that another parser might
//! accept (signs, exponents, spaces, a third decimal) are rejected.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An amount of money in fen; never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Fen(i64);

/// The error for a text or number that is no amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be digits with at most two decimals, such as 6 or 6.00")]
pub struct InvalidAmount;

impl Fen {
    pub const ZERO: Self = Self(0);

    /// Converts a number of fen. Rejects negative numbers.
    pub const fn from_fen(fen: i64) -> Result<Self, InvalidAmount> {
        if fen < 0 { Err(InvalidAmount) } else { Ok(Self(fen)) }
    }

    /// Parses a decimal number of yuan: `6`, `6.5`, `6.00`. At most ten digits before the point.
    pub fn parse(text: &str) -> Result<Self, InvalidAmount> {
        let (yuan, decimals) = match text.split_once('.') {
            Some((yuan, decimals)) if matches!(decimals.len(), 1 | 2) => (yuan, decimals),
            Some(_) => return Err(InvalidAmount),
            None => (text, ""),
        };
        let superfluous_zero = yuan.len() > 1 && yuan.starts_with('0');
        if yuan.is_empty() || yuan.len() > 10 || superfluous_zero {
            return Err(InvalidAmount);
        }
        let digits = yuan.bytes().chain(decimals.bytes()).chain(std::iter::repeat_n(b'0', 2 - decimals.len()));
        let fen = digits.map(digit_value).try_fold(0, |sum: i64, digit| Some(sum * 10 + digit?));
        fen.map(Self).ok_or(InvalidAmount)
    }

    /// Returns the number of fen.
    pub const fn as_fen(self) -> i64 {
        self.0
    }

    /// Returns the sum; `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Returns the difference; `None` if it would be negative.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        Self::from_fen(self.0.checked_sub(other.0)?).ok()
    }
}

/// Formats yuan with exactly two decimals, as providers require.
impl fmt::Display for Fen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

impl FromStr for Fen {
    type Err = InvalidAmount;

    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        Self::parse(text)
    }
}

impl TryFrom<i64> for Fen {
    type Error = InvalidAmount;

    fn try_from(fen: i64) -> Result<Self, InvalidAmount> {
        Self::from_fen(fen)
    }
}

impl From<Fen> for i64 {
    fn from(amount: Fen) -> Self {
        amount.0
    }
}

fn digit_value(digit: u8) -> Option<i64> {
    digit.is_ascii_digit().then(|| i64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn accepts_valid_amounts() {
        for (text, fen) in
            [("6", 600), ("6.5", 650), ("6.00", 600), ("0.01", 1), ("0", 0), ("100000000.00", 10_000_000_000)]
        {
            assert_eq!(Fen::parse(text).map(Fen::as_fen), Ok(fen), "{text}");
        }
    }

    #[test]
    fn rejects_everything_else() {
        let refused = [
            "",
            ".",
            "6.",
            ".5",
            "+6",
            "-6",
            "6.000",
            "6e2",
            "6,00",
            "6.0.0",
            " 6",
            "6 ",
            "06",
            "00",
            "6.-1",
            "6.+1",
            "６",
            "1_000",
            "0x6",
            "NaN",
            "12345678901",
            "6\n",
            "6.0a",
        ];
        for text in refused {
            assert_eq!(Fen::parse(text), Err(InvalidAmount), "{text:?}");
        }
    }

    #[test]
    fn arithmetic_detects_overflow() {
        let six = Fen::parse("6.00").unwrap();
        let one = Fen::parse("1.50").unwrap();
        assert_eq!(six.checked_sub(one), Fen::parse("4.50").ok());
        assert_eq!(one.checked_sub(six), None);
        assert_eq!(Fen::from_fen(i64::MAX).unwrap().checked_add(one), None);
        assert_eq!(Fen::from_fen(-1), Err(InvalidAmount));
    }

    proptest! {
        #[test]
        fn text_and_number_agree(fen in 0_i64..=999_999_999_999) {
            let amount = Fen::from_fen(fen).unwrap();
            prop_assert_eq!(Fen::parse(&amount.to_string()), Ok(amount));
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            if let Ok(amount) = Fen::parse(&text) {
                prop_assert!(amount.to_string().starts_with(&text));
            }
        }
    }
}
