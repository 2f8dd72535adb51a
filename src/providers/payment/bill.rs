//! A provider's bill of one day, in the words of all gateways.

use super::Fen;

/// The payments and refunds of one day at the provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderBill {
    pub lines: Vec<BillLine>,
    /// The sum of the fees; less after refunds.
    pub fees: BillFee,
}

/// A payment or a refund of the day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BillLine {
    pub order_no: String,
    pub trade_no: String,
    pub amount: Fen,
    /// Set on the line of a refund.
    pub refund_no: Option<String>,
}

/// A fee in hundred-thousandths of a yuan, which may be negative: providers give fees back with refunds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BillFee(i64);

impl BillFee {
    const PER_YUAN: i64 = 100_000;

    /// Parses yuan with at most five decimals and an optional minus.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let (yuan, decimals) = digits.split_once('.').unwrap_or((digits, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if yuan.is_empty() || yuan.len() > 10 || decimals.len() > 5 || !are_digits(yuan) || !are_digits(decimals) {
            return None;
        }
        let yuan: i64 = yuan.parse().ok()?;
        let part: i64 = format!("{decimals:0<5}").parse().ok()?;
        Some(Self(sign * (yuan * Self::PER_YUAN + part)))
    }

    /// Returns the sum; `None` on overflow.
    pub(super) fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
}

impl std::fmt::Display for BillFee {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sign, size) = (if self.0 < 0 { "-" } else { "" }, self.0.abs());
        write!(formatter, "{sign}{}.{:05}", size / Self::PER_YUAN, size % Self::PER_YUAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fees_have_five_decimals_and_a_sign() {
        for (text, shown) in [
            ("0.03600", "0.03600"),
            ("-0.009", "-0.00900"),
            ("12", "12.00000"),
            ("0.00", "0.00000"),
            ("-1.5", "-1.50000"),
        ] {
            assert_eq!(BillFee::parse(text).unwrap().to_string(), shown);
        }
        for text in ["", "-", ".5", "1.000001", "1e3", "--1", "1.-5"] {
            assert_eq!(BillFee::parse(text), None, "{text}");
        }
        let sum = BillFee::parse("0.5").unwrap().checked_add(BillFee::parse("-0.75").unwrap());
        assert_eq!(sum.unwrap().to_string(), "-0.25000");
    }
}
