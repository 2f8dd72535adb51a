//! The choice among several tokens of one request.
//!
//! Old apps leave an outdated token in one place and put the current one in another. The valid one counts, and an invalid
//! one beside it is no sign of theft. Tokens of different users are an error, because nothing says who is meant.

use std::net::IpAddr;

use crate::{
    config::Config,
    domain::{
        identity::tokens::{self, Standing},
        operations::{admins, idempotency},
    },
    error::{Code, Error, Result},
    store::Read,
    types::Timestamp,
};

/// A token's rank among several: the greatest counts, and of equal ones the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Invalid,
    /// Chosen if none is valid, so that its theft is noticed.
    Reused,
    Valid {
        /// The latest sign-in counts, because some actions require a recent one.
        signed_in_at: Timestamp,
        is_current: bool,
    },
    /// The token in a parameter, which the client chose itself.
    ValidParameter,
}

/// A token with its rank and the holder of a valid one.
struct Candidate<'request> {
    token: &'request str,
    rank: Rank,
    holder: Option<String>,
}

impl<'request> Candidate<'request> {
    fn of_user_in(tx: &Read<'_>, config: &Config, token: &'request str) -> Result<Self> {
        let (rank, holder) = match tokens::standing_in(tx, &config.auth, token)? {
            Standing::Invalid => (Rank::Invalid, None),
            Standing::Reused => (Rank::Reused, None),
            Standing::Valid { user, signed_in_at, is_replaced } => {
                (Rank::Valid { signed_in_at, is_current: !is_replaced }, Some(idempotency::user(user)))
            }
        };
        Ok(Self { token, rank, holder })
    }

    /// A credential counts as invalid at an address that its owners may not use, so that nobody learns there if it is
    /// valid.
    fn of_admin_in(tx: &Read<'_>, config: &Config, token: &'request str, client: IpAddr) -> Result<Self> {
        let is_admitted = admins::networks::admit_in(tx, client).is_ok();
        let valid = admins::authenticate_in(tx, &config.admin, token)?.filter(|_| is_admitted);
        let holder = valid.map(|valid| valid.identity.actor());
        let rank = match holder {
            Some(_) => Rank::Valid { signed_in_at: Timestamp::default(), is_current: true },
            None => Rank::Invalid,
        };
        Ok(Self { token, rank, holder })
    }
}

/// Chooses among the tokens in the headers of a request.
///
/// # Errors
/// `conflicting_parameter` for valid tokens of different users.
pub fn choose_in<'request>(
    tx: &Read<'_>,
    config: &Config,
    headers: &[&'request str],
    client: IpAddr,
) -> Result<&'request str> {
    let candidate = |&token| {
        if admins::is_credential(token) {
            Candidate::of_admin_in(tx, config, token, client)
        } else {
            Candidate::of_user_in(tx, config, token)
        }
    };
    choose(headers.iter().map(candidate).collect::<Result<_>>()?)
}

/// Chooses between the token in a parameter and those in the headers. Credentials of administrators do not count.
///
/// # Errors
/// `conflicting_parameter` for valid tokens of different users.
pub fn choose_for_users_in<'request>(
    tx: &Read<'_>,
    config: &Config,
    parameter: Option<&'request str>,
    headers: &[&'request str],
) -> Result<&'request str> {
    let mut candidates = Vec::with_capacity(1 + headers.len());
    if let Some(token) = parameter {
        let candidate = Candidate::of_user_in(tx, config, token)?;
        let rank = if candidate.holder.is_some() { Rank::ValidParameter } else { candidate.rank };
        candidates.push(Candidate { rank, ..candidate });
    }
    for token in headers {
        candidates.push(Candidate::of_user_in(tx, config, token)?);
    }
    choose(candidates)
}

fn choose(candidates: Vec<Candidate<'_>>) -> Result<&str> {
    let mut holders = candidates.iter().filter_map(|candidate| candidate.holder.as_ref());
    let first = holders.next();
    if holders.any(|holder| Some(holder) != first) {
        let detail = (
            "The request has valid tokens of different users. Send only one token.",
            "请求含有不同用户的有效令牌，请只发送一个。",
        );
        return Err(Error::new(Code::ConflictingParameter).detail(detail));
    }
    // The first of several equal ones: `max_by_key` returns the last.
    let chosen = candidates.into_iter().rev().max_by_key(|candidate| candidate.rank);
    chosen.map(|candidate| candidate.token).ok_or_else(|| Code::Unauthenticated.into())
}
