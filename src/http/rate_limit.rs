//! `RateLimit-Policy` and `RateLimit`: the limits of an endpoint, and the part that the caller has left of one of them
//! (draft-ietf-httpapi-ratelimit-headers).

use std::{fmt::Write, net::IpAddr, time::Duration};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::{
    app::App,
    config::Config,
    domain::{
        divination::model_calls::hourly_limit::{self, UserCall},
        identity::codes::{self, ClientNetworks},
        messaging::feedback,
        operations::admins,
    },
    error::{Error, RateLimit, Result},
    store::{Read, sliding_window::WindowUse},
    types::UserId,
};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// The limits that an endpoint has for its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateBudget {
    /// Requests for codes, by address and by client.
    Codes,
    /// Wrong codes, by client.
    WrongCodes,
    /// Interpretations, by user.
    Interpretations,
    /// Replies of the model to a conversation, by user.
    Chat,
    /// Feedback, by user or by client.
    Feedback,
    /// Failed sign-ins of administrators, by client.
    AdminSignIns,
}

/// The caller whose budget is shown.
#[derive(Clone, Copy, Debug)]
pub struct BudgetHolder {
    pub user: Option<UserId>,
    pub client: IpAddr,
}

impl RateBudget {
    /// Returns the limits that apply to this caller.
    fn limits(self, config: &Config, holder: BudgetHolder) -> Vec<RateLimit> {
        let (auth, calls) = (&config.auth, config.llm.calls_per_user_hour);
        match self {
            Self::Codes => vec![
                codes::resend_limit(auth),
                codes::hourly_limit(auth),
                codes::daily_limit(auth),
                codes::client_hourly_limit(auth),
                codes::client_daily_limit(auth),
            ],
            Self::WrongCodes => vec![codes::attempts_limit(auth)],
            Self::Interpretations => vec![UserCall::Interpretation.limit(calls)],
            Self::Chat => vec![UserCall::Chat.limit(calls)],
            Self::Feedback if holder.user.is_some() => vec![feedback::user_limit(&config.limits)],
            Self::Feedback => vec![feedback::client_limit(&config.limits)],
            Self::AdminSignIns => vec![admins::attempts_limit(&config.admin)],
        }
    }

    /// Returns the part that the caller has left. `None` if the caller must sign in first.
    fn use_in(self, tx: &Read<'_>, config: &Config, holder: BudgetHolder) -> Result<Option<WindowUse>> {
        let calls = config.llm.calls_per_user_hour;
        let of_user = |call| holder.user.map(|user| hourly_limit::use_in(tx, user, call, calls)).transpose();
        let networks = || ClientNetworks::of(holder.client);
        match (self, holder.user) {
            (Self::Interpretations, _) => of_user(UserCall::Interpretation),
            (Self::Chat, _) => of_user(UserCall::Chat),
            (Self::Codes, _) => codes::client_use_in(tx, &config.auth, &networks()).map(Some),
            (Self::WrongCodes, _) => codes::attempts_use_in(tx, &config.auth, &networks()).map(Some),
            (Self::Feedback, Some(user)) => feedback::use_of_user_in(tx, user, &config.limits).map(Some),
            (Self::Feedback, None) => feedback::use_of_client_in(tx, holder.client, &config.limits).map(Some),
            (Self::AdminSignIns, _) => admins::attempts_use_in(tx, holder.client, &config.admin).map(Some),
        }
    }

    /// Adds both headers to the response of an endpoint that has this budget. `known` is what its write found.
    pub fn add_to(self, headers: &mut HeaderMap, app: &App, holder: BudgetHolder, known: Option<WindowUse>) {
        insert(headers, POLICY, &policies(&self.limits(&app.core.config, holder)));
        // An error tells about the limit that it is about.
        if headers.contains_key(STATE) {
            return;
        }
        let read = || app.core.store.read(|tx| self.use_in(tx, &app.core.config, holder)).ok().flatten();
        if let Some(used) = known.or_else(read) {
            insert(headers, STATE, &state(used.limit.name, used.remaining, used.frees_after));
        }
    }
}

/// Adds both headers to the response to a request that exceeds a limit.
pub fn add_exceeded(headers: &mut HeaderMap, error: &Error) {
    if let Some(limit) = error.rate_limit {
        insert(headers, POLICY, &policies(&[limit]));
        insert(headers, STATE, &state(limit.name, 0, error.retry_after));
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value)
        && !value.is_empty()
    {
        headers.insert(name, value);
    }
}

/// Formats limits. A limit without a time is switched off.
fn policies(limits: &[RateLimit]) -> String {
    let limits = limits.iter().filter(|limit| limit.window >= Duration::from_secs(1));
    let policies = limits.map(|limit| format!("\"{}\";q={};w={}", limit.name, limit.quota, limit.window.as_secs()));
    policies.collect::<Vec<_>>().join(", ")
}

fn state(name: &str, remaining: u32, frees_after: Option<Duration>) -> String {
    let mut state = format!("\"{name}\";r={remaining}");
    if let Some(wait) = frees_after {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        // Writing to a text cannot fail.
        let _ = write!(state, ";t={seconds}");
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_structured_fields() {
        let limit = |name, quota, seconds| RateLimit { name, quota, window: Duration::from_secs(seconds) };
        let limits = [limit("hour", 5, 3600), limit("off", 1, 0), limit("day", 10, 86_400)];
        assert_eq!(policies(&limits), "\"hour\";q=5;w=3600, \"day\";q=10;w=86400");
        assert_eq!(state("hour", 4, Some(Duration::from_millis(1_500))), "\"hour\";r=4;t=2");
        assert_eq!(state("hour", 5, None), "\"hour\";r=5");
        let mut headers = HeaderMap::new();
        add_exceeded(&mut headers, &crate::error::Code::TooManyRequests.into());
        assert!(headers.is_empty(), "a limit without a name is not shown");
    }
}
