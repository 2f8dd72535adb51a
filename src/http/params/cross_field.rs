//! Fields that depend on each other and occur in more than one endpoint.

use serde_json::Value;

use super::{Fields, Moment, Parameter, Reason, Rules, raw_value::required, text};
use crate::{
    config::LimitsConfig,
    error::{Error, Fault, Result},
    http::body::RawValue,
    types::{self, TimeInput, Timestamp},
};

/// A value whose fault counts only in some combinations with other fields.
pub struct MaybeInvalid<T>(pub Result<T, Fault>);

impl<T: Parameter> Parameter for MaybeInvalid<T> {
    const EMPTY_IS_A_VALUE: bool = T::EMPTY_IS_A_VALUE;
    const MAY_BE_NULL_WORD: bool = T::MAY_BE_NULL_WORD;

    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        Ok(Self(T::read(value, rules)))
    }

    fn schema(limits: &LimitsConfig) -> Value {
        T::schema(limits)
    }
}

/// A half-open time range, unbounded where `start` or `end` is missing.
#[derive(Clone, Copy)]
pub struct TimeRange {
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
}

impl TimeRange {
    pub fn from(&self) -> Timestamp {
        self.start.unwrap_or(Timestamp(0))
    }

    pub fn to(&self) -> Timestamp {
        self.end.unwrap_or(Timestamp(i64::MAX))
    }
}

/// Reads `startTime` and `endTime`, both of which may be missing.
pub fn optional_time_range(
    fields: &mut Fields<'_, '_>,
    start_description: &'static str,
    end_description: &'static str,
) -> Option<TimeRange> {
    let start = fields.optional("startTime", start_description);
    let end = fields.optional("endTime", end_description);
    fields.cross_field(start.zip(end), |rules, (start, end)| time_range(rules, start, end))
}

/// Reads `startTime` and `endTime`, both required.
pub fn required_time_range(
    fields: &mut Fields<'_, '_>,
    start_description: &'static str,
    end_description: &'static str,
) -> Option<TimeRange> {
    let start = fields.required("startTime", start_description);
    let end = fields.required("endTime", end_description);
    fields.cross_field(start.zip(end), |rules, (start, end)| time_range(rules, Some(start), Some(end)))
}

/// Start or end of a time range.
struct TimeBound(TimeInput);

impl Parameter for TimeBound {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let bound = TimeInput::parse(&text(value)?)?;
        bound.in_zone(&rules.config.limits.time_zone)?;
        Ok(Self(bound))
    }

    fn schema(limits: &LimitsConfig) -> Value {
        Moment::schema(limits)
    }
}

fn time_range(rules: &Rules<'_>, start: Option<TimeBound>, end: Option<TimeBound>) -> Result<TimeRange> {
    let [start, end] = [start, end].map(|bound| bound.map(|TimeBound(time)| time));
    let (start, end) = types::time_range(("startTime", start), ("endTime", end), &rules.config.limits.time_zone)?;
    Ok(TimeRange { start, end })
}

/// Reads `reason`, which only administrators must give.
#[expect(clippy::option_option, reason = "the outer one is a fault, the inner one an optional value")]
pub fn reason_of_admin(fields: &mut Fields<'_, '_>) -> Option<Option<Reason>> {
    let reason = fields.optional("reason", "The reason. Required for administrators.");
    fields.cross_field(reason, |rules, reason| {
        if rules.context.is_admin() && reason.is_none() {
            return Err(Error::field("reason", required()));
        }
        Ok(reason)
    })
}
