//! How fast the word engine screens texts, beside a bare `aho-corasick` automaton over the same words and texts.
//!
//! The automaton compares bytes as they are, so it finds far less; it stands for the speed that plain matching has.
//! Texts and words are made of common Chinese words by a fixed random sequence; one text in twenty holds a listed word.

#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use aho_corasick::AhoCorasick;
use yarrow::ops::moderation::engine::{ContentType, Engine, Word};

const DICTIONARY: &str = include_str!("../assets/han-words.txt");
const ENGLISH: &[&str] = &["hello", "today", "question", "job", "love", "iPhone", "2024", "exam", "ok"];
const ROUNDS: usize = 5;

fn main() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let vocabulary = Vocabulary::read();
    println!(
        "words    chars  texts/s engine  texts/s bare  ratio  MB/s engine  blocked  build ms  bare build ms  memory MB"
    );
    for count in [1_000, 10_000, 100_000] {
        let words = vocabulary.list(count, &mut random);
        let (engine, build) = fastest(|| Engine::build(black_box(&words), &[]));
        let patterns: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let (bare, bare_build) = fastest(|| AhoCorasick::new(black_box(&patterns)));
        let Ok(bare) = bare else { continue };
        for length in [30, 500] {
            let texts = vocabulary.texts(600_000 / length, length, &words, &mut random);
            let bytes: usize = texts.iter().map(String::len).sum();
            let check = |text: &String| !engine.check(ContentType::Question, text).allowed();
            let (blocked, time) = fastest(|| texts.iter().filter(|text| check(text)).count());
            let (_, bare_time) = fastest(|| texts.iter().filter(|text| bare.is_match(text.as_str())).count());
            println!(
                "{count:<7}  {length:>5}  {:>14.0}  {:>12.0}  {:>5.2}  {:>11.0}  {:>6.1}%  {:>8.1}  {:>13.1}  {:>9.1}",
                per_second(texts.len(), time),
                per_second(texts.len(), bare_time),
                bare_time.as_secs_f64() / time.as_secs_f64(),
                per_second(bytes, time) / 1e6,
                percent(blocked, texts.len()),
                build.as_secs_f64() * 1e3,
                bare_build.as_secs_f64() * 1e3,
                per_second(engine.memory_bytes(), Duration::from_secs(1)) / 1e6,
            );
        }
    }
}

/// The last result, and the shortest time of several rounds.
fn fastest<T>(mut work: impl FnMut() -> T) -> (T, Duration) {
    let mut best = Duration::MAX;
    let mut timed = || {
        let start = Instant::now();
        let result = black_box(work());
        best = best.min(start.elapsed());
        result
    };
    for _ in 1..ROUNDS {
        timed();
    }
    let result = timed();
    (result, best)
}

#[expect(clippy::cast_precision_loss, reason = "the figures are rounded for reading")]
fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * per_second(part, Duration::from_secs(1)) / per_second(whole, Duration::from_secs(1))
}

/// Chinese words by how common they are.
struct Vocabulary {
    common: Vec<String>,
    rare: Vec<String>,
}

impl Vocabulary {
    fn read() -> Self {
        let mut vocabulary = Self { common: Vec::new(), rare: Vec::new() };
        for line in DICTIONARY.lines().filter(|line| !line.starts_with('#')) {
            let Some(head) = line.chars().next() else {
                continue;
            };
            let mut word = String::from(head);
            for character in line.chars().skip(1) {
                if character.is_ascii_alphabetic() {
                    vocabulary.take(std::mem::replace(&mut word, String::from(head)), character);
                } else {
                    word.push(character);
                }
            }
        }
        vocabulary
    }

    /// Frequency classes from S are counted among the common words, and those up to J of two letters or more as rare.
    fn take(&mut self, word: String, class: char) {
        if class.is_ascii_lowercase() || class >= 'S' {
            self.common.push(word);
        } else if class <= 'J' && word.chars().count() > 1 {
            self.rare.push(word);
        }
    }

    /// Rare words, pairs of them once they run out, and some of Latin letters.
    fn list(&self, count: usize, random: &mut Random) -> Vec<Word> {
        let make = |index: usize, random: &mut Random| match index % 25 {
            0 => format!("{}{}", random.pick(&["zan", "qor", "vex", "mil", "tup"]), random.below(100_000)),
            1..=14 => random.pick(&self.rare).clone(),
            _ => format!("{}{}", random.pick(&self.rare), random.pick(&self.rare)),
        };
        (0..count).map(|index| Word { text: make(index, random), kind: "other".into(), by_sound: false }).collect()
    }

    fn texts(&self, count: usize, length: usize, words: &[Word], random: &mut Random) -> Vec<String> {
        (0..count).map(|index| self.text(length, (index % 20 == 0).then(|| &random.pick(words).text), random)).collect()
    }

    fn text(&self, length: usize, planted: Option<&String>, random: &mut Random) -> String {
        let mut text = String::new();
        let mut characters = 0;
        while characters < length {
            let piece = match random.below(20) {
                0 => "，",
                1 => "。",
                2 => *random.pick(ENGLISH),
                _ => random.pick(&self.common),
            };
            text.push_str(piece);
            characters += piece.chars().count();
        }
        text.extend(planted.map(String::as_str));
        text
    }
}

/// A small generator with a fixed start, so that every run measures the same texts.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }

    fn pick<'items, T>(&mut self, items: &'items [T]) -> &'items T {
        &items[self.below(items.len())]
    }
}
