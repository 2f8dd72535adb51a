//! Enumerations of requests and responses. Each is a component of the API document.

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use serde_json::Value;

use super::schemas::{enumeration, schemas};
use crate::http::{
    params::{AudienceName, DocumentAudience, PayerClientKind, ProofKind},
    payment_channel::ChannelName,
};
use crate::{
    domain::{
        divination::{
            card::Theme,
            chart::{DayStart, SelectedPart, SelectionRule},
            model_calls::CallStatus,
            sessions::{Method, snapshot::SnapshotProperty},
        },
        identity::{
            codes::Purpose, directory::UserState, identities::IdentityProvider, preferences::NotificationKind,
            suspensions::SuspensionSource, users::Gender,
        },
        messaging::feedback::FeedbackState,
        moderation::{
            engine::{ContentType, MatchWay, Severity},
            policy::Service,
            reviews::{ReviewDecision, ReviewState},
        },
        money::{
            ledger::{self, Asset},
            payments::{
                bills::BillDifferenceCode, decisions::Decision, order_states::SettlementEffect, refunds::RefundState,
            },
            purchases::purchase::{PurchaseEnvironment, PurchaseState, PurchaseStore},
        },
        operations::{
            admins::roles::Role,
            deletions::DeletedKind,
            figures::FigureGrouping,
            health::{BackupState, LedgerState},
            server_log::LogLevel,
            webhook_outbox::{WebhookKind, WebhookState},
        },
    },
    providers::{
        payment::{OrderState, TradeStatus},
        push::PushService,
    },
    types::{ChineseScript, Locale, NamedEnum, SuspensionScope},
};

/// Declares types that stand for enumerations of another crate in the schemas of fields.
macro_rules! stand_ins {
    ($($name:ident = $values:ty;)*) => {$(
        pub struct $name;

        impl NamedEnum for $name {
            const NAMES: &'static [&'static str] = <$values as NamedEnum>::NAMES;
            const IDENTIFIERS: &'static [&'static str] = <$values as NamedEnum>::IDENTIFIERS;
        }
    )*};
}

stand_ins! {
    ChineseScriptName = ChineseScript;
    DayStartName = DayStart;
    LocaleName = Locale;
    SelectedPartName = SelectedPart;
    SelectionRuleName = SelectionRule;
    ContentTypeName = ContentType;
    SeverityName = Severity;
    MatchWayName = MatchWay;
}

macro_rules! enumerations {
    ($($values:ty = $name:literal, $example:literal, $description:literal;)*) => {
        $(
            impl ToSchema for $values {
                fn name() -> Cow<'static, str> {
                    $name.into()
                }
            }

            impl PartialSchema for $values {
                fn schema() -> RefOr<Schema> {
                    Schema::from(enumeration::<$values>($description, $example)).into()
                }
            }
        )*

        /// Returns the components of all enumerations.
        pub fn enumerations() -> Vec<(String, Value)> {
            [$(schemas::<$values>()),*].concat()
        }
    };
}

enumerations! {
    Asset = "Asset", "coin", "The counted unit.";
    AudienceName = "Audience", "all", "The recipients of a notification.";
    BillDifferenceCode = "BillDifferenceCode", "not_in_bill", "A difference between a bill and our records.";
    BackupState = "BackupState", "current", "State of the backups: `none` before the first one, `off` if they are disabled.";
    DayStartName = "DayStart", "23:00", "The time at which the next day begins in charts.";
    DeletedKind = "DeletedKind", "session", "The kind of something deleted.";
    FeedbackState = "FeedbackState", "open", "The progress of the staff with feedback.";
    Gender = "Gender", "female", "The gender of a user.";
    NotificationKind = "NotificationKind", "activity", "The kind of a notification.";
    WebhookKind = "WebhookKind", "order.credited", "The kind of an event.";
    WebhookState = "WebhookState", "delivered", "The state of an event.";
    PushService = "PushService", "apns", "A push service.";
    IdentityProvider = "IdentityProvider", "apple", "A service at which users have an identity.";
    SnapshotProperty = "SnapshotProperty", "method", "The property by which deleted castings are counted.";
    ledger::EntryKind = "EntryKind", "topup", "The reason for a ledger entry.";
    LedgerState = "LedgerState", "consistent", "State of the ledger: `unverified` until the first verification.";
    LocaleName = "Locale", "zh", "A language.";
    ReviewState = "ReviewState", "waiting", "The state of a text in review.";
    Method = "CastingMethod", "numbers", "The method of casting.";
    ChannelName = "PaymentChannel", "alipay", "A way to pay.";
    OrderState = "OrderState", "credited", "State of an order.";
    PurchaseEnvironment = "PurchaseEnvironment", "production", "The environment of a purchase. Those in the `sandbox` cost nothing.";
    PurchaseState = "PurchaseState", "credited", "State of a purchase in an app store.";
    PurchaseStore = "PurchaseStore", "apple", "An app store.";
    RefundState = "RefundState", "succeeded", "State of a refund.";
    SelectionRuleName = "SelectionRule", "one_changing", "The rule of 朱熹, named after the number of changing lines.";
    Service = "ModerationService", "local", "The service that screens texts.";
    CallStatus = "CallStatus", "succeeded", "Outcome of a model call: `cancelled` if the client disconnected, `interrupted` if the service stopped.";
    SelectedPartName = "SelectedPart", "line", "The part of a hexagram's text; `all_lines` is 用九 or 用六.";
    TradeStatus = "TradeStatus", "TRADE_SUCCESS", "State of a trade, as named by the provider.";
    SuspensionScope = "SuspensionScope", "account", "The part of the service that a suspension concerns: the account, changes of the nickname, or nothing but a review of every text.";
    SuspensionSource = "SuspensionSource", "staff", "The author of a suspension.";
    UserState = "UserState", "active", "The state of a user.";
    SettlementEffect = "Verdict", "credited", "Outcome of a callback.";
    ChineseScriptName = "ChineseScript", "traditional", "A script of Chinese.";
    ContentTypeName = "ContentType", "question", "The use of a text.";
    SeverityName = "Severity", "medium", "The severity of a listed word.";
    MatchWayName = "MatchWay", "exact", "The way in which a listed word was found, the most certain first.";
    Decision = "OrderDecision", "credit", "The decision about an order that needs a person.";
    DocumentAudience = "DocumentAudience", "app", "The readers of an API document.";
    FigureGrouping = "FigureGrouping", "day", "The length of the periods that figures are counted by.";
    LogLevel = "LogLevel", "warn", "The severity of a log line.";
    PayerClientKind = "PayerClient", "app", "The kind of program in which the buyer pays.";
    ProofKind = "ProofProvider", "apple", "The issuer of a proof of identity.";
    Purpose = "CodePurpose", "sign_in", "The purpose of a verification code.";
    ReviewDecision = "ReviewDecision", "acquit", "The decision about a text in review.";
    Role = "AdminRole", "support", "The role of an administrator.";
    Theme = "CardTheme", "auto", "The colours of a picture.";
}
