//! Values from fixed sets of names.

use serde_json::{Value, json};

use crate::{
    config::LimitsConfig,
    domain::{
        divination::{card::Theme, chart::DayStart, sessions::Method},
        identity::{codes::Purpose, directory::UserState, identities::IdentityProvider, preferences::NotificationKind},
        messaging::feedback::FeedbackState,
        moderation::{
            engine::{ContentType, Severity},
            reviews::{ReviewDecision, ReviewState},
        },
        money::{
            ledger::Asset,
            payments::{decisions::Decision, order_states::SettlementEffect},
            purchases::purchase::PurchaseState,
        },
        operations::{
            admins::roles::Role, figures::FigureGrouping, server_log::LogLevel, webhook_outbox::WebhookState,
        },
    },
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        openapi::schemas::enumerated,
        params::{Label, Parameter, Rules, text},
    },
    providers::{payment::OrderState, push::PushService},
    types::{SuspensionScope, named_enum},
};

named_enum! {
    /// The audience of a notification.
    #[derive(Clone, Copy)]
    pub enum AudienceName {
        All = "all",
        Users = "users",
    }
}

named_enum! {
    /// The calls of a language model in a list.
    #[derive(Clone, Copy)]
    pub enum CallChoice {
        Failed = "failed",
        Slow = "slow",
    }
}

named_enum! {
    /// The readers of an API document.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DocumentAudience {
        All = "all",
        /// Authors of apps.
        App = "app",
    }
}

named_enum! {
    /// The kind of program in which the buyer pays.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PayerClientKind {
        MobileApp = "app",
        H5 = "h5",
        Jsapi = "jsapi",
        Native = "native",
    }
}

named_enum! {
    /// The kind of proof of identity.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProofKind {
        Apple = "apple",
        Google = "google",
        Wechat = "wechat",
        Phone = "phone",
    }
}

/// Other names of purposes, without case and separators. The first sign-in registers.
const PURPOSES: [(&[&str], Purpose); 3] = [
    (&["login", "signup", "register", "registration", "auth", "登录", "登陆", "注册"], Purpose::SignIn),
    (&["bind", "bindphone", "changephone", "bindemail", "changeemail"], Purpose::Address),
    (&["cancel", "cancelaccount", "deactivate", "deleteaccount", "注销"], Purpose::Cancellation),
];

/// The Chinese names of content types.
const CONTENT_TYPES: [(&[&str], ContentType); 4] = [
    (&["昵称"], ContentType::Nickname),
    (&["签名", "个性签名"], ContentType::Signature),
    (&["问题", "提问"], ContentType::Question),
    (&["回答", "答案"], ContentType::Answer),
];

/// The types of words that the service knows, with their Chinese names.
const WORD_TYPES: [(&[&str], &str); 10] = [
    (&["政治"], "politics"),
    (&["色情"], "porn"),
    (&["辱骂"], "abuse"),
    (&["暴力"], "violence"),
    (&["赌博"], "gambling"),
    (&["毒品"], "drugs"),
    (&["诈骗", "欺诈"], "fraud"),
    (&["广告"], "ads"),
    (&["联系方式"], "contact"),
    (&["其他", "其它"], "other"),
];

/// The purpose of a verification code.
impl Parameter for Purpose {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        match other_name(&PURPOSES, &text(value)?) {
            Some(purpose) => Ok(purpose),
            None => one_of(value, &Self::ALL.map(Self::name), Self::from_name),
        }
    }

    fn schema(_: &LimitsConfig) -> Value {
        enumerated("CodePurpose", "sign_in")
    }
}

impl Parameter for ContentType {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        match other_name(&CONTENT_TYPES, &text(value)?) {
            Some(content_type) => Ok(content_type),
            None => one_of(value, &Self::ALL.map(Self::name), Self::from_name),
        }
    }

    fn schema(_: &LimitsConfig) -> Value {
        enumerated("ContentType", "question")
    }
}

/// The type of a word or violation: one that the service knows, in any case or in Chinese, or a type of one's own.
pub struct WordType(pub String);

impl Parameter for WordType {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let Label(written) = Label::read(value, rules)?;
        let known = other_name(&WORD_TYPES, &written);
        let known = known.or_else(|| WORD_TYPES.iter().map(|(_, name)| *name).find(|name| *name == plain(&written)));
        Ok(Self(known.map_or(written, ToOwned::to_owned)))
    }

    fn schema(limits: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": limits.label, "example": "gambling" })
    }
}

/// Returns the value that has this other name.
fn other_name<T: Copy>(names: &[(&[&str], T)], written: &str) -> Option<T> {
    let written = plain(written);
    names.iter().find(|(words, _)| words.contains(&written.as_str())).map(|(_, value)| *value)
}

/// Declares parameters whose values are names.
macro_rules! words {
    ($($name:ident = $component:literal, $example:literal;)*) => {$(
        impl Parameter for $name {
            fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
                one_of(value, &Self::ALL.map(Self::name), Self::from_name)
            }

            fn schema(_: &LimitsConfig) -> Value {
                enumerated($component, $example)
            }
        }
    )*};
}

words! {
    Asset = "Asset", "coin";
    AudienceName = "Audience", "all";
    CallChoice = "CallChoice", "failed";
    DayStart = "DayStart", "23:00";
    DocumentAudience = "DocumentAudience", "app";
    Decision = "OrderDecision", "credit";
    FeedbackState = "FeedbackState", "open";
    FigureGrouping = "FigureGrouping", "day";
    IdentityProvider = "IdentityProvider", "apple";
    LogLevel = "LogLevel", "warn";
    NotificationKind = "NotificationKind", "activity";
    Method = "CastingMethod", "three_coins";
    Severity = "Severity", "medium";
    Theme = "CardTheme", "auto";
    OrderState = "OrderState", "review";
    PayerClientKind = "PayerClient", "app";
    ProofKind = "ProofProvider", "apple";
    PushService = "PushService", "apns";
    PurchaseState = "PurchaseState", "credited";
    ReviewDecision = "ReviewDecision", "acquit";
    ReviewState = "ReviewState", "waiting";
    Role = "AdminRole", "support";
    SettlementEffect = "Verdict", "rejected";
    SuspensionScope = "SuspensionScope", "account";
    UserState = "UserState", "active";
    WebhookState = "WebhookState", "failed";
}

/// Finds the value with this name, in any case and with any separators, as Java's enums and JSON libraries write it.
///
/// # Errors
/// `unknown_value`, with all names.
fn one_of<T>(value: &RawValue<'_>, words: &[&str], named: fn(&str) -> Option<T>) -> Result<T, Fault> {
    let written = plain(&text(value)?);
    let found = words.iter().find(|word| plain(word) == written).and_then(|word| named(word));
    let message = || (format!("must be one of: {}", words.join(", ")), format!("须为其中之一：{}", words.join(", ")));
    found.ok_or_else(|| Fault::new(FieldCode::UnknownValue, message()))
}

/// Returns a name in lower case and without separators.
fn plain(name: &str) -> String {
    let letters = name.trim().chars().filter(|character| !matches!(character, '_' | '-' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}
