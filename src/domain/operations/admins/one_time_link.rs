//! The token of a link that works once, for an hour. It is kept in memory only, so a restart ends it.

use std::{sync::Mutex, time::Duration};

use subtle::ConstantTimeEq as _;

use crate::{
    concurrency::lock::lock_unpoisoned,
    error::Result,
    types::{Secret, Timestamp, sha256},
};

pub(super) const LIFETIME: Duration = Duration::from_hours(1);

/// The link, if there is one.
#[derive(Default)]
pub struct OneTimeLink(Mutex<Option<IssuedLink>>);

/// The hash of a token and its expiry.
type IssuedLink = ([u8; 32], Timestamp);

impl OneTimeLink {
    /// Makes a new token. An earlier one no longer works.
    ///
    /// # Errors
    /// Those of the random source.
    pub fn issue(&self, now: Timestamp) -> Result<Secret> {
        let token = Secret::random()?;
        *lock_unpoisoned(&self.0) = Some((sha256(token.reveal()), now.plus(LIFETIME)));
        Ok(token)
    }

    /// Returns true if the token is that of the link, and ends the link then.
    pub fn redeem(&self, token: &str, now: Timestamp) -> bool {
        let mut link = lock_unpoisoned(&self.0);
        let is_valid =
            link.is_some_and(|(hash, expires_at)| now < expires_at && bool::from(hash.ct_eq(&sha256(token))));
        if is_valid {
            *link = None;
        }
        is_valid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_once_and_for_an_hour() {
        let (link, now) = (OneTimeLink::default(), Timestamp(1_000));
        assert!(!link.redeem("", now));
        let token = link.issue(now).unwrap();
        assert!(!link.redeem("another", now) && !link.redeem(token.reveal(), now.plus(LIFETIME)));
        assert!(link.redeem(token.reveal(), now));
        assert!(!link.redeem(token.reveal(), now));
        let (former, latter) = (link.issue(now).unwrap(), link.issue(now).unwrap());
        assert!(!link.redeem(former.reveal(), now) && link.redeem(latter.reveal(), now));
    }
}
