//! Measures texts that people wrote for this benchmark: contacts in disguise, innocent numbers of this app's kind, hard
//! disguises and romanised names.

use std::collections::BTreeSet;

use screening::engine::{ContentType, Engine, Match, contacts};

const TEXTS: &str = include_str!("texts.tsv");

/// A text of a set, and the listed word that it hides.
struct Text<'file> {
    set: &'file str,
    word: &'file str,
    content: &'file str,
}

/// Prints how many texts of each set are refused, and how many are found in any way, by halves: rules are made for the first
/// half, with every other text, and measured on the second. `MODERATION_MISSES` names a set and a half, such as `hard 1`,
/// whose texts are printed with their matches.
pub fn report(engine_of: fn(&[&str]) -> Engine) {
    println!("\n| set | half | texts | refused | found in any way |\n|---|---|---|---|---|");
    let texts: Vec<Text<'_>> = TEXTS.lines().filter(|line| !line.starts_with('#')).filter_map(parse).collect();
    let words: BTreeSet<&str> = texts.iter().map(|text| text.word).filter(|word| !word.is_empty()).collect();
    let engine = engine_of(&words.into_iter().collect::<Vec<_>>());
    for set in texts.chunk_by(|one, next| one.set == next.set) {
        for half in 1..=2 {
            let name = set[0].set;
            let is_shown = std::env::var("MODERATION_MISSES").is_ok_and(|shown| shown == format!("{name} {half}"));
            let (mut all, mut refused, mut any) = (0, 0, 0);
            for text in set.iter().skip(half - 1).step_by(2) {
                let found = matches_of(&engine, text);
                let is_refused = found.iter().any(|found| found.way.is_certain());
                (all, refused, any) =
                    (all + 1, refused + usize::from(is_refused), any + usize::from(!found.is_empty()));
                if is_shown {
                    let ways: Vec<_> = found.iter().map(|found| (&found.word, &found.text, found.way)).collect();
                    println!(
                        "{} {} {}: {ways:?}",
                        if is_refused { "refused" } else { "free" },
                        text.word,
                        text.content
                    );
                }
            }
            println!("| {name} | {half} | {all} | {refused} | {any} |");
        }
    }
}

fn matches_of(engine: &Engine, text: &Text<'_>) -> Vec<Match> {
    if text.word.is_empty() {
        return contacts(text.content);
    }
    let found = engine.check(ContentType::Question, text.content).into_iter();
    found.filter(|found| text.set == "innocent" || found.word == text.word).collect()
}

fn parse(line: &str) -> Option<Text<'_>> {
    let (set, rest) = line.split_once('\t')?;
    let (word, content) = rest.split_once('\t')?;
    Some(Text { set, word, content })
}
