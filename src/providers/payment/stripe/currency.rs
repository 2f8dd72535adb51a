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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_decimals_of_their_currency() {
        for (currency, decimals) in [("usd", 2), ("cny", 2), ("eur", 2), ("isk", 2), ("jpy", 0), ("kwd", 3)] {
            assert_eq!(decimals_of(currency), decimals, "{currency}");
        }
    }
}
