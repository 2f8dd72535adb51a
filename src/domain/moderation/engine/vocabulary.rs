//! The dictionary's words, for advice about new words of the list.

use super::dictionary::{MAX_WORD_LENGTH, dictionary};

/// The frequency class from which a word is ordinary: about a thousand occurrences in the corpus of the dictionary.
const ORDINARY: u8 = 20;
/// The lowest frequency class of the longer words that an advice names.
const MIN_NAMED: u8 = 12;

/// Returns true if this normal form is a word of ordinary speech.
pub fn is_ordinary(normal_form: &str) -> bool {
    let letters: Vec<char> = normal_form.chars().collect();
    dictionary().class(&letters).is_some_and(|class| class >= ORDINARY)
}

/// Calls `visit` with each proper part of each common word, and the word.
pub fn each_part_of_common_words(mut visit: impl FnMut(&str, &str)) {
    let mut part = String::new();
    for letters in dictionary().words(MIN_NAMED) {
        let word: String = letters.iter().collect();
        for start in 0..letters.len() {
            for end in start + 1..=letters.len().min(start + MAX_WORD_LENGTH) {
                if end - start < letters.len() {
                    part.clear();
                    part.extend(&letters[start..end]);
                    visit(&part, &word);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_ordinary_words() {
        for word in ["没有", "一个", "电话", "投资"] {
            assert!(is_ordinary(word), "{word}");
        }
        for word in ["赌博", "代开", "妈的", "free money", ""] {
            assert!(!is_ordinary(word), "{word}");
        }
    }

    #[test]
    fn finds_longer_words() {
        let mut found = Vec::new();
        each_part_of_common_words(|part, word| {
            if part == "学生" {
                found.push(word.to_owned());
            }
        });
        assert!(found.iter().any(|word| word == "大学生"), "{found:?}");
    }
}
