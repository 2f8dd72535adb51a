//! Enumerations in responses. Each is a component of the API document.

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use super::schemas::one_of_names;
use crate::http::params::AudienceName;
use crate::{
    domain::{
        divination::{
            chart::{DayStart, SelectedPart, SelectionRule},
            model_calls::CallStatus,
            sessions::{Method, snapshot::SnapshotProperty},
        },
        identity::{
            directory::UserState, identities::IdentityProvider, preferences::NotificationKind,
            suspensions::SuspensionSource, users::Gender,
        },
        messaging::feedback::FeedbackState,
        moderation::{
            engine::{ContentType, MatchWay, Severity},
            policy::Service,
            reviews::ReviewState,
        },
        money::{
            ledger::{self, Asset},
            payments::{bills::BillDifferenceCode, refunds::RefundState, settle::SettlementEffect},
            purchases::purchase::{PurchaseEnvironment, PurchaseState, PurchaseStore},
        },
        operations::{
            deletions::DeletedKind,
            health::{BackupState, LedgerState},
            webhook_outbox::{WebhookKind, WebhookState},
        },
    },
    providers::{
        payment::{OrderState, TradeStatus},
        push::PushService,
    },
    types::{Locale, SuspensionScope},
};

// Stand for enumerations of another crate in the schemas of fields.
pub struct ContentTypeName;
pub struct SeverityName;
pub struct MatchWayName;

macro_rules! enumerations {
    ($($values:ty = $name:literal, $example:literal, $description:literal;)*) => {
        $(enumeration! { $values, $values = $name, $example, $description })*
    };
}

macro_rules! enumeration {
    ($described:ty, $values:ty = $name:literal, $example:literal, $description:literal) => {
        impl ToSchema for $described {
            fn name() -> Cow<'static, str> {
                $name.into()
            }
        }

        impl PartialSchema for $described {
            fn schema() -> RefOr<Schema> {
                let names = <$values>::ALL.map(<$values>::name).into();
                Schema::from(one_of_names($description, names, $example)).into()
            }
        }
    };
}

enumerations! {
    Asset = "Asset", "coin", "The counted unit.";
    AudienceName = "Audience", "all", "The recipients of a notification.";
    BillDifferenceCode = "BillDifferenceCode", "not_in_bill", "A difference between a bill and our records.";
    BackupState = "BackupState", "current", "State of the backups: `none` before the first one, `off` if they are disabled.";
    DayStart = "DayStart", "23:00", "The time at which the next day begins in charts.";
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
    Locale = "Locale", "zh", "A language.";
    ReviewState = "ReviewState", "waiting", "The state of a text in review.";
    Method = "CastingMethod", "numbers", "The method of casting.";
    OrderState = "OrderState", "credited", "State of an order.";
    PurchaseEnvironment = "PurchaseEnvironment", "production", "The environment of a purchase. Those in the `sandbox` cost nothing.";
    PurchaseState = "PurchaseState", "credited", "State of a purchase in an app store.";
    PurchaseStore = "PurchaseStore", "apple", "An app store.";
    RefundState = "RefundState", "succeeded", "State of a refund.";
    SelectionRule = "SelectionRule", "one_changing", "The rule of 朱熹, named after the number of changing lines.";
    Service = "ModerationService", "local", "The service that screens texts.";
    CallStatus = "CallStatus", "succeeded", "Outcome of a model call: `cancelled` if the client disconnected, `interrupted` if the service stopped.";
    SelectedPart = "SelectedPart", "line", "The part of a hexagram's text; `all_lines` is 用九 or 用六.";
    TradeStatus = "TradeStatus", "TRADE_SUCCESS", "State of a trade, as named by the provider.";
    SuspensionScope = "SuspensionScope", "account", "The part of the service that a suspension concerns: the account, changes of the nickname, or nothing but a review of every text.";
    SuspensionSource = "SuspensionSource", "staff", "The author of a suspension.";
    UserState = "UserState", "active", "The state of a user.";
    SettlementEffect = "Verdict", "credited", "Outcome of a callback.";
}

enumeration! { ContentTypeName, ContentType = "ContentType", "question", "The use of a text." }
enumeration! { SeverityName, Severity = "Severity", "medium", "The severity of a listed word." }
enumeration! { MatchWayName, MatchWay = "MatchWay", "exact", "The way in which a listed word was found, the most certain first." }
