//! The dictionary's words, for advice about new words of the list.

use super::{app_vocabulary::is_term, dictionary::dictionary};

/// The frequency class from which a word is ordinary: about a thousand occurrences in the corpus of the dictionary.
const ORDINARY: u8 = 20;
/// Words of ordinary questions to this app that are rarer in the corpus of the dictionary, which is written prose. A lower
/// class would call 赌博 and 毒品 ordinary, too.
const EVERYDAY: &str = "你好 您好 怎么办 没关系 不客气 怀孕 算命 算卦 姻缘 缘分 运势 财运 桃花运 前任 出轨 分手 暗恋 恋爱 相亲 \
    备孕 生孩子 求子 考公 升职 搬家 装修 买房 租房 炒股 彩票 学业 住院 出行 起名 取名 择日 黄历 生辰 属相 星座 塔罗 占星 解梦 \
    看相 手相 面相 求签 抽签 佛祖 卦师 短信 淘宝 支付宝 快递 外卖 恭喜";
/// The lowest frequency class of the longer words that an advice names.
const MIN_NAMED: u8 = 12;

/// Returns true if this normal form is a word of ordinary speech or of this app.
pub fn is_ordinary(normal_form: &str) -> bool {
    let letters: Vec<char> = normal_form.chars().collect();
    let is_of_app = || is_term(normal_form) || EVERYDAY.split_whitespace().any(|word| word == normal_form);
    is_of_app() || dictionary().class(&letters).is_some_and(|class| class >= ORDINARY)
}

/// Calls `visit` with each proper part of each common word that has one of these lengths, and the word.
pub fn each_part_of_common_words(lengths: &[usize], visit: &mut dyn FnMut(&str, &[char])) {
    let mut part = String::new();
    for letters in dictionary().words(MIN_NAMED) {
        for length in lengths.iter().filter(|length| (1..letters.len()).contains(*length)) {
            for window in letters.windows(*length) {
                part.clear();
                part.extend(window);
                visit(&part, &letters);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_ordinary_words() {
        for word in ["没有", "一个", "电话", "投资", "占卜", "风水", "算命", "姻缘", "你好", "怎么办", "怀孕"]
        {
            assert!(is_ordinary(word), "{word}");
        }
        for word in EVERYDAY.split_whitespace() {
            let letters: Vec<char> = word.chars().collect();
            let class = dictionary().class(&letters);
            assert!(class.is_none_or(|class| class < ORDINARY), "the dictionary knows that {word} is ordinary");
        }
        for word in ["赌博", "代开", "妈的", "free money", ""] {
            assert!(!is_ordinary(word), "{word}");
        }
    }

    #[test]
    fn finds_longer_words() {
        let mut found = Vec::new();
        each_part_of_common_words(&[2], &mut |part, word| {
            if part == "学生" {
                found.push(word.iter().collect::<String>());
            }
        });
        assert!(found.iter().any(|word| word == "大学生"), "{found:?}");
    }
}
