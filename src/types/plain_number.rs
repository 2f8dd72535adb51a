//! Whole numbers that are written with a fraction or an exponent.

use std::borrow::Cow;

/// Exponent up to which whole numbers are written out. Larger than any value that is read.
const MAX_EXPONENT: usize = 30;

/// Returns a number without fraction and exponent if it is whole. JSON does not tell 60 from 60.0, and libraries that
/// read all numbers as floats write 13800138000 as `1.3800138E10`.
pub fn plain_number(number: &str) -> Cow<'_, str> {
    whole_digits(number).map_or(Cow::Borrowed(number), Cow::Owned)
}

/// Returns the digits of a whole number that is written with a fraction or an exponent.
fn whole_digits(number: &str) -> Option<String> {
    if !number.contains(['.', 'e', 'E']) {
        return None;
    }
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let is_number = !whole.is_empty() && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    let shift: usize = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
    if !is_number || shift < fraction.len() || shift > MAX_EXPONENT {
        return None;
    }
    let digits = format!("{whole}{fraction}{}", "0".repeat(shift - fraction.len()));
    match digits.trim_start_matches('0') {
        "" => Some("0".to_owned()),
        digits => Some(format!("{sign}{digits}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_lose_fraction_and_exponent() {
        for (written, plain) in [
            ("60", "60"),
            ("60.0", "60"),
            ("-60.00", "-60"),
            ("0.0", "0"),
            ("-0.0", "0"),
            ("6e1", "60"),
            ("6.00E+1", "60"),
            ("1.3800138E10", "13800138000"),
            ("1.767225600123E12", "1767225600123"),
            // These are not whole, or too large to write out.
            ("60.5", "60.5"),
            ("6.05e1", "6.05e1"),
            ("600e-1", "600e-1"),
            ("1e400", "1e400"),
            ("1e99999999999999999999", "1e99999999999999999999"),
        ] {
            assert_eq!(plain_number(written), plain);
        }
    }
}
