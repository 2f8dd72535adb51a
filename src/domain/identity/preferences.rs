//! User preferences: the kinds of notification shown, language, time zone, quiet hours and day rule of castings.
//!
//! A user without changes has no row. System notices cannot be switched off.

use serde_json::{Value, json};

use crate::{
    core::Core,
    domain::{divination::chart::DayStart, identity::users},
    error::Result,
    store::{Pending, Read, Row, RowResult, Write},
    types::{ChineseScript, Locale, QuietHours, TimeZone, Timestamp, UserId, named_enum},
};

named_enum! {
    /// The kind of a notification.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum NotificationKind {
        /// About the service: outages, changed terms. Always shown.
        System = "system",
        /// About the user's account: points, invites.
        Account = "account",
        /// Events and news.
        #[default]
        Activity = "activity",
        /// Promotions.
        Promotion = "promotion",
    }
}

/// A user's preferences.
#[derive(Clone, Debug)]
pub struct Preferences {
    pub account: bool,
    pub activity: bool,
    pub promotion: bool,
    pub locale: Option<Locale>,
    /// The script of Chinese texts.
    pub script: Option<ChineseScript>,
    pub time_zone: Option<TimeZone>,
    /// The day rule of new castings.
    pub day_start: DayStart,
    /// Hours without pushes, in the time zone.
    pub quiet_hours: Option<QuietHours>,
    /// `None` if the user has never changed them. Grows with every change, so that other devices notice it.
    pub updated_at: Option<Timestamp>,
}

impl Preferences {
    /// The preferences of a user without a row.
    pub const DEFAULT: Self = Self {
        account: true,
        activity: true,
        promotion: true,
        locale: None,
        script: None,
        time_zone: None,
        day_start: DayStart::At23,
        quiet_hours: None,
        updated_at: None,
    };

    pub const fn shows(&self, kind: NotificationKind) -> bool {
        match kind {
            NotificationKind::System => true,
            NotificationKind::Account => self.account,
            NotificationKind::Activity => self.activity,
            NotificationKind::Promotion => self.promotion,
        }
    }
}

/// The preferences to change; the others stay.
#[derive(Clone, Debug, Default)]
pub struct PreferencesChange {
    pub account: Option<bool>,
    pub activity: Option<bool>,
    pub promotion: Option<bool>,
    /// `Some(None)` resets it.
    pub locale: Option<Option<Locale>>,
    /// `Some(None)` resets it.
    pub script: Option<Option<ChineseScript>>,
    /// `Some(None)` resets it.
    pub time_zone: Option<Option<TimeZone>>,
    pub day_start: Option<DayStart>,
    /// `Some(None)` resets it.
    pub quiet_hours: Option<Option<QuietHours>>,
}

pub fn find(core: &Core, user: UserId) -> Result<Preferences> {
    core.store.read(|tx| find_in(tx, user))
}

/// Changes the given preferences and returns all of them.
pub fn change(core: &Core, user: UserId, change: PreferencesChange) -> Pending<Preferences> {
    core.store.write(move |tx| change_in(tx, user, &change))
}

/// Returns the user's preferred language, or else the requested one.
pub fn locale(core: &Core, user: UserId, requested: Locale) -> Result<Locale> {
    Ok(find(core, user)?.locale.unwrap_or(requested))
}

/// Returns the user's preferred time zone, or else that of the service.
pub fn time_zone(core: &Core, user: UserId) -> Result<TimeZone> {
    Ok(find(core, user)?.time_zone.unwrap_or_else(|| core.config.limits.time_zone.clone()))
}

pub fn find_in(tx: &Read<'_>, user: UserId) -> Result<Preferences> {
    let found = tx.first(
        "select account, activity, promotion, locale, time_zone, day_start, updated_at, quiet_hours, script from preferences \
         where user_id = ?1",
        [user.0],
        preferences_of,
    )?;
    Ok(found.unwrap_or(Preferences::DEFAULT))
}

/// Exports the user's preferences; null if they were never changed.
pub fn export_in(tx: &Read<'_>, user: UserId) -> Result<Value> {
    let chosen = find_in(tx, user)?;
    Ok(chosen.updated_at.map_or(Value::Null, |updated_at| {
        json!({
            "account": chosen.account,
            "activity": chosen.activity,
            "promotion": chosen.promotion,
            "locale": chosen.locale.map(Locale::name),
            "script": chosen.script.map(ChineseScript::name),
            "timeZone": chosen.time_zone.as_ref().map(ToString::to_string),
            "dayStart": chosen.day_start.name(),
            "quietHours": chosen.quiet_hours.map(|hours| hours.to_string()),
            "updatedAt": updated_at,
        })
    }))
}

/// Deletes the user's preferences.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from preferences where user_id = ?1", [user.0]).map(drop)
}

fn change_in(tx: &Write<'_>, user: UserId, change: &PreferencesChange) -> Result<Preferences> {
    users::require_in(tx, user)?;
    tx.one(
        "insert into preferences (user_id, account, activity, promotion, locale, time_zone, day_start, updated_at, \
         quiet_hours, script) \
         values (?1, coalesce(?2, 1), coalesce(?3, 1), coalesce(?4, 1), ?6, ?8, coalesce(?9, ?10), ?11, ?13, ?15) \
         on conflict (user_id) do update set account = coalesce(?2, preferences.account), \
         activity = coalesce(?3, preferences.activity), \
         promotion = coalesce(?4, preferences.promotion), \
         locale = case when ?5 = 1 then ?6 else preferences.locale end, \
         time_zone = case when ?7 = 1 then ?8 else preferences.time_zone end, \
         day_start = coalesce(?9, preferences.day_start), \
         quiet_hours = case when ?12 = 1 then ?13 else preferences.quiet_hours end, \
         script = case when ?14 = 1 then ?15 else preferences.script end, \
         updated_at = case when ?11 > preferences.updated_at then ?11 else preferences.updated_at + 1 end \
         returning account, activity, promotion, locale, time_zone, day_start, updated_at, quiet_hours, script",
        (
            user.0,
            change.account,
            change.activity,
            change.promotion,
            change.locale.is_some(),
            change.locale.flatten().map(Locale::name),
            change.time_zone.is_some(),
            change.time_zone.as_ref().and_then(Option::as_ref).map(ToString::to_string),
            change.day_start.map(DayStart::name),
            Preferences::DEFAULT.day_start.name(),
            tx.now.0,
            change.quiet_hours.is_some(),
            change.quiet_hours.flatten().map(|hours| hours.to_string()),
            change.script.is_some(),
            change.script.flatten().map(ChineseScript::name),
        ),
        preferences_of,
    )
}

fn preferences_of(row: &Row<'_>) -> RowResult<Preferences> {
    let (locale, time_zone): (Option<String>, Option<String>) = (row.get(3)?, row.get(4)?);
    Ok(Preferences {
        account: row.get(0)?,
        activity: row.get(1)?,
        promotion: row.get(2)?,
        locale: locale.and_then(|name| Locale::from_name(&name)),
        time_zone: time_zone.and_then(|name| name.parse().ok()),
        day_start: row.get_parsed(5, DayStart::from_name)?,
        updated_at: Some(Timestamp(row.get(6)?)),
        quiet_hours: row.get::<Option<String>>(7)?.and_then(|text| text.parse().ok()),
        script: row.get::<Option<String>>(8)?.and_then(|name| ChineseScript::from_name(&name)),
    })
}
