//! Advice about new words of the list: which of them would reject innocent texts.
//!
//! A word is suspect if it is a word of ordinary speech, if common longer words contain it, or if it rejects sentences of
//! a built-in sample. The advice never stops an addition.

use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use super::{
    engine::{ContentType, Engine, Word, each_part_of_common_words, is_ordinary, normalise},
    words::allowed_in,
};
use crate::{core::Core, error::Result};

const SENTENCES: &str = include_str!("../../../assets/ordinary-sentences.txt");
/// Longer words and sentences that an advice names.
const NAMED: usize = 5;

/// The effect of a word on innocent texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordAdvice {
    pub word: String,
    /// The form in which words and texts are compared.
    pub normal_form: String,
    pub is_ordinary: bool,
    /// Common longer words that contain this one: some of them, and their number.
    pub longer_words: Vec<String>,
    pub longer_word_count: usize,
    /// Sentences of the sample that the word rejects: some of them, and their number.
    pub rejected_sentences: Vec<String>,
    pub rejected_count: usize,
}

impl WordAdvice {
    /// Returns true if the word would probably reject innocent texts.
    pub fn is_warning(&self) -> bool {
        self.is_ordinary || self.longer_word_count > 0 || self.rejected_count > 0
    }
}

/// Returns the number of sentences in the sample.
pub fn sample_size() -> usize {
    sentences().len()
}

/// Returns the advice about each word, in this order, with the stored allowed phrases in force. Takes milliseconds for a
/// word and seconds for tens of thousands.
pub fn advise(core: &Core, words: &[Word]) -> Result<Vec<WordAdvice>> {
    let allowed = core.store.read(allowed_in)?;
    Ok(advise_with(words, &allowed))
}

fn advise_with(words: &[Word], allowed: &[String]) -> Vec<WordAdvice> {
    let mut advice: Vec<_> = words
        .iter()
        .map(|word| {
            let normal_form = normalise(&word.text);
            let is_ordinary = is_ordinary(&normal_form);
            WordAdvice { word: word.text.clone(), normal_form, is_ordinary, ..WordAdvice::default() }
        })
        .collect();
    let mut by_form: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, one) in advice.iter().enumerate() {
        by_form.entry(one.normal_form.clone()).or_default().push(index);
    }
    find_longer_words(&mut advice, &by_form);
    find_sentences(&mut advice, &by_form, &Engine::build(words, allowed));
    advice
}

fn find_longer_words(advice: &mut [WordAdvice], by_form: &HashMap<String, Vec<usize>>) {
    let lengths: BTreeSet<usize> = by_form.keys().map(|form| form.chars().count()).collect();
    each_part_of_common_words(&Vec::from_iter(lengths), &mut |part, word| {
        for &index in by_form.get(part).into_iter().flatten() {
            let one = &mut advice[index];
            one.longer_word_count += 1;
            name(&mut one.longer_words, &word.iter().collect::<String>());
        }
    });
}

fn find_sentences(advice: &mut [WordAdvice], by_form: &HashMap<String, Vec<usize>>, engine: &Engine) {
    for sentence in sentences() {
        let mut found: Vec<_> = engine
            .check(ContentType::Question, sentence)
            .into_iter()
            .filter(|found| found.way.is_certain())
            .map(|found| normalise(&found.word))
            .collect();
        found.sort_unstable();
        found.dedup();
        for &index in found.iter().filter_map(|form| by_form.get(form)).flatten() {
            let one = &mut advice[index];
            one.rejected_count += 1;
            name(&mut one.rejected_sentences, sentence);
        }
    }
}

fn name(named: &mut Vec<String>, text: &str) {
    if named.len() < NAMED {
        named.push(text.to_owned());
    }
}

fn sentences() -> &'static [&'static str] {
    static SAMPLE: LazyLock<Vec<&str>> =
        LazyLock::new(|| SENTENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect());
    &SAMPLE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(word: &str) -> WordAdvice {
        let word = Word { text: word.into(), kind: "other".into(), by_sound: true, ..Word::default() };
        advise_with(&[word], &[]).remove(0)
    }

    #[test]
    fn warns_about_words_of_ordinary_speech() {
        let found = advice("電 話");
        assert!(found.is_ordinary && found.is_warning(), "{found:?}");
        assert_eq!(found.normal_form, "电话");
        assert!(found.longer_words.contains(&"电话机".to_owned()) || found.longer_word_count > 5, "{found:?}");
        assert!(found.rejected_count > 1 && found.rejected_sentences.len() <= NAMED, "{found:?}");
    }

    #[test]
    fn has_nothing_against_unusual_words() {
        for word in ["代开发票", "赌博", "free money", "迷药", "裸聊"] {
            let found = advice(word);
            assert!(!found.is_warning(), "{found:?}");
        }
    }

    #[test]
    fn the_default_list_rejects_no_sentence() {
        let list = include_str!("../../../assets/words.tsv");
        let words = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let words: Vec<_> = words
            .map(|line| Word {
                text: line.split('\t').next().unwrap().into(),
                kind: "other".into(),
                by_sound: true,
                ..Word::default()
            })
            .collect();
        let accused: Vec<_> = advise_with(&words, &[]).into_iter().filter(|one| one.rejected_count > 0).collect();
        assert_eq!(accused, Vec::new());
        assert!(sample_size() >= 2_000);
    }

    #[test]
    fn advises_about_each_spelling_of_a_word() {
        let words = ["电话", "電話", "代开发票"].map(|text| Word {
            text: text.into(),
            kind: "other".into(),
            by_sound: false,
            ..Word::default()
        });
        let found = advise_with(&words, &[]);
        assert_eq!(found.iter().map(WordAdvice::is_warning).collect::<Vec<_>>(), [true, true, false]);
        let allowed = ["打电话".to_owned()];
        assert!(advise_with(&words, &allowed)[0].rejected_count < found[0].rejected_count);
    }
}
