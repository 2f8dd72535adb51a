//! Users by their phone number, in whatever spelling it is stored.
//!
//! The service itself stores one spelling of a number; others come in by hand or with an import. What people put
//! between digits is no digit, so any other spelling is a beginning of a plain one and then something else. For each
//! beginning the index is asked for numbers that go on with no digit: the right ones all do, so only odd ones are ever
//! looked at.

use std::collections::{BTreeSet, HashMap};

use crate::{
    core::Core,
    domain::identity::users::{self, Kept},
    error::Result,
    store::Read,
    types::{PhoneNumber, PhoneRules, UserId},
};

/// Odd spellings that begin alike and are looked at. Of more than these one may be missed; a synchronisation sees all.
const LOOKED_AT: u32 = 1000;
/// Stands behind every text that begins alike.
const LAST: char = '\u{10ffff}';

/// Every user whose number is stored in an odd spelling, by the number.
#[derive(Default)]
pub(super) struct Odd(HashMap<PhoneNumber, Vec<Kept>>);

impl Odd {
    /// Looks at everybody, so many at a time. Blocks for as long as that takes.
    pub(super) fn of_everybody(core: &Core, slice: u32) -> Result<Self> {
        let mut odd = Self::default();
        let mut last = UserId(0);
        loop {
            let ids = core.store.read(|tx| {
                let ids = users::ids_after_in(tx, last, slice)?;
                for id in &ids {
                    let kept = users::find_kept_in(tx, *id)?;
                    odd.remember(&core.phone_rules, kept);
                }
                Ok(ids)
            })?;
            let Some(newest) = ids.last() else { return Ok(odd) };
            last = *newest;
        }
    }

    fn remember(&mut self, rules: &PhoneRules, kept: Option<Kept>) {
        let Some(kept) = kept else { return };
        let is_odd =
            |stored: &&str| !stored.strip_prefix('+').unwrap_or(stored).bytes().all(|byte| byte.is_ascii_digit());
        let odd = kept.phone_number.as_deref().filter(is_odd);
        if let Some(Ok(number)) = odd.map(|stored| PhoneNumber::parse(stored, rules)) {
            self.0.entry(number).or_default().push(kept);
        }
    }
}

/// All users who have this number: the one by the right spelling is among them, if there is one. Those whose spelling
/// is odd are known already, or else looked for.
pub(super) fn holders_in(
    tx: &Read<'_>,
    rules: &PhoneRules,
    number: &PhoneNumber,
    odd: Option<&Odd>,
) -> Result<Vec<Kept>> {
    let plain = plain_spellings(number, rules);
    let mut holders = users::spelled_in(tx, &plain)?;
    holders.retain(|kept| is_spelling(kept, rules, number));
    match odd {
        Some(Odd(known)) => holders.extend(known.get(number).into_iter().flatten().cloned()),
        None => holders.extend(oddly_spelled_in(tx, rules, number, &plain)?),
    }
    holders.sort_by_key(|kept| kept.id.0);
    Ok(holders)
}

fn oddly_spelled_in(tx: &Read<'_>, rules: &PhoneRules, number: &PhoneNumber, plain: &[String; 8]) -> Result<Vec<Kept>> {
    let beginnings: BTreeSet<_> =
        plain.iter().flat_map(|spelling| (0..=spelling.len()).filter_map(|end| spelling.get(..end))).collect();
    let mut found = Vec::new();
    for beginning in beginnings {
        for (above, below) in going_on_with_no_digit(beginning) {
            let odd = users::spelled_between_in(tx, &above, &below, LOOKED_AT)?;
            found.extend(odd.into_iter().filter(|kept| is_spelling(kept, rules, number)));
        }
    }
    Ok(found)
}

fn is_spelling(kept: &Kept, rules: &PhoneRules, number: &PhoneNumber) -> bool {
    let stored = kept.phone_number.as_deref().map(|stored| PhoneNumber::parse(stored, rules));
    matches!(stored, Some(Ok(parsed)) if parsed == *number)
}

/// Between which texts those stand that go on with no digit, nor begin with the plus of an international number.
fn going_on_with_no_digit(beginning: &str) -> Vec<(String, String)> {
    let after = |next: char| format!("{beginning}{next}");
    let behind_digits = (after(':'), after(LAST));
    if beginning.is_empty() {
        return vec![(String::new(), after('+')), (after(','), after('0')), behind_digits];
    }
    vec![(beginning.to_owned(), after('0')), behind_digits]
}

/// The spellings of digits alone. Some would be another number, or none, in some country: whose number is spelled so is
/// looked at.
fn plain_spellings(number: &PhoneNumber, rules: &PhoneRules) -> [String; 8] {
    let (code, national) = number.code_and_national(rules);
    // People write the zero that is dialled inside of a country also behind its code.
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
