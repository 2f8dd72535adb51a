//! From values as they came to typed parameters, with every bad one reported at once.
//!
//! An endpoint declares its parameters with [`parameters!`]: name, type, whether it is required, what it means. From
//! the one declaration follow the struct that the handler gets, the reader that fills it and the API document. What
//! is not declared is ignored and binds to nothing.

use std::borrow::Cow;

use axum::http::HeaderMap;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

use crate::{
    config::{Config, Limits},
    error::{Code, Error, Fault, FieldCode, FieldError, Result},
    http::{
        body::{Given, Pair},
        call::Call,
        guard,
    },
    types::{Date, JsonText, Page, PhoneNumber, PhoneRules, Secret, Timestamp, UserId, clean},
};

/// What reading a value depends on.
pub struct Rules<'app> {
    pub config: &'app Config,
    pub phone: &'app PhoneRules,
    pub headers: &'app HeaderMap,
    pub now: Timestamp,
}

impl Rules<'_> {
    fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Today, where the service is at home.
    pub fn today(&self) -> Date {
        self.limits().time_zone.today(self.now)
    }
}

/// A type that a parameter can have.
pub trait Parameter: Sized {
    /// Whether an empty text is a value, and not the same as no value.
    const EMPTY_IS_A_VALUE: bool = false;

    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault>;

    /// The JSON Schema, with an example.
    fn schema(limits: &Limits) -> Value;
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

/// All parameters of an endpoint.
pub trait Parameters: Sized + Send + 'static {
    /// Whether the body is for the operation to read, byte for byte, and not to be taken apart here.
    const IS_RAW: bool = false;

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
}

impl<'request> Fields<'request> {
    pub fn new(
        path: Vec<(String, String)>,
        query: Vec<Pair<'request>>,
        body: Vec<Pair<'request>>,
        rules: Rules<'request>,
    ) -> Self {
        Self { path, query, body, rules, errors: Vec::new(), conflict: None }
    }

    /// Reads all parameters.
    ///
    /// # Errors
    /// `conflicting_parameter`, or `invalid_parameters` with every bad field.
    pub fn parse<P: Parameters>(mut self) -> Result<P> {
        let parameters = P::read(&mut self);
        if let Some(name) = self.conflict {
            let detail = format!("`{name}` was given twice with different values.");
            return Err(Error::new(Code::ConflictingParameter).detail(detail));
        }
        match parameters {
            Some(parameters) if self.errors.is_empty() => Ok(parameters),
            _ => Err(Error::fields(self.errors)),
        }
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
        match self.single(name) {
            Some(given) if !is_absent::<T>(&given) => self.read_one(name, &given).map(Some),
            _ => Some(None),
        }
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

    pub fn in_path<T: Parameter>(&mut self, name: &'static str) -> Option<T> {
        let found = self.path.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        self.read_one(name, &Given::Text(Cow::Owned(found.unwrap_or_default())))
    }

    /// A list: a JSON array, a repeated name or values between commas. Empty if there is none.
    pub fn list<T: Parameter>(&mut self, name: &'static str) -> Option<Vec<T>> {
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
        items.iter().map(|item| self.read_one(name, item)).collect()
    }

    fn read_one<T: Parameter>(&mut self, name: &'static str, given: &Given<'_>) -> Option<T> {
        T::read(given, &self.rules).map_err(|fault| self.errors.push(fault.in_field(name))).ok()
    }

    /// The one value of this name; notes a conflict if there are several that differ.
    fn single(&mut self, name: &'static str) -> Option<Given<'request>> {
        let mut all = self.query.iter().chain(&self.body).filter(|(known, _)| known == name).map(|(_, given)| given);
        let first = all.next()?.clone();
        if all.any(|other| !is_same(other, &first)) {
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

fn is_absent<T: Parameter>(given: &Given<'_>) -> bool {
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
        $name:ident { $($field:ident : $kind:ident $type:ty = $wire:literal, $meaning:literal;)* }
    )*) => {$(
        $(#[$doc])*
        #[allow(clippy::struct_field_names, reason = "the names are the interface's")]
        pub struct $name { $(pub $field: $crate::http::params::kind_type!($kind $type),)* }

        impl $crate::http::params::Parameters for $name {
            fn read(fields: &mut $crate::http::params::Fields<'_>) -> Option<Self> {
                $(let $field = $crate::http::params::kind_read!($kind $type, fields, $wire);)*
                Some(Self { $($field: $field?,)* })
            }

            fn describe() -> Vec<$crate::http::params::Described> {
                vec![$($crate::http::params::Described {
                    name: $wire,
                    meaning: $meaning,
                    place: $crate::http::params::kind_place!($kind),
                    is_required: $crate::http::params::kind_required!($kind),
                    schema: $crate::http::params::kind_schema!($kind $type),
                },)*]
            }
        }
    )*};
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

pub(crate) use {kind_place, kind_read, kind_required, kind_schema, kind_type, parameters};

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

    pub fn of_user(user_id: Option<UserId>) -> Self {
        Self { user_id, ..Self::default() }
    }

    pub fn of_phone(phone_number: Option<PhoneNumber>) -> Self {
        Self { phone_number, ..Self::default() }
    }
}

impl Parameter for UserId {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = text(given)?.trim().parse().ok().filter(|id| *id > 0);
        id.map(UserId).ok_or_else(|| Fault::new(FieldCode::InvalidFormat, "must be a user id"))
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "pattern": "^[0-9]{1,18}$", "minimum": 1, "example": "10001" })
    }
}

impl Parameter for PhoneNumber {
    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        PhoneNumber::parse(&text(given)?, rules.phone)
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "example": "13800138000" })
    }
}

impl Parameter for u32 {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        text(given)?.trim().parse().map_err(|_| Fault::new(FieldCode::InvalidType, "must be a whole number from 0 on"))
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["integer", "string"], "minimum": 0, "example": 1 })
    }
}

/// The number of a page, from 1.
pub struct PageNumber(pub u32);

impl Parameter for PageNumber {
    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        match u32::read(given, rules)? {
            0 => Err(Fault::new(FieldCode::OutOfRange, "must be at least 1")),
            number => Ok(Self(number)),
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["integer", "string"], "minimum": 1, "default": 1, "example": 1 })
    }
}

/// The number of items on a page.
pub struct PageSize(pub u32);

impl Parameter for PageSize {
    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let most = rules.limits().page_size_max;
        match u32::read(given, rules)? {
            size if (1..=most).contains(&size) => Ok(Self(size)),
            _ => Err(Fault::new(FieldCode::OutOfRange, format!("must be from 1 to {most}"))),
        }
    }

    fn schema(limits: &Limits) -> Value {
        json!({ "type": ["integer", "string"], "minimum": 1, "maximum": limits.page_size_max, "default": limits.page_size, "example": limits.page_size })
    }
}

/// The page that was asked for, with the defaults for what was not.
pub fn page(call: &Call, number: Option<PageNumber>, size: Option<PageSize>) -> Page {
    Page {
        number: number.map_or(1, |PageNumber(number)| number),
        size: size.map_or(call.app.config.limits.page_size, |PageSize(size)| size),
    }
}

/// A trace id: 32 hexadecimal digits, as in W3C Trace Context.
pub struct TraceId(pub String);

impl Parameter for TraceId {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = text(given)?.trim().to_ascii_lowercase();
        if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(Self(id))
        } else {
            Err(Fault::new(FieldCode::InvalidFormat, "must be 32 hexadecimal digits"))
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-fA-F]{32}$", "example": "4bf92f3577b34da6a3ce929d0e0e4736" })
    }
}

/// The name of a file.
pub struct FileName(pub String);

impl Parameter for FileName {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        match clean(&text(given)?, 100)? {
            name if name.is_empty() => Err(Fault::new(FieldCode::InvalidFormat, "must be the name of a file")),
            name => Ok(Self(name)),
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "maxLength": 100, "example": "swagger-ui.css" })
    }
}

/// Texts that are trimmed, free of NUL, and no longer than their setting says.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident($limit:expr), $empty:literal, $example:literal;)*) => {$(
        $(#[$doc])*
        pub struct $name(pub String);

        impl Parameter for $name {
            const EMPTY_IS_A_VALUE: bool = $empty;

            fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
                let limit: fn(&Limits) -> usize = $limit;
                clean(&text(given)?, limit(rules.limits())).map(Self)
            }

            fn schema(limits: &Limits) -> Value {
                let limit: fn(&Limits) -> usize = $limit;
                json!({ "type": "string", "maxLength": limit(limits), "example": $example })
            }
        }
    )*};
}

texts! {
    Nickname(|limits| limits.nickname as usize), true, "青山";
    Signature(|limits| limits.signature as usize), true, "心静则明";
    Question(|limits| limits.question as usize), false, "今年换工作合适吗？";
    /// A short name of the client's own choice: a question type, a record id.
    Label(|limits| limits.label as usize), false, "career";
    /// Why an administrator does something.
    Reason(|_| 200), false, "compensation for a failed cast";
    /// A name or a password, as it is compared and never kept.
    Credential(|_| 256), false, "correct horse battery staple";
    /// A model's answer that the client stores.
    AiResult(|limits| limits.ai_result.as_usize()), true, "水雷屯：万事起头难……";
}

/// A verification code. Wrong ones are for the operation to refuse; here only what no code can look like.
pub struct VerificationCode(pub String);

impl Parameter for VerificationCode {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let code = clean(&text(given)?, 16)?;
        if code.bytes().all(|byte| byte.is_ascii_digit()) {
            Ok(Self(code))
        } else {
            Err(Fault::new(FieldCode::InvalidFormat, "must be digits"))
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "pattern": "^[0-9]{1,16}$", "example": "246810" })
    }
}

/// A token that came as a parameter.
impl Parameter for Secret {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        clean(&text(given)?, 512).map(Self::from_text)
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "maxLength": 512, "example": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs" })
    }
}

/// JSON values that are kept to the byte; from a query or a form, a text.
macro_rules! json_values {
    ($($(#[$doc:meta])* $name:ident($limit:expr), $empty:literal, $single:literal, $schema:tt;)*) => {$(
        $(#[$doc])*
        pub struct $name(pub JsonText);

        impl Parameter for $name {
            const EMPTY_IS_A_VALUE: bool = $empty;

            fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
                let limit: fn(&Limits) -> usize = $limit;
                kept_json(given, limit(rules.limits()), $single).map(Self)
            }

            fn schema(_: &Limits) -> Value {
                json!($schema)
            }
        }
    )*};
}

json_values! {
    /// jsonData of a casting.
    JsonData(|limits| limits.json_data.as_usize()), true, false,
        { "description": "Any JSON value or text; it comes back byte for byte.", "example": { "lines": [7, 8, 8, 8, 7, 6] } };
    /// divinationData of an interpretation.
    DivinationData(|limits| limits.interpretation_body.as_usize()), false, false,
        { "description": "Any JSON value or text that describes the casting.", "example": { "lines": [7, 8, 8, 8, 7, 6] } };
    /// A client's own timestamp, number or text.
    ClientTimestamp(|limits| limits.label as usize), false, true,
        { "type": ["integer", "string"], "example": 1_767_225_600_000_i64 };
}

fn kept_json(given: &Given<'_>, limit: usize, must_be_single: bool) -> Result<JsonText, Fault> {
    let json = match given {
        Given::Text(text) => JsonText::from_text(text),
        Given::Json(raw) => JsonText::from_raw(raw),
    };
    if json.as_str().len() > limit {
        return Err(Fault::new(FieldCode::TooLong, format!("must be at most {limit} bytes long")));
    }
    if must_be_single && (json.as_str().starts_with(['[', '{']) || is_literal(given)) {
        return Err(Fault::new(FieldCode::InvalidType, "must be a single value"));
    }
    check_strings(&json)?;
    Ok(json)
}

/// Checks every text inside a JSON value: no NUL, no half of a surrogate pair.
fn check_strings(json: &JsonText) -> Result<(), Fault> {
    if is_plainly_fine(json.as_str()) {
        return Ok(());
    }
    let mut deserializer = serde_json::Deserializer::from_str(json.as_str());
    let mut has_nul = false;
    let read = StringCheck(&mut has_nul).deserialize(&mut deserializer);
    match read {
        Ok(()) if !has_nul => Ok(()),
        Ok(()) => Err(Fault::new(FieldCode::InvalidCharacter, "must not contain NUL")),
        // The value was well formed, so what cannot be read is a surrogate without its partner or too large a number.
        Err(_) => {
            Err(Fault::new(FieldCode::InvalidCharacter, "has half of a surrogate pair, or a number out of range"))
        }
    }
}

/// Whether a valid value can hold nothing that the walk below looks for, which is said of nearly all of them and much
/// sooner: NUL and half a pair come only as `\u`, and a number out of range has an exponent or hundreds of digits.
fn is_plainly_fine(json: &str) -> bool {
    let bytes = json.as_bytes();
    let has_exponent = |pair: &[u8]| pair[0].is_ascii_digit() && pair[1].eq_ignore_ascii_case(&b'e');
    !json.contains("\\u")
        && !bytes.windows(2).any(has_exponent)
        && bytes.split(|byte| !byte.is_ascii_digit()).all(|digits| digits.len() < 300)
}

/// Walks a value without building it.
struct StringCheck<'flag>(&'flag mut bool);

impl<'de> DeserializeSeed<'de> for StringCheck<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StringCheck<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        *self.0 |= text.contains('\0');
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(StringCheck(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_key_seed(StringCheck(self.0))?.is_some() {
            members.next_value_seed(StringCheck(self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_json_has_no_nul_no_half_pair_and_no_number_out_of_range() {
        let check = |json: &str| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            check_strings(&JsonText::from_raw(raw)).map_err(|fault| fault.code)
        };
        let digits = "9".repeat(400);
        let bad = [r#""a\u0000b""#, r#"{"\u0000":1}"#, r#"["\ud83d"]"#, "1e999", "[-2.5E400]", &digits];
        for json in bad {
            assert_eq!(check(json), Err(FieldCode::InvalidCharacter), "{json}");
        }
        let long_text = format!("\"{digits}\"");
        for json in [r#""\u4e7e \ud83d\ude00""#, r#"{"a":[1,-2.5,true,null,"3e9"]}"#, "1e9", "\"乾\"", &long_text] {
            assert_eq!(check(json), Ok(()), "{json}");
        }
    }
}
