//! Values of answers that are one of a few words: each kind a component of the API document.

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use super::schemas::one_of_names;
use crate::http::params::AudienceName;
use crate::{
    domain::{
        divination::{model_calls::CallStatus, sessions::Method},
        identity::{preferences::NotificationKind, users::Gender},
        moderation::{engine::ContentType, policy::Service},
        money::{
            ledger::{self, Asset},
            payments::{refunds::Progress, settle::Verdict},
        },
        operations::health::{BackupState, LedgerState},
    },
    providers::payment::{OrderState, TradeStatus},
    types::Locale,
};

macro_rules! vocabulary {
    ($($values:ty = $name:literal, $example:literal, $meaning:literal;)*) => {$(
        impl ToSchema for $values {
            fn name() -> Cow<'static, str> {
                $name.into()
            }
        }

        impl PartialSchema for $values {
            fn schema() -> RefOr<Schema> {
                Schema::from(one_of_names($meaning, Self::ALL.map(Self::name).into(), $example)).into()
            }
        }
    )*};
}

vocabulary! {
    Asset = "Asset", "coin", "What is counted.";
    AudienceName = "Audience", "all", "Whom a notification is for.";
    BackupState = "BackupState", "current", "What is known of the backups; `none` before the first one, `off` if none are made.";
    ContentType = "ContentType", "question", "What a text is for.";
    Gender = "Gender", "female", "What a user says of themselves.";
    NotificationKind = "NotificationKind", "activity", "What a notification is about.";
    ledger::Kind = "EntryKind", "topup", "Why a balance changed.";
    LedgerState = "LedgerState", "consistent", "What is known of the ledger; `unverified` until the first verification.";
    Locale = "Locale", "zh", "A language.";
    Method = "CastingMethod", "three_coins", "How the lines came to be.";
    OrderState = "OrderState", "credited", "Where an order stands.";
    Progress = "RefundState", "succeeded", "How far a refund came.";
    Service = "ModerationService", "local", "Who decides about texts.";
    CallStatus = "CallStatus", "succeeded", "What became of a model call: `cancelled` if the client left, `interrupted` if the service stopped.";
    TradeStatus = "TradeStatus", "TRADE_SUCCESS", "Where a trade stands, in the provider's words.";
    Verdict = "Verdict", "credited", "What a report of the provider led to.";
}
