//! Measures how fast the word engine screens texts, beside other libraries, over the same words and texts.
//!
//! All take turns in every round, and a ratio is the median of the rounds' ratios, so that a busy machine affects all
//! alike. `aho-corasick` and `daachorse` run in this process. Libraries of other languages run in processes of their
//! own with one thread each, where `benches/moderation/run` installed them. None of them folds more than case, so they
//! find less. The engine's figures are whole verdicts: folding, gaps, repetitions, the verifier and the match
//! positions.

#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that cannot measure should say so and end")]

mod classes;
mod corpus;
mod libraries;
mod peers;
mod texts;

use std::time::Instant;

use corpus::{Random, Vocabulary};
use libraries::Engines;

const ROUNDS: usize = 9;
const BUILDS: usize = 3;
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// Characters per text, and the number of texts of that length.
const TEXTS: [(usize, usize); 2] = [(30, 20_000), (500, 1_200)];

/// A library with a word list.
pub trait Library {
    fn name(&self) -> String;
    /// Compiles the words and returns the seconds taken.
    fn build(&mut self) -> f64;
    /// Returns the memory that the words take, in bytes.
    fn memory(&mut self) -> f64;
    /// Scans all texts of one length. Returns the number of texts with a match, and the seconds taken.
    fn scan(&mut self, length: usize) -> (usize, f64);
}

/// The figures of one library: a value per round.
#[derive(Default)]
struct Measured {
    builds: Vec<f64>,
    scans: [Vec<f64>; TEXTS.len()],
    found: [usize; TEXTS.len()],
}

fn main() {
    let has_argument = |name: &str| std::env::args().any(|argument| argument == name);
    if has_argument("classes") {
        classes::report();
    }
    if has_argument("classes") || has_argument("texts") {
        texts::report(|words| classes::engine(words.iter().copied()));
        return;
    }
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let vocabulary = Vocabulary::read();
    for count in SIZES {
        let words = vocabulary.list(count, &mut random);
        let texts = TEXTS.map(|(length, count)| vocabulary.texts(count, length, &words, &mut random));
        let mut patterns: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
        patterns.sort_unstable();
        patterns.dedup();
        let engines = Engines { words: &words, patterns: &patterns, texts: &texts };
        let mut libraries = engines.all();
        libraries.extend(peers::start(&patterns, &texts));
        let measured = measure(&mut libraries);
        print(&patterns, &texts, &mut libraries, &measured);
        println!("\n{}", engines.latencies());
        println!("\n{}", engines.adversarial());
    }
}

fn measure(libraries: &mut [Box<dyn Library + '_>]) -> Vec<Measured> {
    let mut measured: Vec<Measured> = libraries.iter().map(|_| Measured::default()).collect();
    for _ in 0..BUILDS {
        for (library, measured) in libraries.iter_mut().zip(&mut measured) {
            measured.builds.push(library.build());
        }
    }
    for round in 0..=ROUNDS {
        for (library, measured) in libraries.iter_mut().zip(&mut measured) {
            for length in 0..TEXTS.len() {
                let (found, seconds) = library.scan(length);
                measured.found[length] = found;
                // The first round warms up.
                if round > 0 {
                    measured.scans[length].push(seconds);
                }
            }
        }
    }
    measured
}

/// Prints a Markdown table. A ratio is the engine's speed as a multiple of the library's.
fn print(
    patterns: &[String],
    texts: &[Vec<String>; TEXTS.len()],
    libraries: &mut [Box<dyn Library + '_>],
    measured: &[Measured],
) {
    println!(
        "\n| {} words | build ms | memory MB | 30 characters: texts/s | engine is | found | 500 characters: MB/s | engine is | found |",
        patterns.len()
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let bytes: usize = texts[1].iter().map(String::len).sum();
    for (library, own) in libraries.iter_mut().zip(measured) {
        let faster = |length: usize| {
            let pairs = own.scans[length].iter().zip(&measured[0].scans[length]);
            median(pairs.map(|(theirs, ours)| theirs / ours).collect())
        };
        let per_second = |amount: usize, length: usize| as_f64(amount) / median(own.scans[length].clone());
        println!(
            "| {} | {:.1} | {:.1} | {:.0} | {:.2}× | {} | {:.1} | {:.2}× | {} |",
            library.name(),
            median(own.builds.clone()) * 1e3,
            library.memory() / 1e6,
            per_second(texts[0].len(), 0),
            faster(0),
            own.found[0],
            per_second(bytes, 1) / 1e6,
            faster(1),
            own.found[1],
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn seconds<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begun = Instant::now();
    let result = std::hint::black_box(work());
    (result, begun.elapsed().as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "the figures are rounded for reading")]
fn as_f64(number: usize) -> f64 {
    number as f64
}
