//! The words of a list in their comparison form.
//!
//! Words are folded like texts. Spaces and joiners of a word are stored as positions where a text may have a gap. Signs
//! with a meaning (`100%`, `c++`, `a*b`) must appear in the text, so a wildcard is a plain character here.

use std::{borrow::Cow, cmp::Ordering, collections::HashMap};

use super::{
    folding::{Fold, LetterClass, class_of, folding, full_stop, meaningful_symbol},
    pattern::{Pattern, Spacing},
    pictures,
    spellings::{Spelling, spellings},
    types::{ContentType, ContentTypes, Severity, Word},
};

/// All words, with few allocations, because a list may have a hundred thousand.
#[derive(Default)]
pub(super) struct Lexicon {
    letters: Vec<char>,
    texts: String,
    labels: Vec<WordLabels>,
    spacings: Vec<Spacing>,
    records: Vec<Record>,
    /// Number of words before the parts of rules.
    first_part: usize,
    /// Other spellings, numbered after the listed words.
    spellings: Vec<OtherSpelling>,
}

/// The properties of a word that do not concern its letters. A list has few different ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WordLabels {
    pub(super) kind: String,
    pub(super) severity: Severity,
    pub(super) tags: Vec<String>,
    content_types: ContentTypes,
}

/// A spelling of the word with this number. Packed, because a large list has a million.
#[repr(C, packed)]
struct OtherSpelling {
    word: u32,
    spelling: Spelling,
}

struct Record {
    first_letter: u32,
    letter_count: u32,
    text_start: u32,
    text_end: u32,
    /// Index into the labels.
    labels: u32,
    /// Index into the spacings, or beyond their end for a word without gaps.
    spacing: u32,
    by_sound: bool,
}

const PLAIN: u32 = u32::MAX;

/// Returns the comparison form of a word: its emoji if it has no letters or digits, and empty without both. Words with
/// equal forms are equal.
pub fn normalise(text: &str) -> String {
    let mut form = Form::default();
    form.read(text);
    if form.letters.is_empty() { pictures::form(text) } else { form.written() }
}

impl Lexicon {
    /// Adds the words and the parts of rules that have letters.
    pub(super) fn read(words: &[Word], parts: &[Word]) -> Self {
        let mut lexicon = Self::default();
        let mut known: HashMap<(&str, Severity, &[String], ContentTypes), u32> = HashMap::new();
        let mut form = Form::default();
        for (index, word) in words.iter().chain(parts).enumerate() {
            if index == words.len() {
                lexicon.first_part = lexicon.records.len();
            }
            form.read(&word.text);
            if form.letters.is_empty() {
                continue;
            }
            let Word { kind, severity, tags, content_types, .. } = word;
            let labels = *known.entry((kind, *severity, tags, *content_types)).or_insert_with(|| {
                let (kind, tags) = (kind.clone(), tags.clone());
                lexicon.labels.push(WordLabels { kind, severity: *severity, tags, content_types: *content_types });
                (lexicon.labels.len() - 1) as u32
            });
            lexicon.push(&word.text, labels, &form.letters, &form.spacing, word.by_sound);
            if form.spacing == Spacing::default() {
                let word_number = (lexicon.records.len() - 1) as u32;
                let others = spellings(&form.letters, word.by_sound);
                lexicon.spellings.extend(others.map(|spelling| OtherSpelling { word: word_number, spelling }));
            }
        }
        if parts.is_empty() {
            lexicon.first_part = lexicon.records.len();
        }
        lexicon
    }

    /// Returns the number of words and their other spellings.
    pub(super) fn len(&self) -> usize {
        self.records.len() + self.spellings.len()
    }

    /// Returns the number of parts of rules.
    pub(super) fn part_count(&self) -> usize {
        self.records.len() - self.first_part
    }

    /// Returns true if this is a part of a rule, and no word by itself.
    pub(super) fn is_part(&self, id: usize) -> bool {
        self.index(id) >= self.first_part
    }

    /// Returns the number of letters of the longest listed word.
    pub(super) fn longest(&self) -> usize {
        self.records.iter().map(|record| record.letter_count as usize).max().unwrap_or(0)
    }

    pub(super) fn pattern(&self, id: usize) -> Pattern<'_> {
        let record = self.record(id);
        let first = record.first_letter as usize;
        let letters = &self.letters[first..first + record.letter_count as usize];
        match self.other_spelling(id) {
            None => Pattern {
                letters: Cow::Borrowed(letters),
                spacing: self.spacings.get(record.spacing as usize).map(Cow::Borrowed),
                way: None,
            },
            Some(spelling) => {
                let spelled = spelling.of(letters);
                let spacing = spelled.spacing.map(Cow::Owned);
                Pattern { letters: Cow::Owned(spelled.letters), spacing, way: Some(spelling.way(letters)) }
            }
        }
    }

    /// Returns the word as listed.
    pub(super) fn text(&self, id: usize) -> &str {
        let record = self.record(id);
        &self.texts[record.text_start as usize..record.text_end as usize]
    }

    pub(super) fn labels(&self, id: usize) -> &WordLabels {
        &self.labels[self.record(id).labels as usize]
    }

    /// Returns true if the word is looked for in texts of this type.
    pub(super) fn applies_to(&self, id: usize, content_type: ContentType) -> bool {
        self.labels(id).content_types.contains(content_type)
    }

    /// Returns true if this is a word as listed, and not another spelling.
    pub(super) fn is_listed(&self, id: usize) -> bool {
        id < self.records.len()
    }

    /// Returns true if the word is also matched by pronunciation.
    pub(super) fn is_sounding(&self, id: usize) -> bool {
        self.record(id).by_sound
    }

    /// Returns true if some word is also matched by pronunciation.
    pub(super) fn has_sounding(&self) -> bool {
        self.records.iter().any(|record| record.by_sound)
    }

    fn other_spelling(&self, id: usize) -> Option<Spelling> {
        let index = id.checked_sub(self.records.len())?;
        Some(self.spellings[index].spelling)
    }

    /// Returns the record of a word, or of the word of another spelling.
    fn record(&self, id: usize) -> &Record {
        &self.records[self.index(id)]
    }

    /// Returns the index of the record.
    fn index(&self, id: usize) -> usize {
        id.checked_sub(self.records.len()).map_or(id, |index| self.spellings[index].word as usize)
    }

    /// Returns true if two entries are spellings of the same word.
    pub(super) fn is_same_word(&self, left: usize, right: usize) -> bool {
        let (left, right) = (self.pattern(left), self.pattern(right));
        left.letters == right.letters && left.spacing == right.spacing
    }

    /// Returns true if one of two entries makes the other redundant. Two listed words with a common spelling both stay,
    /// because either may be removed from the list.
    pub(super) fn is_duplicate(&self, left: usize, right: usize) -> bool {
        let are_listed = self.is_listed(left) && self.is_listed(right);
        self.is_same_word(left, right)
            && self.is_part(left) == self.is_part(right)
            && (are_listed || self.text(left) == self.text(right))
    }

    /// Compares in a total order that does not depend on the order of the list.
    pub(super) fn compare(&self, left: usize, right: usize) -> Ordering {
        let (first, second) = (self.pattern(left), self.pattern(right));
        let forms = first.letters.cmp(&second.letters).then_with(|| first.spacing.cmp(&second.spacing));
        forms
            .then_with(|| self.is_part(left).cmp(&self.is_part(right)))
            .then_with(|| self.text(left).cmp(self.text(right)))
            .then_with(|| self.labels(left).cmp(self.labels(right)))
            .then_with(|| self.other_spelling(left).cmp(&self.other_spelling(right)))
    }

    /// Returns the approximate number of bytes on the heap.
    pub(super) fn size(&self) -> usize {
        self.letters.len() * 4
            + self.texts.len()
            + self.records.len() * size_of::<Record>()
            + self.spellings.len() * size_of::<OtherSpelling>()
            + self.spacings.len() * 64
    }

    fn push(&mut self, text: &str, labels: u32, letters: &[char], spacing: &Spacing, by_sound: bool) {
        let spacing = if *spacing == Spacing::default() {
            PLAIN
        } else {
            self.spacings.push(spacing.clone());
            (self.spacings.len() - 1) as u32
        };
        let (first_letter, text_start) = (self.letters.len() as u32, self.texts.len() as u32);
        self.letters.extend_from_slice(letters);
        self.texts.push_str(text);
        self.records.push(Record {
            first_letter,
            letter_count: letters.len() as u32,
            text_start,
            text_end: self.texts.len() as u32,
            labels,
            spacing,
            by_sound,
        });
    }
}

/// A word that is being parsed.
#[derive(Default)]
struct Form {
    letters: Vec<char>,
    spacing: Spacing,
    /// Characters since the last letter.
    between: Vec<char>,
}

impl Form {
    fn read(&mut self, text: &str) {
        self.letters.clear();
        self.spacing.gaps.clear();
        self.spacing.required.clear();
        self.between.clear();
        for character in text.chars() {
            match folding().fold(character) {
                Fold::Letter(letter) => self.take(letter),
                Fold::Letters(letters) => letters.iter().for_each(|&letter| self.take(letter)),
                Fold::Separator | Fold::Stop => self.between.push(character),
                Fold::Mark | Fold::Invisible => {}
            }
        }
        self.require_symbols();
    }

    fn take(&mut self, letter: char) {
        if !self.between.is_empty() {
            self.close_gap(letter);
        }
        self.letters.push(letter);
    }

    fn close_gap(&mut self, next: char) {
        let position = self.letters.len() as u32;
        let joins_words = self.letters.last().is_some_and(|&last| is_spaced(last) && is_spaced(next));
        if let [only] = self.between[..]
            && joins_words
            && let Some(stop) = full_stop(only)
        {
            self.spacing.required.push((position, stop));
        }
        let has_symbols = self.require_symbols() || self.spacing.required.last().is_some_and(|last| last.0 == position);
        if position > 0 && (has_symbols || joins_words) {
            self.spacing.gaps.push(position);
        }
    }

    /// Moves the meaningful signs of the gap into the required signs. Returns true if there were any.
    fn require_symbols(&mut self) -> bool {
        let position = self.letters.len() as u32;
        let before = self.spacing.required.len();
        let symbols = self.between.drain(..).filter_map(meaningful_symbol);
        self.spacing.required.extend(symbols.map(|symbol| (position, symbol)));
        self.spacing.required.len() > before
    }

    fn written(&self) -> String {
        let mut text = String::new();
        if self.letters.is_empty() {
            return text;
        }
        for position in 0..=self.letters.len() {
            let symbols = self.spacing.required.iter().filter(|required| required.0 as usize == position);
            let length = text.len();
            text.extend(symbols.map(|required| required.1));
            if text.len() == length && self.spacing.gaps.contains(&(position as u32)) {
                text.push(' ');
            }
            text.extend(self.letters.get(position));
        }
        text
    }
}

/// Returns true for digits and letters of scripts with spaces between words.
fn is_spaced(letter: char) -> bool {
    matches!(class_of(letter), LetterClass::Alphabetic | LetterClass::Digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_folded() {
        for (word, expected) in [
            ("ＣａＳｉＮＯ", "casino"),
            ("賭 博", "赌博"),
            ("赌·博\u{200b}", "赌博"),
            ("嘻嘻哈哈", "嘻嘻哈哈"),
            ("Free  MONEY!", "free money"),
            ("free-money", "free money"),
            ("100 ％", "100%"),
            ("c++", "c++"),
            ("赌*博", "赌*博"),
            ("T.me", "t.me"),
            ("②③", "23"),
            ("*** ", ""),
            ("", ""),
        ] {
            assert_eq!(normalise(word), expected, "{word}");
        }
    }

    #[test]
    fn spellings_of_a_word_are_equal() {
        let words = ["賭博", "赌 博", "free money", "freemoney"].map(|text| Word {
            text: text.into(),
            kind: "ads".into(),
            ..Word::default()
        });
        let lexicon = Lexicon::read(&words, &[]);
        assert!(lexicon.is_same_word(0, 1));
        assert!(!lexicon.is_same_word(2, 3));
    }
}
