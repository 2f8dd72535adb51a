//! `/api/v1/preferences`: which notifications the caller wants, the language and the time zone.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::Limits,
    error::{Fault, FieldCode, Result},
    http::{
        body::Given,
        call::Call,
        openapi::object,
        params::{JsonData, Nothing, Parameter, Rules, parameters, text},
        reply::Json,
    },
    ops::preferences::{self, Kind},
    types::{Locale, TimeZone, Timestamp},
};

parameters! {
    Change {
        notifications: optional Switches = "notifications", "Kinds of notification to switch on or off. `system` is always on.";
        locale: optional Revocable<Locale> = "locale", "The language of messages. An empty text takes the choice back.";
        time_zone: optional Revocable<TimeZone> = "timeZone", "A zone of the IANA database. An empty text takes the choice back.";
    }
}

/// What the caller wants.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preferences {
    notifications: NotificationSwitches,
    /// `zh` or `en`; null if the caller never chose, which follows `Accept-Language`.
    #[schema(example = "zh")]
    locale: Option<&'static str>,
    #[schema(example = "Asia/Shanghai")]
    time_zone: Option<String>,
    /// Null if the caller never chose anything.
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:05.678Z")]
    updated_at: Option<Timestamp>,
}

/// Which kinds of notification are shown and counted.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "the switches are the answer")]
pub struct NotificationSwitches {
    /// About the service itself; cannot be switched off.
    #[schema(example = true)]
    system: bool,
    /// About the caller's own account.
    #[schema(example = true)]
    account: bool,
    /// Events and what is new.
    #[schema(example = true)]
    activity: bool,
    /// Offers.
    #[schema(example = false)]
    promotion: bool,
}

impl From<preferences::Preferences> for Preferences {
    fn from(found: preferences::Preferences) -> Self {
        let notifications = NotificationSwitches {
            system: true,
            account: found.account,
            activity: found.activity,
            promotion: found.promotion,
        };
        Self {
            notifications,
            locale: found.locale.map(Locale::name),
            time_zone: found.time_zone.map(|zone| zone.to_string()),
            updated_at: found.updated_at,
        }
    }
}

pub async fn find(call: Call, _: Nothing) -> Result<Json<Preferences>> {
    Ok(Json(preferences::find(&call.app, call.user()?)?.into()))
}

pub async fn change(call: Call, change: Change) -> Result<Json<Preferences>> {
    let Switches { account, activity, promotion } = change.notifications.unwrap_or_default();
    let (locale, time_zone) =
        (change.locale.map(|Revocable(locale)| locale), change.time_zone.map(|Revocable(zone)| zone));
    let change = preferences::Change { account, activity, promotion, locale, time_zone };
    let pending = preferences::change(&call.app, call.user()?, change);
    Ok(Json(call.committed(pending).await?.into()))
}

/// Kinds to switch on or off; the others stay.
#[derive(Default)]
pub struct Switches {
    account: Option<bool>,
    activity: Option<bool>,
    promotion: Option<bool>,
}

impl Parameter for Switches {
    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let JsonData(json) = JsonData::read(given, rules)?;
        let given: BTreeMap<String, bool> = serde_json::from_str(&json.content())
            .map_err(|_| Fault::new(FieldCode::InvalidFormat, "must be an object of kinds, each true or false"))?;
        let mut switches = Self::default();
        for (name, is_on) in given {
            match Kind::named(&name) {
                Some(Kind::System) if is_on => {}
                Some(Kind::System) => {
                    return Err(Fault::new(FieldCode::Rejected, "system notices cannot be switched off"));
                }
                Some(Kind::Account) => switches.account = Some(is_on),
                Some(Kind::Activity) => switches.activity = Some(is_on),
                Some(Kind::Promotion) => switches.promotion = Some(is_on),
                None => return Err(Fault::new(FieldCode::UnknownValue, format!("there is no kind `{name}`"))),
            }
        }
        Ok(switches)
    }

    fn schema(_: &Limits) -> Value {
        let properties =
            object(&mut Kind::ALL.iter().map(|kind| (kind.name().to_owned(), json!({ "type": "boolean" }))));
        json!({ "properties": properties, "additionalProperties": false, "example": { "promotion": false } })
    }
}

/// A choice, or an empty text to take it back.
pub struct Revocable<T>(Option<T>);

impl<T: Parameter> Parameter for Revocable<T> {
    const EMPTY_IS_A_VALUE: bool = true;

    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        if text(given)?.trim().is_empty() {
            return Ok(Self(None));
        }
        T::read(given, rules).map(|chosen| Self(Some(chosen)))
    }

    fn schema(limits: &Limits) -> Value {
        T::schema(limits)
    }
}

impl Parameter for Locale {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let name = text(given)?.trim().to_ascii_lowercase();
        // A regional variant means its language: `zh-CN`, `en_GB`.
        let language = name.split(['-', '_']).next().unwrap_or_default();
        Self::named(language).ok_or_else(|| Fault::new(FieldCode::UnknownValue, "must be zh or en"))
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "example": "zh" })
    }
}
