//! Normalises text for comparison.
//!
//! Of the traditional characters only those in the vocabulary of this subject are simplified. The result can be longer
//! than the input, so it is cut at the maximum length of the data.

use unicode_normalization::UnicodeNormalization;

use super::LARGEST_DATA_BYTES;

/// Compatibility forms folded, traditional characters of this vocabulary simplified, lower case.
pub(super) fn normalize(text: &str) -> String {
    text.nfkc().take(LARGEST_DATA_BYTES).map(simplified).flat_map(char::to_lowercase).collect()
}

/// Returns true for Chinese characters, false for punctuation, digits and signs.
pub(super) fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}')
}

fn simplified(letter: char) -> char {
    match letter {
        '為' | '爲' => '为',
        '風' => '风',
        '澤' => '泽',
        '訟' => '讼',
        '師' => '师',
        '謙' => '谦',
        '隨' => '随',
        '蠱' => '蛊',
        '臨' => '临',
        '觀' => '观',
        '賁' => '贲',
        '剝' => '剥',
        '復' | '複' => '复',
        '無' => '无',
        '頤' => '颐',
        '過' => '过',
        '離' => '离',
        '恆' => '恒',
        '遯' => '遁',
        '壯' => '壮',
        '晉' => '晋',
        '損' => '损',
        '昇' => '升',
        '兌' | '兊' => '兑',
        '漸' => '渐',
        '歸' => '归',
        '豐' => '丰',
        '渙' => '涣',
        '節' => '节',
        '濟' => '济',
        '變' => '变',
        '動' => '动',
        '陰' => '阴',
        '陽' => '阳',
        '內' => '内',
        '綜' => '综',
        '宮' => '宫',
        '錯' => '错',
        '問' => '问',
        '題' => '题',
        '對' => '对',
        '這' => '这',
        '號' => '号',
        '轉' => '转',
        '單' => '单',
        '條' => '条',
        '個' => '个',
        '處' => '处',
        '數' => '数',
        '稱' => '称',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_makes_no_difference() {
        assert_eq!(normalize("變卦：風澤中孚（６１）"), "变卦:风泽中孚(61)");
        assert_eq!(normalize("Primary HEXAGRAM"), "primary hexagram");
        assert_eq!(normalize("䷀ ☰"), "䷀ ☰");
    }

    #[test]
    fn limits_the_length_of_the_result() {
        let unfolding = "\u{FDFA}".repeat(LARGEST_DATA_BYTES / 3);
        assert_eq!(normalize(&unfolding).chars().count(), LARGEST_DATA_BYTES);
    }
}
