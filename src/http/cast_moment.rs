//! The time and place of a casting, as clients send them.

use serde_json::{Value, json};

use super::{
    body::RawValue,
    params::{Fields, MaybeInvalid, Parameter, Rules, text},
};
use crate::{
    config::LimitsConfig,
    domain::{
        divination::chart::{Branch, CALENDAR_YEARS, CalendarMoment, CastTime, DayStart, StemBranch},
        identity::preferences::{self, Preferences},
    },
    error::{Error, Fault, FieldCode, Result},
    types::{TimeInput, TimeZone, Timestamp, clean},
};

/// Characters in the name of a time zone.
const TIME_ZONE: usize = 64;
/// Characters of a month and a day, with spaces.
const PILLARS: usize = 16;

/// The time and place of a casting, and the user's day rule.
pub struct CastMoment {
    /// `None` if the client did not send one.
    pub cast_at: Option<Timestamp>,
    pub time_zone: TimeZone,
    pub day_start: DayStart,
}

impl CastMoment {
    /// Returns the time if the client sent one.
    pub fn into_time(self) -> Option<CastTime> {
        Some(CastTime { at: self.cast_at?, zone: self.time_zone, day_start: self.day_start })
    }
}

/// Reads `castAt` or `castPillars`, and `timeZone`. The zone and the day rule default to the user's preferences.
pub fn cast_moment(fields: &mut Fields<'_, '_>, cast_at_description: &'static str) -> Option<CastMoment> {
    let cast_at = fields.optional("castAt", cast_at_description);
    let pillars = fields.optional(
        "castPillars",
        "In place of `castAt`, the branch of the month and the pillar of the day, such as `戌月甲寅日`. `castAt` is then \
         noon of the last such day; year and hour are those of that time.",
    );
    let time_zone = fields.optional(
        "timeZone",
        "Time zone of the user: an IANA name, or an offset such as `+08:00`. Default: the preference.",
    );
    fields.cross_field(cast_at.zip(pillars).zip(time_zone), read)
}

type Times = (Option<MaybeInvalid<CastAt>>, Option<MaybeInvalid<CastPillars>>);

fn read(rules: &Rules<'_>, (times, time_zone): (Times, Option<MaybeInvalid<TimeZone>>)) -> Result<CastMoment> {
    let Preferences { time_zone: preferred, day_start, .. } =
        preferences::find(&rules.context.app.core, rules.context.user()?)?;
    let home = || preferred.unwrap_or_else(|| rules.config.limits.time_zone.clone());
    let (time_zone, no_zone) = match time_zone.map(|MaybeInvalid(zone)| zone) {
        Some(Ok(zone)) => (zone, None),
        // Any zone will do to see whether the time is a fault, too.
        Some(Err(fault)) => (home(), Some(fault.in_field("timeZone"))),
        None => (home(), None),
    };
    let (cast_at, pillars) = times;
    let is_twice = cast_at.is_some() && pillars.is_some();
    let at = cast_at.map(|MaybeInvalid(at)| in_calendar(at?.0.in_zone(&time_zone)?, &time_zone)).transpose();
    let by_pillars = pillars.map(|MaybeInvalid(pillars)| match pillars {
        Ok(_) if is_twice => {
            let both = ("cannot be sent with `castAt`", "不能与 `castAt` 同时发送");
            Err(Fault::new(FieldCode::NotAllowed, both))
        }
        pillars => pillars?.latest_before(rules.clock.now(), &time_zone),
    });
    match (at, by_pillars.transpose(), no_zone) {
        (Ok(at), Ok(by_pillars), None) => Ok(CastMoment { cast_at: at.or(by_pillars), time_zone, day_start }),
        (at, by_pillars, no_zone) => {
            let faults = [
                at.err().map(|fault| fault.in_field("castAt")),
                by_pillars.err().map(|fault| fault.in_field("castPillars")),
            ];
            Err(Error::fields(faults.into_iter().flatten().chain(no_zone).collect()))
        }
    }
}

/// Accepts the years for which there is a calendar.
fn in_calendar(at: Timestamp, zone: &TimeZone) -> Result<Timestamp, Fault> {
    let is_known = zone.local_time(at).is_some_and(|local| CALENDAR_YEARS.contains(&local.date().year()));
    let fault = || Fault::new(FieldCode::OutOfRange, ("must be from 1900 to 2100", "须在 1900 年到 2100 年之间"));
    is_known.then_some(at).ok_or_else(fault)
}

/// The branch of a month and the pillar of a day.
pub struct CastPillars {
    month: Branch,
    day: StemBranch,
}

impl CastPillars {
    fn latest_before(&self, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, Fault> {
        let noon = CalendarMoment::latest_noon(self.month, self.day, zone.today(now), zone.as_jiff());
        let fault = || Fault::new(FieldCode::OutOfRange, ("is no day since 1900", "1900 年以来没有这样的一天"));
        noon.map(|noon| Timestamp(noon.second() * 1000)).ok_or_else(fault)
    }
}

impl Parameter for CastPillars {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let sent = clean(&text(value)?, PILLARS)?;
        let letters: String =
            sent.chars().filter(|letter| !letter.is_whitespace() && !matches!(letter, '月' | '日')).collect();
        let month = letters.chars().next().map(char::len_utf8).and_then(|length| letters.split_at_checked(length));
        let read = month
            .and_then(|(month, day)| Some(Self { month: Branch::from_name(month)?, day: StemBranch::from_name(day)? }));
        let expected = (
            "must be the branch of a month and the pillar of a day, such as 戌月甲寅日",
            "须为月支与日柱，例如 戌月甲寅日",
        );
        read.ok_or_else(|| Fault::new(FieldCode::InvalidFormat, expected))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": PILLARS, "example": "戌月甲寅日" })
    }
}

/// A time that may have to be read in a zone that is not known yet.
pub struct CastAt(TimeInput);

impl Parameter for CastAt {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        TimeInput::parse(&text(value)?).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "example": "2026-01-02T11:04:05+08:00" })
    }
}

impl Parameter for TimeZone {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let name = clean(&text(value)?, TIME_ZONE)?;
        name.parse().map_err(|_| {
            let allowed = (
                "must be a time zone such as Asia/Shanghai (IANA), or an offset such as +08:00",
                "须为 IANA 时区名，例如 Asia/Shanghai，或偏移量，例如 +08:00",
            );
            Fault::new(FieldCode::UnknownValue, allowed)
        })
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": TIME_ZONE, "example": "Asia/Shanghai" })
    }
}
