//! Folds each character to its comparison form: without width, case, script and style, one character at a time.
//!
//! The table is computed from Unicode's data and two committed lists at first use (some milliseconds) and never
//! changes. Folding ignores neighbours, so that offsets into the original text stay exact. As a consequence, conjoining
//! Korean letters stay separate. Folding is idempotent.

use std::{ops::Range, sync::LazyLock};

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use super::{code_point_table::CodePointTable, confusables};
use crate::is_invisible;

const SIMPLIFIED: &str = include_str!("../../../../assets/traditional-simplified.tsv");

/// Maximum length of a chain of mappings, which limits the work if two lists contradict each other.
const MAX_CHAIN_LENGTH: usize = 6;

/// From this code point on there are only tags, private-use and unassigned characters.
const FIRST_UNUSED: u32 = 0x3_2400;
/// Tags, and variation selectors.
const TAGS: Range<u32> = 0xE_0000..0xE_1000;

/// The class of a character in comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold<'table> {
    /// A letter or digit, compared as this one.
    Letter(char),
    /// One character that is read as several.
    Letters(&'table [char]),
    /// A space, symbol, bracket or emoji: it may disguise a word.
    Separator,
    /// A mark that ends a clause, or a line break: it seldom disguises a word.
    Stop,
    /// Combines with the character before it.
    Mark,
    /// A character without a glyph.
    Invisible,
}

/// The kind of a letter, which determines how it interacts with its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LetterClass {
    Digit,
    /// A letter of a script with spaces between words.
    Alphabetic,
    /// A letter of a script without them.
    Ideographic,
    /// A sign used as a letter, as in `p@ss`.
    Sign,
}

/// The table of all characters.
pub(crate) struct Folding {
    table: CodePointTable,
    expansions: Vec<Vec<char>>,
    /// Pairs of a folded letter and a character that folds to it, sorted. Letters that fold to themselves are omitted.
    sources: Vec<(char, char)>,
}

const TAG_SHIFT: u32 = 24;
const PAYLOAD: u32 = (1 << TAG_SHIFT) - 1;
const SAME: u32 = 0;
const OTHER: u32 = 1 << TAG_SHIFT;
const SEVERAL: u32 = 2 << TAG_SHIFT;
const SEPARATOR: u32 = 3 << TAG_SHIFT;
const STOP: u32 = 4 << TAG_SHIFT;
const MARK: u32 = 5 << TAG_SHIFT;
const INVISIBLE: u32 = 6 << TAG_SHIFT;

/// Returns the folding table of the process.
pub(crate) fn folding() -> &'static Folding {
    static FOLDING: LazyLock<Folding> = LazyLock::new(Folding::computed);
    &FOLDING
}

/// Returns the letter to which a character folds; `None` for other characters.
pub(super) fn folded_letter(character: char) -> Option<char> {
    match folding().fold(character) {
        Fold::Letter(letter) => Some(letter),
        _ => None,
    }
}

impl Folding {
    pub(crate) fn fold(&self, character: char) -> Fold<'_> {
        self.decode(self.table.get(character), character)
    }

    fn decode(&self, entry: u32, character: char) -> Fold<'_> {
        match entry & !PAYLOAD {
            SAME => Fold::Letter(character),
            OTHER => Fold::Letter(char::from_u32(entry & PAYLOAD).unwrap_or(character)),
            SEVERAL => Fold::Letters(&self.expansions[(entry & PAYLOAD) as usize]),
            SEPARATOR => Fold::Separator,
            STOP => Fold::Stop,
            MARK => Fold::Mark,
            _ => Fold::Invisible,
        }
    }

    /// Returns a table of the same characters with the entries that the function computes from their folds. A letter
    /// that folds to itself is passed as `None`, because thousands of such letters share one entry.
    pub(super) fn mapped(&self, entry_of: impl Fn(Option<Fold<'_>>) -> u32) -> CodePointTable {
        self.table.mapped(|entry| entry_of((entry != SAME).then(|| self.decode(entry, '\0'))))
    }

    /// Returns the characters that fold to this letter, except itself.
    pub(crate) fn sources_of(&self, letter: char) -> impl Iterator<Item = char> {
        let first = self.sources.partition_point(|&(folded, _)| folded < letter);
        self.sources[first..].iter().take_while(move |&&(folded, _)| folded == letter).map(|&(_, source)| source)
    }

    fn computed() -> Self {
        let rules = Rules::collected();
        let mut expansions = Vec::new();
        let mut sources = Vec::new();
        let mut entries = Vec::new();
        for code in 0..FIRST_UNUSED {
            let entry = char::from_u32(code).map_or(SEPARATOR, |character| {
                let entry = rules.entry(character, &mut expansions);
                if let Some(folded) = char::from_u32(entry & PAYLOAD)
                    && entry & !PAYLOAD == OTHER
                {
                    sources.push((folded, character));
                }
                entry
            });
            entries.push(entry);
        }
        sources.sort_unstable();
        let mut table = CodePointTable::filled(FIRST_UNUSED, |code| entries[code as usize]);
        table.fill(FIRST_UNUSED..0x11_0000, SEPARATOR);
        table.fill(TAGS, INVISIBLE);
        table.shrink_to_fit();
        sources.shrink_to_fit();
        Self { table, expansions, sources }
    }
}

/// Returns the class of a folded letter.
pub(super) fn class_of(letter: char) -> LetterClass {
    match letter {
        '0'..='9' => LetterClass::Digit,
        '\u{10A0}'..='\u{10FF}' | '\u{1E00}'..='\u{1FFF}' => LetterClass::Alphabetic,
        _ if letter < '\u{0E00}' => LetterClass::Alphabetic,
        _ => LetterClass::Ideographic,
    }
}

/// Returns the plain form of a mark that is part of a word's meaning (`100%`, `c++`).
pub(super) fn meaningful_symbol(character: char) -> Option<char> {
    let plain = match character {
        '➕' | '✚' | '✛' | '🞤' => '+',
        other => std::iter::once(other).nfkc().next().unwrap_or(other),
    };
    "%+#@$&*=/\\^~<>|".contains(plain).then_some(plain)
}

/// Returns the plain form of a full stop in any script.
pub(super) fn full_stop(character: char) -> Option<char> {
    matches!(character, '.' | '。' | '．' | '｡' | '․').then_some('.')
}

/// Mappings of single characters, collected before the table is computed.
struct Rules {
    single: CodePointTable,
    /// Sorted by source.
    spelled: Vec<(char, String)>,
}

impl Rules {
    fn collected() -> Self {
        let mut single = CodePointTable::empty();
        let simplified = SIMPLIFIED.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (traditional, simplified) = line.split_once('\t')?;
            Some((traditional.chars().next()?, simplified.chars().next()?))
        });
        for (source, target) in simplified.chain(confusables::pairs()) {
            single.set(source, target as u32);
        }
        let mut spelled: Vec<_> = confusables::spellings().collect();
        spelled.sort_unstable();
        Self { single, spelled }
    }

    fn entry(&self, character: char, expansions: &mut Vec<Vec<char>>) -> u32 {
        if let Some(entry) = special_entry(character) {
            return entry;
        }
        if is_plain(character) && self.mapped(character).is_none() {
            return if character.is_alphanumeric() { SAME } else { SEPARATOR };
        }
        let mut letters = Vec::new();
        self.expand(character, MAX_CHAIN_LENGTH, &mut letters);
        match letters[..] {
            [] => SEPARATOR,
            [letter] if letter == character => SAME,
            [letter] => OTHER | letter as u32,
            _ => {
                expansions.push(letters);
                SEVERAL | (expansions.len() - 1) as u32
            }
        }
    }

    fn expand(&self, character: char, chain: usize, letters: &mut Vec<char>) {
        if let Some(text) = self.mapped(character).filter(|_| chain > 0) {
            for next in text.chars() {
                self.expand(next, chain - 1, letters);
            }
        } else if character.is_alphanumeric() && special_entry(character).is_none_or(|entry| entry == SAME) {
            letters.push(character);
        }
    }

    /// Returns the next form of a character; `None` if there is none.
    fn mapped(&self, character: char) -> Option<String> {
        if let Some(target) = char::from_u32(self.single.get(character)).filter(|&target| target != '\0') {
            return Some(target.to_string());
        }
        if let Ok(index) = self.spelled.binary_search_by_key(&character, |(source, _)| *source) {
            return Some(self.spelled[index].1.clone());
        }
        if is_plain(character) {
            return None;
        }
        let lower: String = std::iter::once(character).nfkd().flat_map(char::to_lowercase).collect();
        (lower.chars().ne(std::iter::once(character))).then_some(lower)
    }
}

/// Returns the entry of characters whose class needs no mapping.
fn special_entry(character: char) -> Option<u32> {
    if is_invisible(character) {
        return Some(INVISIBLE);
    }
    if is_combining_mark(character) {
        return Some(MARK);
    }
    if is_stop(character) {
        return Some(STOP);
    }
    match character {
        // Trade marks would join two letters to the word before them, and the Japanese long vowel serves as a dash. A
        // modifier apostrophe counts as a letter in Unicode.
        '™' | '℠' | 'ー' | 'ｰ' | 'ʼ' | '\t' => Some(SEPARATOR),
        // Elongation characters are not letters.
        '\u{640}' | '\u{7FA}' => Some(MARK),
        'a'..='z' | '0'..='9' => Some(SAME),
        _ => None,
    }
}

/// Returns true for letters that only single mappings may change: Korean syllables are not decomposed, and Han
/// characters need no decomposition lookup.
fn is_plain(character: char) -> bool {
    matches!(
        character,
        'a'..='z' | '0'..='9' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}'
            | '\u{20000}'..='\u{2F7FF}' | '\u{30000}'..='\u{323FF}'
    )
}

fn is_stop(character: char) -> bool {
    matches!(
        character,
        '，' | '。'
            | '！'
            | '？'
            | '；'
            | '：'
            | '、'
            | ','
            | '!'
            | '?'
            | ';'
            | ':'
            | '…'
            | '｡'
            | '､'
            | '\n'
            | '\r'
            | '\u{B}'
            | '\u{C}'
            | '\u{85}'
            | '\u{2028}'
            | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut result = String::new();
        for character in text.chars() {
            match folding().fold(character) {
                Fold::Letter(letter) => result.push(letter),
                Fold::Letters(letters) => result.extend(letters),
                Fold::Separator => result.push(' '),
                Fold::Stop => result.push('|'),
                Fold::Mark | Fold::Invisible => {}
            }
        }
        result
    }

    #[test]
    fn removes_width_case_and_style() {
        for styled in ["ＣＡＳＩＮＯ", "ⓒⓐⓢⓘⓝⓞ", "🅒🅐🅢🅘🅝🅞", "🄲🄰🅂🄸🄽🄾", "⒞⒜⒮⒤⒩⒪", "𝕔𝕒𝕤𝕚𝕟𝕠", "ᴄᴀꜱɪɴᴏ", "сáѕìnο", "🇨🇦🇸🇮🇳🇴"]
        {
            assert_eq!(folded(styled), "casino", "{styled}");
        }
        assert_eq!(folded("①②③❹➎⑥７⒏𝟗٠"), "1234567890");
        assert_eq!(folded("⑩⓫㏂™"), "1011am ");
    }

    #[test]
    fn removes_script_variants_and_marks() {
        assert_eq!(folded("賭博⼤麻ﾄ"), "赌博大麻卜");
        assert_eq!(folded("赌\u{200b}博\u{336}\u{fe0f}1\u{fe0f}\u{20e3}"), "赌博1");
        assert_eq!(folded("三、四 五"), "三|四 五");
    }

    #[test]
    fn folding_is_idempotent() {
        for character in (0..0x11_0000).filter_map(char::from_u32) {
            let once = match folding().fold(character) {
                Fold::Letter(letter) => vec![letter],
                Fold::Letters(letters) => letters.to_vec(),
                _ => continue,
            };
            for letter in once {
                assert_eq!(folding().fold(letter), Fold::Letter(letter), "{character:?}");
            }
        }
    }

    #[test]
    fn sources_fold_to_their_letter() {
        assert!(folding().sources_of('赌').any(|source| source == '賭'));
        assert!(folding().sources_of('a').all(|source| folding().fold(source) == Fold::Letter('a')));
    }
}
