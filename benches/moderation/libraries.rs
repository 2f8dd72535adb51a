//! The engine and Rust libraries, all in this process.

use std::fmt::Write as _;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use daachorse::{CharwiseDoubleArrayAhoCorasick, DoubleArrayAhoCorasick};
use screening::engine::{ContentType, Engine, Word};
use unicode_normalization::UnicodeNormalization;

use super::{Library, TEXTS, as_f64, corpus::Random, seconds};

/// Above this many words the DFA takes gigabytes.
const MOST_FOR_DFA: usize = 20_000;

/// Texts that are slow when they are repeated or mixed.
const SLOW_UNITS: &[&str] = &[
    "贝者博",
    "贝者",
    "女干",
    "木木木",
    "赌 博",
    "赌。博",
    "哈",
    "c a s i n o ",
    "cas1no",
    "dubo",
    "⒞ⓐ",
    "赌博",
    "博赌",
    "兼职日结",
    "兼职",
    "代开发票",
    "赌博反对",
    "裸聊加群视频",
    "赌12博",
    "赌的博",
    "赌🆗博",
    "ㄉㄨˇㄅㄛˊ",
    "加徽信",
    "出售大麻烦",
    "🆗ㄉ合d",
];
/// Characters of words and of all disguises, from which texts are generated, and the number of these texts.
const DISGUISES: &str =
    "赌博加微信兼职日结贝者女干木森林哈的一1aABx× 。*(@丶のㄉ🆗徽大麻烦枪支票士六合彩du3bo2见人了下";
const GENERATED: usize = 300;

pub struct Engines<'corpus> {
    pub words: &'corpus [Word],
    pub patterns: &'corpus [String],
    pub texts: &'corpus [Vec<String>; TEXTS.len()],
}

/// A library's compiled words and its search function.
struct Local<'corpus, Made> {
    name: &'static str,
    texts: &'corpus [Vec<String>; TEXTS.len()],
    made: Option<Made>,
    make: Box<dyn Fn() -> Made + 'corpus>,
    size: fn(&Made) -> usize,
    finds: fn(&Made, &str) -> bool,
}

impl<Made> Library for Local<'_, Made> {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn build(&mut self) -> f64 {
        let (made, seconds) = seconds(|| (self.make)());
        self.made = Some(made);
        seconds
    }

    fn memory(&mut self) -> f64 {
        as_f64((self.size)(self.made.as_ref().expect("it was built")))
    }

    fn scan(&mut self, length: usize) -> (usize, f64) {
        let made = self.made.as_ref().expect("it was built");
        seconds(|| self.texts[length].iter().filter(|text| (self.finds)(made, text)).count())
    }
}

impl<'corpus> Engines<'corpus> {
    /// Returns the libraries, the engine first.
    pub fn all(&self) -> Vec<Box<dyn Library + 'corpus>> {
        let mut libraries = vec![
            self.engine("**yarrow**", false),
            self.engine("yarrow, every word by its sound too", true),
            self.library(
                "daachorse over NFKC in lower case",
                |patterns| {
                    CharwiseDoubleArrayAhoCorasick::<u32>::new(patterns.iter().map(|word| folded(word))).unwrap()
                },
                CharwiseDoubleArrayAhoCorasick::heap_bytes,
                |made, text| made.find_overlapping_iter(&folded(text)).next().is_some(),
            ),
            self.library(
                "daachorse, characters as they are",
                |patterns| CharwiseDoubleArrayAhoCorasick::<u32>::new(patterns).unwrap(),
                CharwiseDoubleArrayAhoCorasick::heap_bytes,
                |made, text| made.find_overlapping_iter(text).next().is_some(),
            ),
            self.library(
                "daachorse, bytes as they are",
                |patterns| DoubleArrayAhoCorasick::<u32>::new(patterns).unwrap(),
                DoubleArrayAhoCorasick::heap_bytes,
                |made, text| made.find_overlapping_iter(text).next().is_some(),
            ),
            self.library(
                "aho-corasick, bytes as they are",
                |patterns| AhoCorasick::new(patterns).unwrap(),
                AhoCorasick::memory_usage,
                |made, text| made.is_match(text),
            ),
        ];
        if self.patterns.len() < MOST_FOR_DFA {
            libraries.push(self.library(
                "aho-corasick DFA, bytes as they are",
                |patterns| AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(patterns).unwrap(),
                AhoCorasick::memory_usage,
                |made, text| made.is_match(text),
            ));
        }
        libraries
    }

    /// Measures the engine's latency for one text.
    pub fn latencies(&self) -> String {
        let engine = Engine::build(self.words, &[]);
        let check = |text: &String| seconds(|| engine.check(ContentType::Question, text)).1;
        let mut times: Vec<f64> = self.texts[0].iter().map(check).collect();
        times.sort_unstable_by(f64::total_cmp);
        let of = |share: usize| times[times.len() * share / 1_000] * 1e6;
        format!(
            "One verdict over 30 characters: p50 {:.2} µs, p99 {:.1} µs, p99.9 {:.1} µs.",
            of(500),
            of(990),
            of(999)
        )
    }

    /// Measures texts that are built to be slow: repeated parts of characters, gaps, repetitions, near misses, words that
    /// match, rules, and generated mixtures of all disguises. The time has to grow with the length only.
    pub fn adversarial(&self) -> String {
        let listed = ["赌博", "奸", "森林", "哈哈", "casino", "加微信", "六合彩", "大麻", "枪支", "裸聊"];
        let rules = ["兼职&日结", "赌博~反对", "代开{4}发票", "裸聊&加群&视频"];
        let extra = listed.into_iter().chain(rules).map(|text| Word {
            text: text.to_owned(),
            by_sound: true,
            ..Word::default()
        });
        let words: Vec<Word> = self.words.iter().cloned().chain(extra).collect();
        let engine = Engine::build(&words, &["反对赌博".to_owned(), "大麻烦".to_owned()]);
        let milliseconds = |text: &str| {
            let times = (0..5).map(|_| seconds(|| engine.check(ContentType::Question, text)).1);
            times.fold(f64::INFINITY, f64::min) * 1e3
        };
        let mut table = "| text, repeated | 8 KiB: ms | 32 KiB: ms | growth |\n|---|---|---|---|\n".to_owned();
        for unit in SLOW_UNITS {
            let (short, long) = (milliseconds(&repeated(unit, 8 << 10)), milliseconds(&repeated(unit, 32 << 10)));
            writeln!(table, "| {unit} | {short:.2} | {long:.2} | {:.1}× |", long / short).unwrap();
        }
        let mut random = Random(0x2545_F491_4F6C_DD1D);
        let mut generated: Vec<(f64, String)> = (0..GENERATED)
            .map(|index| {
                let letters: Vec<char> = DISGUISES.chars().collect();
                let unit: String = match index % 3 {
                    0 => (0..2 + random.below(6)).map(|_| *random.pick(&letters)).collect(),
                    1 => (0..10_000).map(|_| *random.pick(&letters)).collect(),
                    _ => (0..5_000).map(|_| *random.pick(SLOW_UNITS)).collect(),
                };
                (milliseconds(&repeated(&unit, 32 << 10)), unit.chars().take(12).collect())
            })
            .collect();
        generated.sort_by(|left, right| right.0.total_cmp(&left.0));
        for (long, unit) in generated.iter().take(5) {
            writeln!(table, "| generated: {unit}… | | {long:.2} | |").unwrap();
        }
        table
    }

    fn engine(&self, name: &'static str, by_sound: bool) -> Box<dyn Library + 'corpus> {
        let words: Vec<Word> = self.words.iter().map(|word| Word { by_sound, ..word.clone() }).collect();
        Box::new(Local {
            name,
            texts: self.texts,
            made: None,
            make: Box::new(move || Engine::build(&words, &[])),
            size: Engine::memory_bytes,
            finds: |engine, text| !engine.check(ContentType::Question, text).is_empty(),
        })
    }

    fn library<Made: 'corpus>(
        &self,
        name: &'static str,
        make: fn(&'corpus [String]) -> Made,
        size: fn(&Made) -> usize,
        finds: fn(&Made, &str) -> bool,
    ) -> Box<dyn Library + 'corpus> {
        let patterns = self.patterns;
        Box::new(Local { name, texts: self.texts, made: None, make: Box::new(move || make(patterns)), size, finds })
    }
}

/// The folding that callers of such libraries usually do first.
fn folded(text: &str) -> String {
    text.nfkc().flat_map(char::to_lowercase).collect()
}

/// Returns a text of about this many bytes that repeats the unit.
fn repeated(unit: &str, bytes: usize) -> String {
    let text: String = unit.chars().cycle().take(bytes).collect();
    text[..text.floor_char_boundary(bytes)].to_owned()
}
