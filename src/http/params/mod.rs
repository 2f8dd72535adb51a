//! Typed parameters, read from path, query, form or JSON body, with all faults reported at once.
//!
//! An endpoint declares its parameters with [`parameters!`], which expands to a struct and its [`Parameters::read`].
//! The API document comes from the same declaration: [`Fields`] either reads the fields or records their descriptions.
//! Fields that are not declared are ignored.

mod cross_field;
mod declare;
mod fields;
mod object;
mod raw_value;
mod reader;
mod values;

use axum::http::HeaderMap;
use serde_json::Value;

use crate::{
    clock::Clock,
    config::{Config, LimitsConfig},
    error::{Fault, Result},
    http::{body::RawValue, request_context::RequestContext},
    types::{Date, PhoneRules},
};

pub use cross_field::{MaybeInvalid, TimeRange, optional_time_range, reason_of_admin, required_time_range};
pub(crate) use declare::parameters;
pub use fields::Fields;
pub use object::{member, object};
pub use raw_value::{half_pair, is_absent, required, text};
pub use reader::Reader;
pub use values::{
    AiResult, AudienceName, Birthday, CallChoice, Clearable, ClientTimestamp, Content, Credential, DaysToKeep,
    DeviceId, DeviceName, DivinationData, DocumentAudience, EmailCode, FOREIGN_PAGES, FeedbackText, FileName, Flag,
    JsonData, Label, ListedWord, LocalRecordId, Moment, Nickname, NotificationText, NotificationTitle, PageNumber,
    PageSize, PayerClientKind, ProofKind, Question, RatingNote, Reason, RowNumber, SearchText, SessionNote,
    SessionTitle, Signature, StaffNoteText, TraceId, UserQuery, VerificationCode, WordType, page, whole_number,
};

/// The request and the configuration that values are read against.
pub struct Rules<'app> {
    pub context: &'app RequestContext,
    pub config: &'app Config,
    pub phone: &'app PhoneRules,
    pub headers: &'app HeaderMap,
    pub clock: &'app Clock,
}

impl<'app> Rules<'app> {
    fn of(context: &'app RequestContext) -> Self {
        let app = &context.app;
        Self {
            context,
            config: &app.core.config,
            phone: &app.core.phone_rules,
            headers: &context.headers,
            clock: &app.core.clock,
        }
    }

    fn limits(&self) -> &LimitsConfig {
        &self.config.limits
    }

    /// Returns the current date in the configured time zone.
    pub fn today(&self) -> Date {
        self.limits().time_zone.today(self.clock.now())
    }
}

/// A type that a parameter can have.
pub trait Parameter: Sized {
    /// True if an empty text is a value of its own and not a missing one.
    const EMPTY_IS_A_VALUE: bool = false;

    /// True if the words `null` and `undefined` are values. Apps send them for a variable that is not set, so that they
    /// mean a missing value for everything but free texts.
    const MAY_BE_NULL_WORD: bool = false;

    /// True if blanks may be part of any value. A list of these in one text is ambiguous if only blanks separate it.
    const MAY_CONTAIN_BLANKS: bool = false;

    /// The least and the most items of a list of these. By default any number up to the limit of batches.
    const LIST_LENGTH: Option<(usize, usize)> = None;

    /// Names that other APIs use for this parameter. They are rejected: a list that ignored them would return the first page
    /// for ever.
    const FOREIGN_NAMES: &[&str] = &[];

    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault>;

    /// Returns true if two values mean the same, so that sending both is no conflict.
    fn is_same(one: &RawValue<'_>, other: &RawValue<'_>, _: &Rules<'_>) -> bool {
        raw_value::is_same(one, other)
    }

    /// Returns the JSON Schema, with an example.
    fn schema(limits: &LimitsConfig) -> Value;
}

/// A JSON object in a list, whose members are validated one by one.
pub trait ObjectParameter: Sized {
    /// # Errors
    /// Each invalid member and its fault. An empty name stands for the whole object.
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Vec<(&'static str, Fault)>>;

    /// Returns the JSON Schema, with an example.
    fn schema(limits: &LimitsConfig) -> Value;
}

/// A parameter in the API document.
pub struct ParameterDescription {
    pub name: &'static str,
    pub description: &'static str,
    pub location: Location,
    pub is_required: bool,
    /// True for an optional field without which the example would be refused or make no sense.
    pub is_usual: bool,
    pub schema: fn(&LimitsConfig) -> Value,
}

impl ParameterDescription {
    pub fn required<T: Parameter>(name: &'static str, description: &'static str) -> Self {
        Self { is_required: true, ..Self::optional::<T>(name, description) }
    }

    pub fn optional<T: Parameter>(name: &'static str, description: &'static str) -> Self {
        Self { name, description, location: Location::Anywhere, is_required: false, is_usual: false, schema: T::schema }
    }

    pub fn is_in_example(&self) -> bool {
        self.is_required || self.is_usual
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    Path,
    /// Query string, form or JSON body.
    Anywhere,
}

/// The way an endpoint reads its request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyShape {
    /// A form or JSON object of named parameters.
    Named,
    /// The same, or a bare JSON array that becomes the list of this name.
    NamedOrItems(&'static str),
    /// Unparsed: the operation reads the bytes.
    Raw,
}

/// All parameters of an endpoint.
pub trait Parameters: Sized + Send + 'static {
    const BODY: BodyShape = BodyShape::Named;

    /// Reads all fields, and only then returns `None` if one of them is invalid.
    fn read(fields: &mut Fields<'_, '_>) -> Option<Self>;

    /// Returns the fields that [`Self::read`] declares.
    fn describe() -> Vec<ParameterDescription> {
        let mut fields = Fields::Describe(Vec::new());
        drop(Self::read(&mut fields));
        match fields {
            Fields::Describe(descriptions) => descriptions,
            Fields::Read(_) => Vec::new(),
        }
    }
}

/// The parameters of an endpoint that has none and ignores any that are sent.
pub struct Nothing;

impl Parameters for Nothing {
    fn read(_: &mut Fields<'_, '_>) -> Option<Self> {
        Some(Self)
    }
}

/// The parameters of an endpoint that rejects any. Used where a request destroys data and must not be misunderstood.
pub struct RejectParams;

impl Parameters for RejectParams {
    fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        fields.reject_all();
        Some(Self)
    }
}
