//! Detects contacts: phone numbers, accounts of messengers, URLs and mail addresses, in any script of digits.
//!
//! Han numerals count as digits only here: a word list that contains 三 must still match 三. Bare digits are a contact
//! only as a phone number, beside a cue such as 扣扣, or when they are disguised. Dates, times, ranges, amounts, line
//! titles and numeric idioms are none.

mod addresses;
mod atoms;
mod cues;
mod digit_group;
mod innocent_numbers;
mod numbers;

use atoms::Atom;

use super::types::{Match, MatchWay, Severity};
use named_enum::named_enum;

/// Maximum digits of the number in an assigned nickname: fewer than in a mobile number.
const LONGEST_ASSIGNED: usize = 10;

named_enum! {
    /// The kind of a contact, which is the type of its match.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ContactKind {
        Phone = "phone",
        Qq = "qq",
        Wechat = "wechat",
        Telegram = "telegram",
        Url = "url",
        Mail = "mail",
        /// Digits for an unknown service.
        Number = "contact",
    }
}

impl ContactKind {
    /// Returns the word reported for a match. The contact itself is not stored.
    const fn label(self) -> &'static str {
        match self {
            Self::Phone => "phone number",
            Self::Qq => "QQ number",
            Self::Wechat => "WeChat account",
            Self::Telegram => "Telegram account",
            Self::Url => "URL",
            Self::Mail => "mail address",
            Self::Number => "contact number",
        }
    }
}

/// A contact, as a range of atoms.
struct Contact {
    kind: ContactKind,
    first: usize,
    last: usize,
}

/// Returns true for a nickname that an app assigned to a new user, one of `words` with a number, such as 用户12345678: the
/// number is no contact.
pub fn is_assigned_nickname<'word>(nickname: &str, mut words: impl Iterator<Item = &'word String>) -> bool {
    let nickname = nickname.trim();
    let number = nickname.trim_start_matches(|character: char| !character.is_ascii_digit());
    let word = nickname[..nickname.len() - number.len()].trim_end().to_lowercase();
    words.any(|assigned| assigned.to_lowercase() == word)
        && number.len() <= LONGEST_ASSIGNED
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the contacts in a text, in its order.
pub fn contacts(text: &str) -> Vec<Match> {
    let atoms = atoms::read(text);
    let numbers = atoms::with_digits(&atoms);
    let mut found: Vec<Match> = Vec::new();
    let mut describe = |atoms: &[Atom], contacts: Vec<Contact>| {
        found.extend(contacts.into_iter().map(|contact| described(text, atoms, &contact)));
    };
    describe(&atoms, addresses::find(&atoms));
    if let Some(unspaced) = atoms::unspaced(&atoms) {
        describe(&unspaced, addresses::find(&unspaced));
    }
    describe(&numbers, numbers::find(&numbers));
    found.sort_by_key(|contact| contact.start);
    let mut end = 0;
    found.retain(|contact| {
        let is_apart = contact.start >= end;
        end = end.max(contact.end);
        is_apart
    });
    found
}

fn described(text: &str, atoms: &[Atom], contact: &Contact) -> Match {
    let (first, last) = (&atoms[contact.first], &atoms[contact.last]);
    Match {
        word: contact.kind.label().to_owned(),
        kind: contact.kind.name().to_owned(),
        severity: Severity::default(),
        tags: Vec::new(),
        way: if atoms[contact.first..=contact.last].iter().any(Atom::is_disguised) {
            MatchWay::Letters
        } else {
            MatchWay::Exact
        },
        start: first.index,
        end: last.index + 1,
        text: text[first.start..last.end].to_owned(),
    }
}

#[cfg(test)]
mod tests;
