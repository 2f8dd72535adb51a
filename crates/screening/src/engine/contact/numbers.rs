//! Numbers that are contacts.

use super::{Contact, ContactKind, atoms::Atom, cues, digit_group::Group, innocent_numbers};

/// Maximum characters between two groups of digits of one number.
const WIDEST_GAP: usize = 3;
/// Minimum digits of an account number after a cue.
const SHORTEST_ANNOUNCED: usize = 5;
/// Minimum digits of one without a cue.
const SHORTEST: usize = 7;
/// Maximum digits of an account number.
const LONGEST: usize = 12;

/// Returns the contacts among the numbers of a text.
pub(super) fn find(atoms: &[Atom]) -> Vec<Contact> {
    let mut found = Vec::new();
    for chain in chains(atoms) {
        let mut start = 0;
        while start < chain.len() {
            if let Some(length) = phone_groups(&chain[start..]) {
                found.push(contact(ContactKind::Phone, &chain[start..start + length]));
                start += length;
                continue;
            }
            let innocent = innocent_numbers::length(&chain[start..], atoms);
            if innocent > 0 {
                start += innocent;
                continue;
            }
            let rest = chain[start + 1..].iter().enumerate();
            let is_end = |&(index, _): &(usize, &Group)| {
                let next = &chain[start + 1 + index..];
                innocent_numbers::length(next, atoms) > 0 || phone_groups(next).is_some()
            };
            let length = 1 + rest.take_while(|item| !is_end(item)).count();
            let groups = &chain[start..start + length];
            found.extend(kind_of(groups, atoms).map(|kind| contact(kind, groups)));
            start += length;
        }
    }
    found
}

fn contact(kind: ContactKind, groups: &[Group]) -> Contact {
    Contact { kind, first: groups[0].first, last: groups[groups.len() - 1].last }
}

/// Returns the sequences of groups that are no more than a few symbols apart.
fn chains(atoms: &[Atom]) -> Vec<Vec<Group>> {
    let mut chains: Vec<Vec<Group>> = Vec::new();
    let mut gap = None;
    for (index, atom) in atoms.iter().enumerate() {
        let Some(digit) = atom.digit() else {
            let is_symbol = !atom.plain.is_alphanumeric();
            gap = gap.filter(|gap: &String| is_symbol && gap.chars().count() < WIDEST_GAP).map(|mut gap| {
                gap.push(atom.plain);
                gap
            });
            continue;
        };
        match (chains.last_mut(), gap.take()) {
            (Some(chain), Some(between)) => match chain.last_mut() {
                // Digits and Han numerals side by side are one group.
                Some(group) if between.is_empty() => {
                    group.digits.push(digit);
                    group.last = index;
                }
                _ => chain.push(Group { first: index, last: index, digits: vec![digit], gap: between }),
            },
            _ => chains.push(vec![Group { first: index, last: index, digits: vec![digit], gap: String::new() }]),
        }
        gap = Some(String::new());
    }
    chains
}

/// Returns the number of groups that make a phone number.
fn phone_groups(chain: &[Group]) -> Option<usize> {
    if innocent_numbers::is_arrangement(chain)
        || innocent_numbers::are_ascending(chain)
        || innocent_numbers::is_date_or_decimal(chain)
    {
        return None;
    }
    let mut digits = Vec::new();
    for (index, group) in chain.iter().enumerate() {
        // A colon separates hours and minutes.
        if index > 0 && group.gap.contains(':') {
            return None;
        }
        digits.extend_from_slice(&group.digits);
        let is_whole = chain.get(index + 1).is_none_or(|next| !next.gap.is_empty());
        if is_whole && is_phone(&digits) && !innocent_numbers::is_pattern(&digits) {
            return Some(index + 1);
        }
        if digits.len() > 15 {
            return None;
        }
    }
    None
}

/// Returns true for mobile numbers of China, with or without the country code, and for service numbers.
fn is_phone(digits: &[u8]) -> bool {
    let mobile = [&[0, 0, 8, 6][..], &[8, 6], &[]].iter().find_map(|code| digits.strip_prefix(*code));
    let is_mobile = |digits: &[u8]| digits.len() == 11 && digits[0] == 1 && digits[1] >= 3;
    let is_service = digits.len() == 10 && matches!(digits[..3], [4 | 8, 0, 0]);
    let is_landline = matches!(digits.len(), 11 | 12) && digits[0] == 0 && digits[1] != 0;
    mobile.is_some_and(is_mobile) || is_mobile(digits) || is_service || is_landline
}

/// Returns the kind of the number in these groups; `None` if it is no contact.
fn kind_of(groups: &[Group], atoms: &[Atom]) -> Option<ContactKind> {
    let (first, last) = (groups[0].first, groups[groups.len() - 1].last);
    let digits: Vec<u8> = groups.iter().flat_map(|group| group.digits.iter().copied()).collect();
    if let Some(kind) = cues::before(atoms, first) {
        // 加 and 群 precede many numbers.
        let is_weak = kind == ContactKind::Number;
        let shortest = if is_weak { SHORTEST } else { SHORTEST_ANNOUNCED };
        let is_number = (shortest..=LONGEST + 2).contains(&digits.len());
        let is_own = innocent_numbers::is_saying(&digits) || innocent_numbers::has_unit(atoms, last);
        return (is_number && !is_own).then_some(kind);
    }
    let is_announced = digits.len() >= SHORTEST && cues::follows(atoms, last + 1);
    let written = &atoms[first..=last];
    let is_disguised = written.iter().any(Atom::is_disguised)
        || written.iter().all(|atom| atom.digit().is_none() || atom.is_numeral())
        || (groups.len() >= SHORTEST && groups.iter().all(|group| group.digits.len() == 1));
    let is_contact = (SHORTEST..=LONGEST).contains(&digits.len())
        && (is_announced || is_disguised || is_alone(atoms, first, last))
        && (is_announced
            || !(innocent_numbers::are_rows(groups)
                || innocent_numbers::are_ascending(groups)
                || innocent_numbers::is_arrangement(groups)))
        && !innocent_numbers::is_pattern(&digits)
        && !innocent_numbers::has_unit(atoms, last)
        && !innocent_numbers::is_labelled(atoms, first);
    is_contact.then_some(ContactKind::Number)
}

/// Returns true if hardly anything but the number is in the text, as in many nicknames.
fn is_alone(atoms: &[Atom], first: usize, last: usize) -> bool {
    let letters = |atoms: &[Atom]| atoms.iter().filter(|atom| atom.plain.is_alphanumeric()).count();
    letters(&atoms[..first]) + letters(&atoms[last + 1..]) <= 4
}
