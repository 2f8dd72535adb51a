//! Notifications that tell users about acts of the staff and new ways into their account, in the user's language.
//!
//! They are system notices, which users cannot switch off.

use liuyao::script::to_traditional;

use super::notifications::{self, Audience, NotificationDraft, NotificationKind, Payload};
use crate::{
    config::Config,
    domain::identity::{identities::IdentityProvider, preferences, users::Address},
    error::Result,
    store::Write,
    types::{ChineseScript, Locale, SuspensionScope, Timestamp, UserId, pluralize},
};

/// A fact that the user is told.
#[derive(Clone, Debug)]
pub enum UserNotice<'act> {
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
    /// Somebody can sign in with an identity of this provider now.
    IdentityLinked(IdentityProvider),
    /// Somebody can sign in with this address now.
    AddressChanged(&'act Address),
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
pub fn send_in(tx: &Write<'_>, config: &Config, user: UserId, notice: &UserNotice<'_>) -> Result<()> {
    let chosen = preferences::find_in(tx, user)?;
    let zone = chosen.time_zone.as_ref().unwrap_or(&config.limits.time_zone);
    let shown = |at: Timestamp| zone.local_text(at);
    let (title, body) = match chosen.locale.unwrap_or(Locale::Chinese) {
        Locale::Chinese => chinese(notice, shown),
        Locale::English => english(notice, shown),
    };
    let in_script = |text: &str| match chosen.script {
        Some(ChineseScript::Traditional) => to_traditional(text),
        _ => text.to_owned(),
    };
    let draft = NotificationDraft {
        audience: Audience::Users(vec![user]),
        kind: NotificationKind::System,
        title: in_script(title),
        body: in_script(&body),
        payload: Payload::None {},
        expires_at: None,
    };
    notifications::send_in(tx, &draft, config.notifications.per_user).map(drop)
}

fn chinese(notice: &UserNotice<'_>, shown: impl Fn(Timestamp) -> String) -> (&'static str, String) {
    match notice {
        UserNotice::Suspended { scope, cause, ends_at } => {
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
        UserNotice::SuspensionLifted { scope: SuspensionScope::Account } => {
            ("账号已恢复", "您的账号已恢复使用。".to_owned())
        }
        UserNotice::SuspensionLifted { scope: SuspensionScope::Nickname } => {
            ("昵称修改已恢复", "您可以重新修改昵称。".to_owned())
        }
        UserNotice::SuspensionLifted { scope: SuspensionScope::Review } => {
            ("内容审核已结束", "您提交的文字不再逐条审核。".to_owned())
        }
        UserNotice::NicknameReset { reason } => {
            ("昵称已重置", format!("您的昵称已被重置。原因：{reason}。您可以设置新的昵称。"))
        }
        UserNotice::SignedOut { device: None } => {
            ("设备已退出登录", "客服已让您的所有设备退出登录。请重新登录。".to_owned())
        }
        UserNotice::SignedOut { device: Some(label) } => ("设备已退出登录", format!("客服已让设备“{label}”退出登录。")),
        UserNotice::PhoneMoved { ending } => {
            ("手机号已更换", format!("您的账号已更换为尾号 {ending} 的手机号。如非本人要求，请立即联系我们。"))
        }
        UserNotice::FeedbackReply { reply } => ("您的反馈有了回复", (*reply).to_owned()),
        UserNotice::IdentityLinked(provider) => {
            let service = service(*provider, "微信");
            ("新增登录方式", format!("您的账号现在可以用{service}登录。如非本人操作，请在账号设置中移除并联系我们。"))
        }
        UserNotice::AddressChanged(address) => {
            let kind = if matches!(address, Address::Email(_)) { "新的邮箱" } else { "新的手机号" };
            ("新增登录方式", format!("您的账号现在可以用{kind}登录。如非本人操作，请立即联系我们。"))
        }
    }
}

fn english(notice: &UserNotice<'_>, shown: impl Fn(Timestamp) -> String) -> (&'static str, String) {
    match notice {
        UserNotice::Suspended { scope, cause, ends_at } => {
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
        UserNotice::SuspensionLifted { scope: SuspensionScope::Account } => {
            ("Account restored", "Your account is no longer suspended.".to_owned())
        }
        UserNotice::SuspensionLifted { scope: SuspensionScope::Nickname } => {
            ("Nickname changes restored", "You can change your nickname again.".to_owned())
        }
        UserNotice::SuspensionLifted { scope: SuspensionScope::Review } => {
            ("Review ended", "Moderators no longer review each of your texts.".to_owned())
        }
        UserNotice::NicknameReset { reason } => {
            ("Nickname reset", format!("Your nickname was reset. Reason: {reason}. You can choose a new one."))
        }
        UserNotice::SignedOut { device: None } => {
            ("Signed out", "Our support signed out all your devices. Sign in again.".to_owned())
        }
        UserNotice::SignedOut { device: Some(label) } => {
            ("Signed out", format!("Our support signed out the device “{label}”."))
        }
        UserNotice::PhoneMoved { ending } => (
            "Phone number changed",
            format!(
                "Your account now has the phone number ending in {ending}. If you did not ask for this, contact us."
            ),
        ),
        UserNotice::FeedbackReply { reply } => ("A reply to your feedback", (*reply).to_owned()),
        UserNotice::IdentityLinked(provider) => {
            let service = service(*provider, "WeChat");
            (
                "New way to sign in",
                format!(
                    "You can now sign in to your account with {service}. If this was not you, remove it in the settings \
                     of the account and contact us."
                ),
            )
        }
        UserNotice::AddressChanged(address) => {
            let kind = if matches!(address, Address::Email(_)) { "email address" } else { "phone number" };
            (
                "New way to sign in",
                format!("You can now sign in to your account with a new {kind}. If this was not you, contact us."),
            )
        }
    }
}

fn service(provider: IdentityProvider, wechat: &'static str) -> &'static str {
    match provider {
        IdentityProvider::Apple => "Apple",
        IdentityProvider::Google => "Google",
        IdentityProvider::Wechat => wechat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::EmailAddress;

    #[test]
    fn every_notice_says_its_facts_in_both_languages() {
        let email = Address::Email(EmailAddress::parse("a@example.com").unwrap());
        let mut notices = vec![
            (UserNotice::NicknameReset { reason: "42" }, ["42"; 2]),
            (UserNotice::SignedOut { device: None }, ["所有", "all"]),
            (UserNotice::SignedOut { device: Some("Pixel") }, ["Pixel"; 2]),
            (UserNotice::PhoneMoved { ending: "8000" }, ["8000"; 2]),
            (UserNotice::FeedbackReply { reply: "42" }, ["42"; 2]),
            (UserNotice::IdentityLinked(IdentityProvider::Apple), ["Apple"; 2]),
            (UserNotice::IdentityLinked(IdentityProvider::Google), ["Google"; 2]),
            (UserNotice::IdentityLinked(IdentityProvider::Wechat), ["微信", "WeChat"]),
            (UserNotice::AddressChanged(&email), ["邮箱", "email"]),
        ];
        let given = [SuspensionCause::Given("42"), SuspensionCause::Violations { count: 42, days: 1 }];
        for (scope, facts) in
            SuspensionScope::ALL.into_iter().zip([["账号", "account"], ["昵称", "nickname"], ["文字", "texts"]])
        {
            notices.push((UserNotice::SuspensionLifted { scope }, facts));
            for (cause, ends_at) in given.into_iter().zip([None, Some(Timestamp(0))]) {
                notices.push((UserNotice::Suspended { scope, cause, ends_at }, ["42"; 2]));
            }
        }
        for (notice, facts) in notices {
            let shown = |_| "1970".to_owned();
            for ((title, body), fact) in [chinese(&notice, shown), english(&notice, shown)].into_iter().zip(facts) {
                assert!(!title.is_empty() && body.contains(fact), "{notice:?}: {title}: {body}");
                if let UserNotice::Suspended { ends_at: Some(_), .. } = notice {
                    assert!(body.contains("1970"), "{body}");
                }
            }
        }
    }
}
