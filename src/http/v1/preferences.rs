//! `/api/v1/preferences`: the caller's notification kinds, language, time zone, quiet hours and day rule.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::{
        divination::chart::DayStart,
        identity::preferences::{self, NotificationKind},
    },
    error::{Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        openapi::{
            document::object,
            enums::{ChineseScriptName, DayStartName, LocaleName},
            schemas::enumerated,
        },
        params::{JsonData, Nothing, Parameter, Rules, parameters, text},
        reply::Json,
        request_context::RequestContext,
    },
    types::{ChineseScript, LanguageTag, Locale, QuietHours, TimeZone, Timestamp},
};

parameters! {
    ChangePreferencesParams(fields) {
        locale: Option<Revocable<NamedLocale>> = fields.optional("locale", "The language of messages. An empty text resets it. `zh-TW`, `zh-HK` and `zh-Hant` also choose the traditional script, `zh-CN` and `zh-Hans` the simplified one.");
        script: Option<Revocable<ChineseScript>> = fields.optional("script", "The script of readings, pictures and messages in Chinese: `simplified` or `traditional`. An empty text resets it; `Accept-Language` (`zh-TW`, `zh-HK`, `zh-Hant`) then decides.");
        time_zone: Option<Revocable<TimeZone>> = fields.optional("timeZone", "Time zone: an IANA name, or an offset such as `+08:00`. An empty text resets it.");
        day_start: Option<DayStart> = fields.optional("dayStart", "The time at which the next day begins in charts of new castings: `23:00` or `00:00`.");
        quiet_hours: Option<Revocable<QuietHours>> = fields.optional("quietHours", "Hours of the day without pushes, in the time zone: `22:00-08:00`. An empty text resets them.");
        switches: Switches = {
            let switches_sent = fields.optional("notifications", "Kinds of notification to switch on or off. `system` is always on.");
            fields.cross_field(switches_sent, switches)
        };
    }
}

/// The caller's preferences.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Preferences)]
pub struct PreferencesResponse {
    notifications: NotificationSwitches,
    /// Null if never set; `Accept-Language` applies then.
    #[schema(value_type = Option<LocaleName>)]
    locale: Option<&'static str>,
    /// The script of texts in Chinese. Absent if never set; `Accept-Language` applies then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ChineseScriptName, nullable = false)]
    script: Option<&'static str>,
    #[schema(example = "Asia/Shanghai")]
    time_zone: Option<String>,
    #[schema(value_type = DayStartName)]
    day_start: &'static str,
    /// Hours of the day without pushes, in the time zone. Null if there are none.
    #[schema(example = "22:00-08:00")]
    quiet_hours: Option<String>,
    /// Null if the caller never changed a preference.
    updated_at: Option<Timestamp>,
}

/// The kinds of notification that are shown and counted.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "one field for each kind of notification")]
pub struct NotificationSwitches {
    /// Notifications about the service. Cannot be switched off.
    #[schema(example = true)]
    system: bool,
    /// Notifications about the caller's account.
    #[schema(example = true)]
    account: bool,
    /// Events and news.
    #[schema(example = true)]
    activity: bool,
    /// Promotions.
    #[schema(example = false)]
    promotion: bool,
}

impl From<preferences::Preferences> for PreferencesResponse {
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
            script: found.script.map(ChineseScript::name),
            time_zone: found.time_zone.map(|zone| zone.to_string()),
            day_start: found.day_start.name(),
            quiet_hours: found.quiet_hours.map(|hours| hours.to_string()),
            updated_at: found.updated_at,
        }
    }
}

pub async fn find(context: RequestContext, _: Nothing) -> Result<Json<PreferencesResponse>> {
    Ok(Json(preferences::find(&context.app.core, context.user()?)?.into()))
}

pub async fn change(context: RequestContext, change: ChangePreferencesParams) -> Result<Json<PreferencesResponse>> {
    let Switches { account, activity, promotion } = change.switches;
    let locale = change.locale.map(|Revocable(locale)| locale);
    let named_script = locale.flatten().and_then(|named| named.script);
    let change = preferences::PreferencesChange {
        account,
        activity,
        promotion,
        locale: locale.map(|named| named.map(|named| named.locale)),
        script: change.script.map(|Revocable(script)| script).or(named_script.map(Some)),
        time_zone: change.time_zone.map(|Revocable(zone)| zone),
        day_start: change.day_start,
        quiet_hours: change.quiet_hours.map(|Revocable(hours)| hours),
    };
    let pending = preferences::change(&context.app.core, context.user()?, change);
    Ok(Json(context.committed(pending).await?.into()))
}

/// Kinds to switch on or off; the others stay.
#[derive(Default)]
pub struct Switches {
    account: Option<bool>,
    activity: Option<bool>,
    promotion: Option<bool>,
}

/// Notification switches as sent.
pub struct RawSwitches(BTreeMap<String, Value>);

/// Returns the changes if all of them are valid.
fn switches(_: &Rules<'_>, sent: Option<RawSwitches>) -> Result<Switches> {
    let (mut switches, mut faults) = (Switches::default(), Vec::new());
    for (name, value) in sent.map(|RawSwitches(sent)| sent).unwrap_or_default() {
        let outcome = match (NotificationKind::from_name(&name), value.as_bool()) {
            (None, _) => {
                Err(Fault::new(FieldCode::UnknownValue, ("must be a kind of notification", "须为一种通知类型")))
            }
            (Some(_), None) => Err(Fault::new(FieldCode::InvalidType, ("must be true or false", "须为 true 或 false"))),
            (Some(NotificationKind::System), Some(false)) => {
                Err(Fault::new(FieldCode::Rejected, ("system notices cannot be switched off", "系统通知不能关闭")))
            }
            (Some(kind), Some(is_on)) => {
                switches.set(kind, is_on);
                Ok(())
            }
        };
        faults.extend(outcome.err().map(|fault| fault.in_field(&format!("notifications.{name}"))));
    }
    if faults.is_empty() { Ok(switches) } else { Err(Error::fields(faults)) }
}

impl Switches {
    fn set(&mut self, kind: NotificationKind, is_on: bool) {
        match kind {
            // Always on.
            NotificationKind::System => {}
            NotificationKind::Account => self.account = Some(is_on),
            NotificationKind::Activity => self.activity = Some(is_on),
            NotificationKind::Promotion => self.promotion = Some(is_on),
        }
    }
}

impl Parameter for RawSwitches {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let JsonData(json) = JsonData::read(value, rules)?;
        let switches: BTreeMap<_, _> = serde_json::from_str(&json.content()).map_err(|_| {
            Fault::new(
                FieldCode::InvalidFormat,
                ("must be an object of kinds, each true or false", "须为对象，每种类型为 true 或 false"),
            )
        })?;
        let most = rules.config.limits.batch as usize;
        if switches.len() > most {
            return Err(Fault::new(
                FieldCode::TooMany,
                (format!("must have at most {most} kinds"), format!("最多 {most} 种类型")),
            ));
        }
        Ok(Self(switches))
    }

    fn schema(_: &LimitsConfig) -> Value {
        let properties = object(
            &mut NotificationKind::ALL.iter().map(|kind| (kind.name().to_owned(), json!({ "type": "boolean" }))),
        );
        json!({ "properties": properties, "additionalProperties": false, "example": { "promotion": false } })
    }
}

/// A value, or an empty text to reset it.
pub struct Revocable<T>(Option<T>);

impl<T: Parameter> Parameter for Revocable<T> {
    const EMPTY_IS_A_VALUE: bool = true;

    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        if text(value)?.trim().is_empty() {
            return Ok(Self(None));
        }
        T::read(value, rules).map(|chosen| Self(Some(chosen)))
    }

    fn schema(limits: &LimitsConfig) -> Value {
        T::schema(limits)
    }
}

impl Parameter for QuietHours {
    const MAY_CONTAIN_BLANKS: bool = true;

    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let fault = |()| {
            Fault::new(
                FieldCode::InvalidFormat,
                ("must be two different times, such as 22:00-08:00", "必须是两个不同的时刻，例如 22:00-08:00"),
            )
        };
        text(value)?.parse().map_err(fault)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "example": "22:00-08:00" })
    }
}

/// A language as a client names it: `zh`, `zh-TW`, `en_GB`.
#[derive(Clone, Copy)]
pub struct NamedLocale {
    pub locale: Locale,
    /// The script that the tag implies.
    pub script: Option<ChineseScript>,
}

impl Parameter for NamedLocale {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let tag = text(value)?;
        let name = tag.trim().to_ascii_lowercase();
        // A regional variant selects its language: `zh-CN`, `en_GB`.
        let (language, variant) = name.split_once(['-', '_']).unwrap_or((&name, ""));
        let fault = || Fault::new(FieldCode::UnknownValue, ("must be zh or en", "须为 zh 或 en"));
        let locale = Locale::from_name(language).ok_or_else(fault)?;
        let script = match (locale, LanguageTag::parse(&tag).is_traditional) {
            (Locale::English, _) => None,
            (Locale::Chinese, true) => Some(ChineseScript::Traditional),
            (Locale::Chinese, false) => (!variant.is_empty()).then_some(ChineseScript::Simplified),
        };
        Ok(Self { locale, script })
    }

    fn schema(_: &LimitsConfig) -> Value {
        enumerated("Locale", "zh")
    }
}

impl Parameter for ChineseScript {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let fault = || {
            Fault::new(FieldCode::UnknownValue, ("must be simplified or traditional", "须为 simplified 或 traditional"))
        };
        Self::from_name(text(value)?.trim()).ok_or_else(fault)
    }

    fn schema(_: &LimitsConfig) -> Value {
        enumerated("ChineseScript", "traditional")
    }
}
