//! Decides whether and when a model call is retried.
//!
//! Reads the retry headers of providers and computes the delay of the single retry.

use std::time::Duration;

use crate::providers::nonce::random_bytes;
use crate::providers::retry_after::{duration, retry_after};
use crate::providers::{Failure, FailureKind};

/// The delay if the provider names none, before jitter is subtracted.
const PAUSE: Duration = Duration::from_millis(500);

/// The retry hints in a response's headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RetryHints {
    /// The requested delay.
    pub(super) retry_after: Option<Duration>,
    /// The provider's own hint whether a retry makes sense.
    pub(super) should_retry: Option<bool>,
}

impl RetryHints {
    /// Reads the headers through `header`, which returns the value of a name.
    pub(super) fn read<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Self {
        let in_millis = header("retry-after-ms").and_then(|text| duration(text, 1_000.0));
        Self {
            retry_after: in_millis.or_else(|| retry_after(&header)),
            should_retry: match header("x-should-retry") {
                Some("true") => Some(true),
                Some("false") => Some(false),
                _ => None,
            },
        }
    }

    /// Returns true if the call may be retried after this failure, which came before the first byte of a response.
    pub(super) fn allows_retry(self, failure: &Failure) -> bool {
        let by_kind =
            matches!(failure.kind, FailureKind::Unreachable | FailureKind::Busy | FailureKind::OutcomeUnknown);
        self.should_retry.unwrap_or(by_kind)
    }
}

/// Returns the delay before the retry: the provider's, or else half a second with up to a quarter of jitter, so that
/// callers that failed together do not retry together.
pub(super) fn pause(provider: &'static str, retry_after: Option<Duration>) -> Result<Duration, Failure> {
    if let Some(retry_after) = retry_after {
        return Ok(retry_after);
    }
    let [random] = random_bytes::<1>(provider)?;
    Ok(PAUSE.saturating_sub(PAUSE * u32::from(random) / (4 * 255)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(headers: &[(&str, &'static str)]) -> RetryHints {
        RetryHints::read(|name| headers.iter().find(|(candidate, _)| *candidate == name).map(|(_, value)| *value))
    }

    fn retry_after(headers: &[(&str, &'static str)]) -> Option<Duration> {
        hints(headers).retry_after
    }

    #[test]
    fn prefers_milliseconds_to_seconds_to_dates() {
        let millis = ("retry-after-ms", "1250.5");
        assert_eq!(retry_after(&[millis, ("retry-after", "7")]), Some(Duration::from_micros(1_250_500)));
        assert_eq!(retry_after(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        let date = ("retry-after", "Thu, 15 Jan 2026 08:30:42 GMT");
        assert_eq!(retry_after(&[date, ("date", "Thu, 15 Jan 2026 08:30:00 GMT")]), Some(Duration::from_secs(42)));
    }

    #[test]
    fn ignores_invalid_retry_headers() {
        for text in ["-1", "NaN", "inf", "soon", "1e300", "999999999"] {
            assert_eq!(retry_after(&[("retry-after", text), ("date", "today")]), None, "{text}");
        }
        let past = ("retry-after", "Thu, 15 Jan 2026 08:29:00 GMT");
        assert_eq!(retry_after(&[past, ("date", "Thu, 15 Jan 2026 08:30:00 GMT")]), None);
        assert_eq!(retry_after(&[past]), None);
    }

    #[test]
    fn the_provider_overrides_the_retry_rule() {
        let busy = Failure::new(FailureKind::Busy, "x", "x");
        let refused = Failure::new(FailureKind::Refused, "x", "x");
        assert!(hints(&[]).allows_retry(&busy));
        assert!(!hints(&[("x-should-retry", "false")]).allows_retry(&busy));
        assert!(!hints(&[]).allows_retry(&refused));
        assert!(hints(&[("x-should-retry", "true")]).allows_retry(&refused));
    }

    #[test]
    fn subtracts_up_to_a_quarter_of_jitter() {
        for _ in 0..50 {
            let pause = pause("x", None).unwrap();
            assert!((Duration::from_millis(375)..=PAUSE).contains(&pause), "{pause:?}");
        }
        assert_eq!(pause("x", Some(Duration::ZERO)), Ok(Duration::ZERO));
    }
}
