//! Cue words before and after a contact, such as 加微 and 扣扣.

use super::{
    super::similar_characters::similar_characters,
    ContactKind,
    atoms::{Atom, spells},
};

/// Cues, the longest first among those with a common beginning. Cues of one letter must stand apart.
const CUES: &[(&str, ContactKind)] = &[
    ("微信", ContactKind::Wechat),
    ("微信id", ContactKind::Wechat),
    ("wechatid", ContactKind::Wechat),
    ("微心", ContactKind::Wechat),
    ("维心", ContactKind::Wechat),
    ("薇心", ContactKind::Wechat),
    ("威信", ContactKind::Wechat),
    ("薇信", ContactKind::Wechat),
    ("维信", ContactKind::Wechat),
    ("徽信", ContactKind::Wechat),
    ("weixin", ContactKind::Wechat),
    ("wechat", ContactKind::Wechat),
    ("薇芯", ContactKind::Wechat),
    ("v信", ContactKind::Wechat),
    ("w信", ContactKind::Wechat),
    ("微❤", ContactKind::Wechat),
    ("威❤", ContactKind::Wechat),
    ("卫❤", ContactKind::Wechat),
    ("维❤", ContactKind::Wechat),
    ("卫星", ContactKind::Wechat),
    ("绿泡泡", ContactKind::Wechat),
    ("绿色软件", ContactKind::Wechat),
    ("vx", ContactKind::Wechat),
    ("wx", ContactKind::Wechat),
    ("加微", ContactKind::Wechat),
    ("加薇", ContactKind::Wechat),
    ("加v", ContactKind::Wechat),
    ("加我v", ContactKind::Wechat),
    ("扣扣", ContactKind::Qq),
    ("抠抠", ContactKind::Qq),
    ("蔻蔻", ContactKind::Qq),
    ("秋秋", ContactKind::Qq),
    ("球球", ContactKind::Qq),
    ("求求", ContactKind::Qq),
    ("丘丘", ContactKind::Qq),
    ("企鹅", ContactKind::Qq),
    ("加扣", ContactKind::Qq),
    ("加抠", ContactKind::Qq),
    ("qq", ContactKind::Qq),
    ("🐧", ContactKind::Qq),
    ("✈", ContactKind::Telegram),
    ("whatsapp", ContactKind::Phone),
    ("抖音号", ContactKind::Number),
    ("dy号", ContactKind::Number),
    ("快手号", ContactKind::Number),
    ("小红书号", ContactKind::Number),
    ("小红薯号", ContactKind::Number),
    ("陌陌号", ContactKind::Number),
    ("探探号", ContactKind::Number),
    ("yy", ContactKind::Number),
    ("telegram", ContactKind::Telegram),
    ("飞机", ContactKind::Telegram),
    ("电报", ContactKind::Telegram),
    ("tg", ContactKind::Telegram),
    ("电话", ContactKind::Phone),
    ("手机", ContactKind::Phone),
    ("热线", ContactKind::Phone),
    ("致电", ContactKind::Phone),
    ("短信", ContactKind::Phone),
    ("tel", ContactKind::Phone),
    ("phone", ContactKind::Phone),
    ("联系", ContactKind::Number),
    ("私聊", ContactKind::Number),
    ("私信", ContactKind::Number),
    ("加我", ContactKind::Number),
    ("找我", ContactKind::Number),
    ("加群", ContactKind::Number),
    ("进群", ContactKind::Number),
    ("群号", ContactKind::Number),
    ("群", ContactKind::Number),
    ("加", ContactKind::Number),
    ("扣", ContactKind::Qq),
    ("抠", ContactKind::Qq),
    ("薇", ContactKind::Wechat),
    ("微", ContactKind::Wechat),
    ("v", ContactKind::Wechat),
    ("q", ContactKind::Qq),
];
/// Cues of other services, before an account name.
const SERVICES: &[&str] = &[
    "lineid",
    "line:",
    "ins",
    "instagram",
    "discord",
    "skype",
    "抖音号",
    "抖音",
    "dy号",
    "快手号",
    "快手",
    "小红书",
    "小红书号",
    "微博",
    "b站",
    "陌陌号",
    "探探号",
    "公众号",
];
/// Cues that may follow a number.
const AFTER: &[&str] = &["找我", "加我", "联系", "私聊", "私我", "加微", "加群", "微信", "q我", "电话", "同号", "微同"];
/// Characters between a cue and its number.
const BETWEEN: &str = "号码群裙搜索是为的我加扣:：·.,，、。-_/\\|=>→+~～!！@*#()（）[]【】<>《》\"'“”’… ";
/// Maximum number of symbols between two characters of a cue.
const WIDEST_GAP: usize = 2;
/// Maximum number of characters between a cue and its number.
const REACH: usize = 6;

/// Returns the kind of contact that a cue before this position announces.
pub(super) fn before(atoms: &[Atom], start: usize) -> Option<ContactKind> {
    // 群 and 加 are cues that may stand between a better cue and its number.
    let mut general = None;
    for end in (start.saturating_sub(REACH)..=start).rev() {
        match ending_at(atoms, end) {
            Some(ContactKind::Number) => general = Some(ContactKind::Number),
            Some(kind) => return Some(kind),
            None => {}
        }
        let is_between =
            |atom: &Atom| BETWEEN.contains(atom.plain) || atom.plain.is_whitespace() || is_picture(atom.plain);
        if end.checked_sub(1).is_none_or(|index| !is_between(&atoms[index])) {
            break;
        }
    }
    general
}

/// Returns true if a cue of another service stands before this position.
pub(super) fn names_service(atoms: &[Atom], start: usize) -> bool {
    let gap = atoms[..start].iter().rev().take(REACH).take_while(|atom| BETWEEN.contains(atom.plain)).count();
    let ends_in = |end: usize| {
        SERVICES.iter().any(|cue| start_of(atoms, end, cue).is_some_and(|start| stands_apart(atoms, start, cue)))
    };
    (start - gap..=start).any(ends_in)
}

/// Returns true if a cue follows this position.
pub(super) fn follows(atoms: &[Atom], end: usize) -> bool {
    let gap = atoms[end..].iter().take(3).take_while(|atom| !atom.plain.is_alphanumeric()).count();
    AFTER.iter().any(|cue| spells(atoms, end + gap, cue))
}

fn ending_at(atoms: &[Atom], end: usize) -> Option<ContactKind> {
    let is_cue = |cue: &str| start_of(atoms, end, cue).is_some_and(|start| stands_apart(atoms, start, cue));
    CUES.iter().find(|(cue, _)| is_cue(cue)).map(|(_, kind)| *kind)
}

/// Returns the start of a cue that ends here. Symbols may separate its characters: 微.信, Q Q.
fn start_of(atoms: &[Atom], end: usize, cue: &str) -> Option<usize> {
    let mut start = end;
    for (index, letter) in cue.chars().rev().enumerate() {
        let is_symbol = |atom: &&Atom| !atom.plain.is_alphanumeric() && atom.plain != letter;
        let gap =
            if index == 0 { 0 } else { atoms[..start].iter().rev().take(WIDEST_GAP).take_while(is_symbol).count() };
        let is_letter = |plain: char| plain == letter || similar_characters().letter_of(plain) == Some(letter);
        start = (start - gap).checked_sub(1).filter(|&index| is_letter(atoms[index].plain))?;
    }
    Some(start)
}

/// Returns true if a Latin cue does not continue another word.
fn stands_apart(atoms: &[Atom], start: usize, cue: &str) -> bool {
    !cue.starts_with(|letter: char| letter.is_ascii_alphabetic())
        || start.checked_sub(1).is_none_or(|index| !atoms[index].is_word())
}

fn is_picture(character: char) -> bool {
    character >= '\u{2190}' && !character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::contact::atoms::read;

    #[test]
    fn finds_cues_before_a_number() {
        for (text, kind) in [
            ("加微信：", Some(ContactKind::Wechat)),
            ("我的Q Q号 ", Some(ContactKind::Qq)),
            ("我的QQ号是", Some(ContactKind::Qq)),
            ("扣扣群👉", Some(ContactKind::Qq)),
            ("faq", None),
            ("电话", Some(ContactKind::Phone)),
            ("早上", None),
        ] {
            let atoms = read(text);
            assert_eq!(before(&atoms, atoms.len()), kind, "{text}");
        }
    }
}
