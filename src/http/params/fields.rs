//! The values of one request: how each parameter is found among them, and where what is wrong with them is noted.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{
    Members, Parameter, Parameters, Rules,
    raw_value::{is_absent, is_literal, is_null, required, text_of},
};
use crate::{
    error::{Code, Error, Fault, FieldCode, FieldError, Result},
    http::{
        body::{Given, Pair},
        guard,
    },
    types::{PhoneNumber, Secret, UserId},
};

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
            self.errors.push(required().in_field(name));
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
        for name in ["userId", "user_id", "id"] {
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
                self.errors.push(required().in_field(name));
                None
            }
        }
    }

    /// Notes a fault for a name that must not be given.
    pub fn refuse(&mut self, name: &'static str) {
        if self.query.iter().chain(&self.body).any(|(known, given)| known == name && !is_null(given)) {
            self.errors.push(Fault::new(FieldCode::NotAllowed, "is not for clients to say").in_field(name));
        }
    }

    /// Notes a fault for everything that is given.
    pub fn refuse_all(&mut self) {
        for (name, _) in self.query.iter().chain(&self.body) {
            self.errors.push(Fault::new(FieldCode::NotAllowed, "is not taken here").in_field(name));
        }
    }

    /// The value in the path. The same name elsewhere says nothing, and must not say anything else.
    pub fn in_path<T: Parameter>(&mut self, name: &'static str) -> Option<T> {
        let found = self.path.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let found = Given::Text(Cow::Owned(found.unwrap_or_default()));
        if self.single::<T>(name).is_some_and(|elsewhere| !T::is_same(&elsewhere, &found, &self.rules)) {
            self.conflict.get_or_insert(name);
        }
        self.read_one(name, &found)
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
                given if is_null(given) => {}
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
