//! Notifications that tell users about acts of the staff, in the user's language.
//!
//! They are system notices, which users cannot switch off.

use super::notifications::{self, Audience, NotificationDraft, NotificationKind, Payload};
use crate::{
    config::Config,
    domain::identity::preferences,
    error::Result,
    store::Write,
    types::{Locale, SuspensionScope, Timestamp, UserId, pluralize},
};

/// An act that the user is told about.
#[derive(Clone, Debug)]
pub enum StaffNotice<'act> {
    Suspended {
        scope: SuspensionScope,
        cause: SuspensionCause<'act>,
        ends_at: Option<Timestamp>,
    },
    SuspensionLifted {
        scope: SuspensionScope,
    },
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

/// The cause of a suspension, as the user is told.
#[derive(Clone, Copy, Debug)]
pub enum SuspensionCause<'act> {
    /// A reason that the staff gave.
    Given(&'act str),
    /// Rejected texts, counted by a rule.
    Violations { count: u32, days: u64 },
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
        StaffNotice::Suspended { scope, cause, ends_at } => {
            let until = ends_at.map_or_else(|| "直至解除".to_owned(), |at| format!("至 {}", shown(at)));
            let (title, effect) = match scope {
                SuspensionScope::Account => ("账号已停用", "您的账号已停用"),
                SuspensionScope::Nickname => ("昵称修改已停用", "您暂时不能修改昵称"),
                SuspensionScope::Review => ("内容将受审核", "管理员将审核您提交的文字"),
            };
            let reason = match cause {
                SuspensionCause::Given(reason) => (*reason).to_owned(),
                SuspensionCause::Violations { count, days } => format!("{days} 天内有 {count} 条文字未通过内容审核"),
            };
            (title, format!("{effect}，{until}。原因：{reason}。如有异议，请通过意见反馈联系我们。"))
        }
        StaffNotice::SuspensionLifted { scope: SuspensionScope::Account } => {
            ("账号已恢复", "您的账号已恢复使用。".to_owned())
        }
        StaffNotice::SuspensionLifted { scope: SuspensionScope::Nickname } => {
            ("昵称修改已恢复", "您可以重新修改昵称。".to_owned())
        }
        StaffNotice::SuspensionLifted { scope: SuspensionScope::Review } => {
            ("内容审核已结束", "您提交的文字不再逐条审核。".to_owned())
        }
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
        StaffNotice::Suspended { scope, cause, ends_at } => {
            let until = ends_at.map_or_else(|| "until further notice".to_owned(), |at| format!("until {}", shown(at)));
            let (title, effect) = match scope {
                SuspensionScope::Account => ("Account suspended", "Your account is suspended"),
                SuspensionScope::Nickname => ("Nickname changes suspended", "You cannot change your nickname"),
                SuspensionScope::Review => ("Texts under review", "Moderators review the texts you write"),
            };
            let reason = match cause {
                SuspensionCause::Given(reason) => (*reason).to_owned(),
                SuspensionCause::Violations { count, days } => {
                    format!("{} rejected in {}", pluralize(*count, "text", "texts"), pluralize(*days, "day", "days"))
                }
            };
            (title, format!("{effect} {until}. Reason: {reason}. To object, send us feedback."))
        }
        StaffNotice::SuspensionLifted { scope: SuspensionScope::Account } => {
            ("Account restored", "Your account is no longer suspended.".to_owned())
        }
        StaffNotice::SuspensionLifted { scope: SuspensionScope::Nickname } => {
            ("Nickname changes restored", "You can change your nickname again.".to_owned())
        }
        StaffNotice::SuspensionLifted { scope: SuspensionScope::Review } => {
            ("Review ended", "Moderators no longer review each of your texts.".to_owned())
        }
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
