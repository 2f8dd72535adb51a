//! URLs, mail addresses, and account names after a cue.

use super::{
    Contact, ContactKind,
    atoms::{Atom, spells},
    cues,
};

/// Top-level domains that are common in advertisements. Any other needs a scheme or `www`.
const DOMAINS: &[&str] = &[
    "com", "cn", "net", "org", "top", "xyz", "cc", "vip", "shop", "club", "site", "online", "info", "io", "me", "app",
    "tv", "co", "link", "live", "fun", "icu", "wang", "ltd", "pro", "store", "ru", "hk", "tw", "ink", "la", "pw",
    "work", "win",
];
/// Those of which the label is hardly a word by itself. Others need a point without spaces: iPhone · Pro.
const CLEAR_DOMAINS: &[&str] = &["com", "cn", "net", "org", "top", "xyz", "cc", "vip"];
/// Those of short addresses, which need a path.
const SHORT_DOMAINS: &[&str] = &["ly", "gg", "im", "be", "gl", "to"];
/// Names with a point that are no domains.
const PRODUCTS: &[&str] = &["asp.net", "vb.net", "ado.net", "ml.net", "socket.io", "about.me", "draw.io"];
/// Spellings of a point, and of an at sign.
const POINTS: [&str; 18] = [
    ".",
    "。",
    "点",
    "[.]",
    "(.)",
    "【.】",
    "{.}",
    "(点)",
    "[点]",
    "【点】",
    "(dot)",
    "[dot]",
    "【dot】",
    "{dot}",
    "_dot_",
    "●",
    "•",
    "·",
];
const AT_SIGNS: [&str; 9] = ["@", "(at)", "[at]", "【at】", "{at}", "艾特", "爱特", "圈", "#"];
/// Maximum length of a label and of the name in a mail address, which bounds the work.
const LONGEST_ADDRESS: usize = 64;
/// Maximum labels of a domain.
const MAX_LABELS: usize = 8;
/// Minimum and maximum length of an account name.
const NAME_LENGTH: std::ops::RangeInclusive<usize> = 5..=32;

/// Returns the addresses and account names of a text.
pub(super) fn find(atoms: &[Atom]) -> Vec<Contact> {
    let mut found = Vec::new();
    let mut index = 0;
    while index < atoms.len() {
        let contact = address_at(atoms, index).or_else(|| account_at(atoms, index));
        index = contact.as_ref().map_or(index + 1, |contact| contact.last + 1);
        found.extend(contact);
    }
    found
}

/// Returns the address that begins here.
fn address_at(atoms: &[Atom], start: usize) -> Option<Contact> {
    if !atoms[start].is_word() || start.checked_sub(1).is_some_and(|index| is_name(&atoms[index])) {
        return None;
    }
    for scheme in ["http://", "https://"] {
        if spells(atoms, start, scheme) {
            let end = url_end(atoms, start + scheme.len());
            return (end > start + scheme.len()).then(|| Contact {
                kind: ContactKind::Url,
                first: start,
                last: end - 1,
            });
        }
    }
    if let Some(end) = server_end(atoms, start) {
        return Some(Contact { kind: ContactKind::Url, first: start, last: url_end(atoms, end).max(end) - 1 });
    }
    let name = atoms[start..].iter().take(LONGEST_ADDRESS).take_while(|atom| is_name(atom) || atom.plain == '.');
    let name_end = start + name.count();
    if let Some(length) = at_sign(atoms, name_end)
        && let Some((end, _)) = domain_end(atoms, name_end + length)
    {
        return Some(Contact { kind: ContactKind::Mail, first: start, last: end - 1 });
    }
    let (end, is_named) = domain_end(atoms, start)?;
    if !is_named {
        return None;
    }
    let is_telegram = spells(atoms, start, "t.me") || spells(atoms, start, "telegram.");
    let kind = if is_telegram { ContactKind::Telegram } else { ContactKind::Url };
    Some(Contact { kind, first: start, last: url_end(atoms, end).max(end) - 1 })
}

/// Returns the end of the domain that begins here: labels and points, the last label a known top-level domain. Also
/// returns false if it may be a number or the name of a product.
fn domain_end(atoms: &[Atom], start: usize) -> Option<(usize, bool)> {
    let mut end = label_end(atoms, start)?;
    let (mut domain_end, mut labels) = (None, 1);
    while let Some(length) = point(atoms, end).filter(|_| labels < MAX_LABELS) {
        let Some(next) = label_end(atoms, end + length) else { break };
        let label: String = atoms[end + length..next].iter().map(|atom| atom.plain).collect();
        labels += 1;
        let is_loose = matches!(atoms[end].plain, ' ' | '·');
        let label = label.replace('0', "o");
        let is_short = !is_loose && SHORT_DOMAINS.contains(&label.as_str()) && spells(atoms, next, "/");
        let is_known = is_short || if is_loose { CLEAR_DOMAINS } else { DOMAINS }.contains(&label.as_str());
        let is_web = labels > 2 && spells(atoms, start, "www");
        end = next;
        if is_known || is_web {
            domain_end = Some(end);
        }
    }
    let written: String = atoms[start..domain_end?].iter().map(|atom| atom.plain).collect();
    let has_letter =
        written.split('.').next().is_some_and(|label| label.chars().any(|letter| letter.is_ascii_alphabetic()));
    let has_code = written.len() > 7 && written.starts_with(|letter: char| letter.is_ascii_digit());
    Some((domain_end?, (has_letter || has_code) && !PRODUCTS.contains(&written.as_str())))
}

/// Returns the end of a public IPv4 address with a port: 103.45.67.89:8080.
fn server_end(atoms: &[Atom], start: usize) -> Option<usize> {
    let digits_at = |index: usize| {
        atoms[index.min(atoms.len())..].iter().take(6).take_while(|atom| atom.plain.is_ascii_digit()).count()
    };
    let (mut end, mut octets) = (start, Vec::with_capacity(4));
    for part in 0..4 {
        if part > 0 {
            end += point(atoms, end)?;
        }
        let length = digits_at(end);
        let octet: String = atoms[end..].iter().take(length).map(|atom| atom.plain).collect();
        octets.push(octet.parse::<u8>().ok()?);
        end += length;
    }
    let is_private = matches!(octets[..], [0 | 10 | 127, ..] | [192, 168, ..] | [172, 16..=31, ..]);
    let port = if spells(atoms, end, ":") { digits_at(end + 1) } else { 0 };
    ((3..=5).contains(&port) && !is_private).then_some(end + 1 + port)
}

/// Returns the length of a point of a domain, also spelled: 点, dot, (dot).
fn point(atoms: &[Atom], index: usize) -> Option<usize> {
    joint(atoms, index, &POINTS, "dot")
}

/// Returns the length of an at sign, also spelled.
fn at_sign(atoms: &[Atom], index: usize) -> Option<usize> {
    joint(atoms, index, &AT_SIGNS, "at")
}

/// Returns the length of the first of these spellings that begins here, with a space on both sides or none. A word has to
/// stand apart.
fn joint(atoms: &[Atom], index: usize, spellings: &[&str], word: &str) -> Option<usize> {
    let length_at = |index: usize, text: &str| spells(atoms, index, text).then(|| text.chars().count());
    if !spells(atoms, index, " ") {
        return spellings.iter().find_map(|text| length_at(index, text));
    }
    let length = spellings.iter().chain([&word]).find_map(|text| length_at(index + 1, text))?;
    spells(atoms, index + 1 + length, " ").then_some(length + 2)
}

fn label_end(atoms: &[Atom], start: usize) -> Option<usize> {
    let letters = atoms[start..].iter().take(LONGEST_ADDRESS);
    let length = letters.take_while(|atom| atom.is_word() || atom.plain == '-').count();
    (length > 0).then_some(start + length)
}

fn url_end(atoms: &[Atom], start: usize) -> usize {
    let is_part =
        |atom: &&Atom| atom.plain.is_ascii_graphic() && !matches!(atom.plain, ',' | ')' | ']' | '"' | '\'' | '!');
    let end = start + atoms[start..].iter().take_while(is_part).count();
    let trailing =
        atoms[start..end].iter().rev().take_while(|atom| matches!(atom.plain, '.' | '?' | ':' | ';')).count();
    end - trailing
}

/// Returns the account name that begins here after a cue: `微信号 abc_123`, `电报 @abc`.
fn account_at(atoms: &[Atom], start: usize) -> Option<Contact> {
    if !atoms[start].is_word() || start.checked_sub(1).is_some_and(|index| atoms[index].is_word()) {
        return None;
    }
    let end = start + atoms[start..].iter().take_while(|atom| is_name(atom)).count();
    let name = &atoms[start..end];
    let letters = name.iter().filter(|atom| atom.plain.is_ascii_alphabetic()).count();
    // Account names have digits or underscores; without them a Latin word may follow 微信. Mere digits are numbers.
    let is_account =
        letters < name.len() || start.checked_sub(1).is_some_and(|index| matches!(atoms[index].plain, '@' | ':'));
    // A number with a unit, such as 5kg and 20ml, has few letters.
    let is_name = atoms[start].plain.is_ascii_alphabetic() || letters > 2;
    if letters == 0 || !is_account || !is_name || !NAME_LENGTH.contains(&name.len()) {
        return None;
    }
    let kind = match cues::before(atoms, start) {
        Some(kind @ (ContactKind::Wechat | ContactKind::Telegram)) => kind,
        _ => cues::names_service(atoms, start).then_some(ContactKind::Number)?,
    };
    Some(Contact { kind, first: start, last: end - 1 })
}

fn is_name(atom: &Atom) -> bool {
    atom.is_word() || matches!(atom.plain, '_' | '-')
}
