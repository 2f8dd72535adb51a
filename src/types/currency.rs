//! Currencies by their three-letter codes.

use std::{fmt, str::FromStr};

/// A currency, such as `CNY`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// The error for a text that is no currency code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a currency code of three letters, such as CNY")]
pub struct InvalidCurrency;

impl Currency {
    pub const CNY: Self = Self(*b"CNY");

    /// Parses three letters in either case.
    pub fn parse(text: &str) -> Result<Self, InvalidCurrency> {
        let letters: [u8; 3] = text.as_bytes().try_into().map_err(|_| InvalidCurrency)?;
        let is_code = letters.iter().all(u8::is_ascii_alphabetic);
        if is_code { Ok(Self(letters.map(|letter| letter.to_ascii_uppercase()))) } else { Err(InvalidCurrency) }
    }

    /// Returns the code in capital letters.
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the code in lower case.
    pub fn lower_case(self) -> String {
        self.code().to_ascii_lowercase()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code())
    }
}

impl FromStr for Currency {
    type Err = InvalidCurrency;

    fn from_str(text: &str) -> Result<Self, InvalidCurrency> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_three_letters() {
        assert_eq!(Currency::parse("usd").unwrap().code(), "USD");
        assert_eq!(Currency::parse("CNY").unwrap(), Currency::CNY);
        assert_eq!(Currency::CNY.lower_case(), "cny");
        for text in ["", "us", "usdt", "us1", "元"] {
            assert!(Currency::parse(text).is_err(), "{text}");
        }
    }
}
