//! Finds users by phone number in any stored spelling.
//!
//! The service stores one spelling; others come from imports or manual edits. Separators are not digits, so an
//! irregular spelling is a prefix of the plain one followed by a non-digit. For each prefix the index is searched for
//! continuations that are not digits, so only irregular spellings are read.

use std::collections::{BTreeSet, HashMap};

use crate::{
    core::Core,
    domain::identity::users::{self, StoredUser},
    error::Result,
    store::Read,
    types::{PhoneNumber, PhoneRules, UserId},
};

/// Maximum irregular spellings read per prefix. Beyond it a single validation may miss one; a synchronisation does not.
const MAX_IRREGULAR: u32 = 1000;
/// Sorts after every text with the same prefix.
const LAST_CHAR: char = '\u{10ffff}';

/// All users with an irregular spelling, by number.
#[derive(Default)]
pub(super) struct IrregularNumbers(HashMap<PhoneNumber, Vec<StoredUser>>);

impl IrregularNumbers {
    /// Scans all users in batches of `batch_size`. Blocks.
    pub(super) fn find_all(core: &Core, batch_size: u32) -> Result<Self> {
        let mut irregular = Self::default();
        let mut last = UserId(0);
        loop {
            let ids = core.store.read(|tx| {
                let ids = users::ids_after_in(tx, last, batch_size)?;
                for id in &ids {
                    let stored_user = users::find_stored_in(tx, *id)?;
                    irregular.insert_if_irregular(&core.phone_rules, stored_user);
                }
                Ok(ids)
            })?;
            let Some(newest) = ids.last() else { return Ok(irregular) };
            last = *newest;
        }
    }

    fn insert_if_irregular(&mut self, rules: &PhoneRules, stored_user: Option<StoredUser>) {
        let Some(stored_user) = stored_user else { return };
        let is_irregular =
            |stored: &&str| !stored.strip_prefix('+').unwrap_or(stored).bytes().all(|byte| byte.is_ascii_digit());
        let irregular = stored_user.phone_number.as_deref().filter(is_irregular);
        if let Some(Ok(number)) = irregular.map(|stored| PhoneNumber::parse(stored, rules)) {
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
    match irregular {
        Some(IrregularNumbers(known)) => owners.extend(known.get(number).into_iter().flatten().cloned()),
        None => owners.extend(find_irregular_in(tx, rules, number, &plain)?),
    }
    owners.sort_by_key(|stored_user| stored_user.id.0);
    Ok(owners)
}

fn find_irregular_in(
    tx: &Read<'_>,
    rules: &PhoneRules,
    number: &PhoneNumber,
    plain: &[String; 8],
) -> Result<Vec<StoredUser>> {
    let prefixes: BTreeSet<_> =
        plain.iter().flat_map(|spelling| (0..=spelling.len()).filter_map(|end| spelling.get(..end))).collect();
    let mut found = Vec::new();
    for prefix in prefixes {
        for (above, below) in non_digit_ranges(prefix) {
            let irregular = users::find_by_phone_range_in(tx, &above, &below, MAX_IRREGULAR)?;
            found.extend(irregular.into_iter().filter(|stored_user| is_spelling(stored_user, rules, number)));
        }
    }
    Ok(found)
}

fn is_spelling(stored_user: &StoredUser, rules: &PhoneRules, number: &PhoneNumber) -> bool {
    let stored = stored_user.phone_number.as_deref().map(|stored| PhoneNumber::parse(stored, rules));
    matches!(stored, Some(Ok(parsed)) if parsed == *number)
}

/// Returns the text ranges after a prefix that contain neither a further digit nor a leading plus sign.
fn non_digit_ranges(prefix: &str) -> Vec<(String, String)> {
    let after = |next: char| format!("{prefix}{next}");
    let behind_digits = (after(':'), after(LAST_CHAR));
    if prefix.is_empty() {
        return vec![(String::new(), after('+')), (after(','), after('0')), behind_digits];
    }
    vec![(prefix.to_owned(), after('0')), behind_digits]
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
