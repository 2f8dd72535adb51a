//! Emoji that stand for characters that sound like their names: 🏠 for 家, and so for 加.

use super::{
    letters::LetteredText,
    readings::{Reading, Replaced},
};

/// Emoji, and the characters of their names. One with two names has two readings.
const NAMES: &str = "➕加 🏠家 🏡家 🏘家 ❤心爱 ♥心爱 💗心爱 💖心爱 💕心爱 💓心爱 💙心爱 💚心爱 💛心爱 🧡心爱 💜心爱 🖤心爱 🤍心爱 😍爱 🥰爱 ✉信 \
    📧信 📩信 📨信 💌信 🌟星 ⭐星 👗裙 💃裙 🐔鸡 🐓鸡 🐤鸡 🍗鸡 🐴马 🐎马 🦄马 💀死 ☠死 ⚰死 🪦死 🖊笔 🖋笔 ✏笔 ✒笔 🖍笔 🐝逼 👃鼻 🍺逼 \
    🌿草 🌱草 ☘草 🍀草 🔫枪 💊药 🥬菜 🥦菜 🍍菠 💣炮 🎇炮 🎆炮 🧨炮 🐟鱼 🐠鱼 🌙月夜 🌃夜 🌛月夜 🍃叶 🍂叶 💯百 😄乐 😁乐 😃乐 😆乐 🤣笑 👄口 \
    👅舌 💋吻 🦶脚 👣脚 🦵腿 👤人 🧍人 👨人 👩女 👧女 🧠脑 ✂剪 🗡剑 ⚔剑 💩屎 🐶狗 🐕狗 🐷猪 🐖猪 🐂牛 🐮牛 🐭鼠 🐍蛇 🐍色 🍵茶 🎬片 🎞片 \
    📽片 🟡黄 🟨黄 🍐梨 🌰栗 🌊浪 🔥火 💧水 💦水 🚗车 📦包 👜包 🕒时 ⏰时 🍎果 🍑桃 🌽玉 🐑羊 🐏羊 👙裸 💰钱 💵钱 💴钱 🎫票 🎟票 🧾票 🎲赌 🎰赌 🃏赌 \
    🥚蛋 🧵线 📄单 📃单 🧻纸 🎨色彩 🌈虹彩 🏃奔 🤝交 🚦交 👑皇 🍚饭 🌾麦 💳卡 🚪门 👁眼 🦆鸭 🦅鹰 🐺狼 🧊冰 ❄冰 ☁云 🌽种 🩸血 ⛓链 🌼花 🌸花 🌺花 \
    🌹花 💐花 🖐五 ✋五 🤚手 👋手 🥊拳 🛏床 💉针 🐛虫 🍇葡 🎤麦 🦌鹿 🥜花 🍉瓜 👅舔 🐓巴";
/// Names of Latin letters.
const LATIN_NAMES: [(char, &str); 2] = [('🐧', "qq"), ('✈', "tg")];
/// An invisible character of one byte, which keeps the positions behind a longer emoji.
const PADDING: char = '\u{7F}';

/// Returns the emoji that stand for characters.
pub(super) fn signs() -> impl Iterator<Item = char> {
    let named = NAMES.split_whitespace().filter_map(|entry| entry.chars().next());
    named.chain(LATIN_NAMES.iter().map(|(emoji, _)| *emoji))
}

/// Returns the text with its emoji as the characters of their first names, or of their second ones if they have some; `None`
/// without any.
pub(super) fn named(text: &str, second: bool) -> Option<Reading> {
    let (mut read, mut replaced, mut has_second) = (String::with_capacity(text.len()), Vec::new(), false);
    for (place, character) in text.char_indices() {
        let start = read.len();
        if let Some((_, name)) = LATIN_NAMES.iter().find(|(emoji, _)| *emoji == character) {
            read.push_str(name);
        } else if let Some(mut names) = names_of(character) {
            let first = names.next();
            let other = names.next().filter(|_| second);
            has_second |= other.is_some();
            read.extend(other.or(first));
        } else {
            read.push(character);
            continue;
        }
        while read.len() < start + character.len_utf8() {
            read.push(PADDING);
        }
        replaced.push(Replaced { place, is_doubtful: true });
    }
    let is_new = !replaced.is_empty() && (has_second || !second);
    is_new.then(|| Reading { text: LetteredText::new(read), replaced })
}

fn names_of(emoji: char) -> Option<std::str::Chars<'static>> {
    NAMES.split_whitespace().find_map(|entry| entry.strip_prefix(emoji)).map(str::chars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_stay_the_same() {
        let text = "薇❤️，加🐧🏠群";
        let (first, second) = (named(text, false).unwrap(), named(text, true).unwrap());
        assert_eq!(first.text.text(), "薇心\u{fe0f}，加qq\u{7f}\u{7f}家\u{7f}群");
        assert!(second.text.text().starts_with("薇爱"));
        assert_eq!((first.text.text().len(), second.text.text().len()), (text.len(), text.len()));
        assert!(named("加微信", false).is_none() && named("🏠", true).is_none());
        for sign in signs() {
            assert!(sign.len_utf8() >= 3, "{sign}");
        }
    }
}
