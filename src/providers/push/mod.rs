//! Push services: messages to one app on one phone.
//!
//! A push may arrive twice or never; the inbox holds what counts. A service says of some tokens that they are dead,
//! which is final: the app was removed or has another token. A token that is merely refused may be good: wrong settings,
//! such as another app or the test environment, have the same effect.

pub mod apns;
pub mod fcm;
pub mod http;

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

use super::{Failure, FailureKind};
use crate::types::named_enum;

/// Messages that are sent at once to services without multiplexing.
const PARALLEL: usize = 8;
const ELLIPSIS: &str = "…";

named_enum! {
    /// A push service.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum PushService {
        /// Apple.
        Apns = "apns",
        /// Firebase Cloud Messaging.
        Fcm = "fcm",
        /// The HTTP endpoint that the operator describes.
        Http = "http",
    }
}

/// A message to one app on one phone. `Debug` would show its text and token, so there is none.
#[derive(Clone)]
pub struct PushMessage {
    pub token: String,
    /// The same for each attempt.
    pub id: String,
    pub title: String,
    pub body: String,
    /// A newer message with the same key replaces this one on the phone.
    pub collapse_key: &'static str,
    pub notification_id: String,
    /// Unread notifications, for the badge.
    pub unread: usize,
    /// Seconds since 1970 after which the service gives it up.
    pub expires_at: i64,
    /// Seconds until then.
    pub lifetime: i64,
    /// False for messages that may wait until the phone is used.
    pub is_urgent: bool,
}

/// The reason why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushFault {
    /// The service does not know the token any more.
    DeadToken {
        /// In milliseconds since 1970. A token that was registered later is alive.
        since: Option<i64>,
    },
    /// The service refuses the token for this reason.
    RefusedToken {
        reason: &'static str,
    },
    Failed(Failure),
}

impl From<Failure> for PushFault {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Sends messages through one service.
pub trait PushSender: Send + Sync {
    fn service(&self) -> PushService;

    /// Submits messages and returns their outcomes in the same order. Blocks for up to some seconds.
    fn send_all(&self, messages: &[PushMessage]) -> Vec<Result<(), PushFault>>;

    /// Checks that the service accepts our credentials, without sending anything.
    fn probe(&self) -> Result<(), Failure>;
}

/// Returns as much of a text as fits, up to a character as people see it, with an ellipsis if something is missing.
/// `size` measures a part of the text.
fn cut(text: &str, max: usize, size: impl Fn(&str) -> usize) -> Cow<'_, str> {
    if size(text) <= max {
        return Cow::Borrowed(text);
    }
    let Some(mut left) = max.checked_sub(size(ELLIPSIS)) else { return Cow::Borrowed("") };
    let fits = |character: &&str| {
        let rest = left.checked_sub(size(character));
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let end: usize = text.graphemes(true).take_while(fits).map(str::len).sum();
    Cow::Owned(format!("{}{ELLIPSIS}", text[..end].trim_end()))
}

/// Sends messages one by one on a few threads.
fn send_in_parallel(
    messages: &[PushMessage],
    send: impl Fn(&PushMessage) -> Result<(), PushFault> + Sync,
) -> Vec<Result<(), PushFault>> {
    let part = messages.len().div_ceil(PARALLEL).max(1);
    let send = &send;
    std::thread::scope(|scope| {
        let parts: Vec<_> = messages
            .chunks(part)
            .map(|part| (part.len(), scope.spawn(move || part.iter().map(send).collect::<Vec<_>>())))
            .collect();
        let panicked = || Failure::new(FailureKind::OutcomeUnknown, "push", "panicked").into();
        let join = |(count, part): (usize, std::thread::ScopedJoinHandle<'_, Vec<_>>)| {
            part.join().unwrap_or_else(|_| (0..count).map(|_| Err(panicked())).collect())
        };
        parts.into_iter().flat_map(join).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters_as_people_see_them() {
        let family = "👨‍👩‍👧";
        assert_eq!(cut("乾坤", 6, str::len), "乾坤");
        assert_eq!(cut("乾坤屯", 6, str::len), "乾…");
        assert_eq!(cut("a b c", 4, str::len), "a…");
        assert_eq!(cut(&format!("a{family}bcde"), 4 + family.len(), str::len), format!("a{family}…"));
        assert_eq!(cut(&format!("a{family}bcde"), 3 + family.len(), str::len), "a…");
        assert_eq!(cut("乾坤", 2, str::len), "");
    }
}
