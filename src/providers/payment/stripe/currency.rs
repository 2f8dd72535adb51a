//! Amounts in a currency's smallest unit, as Stripe counts it.

/// Currencies without a smaller unit at Stripe. Some that have none elsewhere are counted in hundredths there.
const ZERO_DECIMALS: [&str; 15] =
    ["bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf"];
const THREE_DECIMALS: [&str; 5] = ["bhd", "jod", "kwd", "omr", "tnd"];

/// Returns the number of decimals of a currency, given by three letters in lower case.
pub fn decimals_of(currency: &str) -> usize {
    if ZERO_DECIMALS.contains(&currency) {
        0
    } else if THREE_DECIMALS.contains(&currency) {
        3
    } else {
        2
    }
}

/// Parses a decimal amount such as `0.99` into the smallest unit of a currency. Rejects more decimals than it has.
pub fn parse_amount(text: &str, currency: &str) -> Option<i64> {
    let decimals = decimals_of(currency);
    let (whole, part) = match text.split_once('.') {
        Some((whole, part)) if (1..=decimals).contains(&part.len()) => (whole, part),
        Some(_) => return None,
        None => (text, ""),
    };
    let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || whole.len() > 12 || has_leading_zero {
        return None;
    }
    let digits = whole.bytes().chain(part.bytes()).chain(std::iter::repeat_n(b'0', decimals - part.len()));
    let mut amount = digits.map(|byte| byte.is_ascii_digit().then(|| i64::from(byte - b'0')));
    let amount = amount.try_fold(0_i64, |sum, digit| sum.checked_mul(10)?.checked_add(digit?))?;
    // Stripe rounds the third decimal away, so it must be zero.
    (decimals < 3 || amount % 10 == 0).then_some(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_decimals_of_their_currency() {
        for (text, currency, amount) in [
            ("0.99", "usd", Some(99)),
            ("6", "cny", Some(600)),
            ("6.5", "eur", Some(650)),
            ("500", "jpy", Some(500)),
            ("500.0", "jpy", None),
            ("0.999", "usd", None),
            ("1.230", "kwd", Some(1230)),
            ("1.234", "kwd", None),
            ("100", "isk", Some(10_000)),
            ("0", "usd", Some(0)),
            ("", "usd", None),
            (".5", "usd", None),
            ("5.", "usd", None),
            ("-5", "usd", None),
            ("05", "usd", None),
            ("1e3", "usd", None),
            ("9999999999999", "usd", None),
        ] {
            assert_eq!(parse_amount(text, currency), amount, "{text} {currency}");
        }
    }
}
