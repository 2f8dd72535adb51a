//! From values as they came to typed parameters, with every bad one reported at once.
//!
//! An endpoint declares its parameters with [`parameters!`]: name, type, whether it is required, what it means. From
//! the one declaration follow the struct that the handler gets, the reader that fills it and the API document. What
//! is not declared is ignored and binds to nothing.
//!
//! Parameters that must fit each other stand together behind `=> name: Type = make`, and the handler gets what `make`
//! made of them. It is called once all of them could be read, whatever else is wrong with the request, so that a fault
//! between two values is reported beside those of single ones.

mod together;
mod values;

use std::borrow::Cow;

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    clock::Clock,
    config::{Config, Limits},
    error::{Code, Error, Fault, FieldCode, FieldError, Result},
    http::{
        body::{Given, Pair},
        call::Call,
        guard,
    },
    types::{Date, PhoneNumber, PhoneRules, Secret, UserId},
};

pub use together::{TimeRange, Tried, reason_of_admin, time_range};
pub use values::{
    AiResult, Birthday, ClientTimestamp, Content, Credential, DaysToKeep, DeviceId, DeviceName, DivinationData,
    FeedbackText, FileName, Flag, JsonData, Label, ListedWord, LocalRecordId, Moment, Nickname, NotificationText,
    NotificationTitle, PageNumber, PageSize, Question, Reason, RowNumber, Signature, TraceId, VerificationCode, one_of,
    page, whole_number,
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
        is_same(one, other)
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

/// The values of one request, and what was found wrong with them.
pub struct Fields<'request> {
    path: Vec<(String, String)>,
    query: Vec<Pair<'request>>,
    body: Vec<Pair<'request>>,
    rules: Rules<'request>,
    errors: Vec<FieldError>,
    conflict: Option<&'static str>,
    failure: Option<Error>,
}

impl<'request> Fields<'request> {
    pub fn new(
        path: Vec<(String, String)>,
        query: Vec<Pair<'request>>,
        body: Vec<Pair<'request>>,
        rules: Rules<'request>,
    ) -> Self {
        Self { path, query, body, rules, errors: Vec::new(), conflict: None, failure: None }
    }

    /// Reads all parameters.
    ///
    /// # Errors
    /// `conflicting_parameter`, or `invalid_parameters` with every bad field; what kept values from being held against
    /// what is stored.
    pub fn parse<P: Parameters>(mut self) -> Result<P> {
        let parameters = P::read(&mut self);
        if let Some(name) = self.conflict {
            let detail = format!("`{name}` was given twice with different values.");
            return Err(Error::new(Code::ConflictingParameter).detail(detail));
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        match parameters {
            Some(parameters) if self.errors.is_empty() => Ok(parameters),
            _ => Err(Error::fields(self.errors)),
        }
    }

    pub fn rules(&self) -> &Rules<'request> {
        &self.rules
    }

    /// What values amount to together. Nothing, and a note of the faults, if they do not fit each other.
    pub fn made<T>(&mut self, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(made) => Some(made),
            Err(mut error) if error.code == Code::InvalidParameters => {
                self.errors.append(&mut error.fields);
                None
            }
            Err(error) => {
                self.failure.get_or_insert(error);
                None
            }
        }
    }

    /// Notes a fault that is none of a parameter's.
    pub fn note(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    pub fn required<T: Parameter>(&mut self, name: &'static str) -> Option<T> {
        let value = self.optional(name)?;
        if value.is_none() {
            self.errors.push(Fault::new(FieldCode::Required, "is required").in_field(name));
        }
        value
    }

    /// The value if there is one. The outer nothing says that it was bad.
    #[expect(clippy::option_option, reason = "the outer layer says that a fault was noted, as everywhere here")]
    pub fn optional<T: Parameter>(&mut self, name: &'static str) -> Option<Option<T>> {
        match self.single::<T>(name) {
            Some(given) => self.read_one(name, &given).map(Some),
            None => Some(None),
        }
    }

    /// The users whom the request names by names that are not among these.
    pub fn claims_beside(&mut self, declared: &[&str]) -> Vec<Claims> {
        let mut claims = Vec::new();
        for name in ["userId", "user_id"] {
            if self.is_beside(name, declared) {
                claims.push(Claims::of_user(self.optional(name).flatten()));
            }
        }
        for name in ["phoneNumber", "phone_number"] {
            if self.is_beside(name, declared) {
                claims.push(Claims::of_phone(self.optional(name).flatten()));
            }
        }
        claims
    }

    /// Whether a name is given that the endpoint does not look for there.
    fn is_beside(&self, name: &str, declared: &[&str]) -> bool {
        let is_looked_for = declared.contains(&name) && !self.path.iter().any(|(known, _)| known == name);
        !is_looked_for && self.query.iter().chain(&self.body).any(|(known, _)| known == name)
    }

    /// A token that came as a parameter or as the Bearer token.
    pub fn token(&mut self, name: &'static str) -> Option<Secret> {
        let given: Option<Secret> = self.optional(name)?;
        // A header that is no Bearer token is no token either: what that means is for the operation to say.
        let bearer = guard::bearer_token(self.rules.headers).ok().flatten().map(Secret::from_text);
        match (given, bearer) {
            (Some(given), Some(bearer)) if given != bearer => {
                self.conflict.get_or_insert(name);
                None
            }
            (Some(token), _) | (None, Some(token)) => Some(token),
            (None, None) => {
                self.errors.push(Fault::new(FieldCode::Required, "is required").in_field(name));
                None
            }
        }
    }

    /// Notes a fault for a name that must not be given.
    pub fn refuse(&mut self, name: &'static str) {
        let is_given = |given: &Given<'_>| !matches!(given, Given::Json(raw) if raw.get() == "null");
        if self.query.iter().chain(&self.body).any(|(known, given)| known == name && is_given(given)) {
            self.errors.push(Fault::new(FieldCode::NotAllowed, "is not for clients to say").in_field(name));
        }
    }

    /// Notes a fault for everything that is given.
    pub fn refuse_all(&mut self) {
        for (name, _) in self.query.iter().chain(&self.body) {
            self.errors.push(Fault::new(FieldCode::NotAllowed, "is not taken here").in_field(name));
        }
    }

    pub fn in_path<T: Parameter>(&mut self, name: &'static str) -> Option<T> {
        let found = self.path.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        self.read_one(name, &Given::Text(Cow::Owned(found.unwrap_or_default())))
    }

    /// A list: a JSON array, a repeated name or values between commas. Empty if there is none.
    pub fn list<T: Parameter>(&mut self, name: &'static str) -> Option<Vec<T>> {
        let items = self.given_items(name)?;
        items.iter().map(|item| self.read_one(name, item)).collect()
    }

    /// A list of objects, of which there must be one at least. Every bad member is reported, under the number of its
    /// object from 0.
    pub fn objects<T: Members>(&mut self, name: &'static str) -> Option<Vec<T>> {
        let items = self.given_items(name)?;
        if items.is_empty() {
            self.errors.push(Fault::new(FieldCode::Required, "is required").in_field(name));
            return None;
        }
        let read: Vec<_> = items.iter().map(|item| T::read(item, &self.rules)).collect();
        let mut objects = Vec::with_capacity(read.len());
        for (index, outcome) in read.into_iter().enumerate() {
            match outcome {
                Ok(object) => objects.push(object),
                Err(faults) => self.errors.extend(faults.into_iter().map(|(member, fault)| {
                    let separator = if member.is_empty() { "" } else { "." };
                    fault.in_field(&format!("{name}[{index}]{separator}{member}"))
                })),
            }
        }
        (objects.len() == items.len()).then_some(objects)
    }

    fn given_items(&mut self, name: &'static str) -> Option<Vec<Given<'request>>> {
        let from_query = Self::items(name, &self.query)?;
        let from_body = Self::items(name, &self.body)?;
        let items = match (from_query.is_empty(), from_body.is_empty()) {
            (false, false) if texts_of(&from_query) != texts_of(&from_body) => {
                self.conflict.get_or_insert(name);
                return None;
            }
            (_, false) => from_body,
            (_, true) => from_query,
        };
        let most = self.rules.limits().batch as usize;
        if items.len() > most {
            let fault = Fault::new(FieldCode::TooMany, format!("must have at most {most} items"));
            self.errors.push(fault.in_field(name));
            return None;
        }
        Some(items)
    }

    fn read_one<T: Parameter>(&mut self, name: &'static str, given: &Given<'_>) -> Option<T> {
        T::read(given, &self.rules).map_err(|fault| self.errors.push(fault.in_field(name))).ok()
    }

    /// The one value of this name that is not as good as none; notes a conflict if there are several that differ.
    fn single<T: Parameter>(&mut self, name: &'static str) -> Option<Given<'request>> {
        let given = self.query.iter().chain(&self.body).filter(|(known, _)| known == name).map(|(_, given)| given);
        let mut all = given.filter(|given| !is_absent::<T>(given));
        let first = all.next()?.clone();
        if all.any(|other| !T::is_same(other, &first, &self.rules)) {
            self.conflict.get_or_insert(name);
        }
        Some(first)
    }

    fn items(name: &str, pairs: &[Pair<'request>]) -> Option<Vec<Given<'request>>> {
        let mut items = Vec::new();
        for (_, given) in pairs.iter().filter(|(known, _)| known == name) {
            match given {
                Given::Json(raw) if raw.get() == "null" => {}
                Given::Json(raw) if raw.get().starts_with('[') => {
                    let elements: Vec<&'request RawValue> = serde_json::from_str(raw.get()).ok()?;
                    items.extend(elements.into_iter().map(Given::Json));
                }
                given if is_literal(given) => items.push(given.clone()),
                given => match text_of(given) {
                    Some(text) => items.extend(
                        text.split(',')
                            .map(str::trim)
                            .filter(|item| !item.is_empty())
                            .map(|item| Given::Text(Cow::Owned(item.to_owned()))),
                    ),
                    None => items.push(given.clone()),
                },
            }
        }
        Some(items)
    }
}

fn texts_of(items: &[Given<'_>]) -> Vec<Option<String>> {
    items.iter().map(|item| text_of(item).map(Cow::into_owned)).collect()
}

/// Whether two values mean the same wherever they came from: scalars by their text, anything else by its JSON.
fn is_same(one: &Given<'_>, other: &Given<'_>) -> bool {
    match (text_of(one), text_of(other)) {
        (None, None) => matches!((one, other), (Given::Json(one), Given::Json(other)) if one.get() == other.get()),
        (one, other) => one == other,
    }
}

/// Whether this is JSON's `true`, `false` or `null`, which no text and no number is.
fn is_literal(given: &Given<'_>) -> bool {
    matches!(given, Given::Json(raw) if matches!(raw.get(), "true" | "false" | "null"))
}

/// Whether a value is as good as none.
pub fn is_absent<T: Parameter>(given: &Given<'_>) -> bool {
    match given {
        Given::Json(raw) if raw.get() == "null" => true,
        _ if T::EMPTY_IS_A_VALUE => false,
        given => text_of(given).is_some_and(|text| text.trim().is_empty()),
    }
}

/// The text of a scalar, however it came. Nothing for an array, an object, or a text that is no Unicode.
fn text_of<'value>(given: &'value Given<'_>) -> Option<Cow<'value, str>> {
    match given {
        Given::Text(text) => Some(Cow::Borrowed(text)),
        Given::Json(raw) => match raw.get().as_bytes().first()? {
            b'"' => serde_json::from_str::<Borrowed<'_>>(raw.get()).ok().map(|Borrowed(text)| text),
            b'[' | b'{' => None,
            _ => Some(Cow::Borrowed(raw.get())),
        },
    }
}

#[derive(Deserialize)]
struct Borrowed<'text>(#[serde(borrow)] Cow<'text, str>);

/// The text of a text or a number, or what is wrong with it.
pub fn text<'value>(given: &'value Given<'_>) -> Result<Cow<'value, str>, Fault> {
    if is_literal(given) {
        return Err(Fault::new(FieldCode::InvalidType, "must be a text or a number"));
    }
    text_of(given).ok_or_else(|| match given {
        // The JSON was well formed, so a string that cannot be read has a surrogate without its partner.
        Given::Json(raw) if raw.get().starts_with('"') => {
            Fault::new(FieldCode::InvalidCharacter, "has half of a surrogate pair")
        }
        _ => Fault::new(FieldCode::InvalidType, "must be a single value"),
    })
}

/// Declares the parameters of an endpoint.
macro_rules! parameters {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            $($field:ident : $kind:ident $type:ty = $wire:literal, $meaning:literal;)*
            $(=> $made:ident : $made_type:ty = $make:path {
                $($part:ident : $part_kind:ident $part_type:ty = $part_wire:literal, $part_meaning:literal;)*
            })*
        }
    )*) => {$(
        $(#[$doc])*
        #[allow(clippy::struct_field_names, reason = "the names are the interface's")]
        pub struct $name {
            $(pub $field: $crate::http::params::kind_type!($kind $type),)*
            $(pub $made: $made_type,)*
        }

        impl $crate::http::params::Parameters for $name {
            const NAMES: &'static [&'static str] = &[$($wire,)* $($($part_wire,)*)*];

            fn read(fields: &mut $crate::http::params::Fields<'_>) -> Option<Self> {
                $(let $field = $crate::http::params::kind_read!($kind $type, fields, $wire);)*
                $(
                    $(let $part = $crate::http::params::kind_read!($part_kind $part_type, fields, $part_wire);)*
                    let $made = match ($($part,)*) {
                        ($(Some($part),)*) => {
                            let outcome = $make(fields.rules(), $($part),*);
                            fields.made(outcome)
                        }
                        _ => None,
                    };
                )*
                Some(Self { $($field: $field?,)* $($made: $made?,)* })
            }

            fn describe() -> Vec<$crate::http::params::Described> {
                vec![
                    $($crate::http::params::kind_described!($kind $type, $wire, $meaning),)*
                    $($($crate::http::params::kind_described!($part_kind $part_type, $part_wire, $part_meaning),)*)*
                ]
            }
        }
    )*};
}

macro_rules! kind_described {
    ($kind:ident $type:ty, $wire:literal, $meaning:literal) => {
        $crate::http::params::Described {
            name: $wire,
            meaning: $meaning,
            place: $crate::http::params::kind_place!($kind),
            is_required: $crate::http::params::kind_required!($kind),
            schema: $crate::http::params::kind_schema!($kind $type),
        }
    };
}

macro_rules! kind_type {
    (optional $type:ty) => { Option<$type> };
    (list $type:ty) => { Vec<$type> };
    ($kind:ident $type:ty) => { $type };
}

macro_rules! kind_read {
    (required $type:ty, $fields:ident, $wire:literal) => {
        $fields.required::<$type>($wire)
    };
    (optional $type:ty, $fields:ident, $wire:literal) => {
        $fields.optional::<$type>($wire)
    };
    (list $type:ty, $fields:ident, $wire:literal) => {
        $fields.list::<$type>($wire)
    };
    (token $type:ty, $fields:ident, $wire:literal) => {
        $fields.token($wire)
    };
    (path $type:ty, $fields:ident, $wire:literal) => {
        $fields.in_path::<$type>($wire)
    };
}

macro_rules! kind_place {
    (path) => {
        $crate::http::params::Place::Path
    };
    ($kind:ident) => {
        $crate::http::params::Place::Anywhere
    };
}

macro_rules! kind_required {
    (required) => {
        true
    };
    (path) => {
        true
    };
    ($kind:ident) => {
        false
    };
}

macro_rules! kind_schema {
    (list $type:ty) => { |limits| serde_json::json!({
        "type": "array",
        "items": <$type as $crate::http::params::Parameter>::schema(limits),
        "maxItems": limits.batch,
    }) };
    ($kind:ident $type:ty) => { <$type as $crate::http::params::Parameter>::schema };
}

pub(crate) use {kind_described, kind_place, kind_read, kind_required, kind_schema, kind_type, parameters};

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

/// The users whom a request names beside its token. They are only compared with it.
#[derive(Default)]
pub struct Claims {
    pub user_id: Option<UserId>,
    pub id: Option<UserId>,
    pub phone_number: Option<PhoneNumber>,
}

impl Claims {
    pub fn users(&self) -> impl Iterator<Item = UserId> {
        self.user_id.into_iter().chain(self.id)
    }

    pub fn is_empty(&self) -> bool {
        self.users().next().is_none() && self.phone_number.is_none()
    }

    pub fn of_user(user_id: Option<UserId>) -> Self {
        Self { user_id, ..Self::default() }
    }

    pub fn of_phone(phone_number: Option<PhoneNumber>) -> Self {
        Self { phone_number, ..Self::default() }
    }
}
