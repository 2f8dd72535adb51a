//! Detects contact numbers in any script of digits.
//!
//! Han numerals count as digits only here: a word list that contains 三 must still match 三. Dates and numeric idioms are
//! not contact numbers.

use super::{
    folding::{Fold, folding},
    types::{Match, MatchWay},
};

/// Minimum digits of a contact number.
const SHORTEST: usize = 7;
/// Numbers used for their pronunciation ("I love you for ever"), which are not contact numbers.
const SAYINGS: &[&[u8]] = &[&[5, 2, 0, 1, 3, 1, 4], &[1, 3, 1, 4, 5, 2, 0], &[5, 2, 1, 1, 3, 1, 4]];
/// Maximum characters between two digits of one number.
const WIDEST_GAP: usize = 3;
/// The word reported for a match. The number itself is not stored.
const NAME: &str = "contact number";

/// Maximum digits of the number in an assigned nickname: fewer than in a mobile number.
const LONGEST_ASSIGNED: usize = 10;

/// Returns true for a nickname that an app assigned to a new user, one of `words` with a number, such as 用户12345678: the
/// number is no contact.
pub fn is_assigned_nickname<'word>(nickname: &str, mut words: impl Iterator<Item = &'word String>) -> bool {
    let nickname = nickname.trim();
    let number = nickname.trim_start_matches(|character: char| !character.is_ascii_digit());
    let word = nickname[..nickname.len() - number.len()].trim_end().to_lowercase();
    words.any(|assigned| assigned.to_lowercase() == word)
        && number.len() <= LONGEST_ASSIGNED
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the first contact number in the text.
pub fn contact_number(text: &str) -> Option<Match> {
    let mut number = Number::default();
    for (index, (byte, character)) in text.char_indices().enumerate() {
        let end = (index + 1, byte + character.len_utf8());
        match folding().fold(character) {
            Fold::Mark | Fold::Invisible => {}
            Fold::Separator | Fold::Stop => {
                number.gap += 1;
                if number.gap > WIDEST_GAP && number.ends() {
                    break;
                }
            }
            fold => match digits_of(fold) {
                Some(digits) => number.take((index, byte), end, &digits),
                None if number.ends() => break,
                None => {}
            },
        }
    }
    number.found(text)
}

#[derive(Default)]
struct Number {
    digits: Vec<u8>,
    /// In characters and in bytes.
    start: (usize, usize),
    end: (usize, usize),
    /// Separators since the last digit.
    gap: usize,
}

impl Number {
    fn take(&mut self, start: (usize, usize), end: (usize, usize), digits: &[u8]) {
        if self.digits.is_empty() {
            self.start = start;
        }
        self.digits.extend_from_slice(digits);
        self.end = end;
        self.gap = 0;
    }

    /// Returns true if a contact number ended here; otherwise resets the search.
    fn ends(&mut self) -> bool {
        if self.is_contact() {
            return true;
        }
        self.digits.clear();
        self.gap = 0;
        false
    }

    fn is_contact(&self) -> bool {
        self.digits.len() >= SHORTEST && !self.is_date() && !SAYINGS.contains(&&self.digits[..])
    }

    /// Returns true for eight digits that are a date of this or the last century.
    fn is_date(&self) -> bool {
        let [y1, y2, _, _, m1, m2, d1, d2] = self.digits[..] else { return false };
        let (century, month, day) = (y1 * 10 + y2, m1 * 10 + m2, d1 * 10 + d2);
        matches!(century, 19 | 20) && (1..=12).contains(&month) && (1..=31).contains(&day)
    }

    fn found(&self, text: &str) -> Option<Match> {
        self.is_contact().then(|| Match {
            word: NAME.to_owned(),
            kind: "contact".to_owned(),
            way: MatchWay::Exact,
            start: self.start.0,
            end: self.end.0,
            text: text[self.start.1..self.end.1].to_owned(),
        })
    }
}

fn digits_of(fold: Fold<'_>) -> Option<Vec<u8>> {
    match fold {
        Fold::Letter(letter) => digit_of(letter).map(|digit| vec![digit]),
        Fold::Letters(letters) => letters.iter().map(|&letter| digit_of(letter)).collect(),
        _ => None,
    }
}

fn digit_of(letter: char) -> Option<u8> {
    Some(match letter {
        '0'..='9' => letter as u8 - b'0',
        '〇' | '零' => 0,
        '一' | '壹' | '幺' => 1,
        '二' | '贰' => 2,
        '三' | '叁' => 3,
        '四' | '肆' => 4,
        '五' | '伍' => 5,
        '六' | '陆' => 6,
        '七' | '柒' => 7,
        '八' | '捌' => 8,
        '九' | '玖' => 9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_numbers_in_any_script() {
        for (text, number) in [
            ("加我13800138000", "13800138000"),
            ("１３８-００１３-８０００", "１３８-００１３-８０００"),
            ("①③⑧⓪⓪①③⑧", "①③⑧⓪⓪①③⑧"),
            ("一三八零零一三八零零零找我", "一三八零零一三八零零零"),
            ("q1 2 3 4 5 6 7", "1 2 3 4 5 6 7"),
            ("2020年，12345678", "12345678"),
        ] {
            let found = contact_number(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found.text, number);
            let characters: Vec<char> = text.chars().collect();
            assert_eq!(characters[found.start..found.end].iter().collect::<String>(), number);
        }
    }

    #[test]
    fn exempts_assigned_nicknames() {
        let words = crate::config::Config::defaults().unwrap().moderation.assigned_nicknames;
        let is_assigned = |nickname: &str| is_assigned_nickname(nickname, words.iter());
        let assigned = ["用户12345678", " 用户1234567890 ", "手机用户8888888", "User 12345678", "user_1234567"];
        for nickname in assigned.into_iter().chain(["易友12345678"]) {
            assert!(is_assigned(nickname), "{nickname}");
        }
        assert!(is_assigned_nickname("Yarrow12345678", ["yarrow".to_owned()].iter()));
        for nickname in
            ["用户13800138000", "加用户12345678", "用户12345678找我", "12345678", "青山12345678", "用户１２３４５６７"]
        {
            assert!(!is_assigned(nickname), "{nickname}");
        }
    }

    #[test]
    fn exempts_dates_years_and_short_numbers() {
        for text in ["", "青山", "1990.05.17", "20240101", "520 1314", "三三两两", "2019年到2024年", "12345年 67890"]
        {
            assert_eq!(contact_number(text), None, "{text}");
        }
    }
}
