//! Lists of users: by time of registration, and by the beginning of the nickname.

use crate::{
    error::Result,
    store::{Read, Row, RowResult},
    types::{Timestamp, UserId},
};

/// Greater than every character of a nickname that follows a prefix.
const AFTER_ALL: char = char::MAX;

macro_rules! select_users {
    ($rest:literal) => {
        concat!("select id, phone_number, email, nickname, created_at from users ", $rest)
    };
}

/// A user in a list, with whole addresses.
#[derive(Clone, Debug)]
pub struct UserSummary {
    pub id: UserId,
    pub phone_number: Option<String>,
    pub email: Option<String>,
    pub nickname: String,
    pub created_at: Timestamp,
}

/// A half-open range of times of registration.
#[derive(Clone, Copy, Debug)]
pub struct RegistrationRange {
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Default for RegistrationRange {
    fn default() -> Self {
        Self { from: Timestamp(0), to: Timestamp(i64::MAX) }
    }
}

impl RegistrationRange {
    pub fn is_unlimited(self) -> bool {
        self.from.0 <= 0 && self.to.0 == i64::MAX
    }

    pub fn contains(self, at: Timestamp) -> bool {
        self.from <= at && at < self.to
    }
}

pub fn summary_in(tx: &Read<'_>, id: UserId) -> Result<Option<UserSummary>> {
    tx.first(select_users!("where id = ?1"), [id.0], summary_of)
}

/// Returns users before a time and id, newest first.
pub fn newest_in(
    tx: &Read<'_>,
    range: RegistrationRange,
    before: (Timestamp, UserId),
    limit: u32,
) -> Result<Vec<UserSummary>> {
    tx.all(
        select_users!(
            "where created_at >= ?1 and (created_at, id) < (?2, ?3) order by created_at desc, id desc limit ?4"
        ),
        (range.from.0, before.0.0, before.1.0, limit),
        summary_of,
    )
}

/// Returns users whose nickname begins with a text, after a nickname and id, in the order of nicknames.
pub fn by_nickname_in(tx: &Read<'_>, prefix: &str, after: (&str, UserId), limit: u32) -> Result<Vec<UserSummary>> {
    tx.all(
        select_users!(
            "where nickname <> '' and (nickname, id) > (?1, ?2) and nickname < ?3 order by nickname, id limit ?4"
        ),
        (after.0, after.1.0, format!("{prefix}{AFTER_ALL}"), limit),
        summary_of,
    )
}

/// Counts the users of a time range, up to a limit.
pub fn count_newest_in(tx: &Read<'_>, range: RegistrationRange, limit: u32) -> Result<u32> {
    tx.one(
        "select count(*) from (select 1 from users where created_at >= ?1 and created_at < ?2 limit ?3) as counted",
        (range.from.0, range.to.0, limit),
        |row| row.get(0),
    )
}

/// Counts the users whose nickname begins with a text, up to a limit.
pub fn count_by_nickname_in(tx: &Read<'_>, prefix: &str, limit: u32) -> Result<u32> {
    tx.one(
        "select count(*) from (select 1 from users where nickname <> '' and nickname >= ?1 and nickname < ?2 limit ?3) \
         as counted",
        (prefix, format!("{prefix}{AFTER_ALL}"), limit),
        |row| row.get(0),
    )
}

/// Hides the middle of a phone number, and all but the first letter of a mailbox.
pub fn mask_address(address: &str) -> String {
    let characters: Vec<char> = address.chars().collect();
    if let Some(at) = characters.iter().position(|character| *character == '@') {
        let domain: String = characters[at..].iter().collect();
        return format!("{}•••{domain}", characters.first().copied().unwrap_or_default());
    }
    let hidden = 3..characters.len().saturating_sub(4);
    let shown = |(index, character): (usize, &char)| if hidden.contains(&index) { '•' } else { *character };
    characters.iter().enumerate().map(shown).collect()
}

fn summary_of(row: &Row<'_>) -> RowResult<UserSummary> {
    Ok(UserSummary {
        id: UserId(row.get(0)?),
        phone_number: row.get(1)?,
        email: row.get(2)?,
        nickname: row.get(3)?,
        created_at: Timestamp(row.get(4)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_the_middle_of_addresses() {
        assert_eq!(mask_address("13800138000"), "138••••8000");
        assert_eq!(mask_address("+4915112345678"), "+49•••••••5678");
        assert_eq!(mask_address("ada@example.com"), "a•••@example.com");
        assert_eq!(mask_address(""), "");
    }
}
