//! Second readings of a text: other spellings with the same length in bytes, so that positions in them are positions in
//! the text.
//!
//! An emoji with a letter may only separate letters, a cross may stand for an x, and bopomofo for its romanisation. One or
//! two digits or Latin letters, also in brackets, a stroke or a kana between two Han characters may be fillers.

use pinyin::ToPinyin;

use super::{
    bopomofo,
    candidate::ByteSpan,
    dictionary::dictionary,
    emoji_letters,
    folding::{Fold, LetterClass, class_of, folding},
    letters::LetteredText,
    spellings::UNITS,
};

/// Strokes and radicals that fill gaps between Han characters.
const STROKES: &str = "丶丨丿亅乀乁乚一〇亠冖冫凵匚匸卩厶囗夂夊宀巛幺廴廾彐彡彳忄扌攴攵氵灬爫犭疒癶礻糹纟罒艹虍衤襾讠辶釒钅阝隹飠饣丬刂亻冂勹卝";
/// Other scripts of which a letter fills such a gap: Greek to Arabic, Thai, Korean letters, and kana.
const SCRIPTS: [std::ops::RangeInclusive<char>; 5] = [
    '\u{370}'..='\u{74F}',
    '\u{E00}'..='\u{E7F}',
    '\u{1100}'..='\u{11FF}',
    '\u{3041}'..='\u{30FF}',
    '\u{3131}'..='\u{318E}',
];
/// Characters that form a phrase with 一 before them.
const AFTER_ONE: &str = "试下看次点起种般样些直番遍回趟阵句声步个";
/// Particles that fill gaps between Han characters, and are words in most texts.
const PARTICLES: &str = "个的了下着过吧呢啊吗嘛哦呀把";
/// Pronouns, which fill gaps only after a word of contact: 加我的微信.
const PRONOUNS: &str = "我你您咱们他她";
const CONTACT_WORDS: &str = "加进扫搜找约";
/// Maximum letters between a word of contact and the rest of a word.
const MAX_SMALL_WORDS: usize = 5;
/// Maximum letters of a filler.
const MAX_FILLER: usize = 2;
/// Maximum letters of a filler with the symbols around them.
const MAX_ENCLOSED: usize = 6;
/// Crosses of two and of three bytes, which resemble an x.
const CROSSES: &str = "×✕✖✗✘❌❎╳⨯⨉☓";

/// The kind of a filler other than a Latin letter or a digit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Filler {
    /// A stroke or a kana.
    Stroke,
    /// A particle, which is a word in most texts.
    Particle,
}

/// The readings of a text beside the text itself that may have matches.
#[expect(clippy::struct_excessive_bools, reason = "the readings are independent")]
#[derive(Clone, Copy, Default)]
pub(super) struct OtherReadings {
    pub(super) emoji: bool,
    pub(super) spelled: bool,
    pub(super) fillers: bool,
    pub(super) particles: bool,
    pub(super) lookalikes: bool,
}

/// A second reading of a text.
pub(super) struct Reading {
    pub(super) text: LetteredText<'static>,
    /// The characters that were replaced, in the order of the text.
    pub(super) replaced: Vec<Replaced>,
}

/// A character of a text that another reading replaces.
#[derive(Clone, Copy)]
pub(super) struct Replaced {
    /// The byte offset.
    pub(super) place: usize,
    /// True if the text more probably means the character itself.
    pub(super) is_doubtful: bool,
}

impl Reading {
    /// Returns the replaced characters of a span of the text.
    pub(super) fn replaced_in(&self, span: &ByteSpan) -> &[Replaced] {
        let first = self.replaced.partition_point(|replaced| replaced.place < span.start);
        let length = self.replaced[first..].partition_point(|replaced| replaced.place < span.end);
        &self.replaced[first..first + length]
    }
}

/// A visible character of a text.
struct Piece {
    place: usize,
    /// In bytes.
    length: usize,
    /// The letter to which it folds.
    letter: Option<char>,
    may_be_filler: bool,
    /// True for a symbol that may enclose a filler.
    is_symbol: bool,
}

/// Returns the characters other than Latin letters and digits that may be fillers, with their kinds.
pub(super) fn fillers() -> impl Iterator<Item = (char, Filler)> {
    let scripts = SCRIPTS.into_iter().flatten().filter(|&letter| folding().fold(letter) == Fold::Letter(letter));
    let strokes = STROKES.chars().chain(scripts).map(|stroke| (stroke, Filler::Stroke));
    strokes.chain(PARTICLES.chars().chain(PRONOUNS.chars()).map(|particle| (particle, Filler::Particle)))
}

/// Returns the characters that indicate a second spelling.
pub(super) fn respelled() -> impl Iterator<Item = char> {
    CROSSES.chars().chain(bopomofo::LETTERS)
}

/// Returns the text with crosses beside Latin letters as x, and with bopomofo romanised; `None` if it has neither.
pub(super) fn spelled(text: &str) -> Option<String> {
    let romanised = bopomofo::romanised(text);
    let source = romanised.as_deref().unwrap_or(text);
    let mut result = String::with_capacity(text.len());
    let mut has_crosses = false;
    let mut before = None;
    let mut characters = source.chars().peekable();
    while let Some(character) = characters.next() {
        let is_latin = |neighbour: Option<char>| {
            neighbour.is_some_and(|neighbour| {
                matches!(folding().fold(neighbour), Fold::Letter('a'..='z')) || CROSSES.contains(neighbour)
            })
        };
        let after = characters.peek().copied();
        if CROSSES.contains(character) && (is_latin(before) || is_latin(after)) {
            result.push(if character.len_utf8() == 2 { 'х' } else { 'ｘ' });
            has_crosses = true;
        } else {
            result.push(character);
        }
        before = Some(character);
    }
    (romanised.is_some() || has_crosses).then_some(result)
}

/// The characters of a text, and those that may be fillers.
pub(super) struct Fillers<'text> {
    text: &'text str,
    pieces: Vec<Piece>,
    enclosed: Vec<Replaced>,
}

impl<'text> Fillers<'text> {
    pub(super) fn read(text: &'text str) -> Self {
        let mut pieces = Vec::with_capacity(text.len() / 2);
        pieces.extend(pieces_of(text));
        Self { enclosed: enclosed_fillers(&pieces), text, pieces }
    }

    /// Returns the text with fillers as separators; `None` if it has none. Particles count as fillers only with
    /// `particles`.
    pub(super) fn skipped(&self, particles: bool) -> Option<Reading> {
        let (mut text, mut all) = (String::with_capacity(self.text.len()), Vec::new());
        let mut enclosed = self.enclosed.iter().peekable();
        let mut end = 0;
        for (index, piece) in self.pieces.iter().enumerate() {
            let Some(letter) = piece.letter.filter(|_| piece.may_be_filler) else { continue };
            let place = piece.place;
            let replaced = match enclosed.next_if(|replaced| replaced.place == place) {
                Some(enclosed) => *enclosed,
                None if self.is_filler(index, letter, particles) => Replaced { place, is_doubtful: false },
                None => continue,
            };
            text.push_str(&self.text[end..place]);
            text.push(emoji_letters::separator(piece.length));
            all.push(replaced);
            end = place + piece.length;
        }
        text.push_str(&self.text[end..]);
        (!all.is_empty()).then(|| Reading { text: LetteredText::new(text), replaced: all })
    }

    /// Returns true if the letter with this index may be a filler.
    fn is_filler(&self, index: usize, letter: char, particles: bool) -> bool {
        let neighbour = |index: Option<usize>| index.and_then(|index| self.pieces.get(index)?.letter);
        let (before, after) = (neighbour(index.checked_sub(1)), neighbour(Some(index + 1)));
        let is_stroke = |index: Option<usize>| neighbour(index).is_some_and(|letter| STROKES.contains(letter));
        // 一 begins many words and phrases, such as 测一试, but not if the next gap has a stroke too.
        if particles && self.follows_contact_word(index) {
            return PRONOUNS.contains(letter) || PARTICLES.contains(letter) || letter == '一';
        }
        let is_word = letter == '一'
            && after.is_some_and(|after| AFTER_ONE.contains(after) || dictionary().contains(&['一', after]))
            && !is_stroke(index.checked_sub(2))
            && !is_stroke(Some(index + 2));
        !is_word && is_filler(letter, before, after, particles)
    }

    /// Returns true if only small words stand between a word of contact and the letter with this index.
    fn follows_contact_word(&self, index: usize) -> bool {
        let mut letters = self.pieces[..index].iter().rev().take(MAX_SMALL_WORDS).map_while(|piece| piece.letter);
        let is_small = |letter: &char| PRONOUNS.contains(*letter) || PARTICLES.contains(*letter) || *letter == '一';
        letters.find(|letter| !is_small(letter)).is_some_and(|letter| CONTACT_WORDS.contains(letter))
    }
}

/// Returns the text with fillers as separators.
#[cfg(test)]
fn without_fillers(text: &str, particles: bool) -> Option<Reading> {
    Fillers::read(text).skipped(particles)
}

/// Returns the visible characters of a text.
fn pieces_of(text: &str) -> impl Iterator<Item = Piece> {
    text.char_indices().filter_map(|(place, character)| {
        let fold = folding().fold(character);
        let letter = match fold {
            Fold::Letter(letter) => Some(letter),
            Fold::Mark | Fold::Invisible => return None,
            _ => None,
        };
        Some(Piece {
            place,
            length: character.len_utf8(),
            letter,
            may_be_filler: letter.is_some_and(|letter| {
                letter.is_ascii()
                    || is_foreign(letter)
                    || STROKES.contains(letter)
                    || PARTICLES.contains(letter)
                    || PRONOUNS.contains(letter)
            }),
            is_symbol: fold == Fold::Separator && !character.is_whitespace(),
        })
    })
}

/// Returns the fillers of one or two digits or Latin letters between Han characters, with any symbols around them: 赌12博
/// and 赌(1)博. A single letter without symbols is left to [`is_filler`].
fn enclosed_fillers(pieces: &[Piece]) -> Vec<Replaced> {
    let mut found = Vec::new();
    let is_han = |piece: &Piece| piece.letter.is_some_and(|letter| class_of(letter) == LetterClass::Ideographic);
    let is_filler =
        |piece: &Piece| piece.letter.is_some_and(|letter| letter.is_ascii_digit() || letter.is_ascii_lowercase());
    for (index, before) in pieces.iter().enumerate().filter(|(_, piece)| is_han(piece)) {
        let rest = &pieces[index + 1..];
        found.extend(own_reading(before, rest).iter().map(|piece| Replaced { place: piece.place, is_doubtful: false }));
        let length = rest.iter().take(MAX_ENCLOSED).take_while(|piece| is_filler(piece) || piece.is_symbol).count();
        let Some(after) = rest.get(length).filter(|piece| is_han(piece)) else { continue };
        let letters: Vec<&Piece> = rest[..length].iter().filter(|piece| is_filler(piece)).collect();
        // Two letters may be a count, such as 第12回, or a name, such as 加QQ群.
        let is_pair = letters.len() > 1;
        let is_counted = || before.letter == Some('第') || after.letter.is_some_and(|letter| UNITS.contains(letter));
        let is_reading = !own_reading(before, rest).is_empty();
        if !is_reading && (1..=MAX_FILLER).contains(&letters.len()) && length > 1 && !(is_pair && is_counted()) {
            found.extend(letters.into_iter().map(|piece| Replaced { place: piece.place, is_doubtful: is_pair }));
        }
    }
    found
}

/// Returns the letters after a character that romanise it, also in brackets: 微(wei)信.
fn own_reading<'pieces>(character: &Piece, rest: &'pieces [Piece]) -> &'pieces [Piece] {
    let reading = character.letter.and_then(|letter| letter.to_pinyin()).map_or("", ::pinyin::Pinyin::plain);
    let start = rest.iter().take(2).take_while(|piece| piece.is_symbol).count();
    let latin = |piece: &&Piece| piece.letter.is_some_and(|letter| letter.is_ascii_lowercase());
    let letters = &rest[start..start + rest[start..].iter().take(reading.len() + 1).take_while(latin).count()];
    let is_own = letters.len() > 1 && letters.iter().filter_map(|piece| piece.letter).eq(reading.chars());
    if is_own { letters } else { &[] }
}

fn is_foreign(letter: char) -> bool {
    SCRIPTS.iter().any(|script| script.contains(&letter))
}

/// Returns true if a letter between these may be a filler, or is the tone of the syllable before it.
fn is_filler(letter: char, before: Option<char>, after: Option<char>, particles: bool) -> bool {
    let is_han =
        |neighbour: Option<char>| neighbour.is_some_and(|neighbour| class_of(neighbour) == LetterClass::Ideographic);
    let is_between = is_han(before) && is_han(after);
    match letter {
        '1'..='5' if before.is_some_and(|before| before.is_ascii_lowercase()) => {
            after.is_none_or(|after| !after.is_ascii_digit())
        }
        '0'..='9' | 'a'..='z' => is_between,
        _ if STROKES.contains(letter) || is_foreign(letter) => is_between,
        _ => particles && is_between && PARTICLES.contains(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_keep_positions() {
        for (text, expected) in [
            ("加1微a信", Some("加_微_信")),
            ("加丶微の信", Some("加☆微☆信")),
            ("du3bo2", Some("du_bo_")),
            ("加12微", Some("加__微")),
            ("加123微", None),
            ("加(1)微", Some("加(_)微")),
            ("加(1)2]微", Some("加(_)_]微")),
            ("加\u{200b}1\u{301}微", Some("加\u{200b}_\u{301}微")),
            ("加，1微", None),
            ("加 1 微", None),
            ("加的微", None),
        ] {
            let reading = without_fillers(text, false);
            assert_eq!(reading.as_ref().map(|reading| reading.text.text()), expected, "{text}");
            assert!(reading.is_none_or(|reading| reading.text.text().len() == text.len()));
        }
        assert_eq!(without_fillers("加的微", true).unwrap().text.text(), "加☆微");
        assert_eq!(spelled("v×se❌a").unwrap(), "vхseｘa");
        assert!(spelled("3×4").is_none() && spelled("加微").is_none());
        for (cross, _) in CROSSES.chars().zip(0..) {
            assert!(matches!(cross.len_utf8(), 2 | 3), "{cross}");
        }
    }
}
