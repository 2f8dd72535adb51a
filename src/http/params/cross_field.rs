//! What parameters amount to together, where more than one endpoint asks for it.

use serde_json::Value;

use super::{Moment, Parameter, Reason, Rules, raw_value::required};
use crate::{
    config::Limits,
    error::{Error, Fault, Result},
    http::body::Given,
    types::{Timestamp, in_order},
};

/// A value that may be bad, for whoever makes something of it to report or to pass over: that depends on others.
pub struct Tried<T>(pub Result<T, Fault>);

impl<T: Parameter> Parameter for Tried<T> {
    const EMPTY_IS_A_VALUE: bool = T::EMPTY_IS_A_VALUE;

    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        Ok(Self(T::read(given, rules)))
    }

    fn schema(limits: &Limits) -> Value {
        T::schema(limits)
    }
}

/// A half-open time, without a beginning or an end where none is said.
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

/// `startTime` and `endTime`.
///
/// # Errors
/// `invalid_parameters` if it ends before it begins.
pub fn time_range(
    _: &Rules<'_>,
    start: impl Into<Option<Moment>>,
    end: impl Into<Option<Moment>>,
) -> Result<TimeRange> {
    let time = |moment: Option<Moment>| moment.map(|Moment(time)| time);
    let range = TimeRange { start: time(start.into()), end: time(end.into()) };
    in_order(("startTime", range.from()), ("endTime", range.to()))?;
    Ok(range)
}

/// `reason`, which an administrator must give for what users may do without one.
///
/// # Errors
/// `invalid_parameters` if an administrator gives none.
pub fn reason_of_admin(rules: &Rules<'_>, reason: Option<Reason>) -> Result<Option<Reason>> {
    if rules.call.is_admin() && reason.is_none() {
        return Err(Error::field("reason", required()));
    }
    Ok(reason)
}
