//! From values as they came to typed parameters, with every bad one reported at once.
//!
//! An endpoint declares its parameters with [`parameters!`]: name, type, whether it is required, what it means. From
//! the one declaration follow the struct that the handler gets, the reader that fills it and the API document. What
//! is not declared is ignored and binds to nothing.
//!
//! Parameters that must fit each other stand together behind `=> name: Type = make`, and the handler gets what `make`
//! made of them. It is called once all of them could be read, whatever else is wrong with the request, so that a fault
//! between two values is reported beside those of single ones.

mod declare;
mod fields;
mod raw_value;
mod cross_field;
mod values;

use axum::http::HeaderMap;
use serde_json::Value;

use crate::{
    clock::Clock,
    config::{Config, Limits},
    error::{Fault, Result},
    http::{body::Given, request_context::Call},
    types::{Date, PhoneRules},
};

pub use cross_field::{TimeRange, Tried, reason_of_admin, time_range};
pub(crate) use declare::{kind_described, kind_place, kind_read, kind_required, kind_schema, kind_type, parameters};
pub use fields::{Claims, Fields};
pub use raw_value::{half_pair, is_absent, required, text};
pub use values::{
    AiResult, AudienceName, Birthday, ClientTimestamp, Content, Credential, DaysToKeep, DeviceId, DeviceName,
    DivinationData, FeedbackText, FileName, Flag, JsonData, Label, ListedWord, LocalRecordId, Moment, Nickname,
    NotificationText, NotificationTitle, PageNumber, PageSize, Question, Reason, RowNumber, Signature, TraceId,
    VerificationCode, page, whole_number,
};

/// What reading a value depends on.
pub struct Rules<'app> {
    pub call: &'app Call,
    pub config: &'app Config,
    pub phone: &'app PhoneRules,
    pub headers: &'app HeaderMap,
    pub clock: &'app Clock,
}

impl Rules<'_> {
    fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Today, where the service is at home.
    pub fn today(&self) -> Date {
        self.limits().time_zone.today(self.clock.now())
    }
}

/// A type that a parameter can have.
pub trait Parameter: Sized {
    /// Whether an empty text is a value, and not the same as no value.
    const EMPTY_IS_A_VALUE: bool = false;

    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault>;

    /// Whether two values mean the same, so that a name that was given both is no conflict.
    fn is_same(one: &Given<'_>, other: &Given<'_>, _: &Rules<'_>) -> bool {
        raw_value::is_same(one, other)
    }

    /// The JSON Schema, with an example.
    fn schema(limits: &Limits) -> Value;
}

/// An object whose members can be bad one by one.
pub trait Members: Sized {
    /// # Errors
    /// What is wrong with which member; with no name, what is wrong with the whole.
    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Vec<(&'static str, Fault)>>;
}

/// A parameter as the API document describes it.
pub struct Described {
    pub name: &'static str,
    pub meaning: &'static str,
    pub place: Place,
    pub is_required: bool,
    pub schema: fn(&Limits) -> Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Path,
    /// Query string, form or JSON.
    Anywhere,
}

/// How the body of an endpoint is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyShape {
    /// Parameters by name.
    Named,
    /// The same, or else the bare items of the list of this name.
    NamedOrItems(&'static str),
    /// Not here: the operation reads it byte for byte.
    Raw,
}

/// All parameters of an endpoint.
pub trait Parameters: Sized + Send + 'static {
    const BODY: BodyShape = BodyShape::Named;
    /// What [`Self::read`] looks for by name.
    const NAMES: &'static [&'static str] = &[];

    fn read(fields: &mut Fields<'_>) -> Option<Self>;

    fn describe() -> Vec<Described>;
}

/// For endpoints that take nothing.
pub struct Nothing;

impl Parameters for Nothing {
    fn read(_: &mut Fields<'_>) -> Option<Self> {
        Some(Self)
    }

    fn describe() -> Vec<Described> {
        Vec::new()
    }
}

/// For endpoints that take nothing and do what cannot be undone: whoever sends something means something by it that
/// would not be heeded.
pub struct Bare;

impl Parameters for Bare {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        fields.refuse_all();
        Some(Self)
    }

    fn describe() -> Vec<Described> {
        Vec::new()
    }
}
