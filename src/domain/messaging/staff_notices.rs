//! Notifications that tell users about acts of the staff, in the user's language.
//!
//! They are system notices, which users cannot switch off.

use super::notifications::{self, Audience, NotificationDraft, NotificationKind, Payload};
use crate::{
    config::Config,
    domain::identity::preferences,
    error::Result,
    store::Write,
    types::{Locale, Timestamp, UserId},
};

/// An act that the user is told about.
#[derive(Clone, Debug)]
pub enum StaffNotice<'act> {
    Suspended {
        reason: &'act str,
        ends_at: Option<Timestamp>,
    },
    SuspensionLifted,
    NicknameReset {
        reason: &'act str,
    },
    /// All devices, or one with this label.
    SignedOut {
        device: Option<&'act str>,
    },
    /// The end of the new number.
    PhoneMoved {
        ending: &'act str,
    },
    FeedbackReply {
        reply: &'act str,
    },
}

/// Sends the notice to a user.
pub fn send_in(tx: &Write<'_>, config: &Config, user: UserId, notice: &StaffNotice<'_>) -> Result<()> {
    let chosen = preferences::find_in(tx, user)?;
    let zone = chosen.time_zone.as_ref().unwrap_or(&config.limits.time_zone);
    let shown = |at: Timestamp| zone.local_text(at);
    let (title, body) = match chosen.locale.unwrap_or(Locale::Chinese) {
        Locale::Chinese => chinese(notice, shown),
        Locale::English => english(notice, shown),
    };
    let draft = NotificationDraft {
        audience: Audience::Users(vec![user]),
        kind: NotificationKind::System,
        title: title.to_owned(),
        body,
        payload: Payload::None {},
        expires_at: None,
    };
    notifications::send_in(tx, &draft, config.notifications.per_user).map(drop)
}

fn chinese(notice: &StaffNotice<'_>, shown: impl Fn(Timestamp) -> String) -> (&'static str, String) {
    match notice {
        StaffNotice::Suspended { reason, ends_at } => {
            let until = ends_at.map_or_else(|| "直至解除".to_owned(), |at| format!("至 {}", shown(at)));
            ("账号已停用", format!("您的账号已停用，{until}。原因：{reason}。如有异议，请通过意见反馈联系我们。"))
        }
        StaffNotice::SuspensionLifted => ("账号已恢复", "您的账号已恢复使用。".to_owned()),
        StaffNotice::NicknameReset { reason } => {
            ("昵称已重置", format!("您的昵称已被重置。原因：{reason}。您可以设置新的昵称。"))
        }
        StaffNotice::SignedOut { device: None } => {
            ("设备已退出登录", "客服已让您的所有设备退出登录。请重新登录。".to_owned())
        }
        StaffNotice::SignedOut { device: Some(label) } => {
            ("设备已退出登录", format!("客服已让设备“{label}”退出登录。"))
        }
        StaffNotice::PhoneMoved { ending } => {
            ("手机号已更换", format!("您的账号已更换为尾号 {ending} 的手机号。如非本人要求，请立即联系我们。"))
        }
        StaffNotice::FeedbackReply { reply } => ("您的反馈有了回复", (*reply).to_owned()),
    }
}

fn english(notice: &StaffNotice<'_>, shown: impl Fn(Timestamp) -> String) -> (&'static str, String) {
    match notice {
        StaffNotice::Suspended { reason, ends_at } => {
            let until = ends_at.map_or_else(|| "until further notice".to_owned(), |at| format!("until {}", shown(at)));
            let appeal = "To object, send us feedback.";
            ("Account suspended", format!("Your account is suspended {until}. Reason: {reason}. {appeal}"))
        }
        StaffNotice::SuspensionLifted => ("Account restored", "Your account is no longer suspended.".to_owned()),
        StaffNotice::NicknameReset { reason } => {
            ("Nickname reset", format!("Your nickname was reset. Reason: {reason}. You can choose a new one."))
        }
        StaffNotice::SignedOut { device: None } => {
            ("Signed out", "Our support signed out all your devices. Sign in again.".to_owned())
        }
        StaffNotice::SignedOut { device: Some(label) } => {
            ("Signed out", format!("Our support signed out the device “{label}”."))
        }
        StaffNotice::PhoneMoved { ending } => (
            "Phone number changed",
            format!(
                "Your account now has the phone number ending in {ending}. If you did not ask for this, contact us."
            ),
        ),
        StaffNotice::FeedbackReply { reply } => ("A reply to your feedback", (*reply).to_owned()),
    }
}
