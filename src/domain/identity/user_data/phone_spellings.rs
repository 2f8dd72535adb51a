//! Finds users by phone number in any stored spelling.
//!
//! The service stores one spelling; others come from imports or manual edits. Spellings with digits only are looked up.
//! All others are irregular: an index contains just these users, and all of them are read.

use std::collections::HashMap;

use crate::{
    core::Core,
    domain::identity::users::{self, StoredUser},
    error::Result,
    store::Read,
    types::{PhoneNumber, PhoneRules, UserId},
};

/// Maximum irregular spellings read for one number. With more of them a single validation may miss one; a
/// synchronisation does not.
const MAX_IRREGULAR: u32 = 10_000;

/// All users with an irregular spelling, by number.
#[derive(Default)]
pub(super) struct IrregularNumbers(HashMap<PhoneNumber, Vec<StoredUser>>);

impl IrregularNumbers {
    /// Reads them in batches of `batch_size`. Blocks.
    pub(super) fn find_all(core: &Core, batch_size: u32) -> Result<Self> {
        let mut irregular = Self::default();
        let mut last = UserId(0);
        loop {
            let found = core.store.read(|tx| users::find_irregular_after_in(tx, last, batch_size))?;
            let Some(newest) = found.last() else { return Ok(irregular) };
            last = newest.id;
            for stored_user in found {
                irregular.insert(&core.phone_rules, stored_user);
            }
        }
    }

    fn insert(&mut self, rules: &PhoneRules, stored_user: StoredUser) {
        let number = stored_user.phone_number.as_deref().map(|stored| PhoneNumber::parse(stored, rules));
        if let Some(Ok(number)) = number {
            self.0.entry(number).or_default().push(stored_user);
        }
    }
}

/// Returns all users with this number in any spelling. Searches for irregular spellings unless they are passed in.
pub(super) fn find_owners_in(
    tx: &Read<'_>,
    rules: &PhoneRules,
    number: &PhoneNumber,
    irregular: Option<&IrregularNumbers>,
) -> Result<Vec<StoredUser>> {
    let plain = plain_spellings(number, rules);
    let mut owners = users::find_by_phone_spellings_in(tx, &plain)?;
    owners.retain(|stored_user| is_spelling(stored_user, rules, number));
    if let Some(IrregularNumbers(known)) = irregular {
        owners.extend(known.get(number).into_iter().flatten().cloned());
    } else {
        let irregular = users::find_irregular_after_in(tx, UserId(0), MAX_IRREGULAR)?;
        owners.extend(irregular.into_iter().filter(|stored_user| is_spelling(stored_user, rules, number)));
    }
    owners.sort_by_key(|stored_user| stored_user.id.0);
    Ok(owners)
}

fn is_spelling(stored_user: &StoredUser, rules: &PhoneRules, number: &PhoneNumber) -> bool {
    let stored = stored_user.phone_number.as_deref().filter(|stored| may_be_spelling(stored, number));
    matches!(stored.map(|stored| PhoneNumber::parse(stored, rules)), Some(Ok(parsed)) if parsed == *number)
}

/// Returns false if the last digits differ, to save the cost of parsing.
fn may_be_spelling(stored: &str, number: &PhoneNumber) -> bool {
    let mut digits = stored.bytes().rev().filter(u8::is_ascii_digit);
    !stored.is_ascii() || number.as_str().bytes().rev().take(4).all(|digit| digits.next() == Some(digit))
}

/// Returns the spellings with digits only. In some countries one of them is another number, so callers parse each
/// match.
fn plain_spellings(number: &PhoneNumber, rules: &PhoneRules) -> [String; 8] {
    let (code, national) = number.code_and_national(rules);
    // Some people keep the trunk prefix 0 after the country code.
    let trunk = format!("0{national}");
    [
        format!("+{code}{national}"),
        format!("00{code}{national}"),
        format!("{code}{national}"),
        format!("+{code}{trunk}"),
        format!("00{code}{trunk}"),
        format!("{code}{trunk}"),
        trunk,
        national,
    ]
}
