//! The time and place of a casting, as clients send them.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    body::RawValue,
    params::{Fields, MaybeInvalid, Parameter, Rules, text},
};
use crate::{
    config::LimitsConfig,
    domain::{
        divination::chart::{CastTime, DayStart},
        identity::preferences::{self, Preferences},
    },
    error::{Error, Fault, FieldCode, Result},
    types::{TimeInput, TimeZone, Timestamp, clean},
};

/// Characters in the name of a time zone.
const TIME_ZONE: usize = 64;
/// Maximum lead of a client's clock over the service's.
const AHEAD: Duration = Duration::from_hours(24);

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

/// Reads `castAt` and `timeZone`. The zone and the day rule default to the user's preferences.
pub fn cast_moment(fields: &mut Fields<'_, '_>, cast_at_description: &'static str) -> Option<CastMoment> {
    let cast_at = fields.optional("castAt", cast_at_description);
    let time_zone = fields.optional(
        "timeZone",
        "Time zone of the user: an IANA name, or an offset such as `+08:00`. Default: the preference.",
    );
    fields.cross_field(cast_at.zip(time_zone), read)
}

fn read(
    rules: &Rules<'_>,
    (cast_at, time_zone): (Option<MaybeInvalid<CastAt>>, Option<MaybeInvalid<TimeZone>>),
) -> Result<CastMoment> {
    let Preferences { time_zone: preferred, day_start, .. } =
        preferences::find(&rules.context.app.core, rules.context.user()?)?;
    let home = || preferred.unwrap_or_else(|| rules.config.limits.time_zone.clone());
    let (time_zone, no_zone) = match time_zone.map(|MaybeInvalid(zone)| zone) {
        Some(Ok(zone)) => (zone, None),
        // Any zone will do to see whether the time is a fault, too.
        Some(Err(fault)) => (home(), Some(fault.in_field("timeZone"))),
        None => (home(), None),
    };
    let in_zone =
        |MaybeInvalid(cast_at): MaybeInvalid<CastAt>| near(cast_at?.0.in_zone(&time_zone)?, rules.clock.now());
    match (cast_at.map(in_zone).transpose(), no_zone) {
        (Ok(cast_at), None) => Ok(CastMoment { cast_at, time_zone, day_start }),
        (cast_at, no_zone) => {
            let no_time = cast_at.err().map(|fault| fault.in_field("castAt"));
            Err(Error::fields(no_time.into_iter().chain(no_zone).collect()))
        }
    }
}

fn near(at: Timestamp, now: Timestamp) -> Result<Timestamp, Fault> {
    if (Timestamp(0)..=now.plus(AHEAD)).contains(&at) {
        return Ok(at);
    }
    Err(Fault::new(FieldCode::OutOfRange, ("must be from 1970 to a day from now", "须在 1970 年到一天之后之间")))
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
