//! Han characters that are written for others because they look alike: 徽 for 微.
//!
//! The text is read with the other characters instead of listing more words. Characters of the same sound are left to the
//! comparison by sound, and characters that are words of every text, such as 太 for 大, are left out: they would accuse
//! the innocent.

use std::sync::LazyLock;

use super::{
    fixed_map::FixedMap,
    letters::LetteredText,
    readings::{Reading, Replaced},
};

/// A character, and those that look like it. All of them have three bytes, so that positions stay the same.
const SIMILAR: &[(char, &str)] = &[
    ('微', "徽"),
    ('信', "倌倍"),
    ('博', "傅溥"),
    ('票', "粟栗"),
    ('奸', "奷"),
    ('淫', "滛"),
    ('毒', "毐"),
    ('麻', "痳"),
    ('枪', "抢怆"),
    ('炮', "袍抱"),
    ('操', "澡燥躁"),
    ('妓', "伎枝"),
    ('娼', "猖倡"),
    ('色', "邑"),
    ('情', "睛"),
    ('裸', "祼"),
    ('聊', "卿柳"),
    ('骚', "搔骇"),
    ('逼', "匐"),
    ('贷', "货"),
    ('货', "贷"),
    ('钱', "浅贱"),
    ('刷', "涮"),
    ('套', "奎"),
    ('兼', "廉"),
    ('赚', "嫌谦"),
    ('弹', "掸"),
    ('假', "暇"),
    ('代', "伐"),
    ('加', "咖伽"),
    ('群', "郡"),
    ('乳', "浮"),
    ('骗', "编"),
    ('诈', "炸"),
    ('大', "犬"),
    ('日', "曰"),
    ('网', "冈罔"),
    ('洗', "冼"),
    ('吸', "汲"),
    ('暴', "瀑"),
    ('幼', "幻"),
    ('偷', "愉榆"),
    ('拍', "柏泊"),
    ('贪', "贫"),
    ('鸡', "鸣"),
    ('猪', "睹"),
    ('混', "棍"),
    ('免', "兔"),
    ('场', "扬"),
    ('证', "怔"),
    ('贩', "贬"),
    ('赌', "赔"),
    ('肏', "育"),
    ('狗', "拘"),
    ('粉', "纷"),
    ('丸', "凡"),
];

/// Characters with the one that each resembles.
pub(super) struct SimilarCharacters(FixedMap<char, char>);

/// Returns the table of the process.
pub(super) fn similar_characters() -> &'static SimilarCharacters {
    static TABLE: LazyLock<SimilarCharacters> = LazyLock::new(|| SimilarCharacters(pairs().collect()));
    &TABLE
}

/// Returns pairs of a character and the one that it resembles.
pub(super) fn pairs() -> impl Iterator<Item = (char, char)> {
    SIMILAR.iter().flat_map(|&(letter, similar)| similar.chars().map(move |similar| (similar, letter)))
}

impl SimilarCharacters {
    /// Returns the letter that a character resembles.
    pub(super) fn letter_of(&self, character: char) -> Option<char> {
        self.0.get(&character).copied()
    }
}

/// Returns the text with the letters that its characters resemble; `None` if there are none.
pub(super) fn resembled(text: &str) -> Option<Reading> {
    let similar = similar_characters();
    let (mut read, mut replaced) = (String::with_capacity(text.len()), Vec::new());
    for (place, character) in text.char_indices() {
        let letter = similar.letter_of(character);
        read.push(letter.unwrap_or(character));
        replaced.extend(letter.map(|_| Replaced { place, is_doubtful: false }));
    }
    (!replaced.is_empty()).then(|| Reading { text: LetteredText::new(read), replaced })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::folding::folded_letter;

    #[test]
    fn positions_stay_the_same() {
        let mut sources: Vec<char> = Vec::new();
        for (similar, letter) in pairs() {
            assert!(similar.len_utf8() == 3 && letter.len_utf8() == 3, "{similar} for {letter}");
            assert_eq!((folded_letter(similar), folded_letter(letter)), (Some(similar), Some(letter)));
            assert!(!sources.contains(&similar), "{similar} resembles two letters");
            sources.push(similar);
        }
        assert_eq!(resembled("加徽信").as_ref().map(|reading| reading.text.text()), Some("加微信"));
        assert!(resembled("加微信").is_none());
    }
}
