//! Reads typed parameters from the values of one request and collects their faults.

use std::borrow::Cow;

use axum::http::Uri;
use serde_json::value::RawValue as JsonValue;

use super::{
    BodyShape, Fields, ObjectParameter, Parameter, Parameters, Rules,
    raw_value::{is_absent, is_literal, is_null, is_null_word, required, text_of},
};
use crate::{
    error::{Code, Error, Fault, FieldCode, FieldError, Result},
    http::{
        body::{self, Pair, RawValue},
        claims::Claims,
        request_context::RequestContext,
        request_token::{may_be_token, request_tokens, without_scheme},
        token_choice,
    },
    types::Secret,
};

/// Separators of the items of a list in one text.
const SEPARATORS: [char; 6] = [',', '，', '、', ';', '；', '|'];

/// Names of a user that are compared with the caller at every endpoint of the first generation.
const USER_NAMES: [&str; 5] = ["id", "userId", "user_id", "phoneNumber", "phone_number"];

/// The values of one request and the faults found so far.
pub struct Reader<'request> {
    path: Vec<(String, String)>,
    query: Vec<Pair<'request>>,
    body: Vec<Pair<'request>>,
    rules: Rules<'request>,
    errors: Vec<FieldError>,
    conflict: Option<&'static str>,
    failure: Option<Error>,
}

impl<'request> Reader<'request> {
    /// Collects the values of path, query and body.
    ///
    /// # Errors
    /// Errors of the body; `not_yours` if a user of the first API generation names another user in an undeclared field.
    pub fn of_request(
        context: &'request RequestContext,
        path: Vec<(String, String)>,
        uri: &'request Uri,
        shape: BodyShape,
        declared: &[&str],
    ) -> Result<Self> {
        let query = body::encoded_pairs(uri.query().unwrap_or_default())?;
        let body = match shape {
            BodyShape::Raw => Vec::new(),
            BodyShape::Named => body::pairs(&context.body, &context.headers, None)?,
            BodyShape::NamedOrItems(list) => body::pairs(&context.body, &context.headers, Some(list))?,
        };
        let mut reader = Self::new(path, query, body, Rules::of(context));
        reader.open_wrapper(declared);
        if declared.contains(&"startTime") {
            reader.rename_range();
        }
        if let Some(fault) = context.idempotency.as_ref().and_then(|header| header.key().err()) {
            reader.errors.push(fault);
        }
        if context.may_claim_users() {
            for claims in reader.undeclared_claims(declared) {
                context.acting_for(&claims)?;
            }
        }
        Ok(reader)
    }

    /// Collects the values of a form of the console, or of the query of its address. A form may name its object, which the
    /// API has in its path.
    pub fn of_form(
        context: &'request RequestContext,
        path: &[(String, String)],
        fields: &'request [(String, String)],
    ) -> Self {
        let query = fields.iter().map(|(name, value)| (name.into(), RawValue::Text(value.trim().into()))).collect();
        Self::new([path, fields].concat(), query, Vec::new(), Rules::of(context))
    }

    fn new(
        path: Vec<(String, String)>,
        query: Vec<Pair<'request>>,
        body: Vec<Pair<'request>>,
        rules: Rules<'request>,
    ) -> Self {
        Self { path, query, body, rules, errors: Vec::new(), conflict: None, failure: None }
    }

    /// Adds the parameters that a client sends as one JSON object in a field of another name, such as `data`: it would
    /// believe that it sent them. In a form, such an object beside other parameters than the user is a fault.
    fn open_wrapper(&mut self, declared: &[&str]) {
        let is_user = |name: &str| USER_NAMES.contains(&name);
        let is_declared = |name: &str| declared.iter().any(|known| position_of(name, known).is_some());
        let is_known = |name: &str| is_declared(name) || is_user(name);
        let wrapper = |(name, value): &Pair<'request>| {
            let members = if is_known(name) { None } else { members_of(value) };
            // In another object, `id` can be anything's.
            members.filter(|members| members.iter().any(|(member, _)| is_known(member) && member != "id"))
        };
        let mut wrappers: Vec<_> = self.query.iter().chain(&self.body).filter_map(wrapper).collect();
        if wrappers.is_empty() {
            return;
        }
        let sent = || self.query.iter().chain(&self.body).filter(|(_, value)| !is_null(value)).map(|(name, _)| name);
        if wrappers.len() == 1 && sent().all(|name| !is_known(name) || is_user(name)) {
            self.body.append(&mut wrappers.swap_remove(0));
            return;
        }
        let is_missing = |name: &str| is_declared(name) && !is_user(name) && !sent().any(|other| other == name);
        let message = (
            "holds parameters as JSON. Send them as fields of their own, or all of them as a JSON body",
            "是含有参数的 JSON。请作为各自的字段发送，或全部作为 JSON 请求体发送",
        );
        let hidden = |pair: &&Pair<'request>| {
            matches!(pair.1, RawValue::Text(_))
                && wrapper(pair).is_some_and(|members| members.iter().any(|(member, _)| is_missing(member)))
        };
        let fault = |(name, _): &Pair<'request>| Fault::new(FieldCode::NotAllowed, message).in_field(name);
        let faults: Vec<_> = self.body.iter().filter(hidden).map(fault).collect();
        self.errors.extend(faults);
    }

    /// Reads `start` and `end` as `startTime` and `endTime`, for lists of a time range.
    fn rename_range(&mut self) {
        for (name, _) in self.query.iter_mut().chain(&mut self.body) {
            match name.as_ref() {
                "start" => *name = "startTime".into(),
                "end" => *name = "endTime".into(),
                _ => {}
            }
        }
    }

    /// Reads all parameters.
    ///
    /// # Errors
    /// `conflicting_parameter`; `invalid_parameters` with every invalid field; errors of the checks that compare values
    /// with stored data.
    pub fn parse<P: Parameters>(mut self) -> Result<P> {
        let parameters = P::read(&mut Fields::Read(&mut self));
        let has_fault = self.conflict.is_some() || self.failure.is_some() || !self.errors.is_empty();
        parameters.filter(|_| !has_fault).ok_or_else(|| self.into_error())
    }

    fn into_error(self) -> Error {
        if let Some(name) = self.conflict {
            let detail =
                (format!("`{name}` was given twice with different values."), format!("`{name}` 出现了两个不同的值。"));
            return Error::new(Code::ConflictingParameter).detail(detail);
        }
        self.failure.unwrap_or_else(|| Error::fields(self.errors))
    }

    /// Checks values that depend on each other and collects the fields that the check rejects.
    pub fn cross_field<V, T>(&mut self, values: V, check: impl FnOnce(&Rules<'_>, V) -> Result<T>) -> Option<T> {
        match check(&self.rules, values) {
            Ok(value) => Some(value),
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

    pub fn required<T: Parameter>(&mut self, name: &'static str) -> Option<T> {
        let value = self.optional(name)?;
        if value.is_none() {
            self.errors.push(required().in_field(name));
        }
        value
    }

    /// Reads a field that may be missing. The outer `None` means that its value is invalid.
    #[expect(clippy::option_option, reason = "the outer layer reports a fault, as for every field")]
    pub fn optional<T: Parameter>(&mut self, name: &'static str) -> Option<Option<T>> {
        self.reject_foreign_names(name, T::FOREIGN_NAMES);
        match self.single::<T>(name) {
            Some(value) => self.read_one(name, &value).map(Some),
            None => Some(None),
        }
    }

    /// Rejects names of similar parameters of other lists.
    fn reject_foreign_names(&mut self, name: &'static str, foreign_names: &[&'static str]) {
        for foreign in foreign_names {
            if *foreign != name && self.is_sent(foreign) {
                let fault = Fault::new(
                    FieldCode::NotAllowed,
                    (
                        format!("is not a parameter of this list, but `{name}` is"),
                        format!("不是此列表的参数，应为 `{name}`"),
                    ),
                );
                self.errors.push(fault.in_field(foreign));
            }
        }
    }

    /// Returns the users that the request names in fields which the endpoint does not declare.
    fn undeclared_claims(&mut self, declared: &[&str]) -> Vec<Claims> {
        let mut claims = Vec::new();
        for name in ["userId", "user_id", "id"] {
            if self.is_undeclared(name, declared) {
                claims.push(Claims::of_user(self.optional(name).flatten()));
            }
        }
        for name in ["phoneNumber", "phone_number"] {
            if self.is_undeclared(name, declared) {
                claims.push(Claims::of_phone(self.optional(name).flatten()));
            }
        }
        claims
    }

    /// Returns true if the request sends this field and the endpoint does not declare it there.
    fn is_undeclared(&self, name: &str, declared: &[&str]) -> bool {
        let is_declared = declared.contains(&name) && !self.path.iter().any(|(other, _)| other == name);
        !is_declared && self.query.iter().chain(&self.body).any(|(other, _)| other == name)
    }

    /// Reads a token from the parameter or a header. Of several the valid one counts, because apps send their last token
    /// with every request. The current API generation reads none from the query string: URLs end up in the logs of others.
    pub fn token(&mut self, name: &'static str) -> Option<Secret> {
        let is_current_api = self.rules.context.is_current_api();
        let is_in_query = self.query.iter().any(|(other, value)| other == name && !is_absent::<Secret>(value));
        if is_current_api {
            self.query.retain(|(other, _)| other != name);
        }
        let parameter: Option<Secret> =
            if is_current_api { self.optional(name)? } else { self.token_of_first_generation(name) };
        let parameter = parameter.as_ref().map(|token| without_scheme(token.reveal()));
        let headers = request_tokens(self.rules.headers, &self.rules.config.auth);
        let chosen = match (parameter, &headers[..]) {
            (None, []) if is_current_api && is_in_query => {
                let message = (
                    "is ignored in the query string. Send it in the body or a header",
                    "在查询字符串中无效，请放在请求体或请求头中",
                );
                self.errors.push(Fault::new(FieldCode::NotAllowed, message).in_field(name));
                return None;
            }
            (None, []) => {
                self.errors.push(required().in_field(name));
                return None;
            }
            (Some(parameter), []) => parameter,
            (Some(parameter), headers) if may_be_token(parameter) => self.choose_token(Some(parameter), headers)?,
            (_, [token]) => token,
            (_, headers) => self.choose_token(None, headers)?,
        };
        Some(Secret::from_text(chosen))
    }

    /// Reads the token of a parameter. A value that cannot be a token is an invalid token, and no fault.
    fn token_of_first_generation(&mut self, name: &'static str) -> Option<Secret> {
        let is_sent = self.query.iter().chain(&self.body).any(|(other, _)| other == name);
        let readable = self.single::<Secret>(name).and_then(|value| Secret::read(&value, &self.rules).ok());
        readable.or_else(|| is_sent.then(|| Secret::from_text("")))
    }

    fn choose_token<'token>(&mut self, parameter: Option<&'token str>, headers: &[&'token str]) -> Option<&'token str> {
        self.cross_field((), |rules, ()| {
            rules
                .context
                .app
                .core
                .store
                .read(|tx| token_choice::choose_for_users_in(tx, rules.config, parameter, headers))
        })
    }

    /// Rejects a field that only the server may set.
    pub fn reject(&mut self, name: &'static str) {
        if self.is_sent(name) {
            self.errors.push(
                Fault::new(FieldCode::NotAllowed, ("cannot be set by clients", "不能由客户端设置")).in_field(name),
            );
        }
    }

    fn is_sent(&self, name: &str) -> bool {
        self.query.iter().chain(&self.body).any(|(other, value)| other == name && !is_null(value))
    }

    /// Rejects every field.
    pub fn reject_all(&mut self) {
        for (name, _) in self.query.iter().chain(&self.body) {
            self.errors
                .push(Fault::new(FieldCode::NotAllowed, ("is not accepted here", "此处不接受此参数")).in_field(name));
        }
    }

    /// Reads a segment of the path. The same name in query or body must have the same value.
    pub fn path<T: Parameter>(&mut self, name: &'static str) -> Option<T> {
        let found = self.path.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        let found = RawValue::Text(Cow::Owned(found.unwrap_or_default()));
        if self.single::<T>(name).is_some_and(|elsewhere| !T::is_same(&elsewhere, &found, &self.rules)) {
            self.conflict.get_or_insert(name);
        }
        self.read_one(name, &found)
    }

    /// Reads a list in any of the spellings of [`items`]. It is empty if the field is missing. Each invalid item is
    /// reported as `name[index]`.
    pub fn list<T: Parameter>(&mut self, name: &'static str) -> Option<Vec<T>> {
        if T::MAY_CONTAIN_BLANKS && self.is_separated_by_blanks(name) {
            let message = (
                "has blanks. Separate the items with commas, or send a JSON array",
                "含有空格。请用逗号分隔，或发送 JSON 数组",
            );
            self.errors.push(Fault::new(FieldCode::InvalidFormat, message).in_field(name));
            return None;
        }
        let items = self.raw_items(name)?;
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match T::read(item, &self.rules) {
                Ok(value) => values.push(value),
                Err(fault) => self.errors.push(fault.in_field(&format!("{name}[{index}]"))),
            }
        }
        (values.len() == items.len()).then_some(values)
    }

    /// Reads a list of at least one object. Each invalid member is reported as `name[index].member`.
    pub fn objects<T: ObjectParameter>(&mut self, name: &'static str) -> Option<Vec<T>> {
        let items = self.raw_items(name)?;
        if items.is_empty() {
            self.errors.push(required().in_field(name));
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

    /// Returns true if the list is one text whose items could be separated by blanks only.
    fn is_separated_by_blanks(&self, name: &str) -> bool {
        let mut sent = self.query.iter().chain(&self.body).filter(|(sent, _)| position_of(sent, name).is_some());
        let (Some((sent, value)), None) = (sent.next(), sent.next()) else { return false };
        let is_ambiguous =
            |text: &str| text.contains(char::is_whitespace) && !text.contains(SEPARATORS) && !text.starts_with('[');
        sent == name && text_of(value).is_some_and(|text| is_ambiguous(text.trim()))
    }

    fn raw_items(&mut self, name: &'static str) -> Option<Vec<RawValue<'request>>> {
        let from_query = items(name, &self.query);
        let from_body = items(name, &self.body);
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
            let fault =
                Fault::new(FieldCode::TooMany, (format!("must have at most {most} items"), format!("最多 {most} 项")));
            self.errors.push(fault.in_field(name));
            return None;
        }
        Some(items)
    }

    fn read_one<T: Parameter>(&mut self, name: &'static str, value: &RawValue<'_>) -> Option<T> {
        T::read(value, &self.rules).map_err(|fault| self.errors.push(fault.in_field(name))).ok()
    }

    /// Returns the value of a field that occurs once. Records a conflict if its values differ.
    fn single<T: Parameter>(&mut self, name: &'static str) -> Option<RawValue<'request>> {
        self.single_by(name, is_absent::<T>, T::is_same)
    }

    fn single_by(
        &mut self,
        name: &'static str,
        is_absent: fn(&RawValue<'_>) -> bool,
        is_same: fn(&RawValue<'_>, &RawValue<'_>, &Rules<'_>) -> bool,
    ) -> Option<RawValue<'request>> {
        let values = self.query.iter().chain(&self.body).filter(|(other, _)| other == name).map(|(_, value)| value);
        let mut all = values.filter(|value| !is_absent(value));
        let first = all.next()?.clone();
        if all.any(|other| !is_same(other, &first, &self.rules)) {
            self.conflict.get_or_insert(name);
        }
        Some(first)
    }
}

/// Returns the members of a value that is a JSON object, or a text that holds one.
fn members_of(value: &RawValue<'_>) -> Option<Vec<Pair<'static>>> {
    match value {
        RawValue::Json(json) if json.get().starts_with('{') => body::object_members(json.get()),
        value => body::object_members(&text_of(value)?),
    }
}

/// Returns the items of a list: a JSON array, also inside a text, values with [`SEPARATORS`], or values under the repeated
/// names `ids`, `ids[]`, `ids[0]`.
fn items<'request>(name: &str, pairs: &[Pair<'request>]) -> Vec<RawValue<'request>> {
    let mut values: Vec<_> = pairs.iter().filter_map(|(sent, value)| Some((position_of(sent, name)?, value))).collect();
    values.sort_by_key(|(position, _)| *position);
    values.into_iter().flat_map(|(_, value)| items_of(value)).collect()
}

/// Returns the position of a value among those of the same list, or `None` if it is not of the list.
fn position_of(sent: &str, name: &str) -> Option<u32> {
    match sent.strip_prefix(name)? {
        "" | "[]" => Some(0),
        index => index.strip_prefix('[')?.strip_suffix(']')?.parse().ok(),
    }
}

fn items_of<'request>(value: &RawValue<'request>) -> Vec<RawValue<'request>> {
    match value {
        value if is_null(value) => Vec::new(),
        RawValue::Json(Cow::Borrowed(raw)) if raw.get().starts_with('[') => {
            let elements: Vec<&'request JsonValue> = serde_json::from_str(raw.get()).unwrap_or_default();
            elements.into_iter().map(|element| RawValue::Json(Cow::Borrowed(element))).collect()
        }
        RawValue::Json(Cow::Owned(raw)) if raw.get().starts_with('[') => items_of_text(raw.get()),
        value if is_literal(value) => vec![value.clone()],
        value => match text_of(value) {
            Some(text) => items_of_text(text.trim()),
            None => vec![value.clone()],
        },
    }
}

/// Returns the items of a JSON array, or of values with separators, which may be in brackets.
fn items_of_text<'request>(text: &str) -> Vec<RawValue<'request>> {
    if is_null_word(text) {
        return Vec::new();
    }
    if text.starts_with('[')
        && let Ok(elements) = serde_json::from_str::<Vec<Box<JsonValue>>>(text)
    {
        return elements.into_iter().map(|element| RawValue::Json(Cow::Owned(element))).collect();
    }
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let items = text.split(SEPARATORS).map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| RawValue::Text(Cow::Owned(item.to_owned()))).collect()
}

fn texts_of(items: &[RawValue<'_>]) -> Vec<Option<String>> {
    items.iter().map(|item| text_of(item).map(Cow::into_owned)).collect()
}
