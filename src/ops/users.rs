//! The people who use the app: who they are, by which addresses they are known, what they say of themselves.

use rusqlite::Row;

use crate::{
    error::{Code, Error, Fault, FieldCode, Result},
    store::{Read, Write},
    types::{Date, PhoneNumber, UserId},
};

/// What a user is, as other users of this module need it.
#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    pub phone_number: Option<PhoneNumber>,
}

/// What a user says of themselves.
#[derive(Clone, Debug)]
pub struct Profile {
    pub id: UserId,
    pub nickname: String,
    pub gender: Gender,
    pub birthday: Option<String>,
    pub signature: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gender {
    Unknown,
    Male,
    Female,
    Other,
}

impl Gender {
    pub const ALL: [Self; 4] = [Self::Unknown, Self::Male, Self::Female, Self::Other];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Male => "male",
            Self::Female => "female",
            Self::Other => "other",
        }
    }
}

/// Reads a birthday: `yyyy-mm-dd`, a real day from 1900 to today.
///
/// # Errors
/// `invalid_format` or `out_of_range`.
pub fn birthday(text: &str, today: Date) -> Result<String, Fault> {
    let is_written_so = text.len() == 10 && text.as_bytes()[4] == b'-';
    let day = text.parse::<Date>().ok().filter(|_| is_written_so);
    let day = day.ok_or_else(|| Fault::new(FieldCode::InvalidFormat, "must be a day, yyyy-mm-dd"))?;
    if day.year() < 1900 || day > today {
        return Err(Fault::new(FieldCode::OutOfRange, "must be from 1900-01-01 to today"));
    }
    Ok(day.to_string())
}

/// The parts of a profile that a request changes; the others stay.
#[derive(Clone, Debug, Default)]
pub struct ProfileChange {
    pub nickname: Option<String>,
    pub gender: Option<Gender>,
    /// The inner nothing takes the birthday away.
    pub birthday: Option<Option<String>>,
    pub signature: Option<String>,
}

/// The user with this phone number, made if there is none; true if it was made.
pub fn find_or_create_in(tx: &Write<'_>, phone_number: &PhoneNumber) -> Result<(User, bool)> {
    let made = tx.first(
        "insert into users (phone_number, created_at) values (?1, ?2) on conflict (phone_number) do nothing \
         returning id, phone_number",
        (phone_number.as_str(), tx.now.0),
        user_of,
    )?;
    if let Some(user) = made {
        return Ok((user, true));
    }
    let found =
        tx.first("select id, phone_number from users where phone_number = ?1", [phone_number.as_str()], user_of)?;
    found.map(|user| (user, false)).ok_or_else(|| Error::internal("a user neither existed nor could be made"))
}

pub fn find_in(tx: &Read<'_>, id: UserId) -> Result<User> {
    tx.first("select id, phone_number from users where id = ?1", [id.0], user_of)?.ok_or_else(|| Code::NotFound.into())
}

/// The user with this phone number.
pub fn find_by_phone_in(tx: &Read<'_>, phone_number: &PhoneNumber) -> Result<User> {
    tx.first("select id, phone_number from users where phone_number = ?1", [phone_number.as_str()], user_of)?
        .ok_or_else(|| Code::NotFound.into())
}

/// The next users after this one, in the order of their ids.
pub fn ids_after_in(tx: &Read<'_>, after: UserId, limit: u32) -> Result<Vec<UserId>> {
    tx.all("select id from users where id > ?1 order by id limit ?2", (after.0, limit), |row| row.get(0).map(UserId))
}

pub fn profile_in(tx: &Read<'_>, id: UserId) -> Result<Profile> {
    tx.first("select id, nickname, gender, birthday, signature from users where id = ?1", [id.0], profile_of)?
        .ok_or_else(|| Code::NotFound.into())
}

/// Changes the given parts and returns the whole profile as it then is.
pub fn change_profile_in(tx: &Write<'_>, id: UserId, change: &ProfileChange) -> Result<Profile> {
    tx.first(
        "update users set nickname = coalesce(?2, nickname), gender = coalesce(?3, gender), \
         birthday = case when ?4 then ?5 else birthday end, signature = coalesce(?6, signature) where id = ?1 \
         returning id, nickname, gender, birthday, signature",
        (
            id.0,
            &change.nickname,
            change.gender.map(Gender::name),
            change.birthday.is_some(),
            change.birthday.as_ref().and_then(Option::as_ref),
            &change.signature,
        ),
        profile_of,
    )?
    .ok_or_else(|| Code::NotFound.into())
}

fn user_of(row: &Row<'_>) -> rusqlite::Result<User> {
    let phone_number: Option<String> = row.get(1)?;
    Ok(User { id: UserId(row.get(0)?), phone_number: phone_number.map(PhoneNumber::from_canonical) })
}

fn profile_of(row: &Row<'_>) -> rusqlite::Result<Profile> {
    let gender: String = row.get(2)?;
    Ok(Profile {
        id: UserId(row.get(0)?),
        nickname: row.get(1)?,
        gender: Gender::ALL.into_iter().find(|known| known.name() == gender).unwrap_or(Gender::Unknown),
        birthday: row.get(3)?,
        signature: row.get(4)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn birthdays_are_real_days_until_today() {
        let read = |text: &str| birthday(text, jiff::civil::date(2026, 3, 1)).map_err(|fault| fault.code);
        assert_eq!(read("1990-05-17"), Ok("1990-05-17".into()));
        assert_eq!(read("2024-02-29"), Ok("2024-02-29".into()));
        assert_eq!(read("2026-03-01"), Ok("2026-03-01".into()));
        for text in ["2026-03-02", "1899-12-31"] {
            assert_eq!(read(text), Err(FieldCode::OutOfRange), "{text}");
        }
        for text in ["", "1990", "17.5.1990", "2023-02-29", "19900517", "1990-5-17", "1990-05-17T00:00:00"] {
            assert_eq!(read(text), Err(FieldCode::InvalidFormat), "{text}");
        }
    }
}
