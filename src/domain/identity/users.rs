//! Users: their ids, addresses and profiles.

pub mod listing;
mod stored_user;

use serde_json::json;

use crate::{
    domain::operations::webhook_outbox::{self, NewWebhookEvent, WebhookKind},
    error::{Code, Fault, FieldCode, Result},
    store::{Read, Row, RowResult, Write},
    types::{Date, EmailAddress, PhoneNumber, TimeInput, TimeZone, Timestamp, UserId, named_enum},
};

pub use stored_user::{
    StoredUser, count_in, find_by_phone_spellings_in, find_by_stored_email_in, find_irregular_after_in, find_stored_in,
    set_addresses_in,
};

/// A user with the fields that other modules need.
#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    pub phone_number: Option<PhoneNumber>,
    pub email: Option<EmailAddress>,
    pub created_at: Timestamp,
}

/// An address with which a user signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Phone(PhoneNumber),
    Email(EmailAddress),
}

impl Address {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Phone(number) => number.as_str(),
            Self::Email(email) => email.as_str(),
        }
    }
}

impl User {
    /// Returns the user's addresses.
    pub fn addresses(&self) -> impl Iterator<Item = Address> {
        let phone = self.phone_number.clone().map(Address::Phone);
        phone.into_iter().chain(self.email.clone().map(Address::Email))
    }

    /// Returns the user's address of the same kind as this one.
    pub fn address_of_kind(&self, address: &Address) -> Option<Address> {
        match address {
            Address::Phone(_) => self.phone_number.clone().map(Address::Phone),
            Address::Email(_) => self.email.clone().map(Address::Email),
        }
    }
}

/// A user's profile.
#[derive(Clone, Debug)]
pub struct Profile {
    pub id: UserId,
    pub nickname: String,
    pub gender: Gender,
    pub birthday: Option<String>,
    pub signature: String,
}

named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Gender {
        Unknown = "unknown",
        Male = "male",
        Female = "female",
        Other = "other",
    }
}

/// Parses a birthday, from 1900-01-01 to today, in any spelling of a date or time. A time with an offset means its day
/// in `zone`.
///
/// # Errors
/// `invalid_format` or `out_of_range`.
pub fn parse_birthday(text: &str, zone: &TimeZone, today: Date) -> Result<String, Fault> {
    let plausible = Date::constant(1900, 1, 1)..=today;
    // As a birthday, 0 means that there is none, not 1970-01-01.
    let day = TimeInput::parse_birthday(text, zone, &plausible).ok().filter(|_| text.trim() != "0");
    let day = day.ok_or_else(|| {
        Fault::new(FieldCode::InvalidFormat, ("must be a date such as 1990-05-17", "须为日期，例如 1990-05-17"))
    })?;
    if !plausible.contains(&day) {
        return Err(Fault::new(
            FieldCode::OutOfRange,
            ("must be from 1900-01-01 to today", "须在 1900-01-01 到今天之间"),
        ));
    }
    Ok(day.to_string())
}

/// The profile fields to change; the others stay.
#[derive(Clone, Debug, Default)]
pub struct ProfileChange {
    pub nickname: Option<String>,
    pub gender: Option<Gender>,
    /// `Some(None)` deletes the birthday.
    pub birthday: Option<Option<String>>,
    pub signature: Option<String>,
}

/// A user of a former backend.
#[derive(Clone, Debug)]
pub struct NewUser {
    pub phone_number: Option<PhoneNumber>,
    pub email: Option<EmailAddress>,
    pub nickname: String,
    pub gender: Gender,
    pub birthday: Option<String>,
    pub signature: String,
    pub created_at: Timestamp,
}

/// Returns the user with this address, and true if the user was created.
pub fn find_or_create_in(tx: &Write<'_>, address: &Address) -> Result<(User, bool)> {
    match find_by_address_in(tx, address)? {
        Some(user) => Ok((user, false)),
        None => Ok((create_in(tx, address)?, true)),
    }
}

/// Creates a user with an address that no other user has.
pub fn create_in(tx: &Write<'_>, address: &Address) -> Result<User> {
    let sql = match address {
        Address::Phone(_) => "insert into users (phone_number, created_at) values (?1, ?2)",
        Address::Email(_) => "insert into users (email, created_at) values (?1, ?2)",
    };
    let id = UserId(tx.insert(sql, (address.as_str(), tx.now.0))?);
    tell_created_in(tx, id)?;
    let (phone_number, email) = match address.clone() {
        Address::Phone(number) => (Some(number), None),
        Address::Email(email) => (None, Some(email)),
    };
    Ok(User { id, phone_number, email, created_at: tx.now })
}

fn tell_created_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    let event = NewWebhookEvent { kind: WebhookKind::UserCreated, user: Some(user), data: json!({}), text: None };
    webhook_outbox::record_in(tx, &event)
}

/// Creates a user with a profile, whose addresses no other user has.
pub fn insert_in(tx: &Write<'_>, user: &NewUser) -> Result<UserId> {
    let id = tx.insert(
        "insert into users (phone_number, email, nickname, gender, birthday, signature, created_at) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (
            user.phone_number.as_ref().map(PhoneNumber::as_str),
            user.email.as_ref().map(EmailAddress::as_str),
            &user.nickname,
            user.gender.name(),
            &user.birthday,
            &user.signature,
            user.created_at.0,
        ),
    )?;
    Ok(UserId(id))
}

/// Creates a user without an address, who signs in with an identity.
pub fn create_without_address_in(tx: &Write<'_>) -> Result<User> {
    let id = tx.insert("insert into users (created_at) values (?1)", [tx.now.0])?;
    tell_created_in(tx, UserId(id))?;
    find_in(tx, UserId(id))
}

pub fn find_in(tx: &Read<'_>, id: UserId) -> Result<User> {
    tx.first("select id, phone_number, email, created_at from users where id = ?1", [id.0], user_of)?
        .ok_or_else(|| Code::NotFound.into())
}

/// Returns the time of registration.
pub fn registered_at_in(tx: &Read<'_>, id: UserId) -> Result<Timestamp> {
    tx.first("select created_at from users where id = ?1", [id.0], |row| row.get(0).map(Timestamp))?
        .ok_or_else(|| Code::NotFound.into())
}

/// Requires that the user still exists. Writes call this, because the account may have been deleted since the request
/// was authenticated.
///
/// # Errors
/// `unauthenticated`.
pub fn require_in(tx: &Read<'_>, id: UserId) -> Result<()> {
    if exists_in(tx, id)? { Ok(()) } else { Err(Code::Unauthenticated.into()) }
}

/// True if a user exists, as a part of a statement of another module.
macro_rules! user_exists {
    ($id:literal) => {
        concat!("exists (select 1 from users where id = ", $id, ")")
    };
}

/// The rest of a query about a user who exists, with joins of other tables.
macro_rules! of_user {
    ($joins:literal) => {
        concat!(" from users ", $joins, " where users.id = ?1")
    };
}

/// The columns that [`user_of`] reads.
macro_rules! user_columns {
    () => {
        "users.id, users.phone_number, users.email, users.created_at"
    };
}

/// The rest of a query about the user with an address in this column.
macro_rules! with_address {
    ($column:literal) => {
        concat!(" from users where ", $column, " = ?1")
    };
}

pub(in crate::domain) use {of_user, user_columns, user_exists, with_address};

/// Returns true if the user exists.
pub fn exists_in(tx: &Read<'_>, id: UserId) -> Result<bool> {
    let found = tx.first("select true from users where id = ?1", [id.0], |row| row.get(0))?;
    Ok(found == Some(true))
}

/// Returns true if there are users.
pub fn any_in(tx: &Read<'_>) -> Result<bool> {
    tx.one("select exists (select 1 from users)", (), |row| row.get(0))
}

/// Returns the user with this phone number.
pub fn find_by_phone_in(tx: &Read<'_>, phone_number: &PhoneNumber) -> Result<User> {
    find_by_address_in(tx, &Address::Phone(phone_number.clone()))?.ok_or_else(|| Code::NotFound.into())
}

/// Returns the user with this address, if any.
pub fn find_by_address_in(tx: &Read<'_>, address: &Address) -> Result<Option<User>> {
    let sql = match address {
        Address::Phone(_) => concat!("select ", user_columns!(), with_address!("phone_number")),
        Address::Email(_) => concat!("select ", user_columns!(), with_address!("email")),
    };
    tx.first(sql, [address.as_str()], user_of)
}

/// Adds the address, or replaces the one of the same kind.
///
/// # Errors
/// `address_taken`.
pub fn change_address_in(tx: &Write<'_>, id: UserId, address: &Address) -> Result<User> {
    if find_by_address_in(tx, address)?.is_some_and(|owner| owner.id != id) {
        return Err(Code::AddressTaken.into());
    }
    let sql = match address {
        Address::Phone(_) => {
            "update users set phone_number = ?2 where id = ?1 returning id, phone_number, email, created_at"
        }
        Address::Email(_) => "update users set email = ?2 where id = ?1 returning id, phone_number, email, created_at",
    };
    tx.first(sql, (id.0, address.as_str()), user_of)?.ok_or_else(|| Code::NotFound.into())
}

/// Deletes the user and the rows that cascade.
pub fn delete_in(tx: &Write<'_>, id: UserId) -> Result<()> {
    tx.execute("delete from users where id = ?1", [id.0]).map(drop)
}

/// Returns up to `limit` user ids after this one, in ascending order.
pub fn ids_after_in(tx: &Read<'_>, after: UserId, limit: u32) -> Result<Vec<UserId>> {
    tx.all("select id from users where id > ?1 order by id limit ?2", (after.0, limit), |row| row.get(0).map(UserId))
}

/// Returns the users after an id with the times of their registrations, in order.
pub fn registrations_after_in(tx: &Read<'_>, after: i64, limit: u32) -> Result<Vec<(UserId, Timestamp)>> {
    let sql = "select id, created_at from users where id > ?1 order by id limit ?2";
    tx.all(sql, (after, limit), |row| Ok((UserId(row.get(0)?), Timestamp(row.get(1)?))))
}

/// Returns the first user who registered at this time or later.
pub fn first_registered_in(tx: &Read<'_>, from: Timestamp) -> Result<Option<UserId>> {
    let sql = "select id from users where created_at >= ?1 order by created_at, id limit 1";
    tx.first(sql, [from.0], |row| row.get(0).map(UserId))
}

pub fn profile_in(tx: &Read<'_>, id: UserId) -> Result<Profile> {
    tx.first("select nickname, gender, birthday, signature from users where id = ?1", [id.0], |row| {
        profile_of(row, id)
    })?
    .ok_or_else(|| Code::NotFound.into())
}

/// Changes the given fields and returns the whole profile.
pub fn change_profile_in(tx: &Write<'_>, id: UserId, change: &ProfileChange) -> Result<Profile> {
    tx.first(
        "update users set nickname = coalesce(?2, nickname), gender = coalesce(?3, gender), \
         birthday = case when ?4 then ?5 else birthday end, signature = coalesce(?6, signature) where id = ?1 \
         returning nickname, gender, birthday, signature",
        (
            id.0,
            &change.nickname,
            change.gender.map(Gender::name),
            change.birthday.is_some(),
            change.birthday.as_ref().and_then(Option::as_ref),
            &change.signature,
        ),
        |row| profile_of(row, id),
    )?
    .ok_or_else(|| Code::NotFound.into())
}

/// Reads the columns id, phone number, email and creation time.
pub(super) fn user_of(row: &Row<'_>) -> RowResult<User> {
    let (phone_number, email) = (row.optional_text(1)?, row.optional_text(2)?);
    Ok(User {
        id: UserId(row.get(0)?),
        phone_number: phone_number.map(PhoneNumber::from_canonical),
        email: email.map(EmailAddress::from_canonical),
        created_at: Timestamp(row.get(3)?),
    })
}

/// Reads the columns nickname, gender, birthday and signature.
fn profile_of(row: &Row<'_>, id: UserId) -> RowResult<Profile> {
    Ok(Profile {
        id,
        nickname: row.get(0)?,
        gender: row.get_parsed(1, Gender::from_name)?,
        birthday: row.get(2)?,
        signature: row.get(3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_birthdays_from_1900_to_today() {
        let zone = "Asia/Shanghai".parse().unwrap();
        let read = |text: &str| parse_birthday(text, &zone, jiff::civil::date(2026, 3, 1)).map_err(|fault| fault.code);
        for text in
            ["1990-05-17", "1990/05/17", "1990/5/17", "19900517", "1990-05-17T00:00:00", "1990-05-17 00:00:00.0"]
        {
            assert_eq!(read(text), Ok("1990-05-17".into()), "{text}");
        }
        // Epoch numbers of any length, at midnight in the zone or in UTC.
        for (text, day) in [
            ("642960000", "1990-05-18"),
            ("642873600000", "1990-05-17"),
            ("642960000000", "1990-05-18"),
            ("642960123", "1990-05-18"),
            ("-642960000", "1949-08-17"),
            ("-642960000000", "1949-08-17"),
            ("-2208988800", "1900-01-01"),
            ("1000000000", "2001-09-09"),
            ("41904000", "1971-05-01"),
            ("41904000000", "1971-05-01"),
            ("-115200", "1969-12-31"),
            ("199005170830", "1990-05-17"),
            ("19900517083000", "1990-05-17"),
        ] {
            assert_eq!(read(text), Ok(day.into()), "{text}");
        }
        assert_eq!(read("2024-02-29"), Ok("2024-02-29".into()));
        assert_eq!(read("2026-03-01"), Ok("2026-03-01".into()));
        for text in ["2026-03-02", "1899-12-31", "4102444800", "4102444800000", "6429600001", "-2500000000"] {
            assert_eq!(read(text), Err(FieldCode::OutOfRange), "{text}");
        }
        let others = ["900517", "199005", "17051990", "19901301", "-1", "+642960000"];
        for text in ["", "1990", "17.5.1990", "2023-02-29", "0", "17/05/1990"].into_iter().chain(others) {
            assert_eq!(read(text), Err(FieldCode::InvalidFormat), "{text}");
        }
    }
}
