//! Han characters that are written for others because they look alike, such as 徽 for 微, or usually stand in for them, such
//! as 草 for 操.
//!
//! The text is read with the other characters instead of listing more words. Characters that are words of every text, such
//! as 太 for 大, are left out: they would accuse the innocent.

use std::sync::LazyLock;

use super::{
    fixed_map::FixedMap,
    letters::LetteredText,
    readings::{Reading, Replaced},
};

/// A character, and those that look like it or stand in for it. All of them have three bytes, so that positions stay the same.
const SIMILAR: &[(char, &str)] = &[
    ('微', "徽溦徴薇癓"),
    ('信', "倌倍伩訫"),
    ('博', "傅溥愽搏膊簙慱"),
    ('赌', "睹赔堵覩"),
    ('彩', "釆"),
    ('票', "粟栗飘漂"),
    ('奸', "奷歼姧"),
    ('淫', "滛婬"),
    ('毒', "毐"),
    ('麻', "痳蔴"),
    ('枪', "抢怆呛"),
    ('支', "攴"),
    ('炮', "袍抱泡炰疱"),
    ('约', "灼"),
    ('操', "澡燥躁噪懆撡草艹曹肏"),
    ('妓', "伎枝"),
    ('娼', "猖倡"),
    ('色', "邑铯"),
    ('情', "睛凊"),
    ('裸', "祼躶臝果倮稞"),
    ('聊', "卿柳"),
    ('骚', "搔骇"),
    ('逼', "匐屄偪福笔币比毕壁"),
    ('傻', "儍煞沙莎啥"),
    ('贱', "浅溅剑箭俴"),
    ('妈', "马玛码嬷"),
    ('你', "尼泥伱妮伲"),
    ('死', "亖夗屎"),
    ('贷', "货贳"),
    ('货', "贷"),
    ('钱', "贱"),
    ('刷', "涮唰"),
    ('单', "箪阜"),
    ('套', "奎"),
    ('现', "枧砚"),
    ('兼', "廉蒹"),
    ('职', "轵织"),
    ('赚', "嫌谦"),
    ('弹', "掸"),
    ('假', "暇"),
    ('代', "伐"),
    ('练', "炼拣"),
    ('加', "咖伽茄嘉佳珈枷"),
    ('群', "郡裙帬宭"),
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
    ('猪', "诸"),
    ('混', "棍"),
    ('免', "兔"),
    ('场', "扬"),
    ('证', "怔"),
    ('贩', "贬"),
    ('狗', "拘"),
    ('粉', "纷汾"),
    ('丸', "凡"),
    ('口', "囗"),
    ('爱', "暧嗳"),
    ('慰', "尉熨"),
    ('脑', "恼瑙"),
    ('残', "歹"),
    ('去', "厾"),
    ('性', "姓狌"),
    ('夜', "液"),
    ('片', "爿"),
    ('强', "犟"),
    ('滚', "磙"),
    ('蛋', "疍"),
    ('股', "肌"),
    ('嫖', "瞟"),
    ('屌', "吊叼"),
    ('睾', "皋"),
    ('肛', "肝"),
    ('尿', "屛"),
    ('扣', "抠"),
    ('号', "呺"),
    ('卖', "买"),
];

const TABOO: &str = "逼操奸屌妓娼嫖淫骚尿肛";

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

/// Returns true for letters of abuse, which are seldom replaced by chance.
pub(super) fn is_taboo(letter: char) -> bool {
    TABOO.contains(letter)
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
