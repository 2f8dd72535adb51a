//! Purchases in app stores: what binds one to an account, and why a genuine one is not credited.
//!
//! A purchase exists at the store before this service hears of it, so its owner must be proven. The app passes an
//! account token to the store, which signs it or reports it. A purchase without a token is credited only if a setting
//! allows it.

use crate::types::named_enum;

/// The account that reports a purchase.
#[derive(Debug, Clone, Copy)]
pub struct PurchaseBinding<'a> {
    /// The account token that this service gave out: a UUID, with or without hyphens.
    pub account_token: &'a str,
    /// True to bind purchases without a token to the account that reports them: promotions, offer codes, old app versions.
    pub allows_missing_token: bool,
}

named_enum! {
    /// The reason why a genuine purchase must not be credited.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PurchaseFault {
        /// It belongs to another account. The response must not name it.
        AnotherAccount = "another_account",
        MissingAccountToken = "missing_account_token",
        /// The money went back.
        Revoked = "revoked",
        /// Shared by a family member who bought it.
        FamilyShared = "family_shared",
        NotConsumable = "not_consumable",
        /// The buyer has not paid yet. It may be paid later.
        Pending = "pending",
        Cancelled = "cancelled",
    }
}

impl PurchaseBinding<'_> {
    /// Checks the token that the store reports.
    pub(super) fn check(&self, reported: Option<&str>) -> Result<(), PurchaseFault> {
        match reported.map(plain_token).filter(|token| !token.is_empty()) {
            None if self.allows_missing_token => Ok(()),
            None => Err(PurchaseFault::MissingAccountToken),
            Some(token) if token == plain_token(self.account_token) => Ok(()),
            Some(_) => Err(PurchaseFault::AnotherAccount),
        }
    }
}

/// Returns an account token in lower case without hyphens, in which the stores' spellings are equal.
pub fn plain_token(token: &str) -> String {
    token.chars().filter(|character| *character != '-').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_binds_in_every_spelling_and_its_absence_only_if_allowed() {
        let own = "7e3fb20b-4cdb-47cc-936d-99d65f608138";
        let strict = PurchaseBinding { account_token: own, allows_missing_token: false };
        let lenient = PurchaseBinding { allows_missing_token: true, ..strict };
        for reported in [own, "7e3fb20b4cdb47cc936d99d65f608138", "7E3FB20B-4CDB-47CC-936D-99D65F608138"] {
            assert_eq!(strict.check(Some(reported)), Ok(()));
        }
        for binding in [strict, lenient] {
            let other = binding.check(Some("00000000-0000-4000-8000-000000000001"));
            assert_eq!(other, Err(PurchaseFault::AnotherAccount));
        }
        for missing in [None, Some(""), Some("-")] {
            assert_eq!(strict.check(missing), Err(PurchaseFault::MissingAccountToken));
            assert_eq!(lenient.check(missing), Ok(()));
        }
    }
}
