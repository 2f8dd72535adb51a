//! The engine: finds candidates with automata and verifies each.

use std::cmp::{Ordering, Reverse};

use super::{
    app_vocabulary::app_vocabulary,
    candidate::{ByteSpan, Candidate, FoldedText},
    dictionary::dictionary,
    emoji_letters,
    folding::{LetterClass, class_of},
    letters::{self, Letter},
    lexicon::Lexicon,
    matcher::{MatchEnd, Matcher},
    readings::{self, OtherReadings, Reading},
    rules::{Rules, SplitList},
    span_cover::SpanCover,
    split_characters,
    symbols::Equivalence,
    types::{ContentType, Match, MatchWay, Word},
    verifier::Confirmed,
};

/// A compiled list of words. Immutable and shareable.
pub struct Engine {
    words: Lexicon,
    allowed: Lexicon,
    pub(super) plain: Matcher,
    pub(super) leet: Matcher,
    pub(super) sound: Matcher,
    allowed_matcher: Matcher,
    /// The rules of the list, and an engine for their parts.
    rules: Option<(Rules, Box<Self>)>,
}

impl Engine {
    /// Compiles a list. A word found inside an allowed phrase is no match. Entries without a letter or digit are
    /// ignored, and so are those with the comparison form of an earlier one. The order of the list does not matter.
    pub fn build(words: &[Word], allowed: &[String]) -> Self {
        let SplitList { words, rules, parts } = SplitList::of(words);
        let rules = (rules.count() > 0).then(|| (rules, Box::new(Self::build(&parts, allowed))));
        let phrases: Vec<Word> = allowed.iter().map(|text| Word { text: text.clone(), ..Word::default() }).collect();
        let (words, allowed) = (Lexicon::read(&words), Lexicon::read(&phrases));
        Self {
            plain: Matcher::build(Equivalence::Plain, &words),
            leet: Matcher::build(Equivalence::Leet, &words),
            sound: Matcher::build(Equivalence::Sound, &words),
            allowed_matcher: Matcher::build(Equivalence::Plain, &allowed),
            words,
            allowed,
            rules,
        }
    }

    /// Returns the number of distinct words in the list.
    pub fn word_count(&self) -> usize {
        self.plain.word_count() + self.rules.as_ref().map_or(0, |(rules, _)| rules.count())
    }

    /// Returns the approximate memory of the list on the heap, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let views = self.plain.size() + self.leet.size() + self.sound.size() + self.allowed_matcher.size();
        let rules = self.rules.as_ref().map_or(0, |(_, parts)| parts.memory_bytes());
        views + self.words.size() + self.allowed.size() + rules
    }

    /// Checks a text. The time is proportional to its length; only suspicious texts need an allocation.
    pub fn check(&self, content_type: ContentType, text: &str) -> Vec<Match> {
        let mut found = self.check_readings(text, |text, by_sound| self.find_suspects(content_type, text, by_sound));
        if let Some((rules, parts)) = &self.rules {
            found.extend(rules.check(content_type, parts.check(content_type, text)));
            let place = |found: &Match| (found.start, Reverse(found.end));
            found.sort_by(|left, right| place(left).cmp(&place(right)).then_with(|| left.word.cmp(&right.word)));
            found.dedup();
        }
        found
    }

    /// Checks the readings of a text with a function that returns the candidates of one reading, and what other
    /// readings the text may have.
    pub(super) fn check_readings(
        &self,
        text: &str,
        find: impl Fn(&str, bool) -> (Vec<Hit>, OtherReadings),
    ) -> Vec<Match> {
        let (mut found, others) = find(text, true);
        if others.emoji
            && let Some(other) = emoji_letters::without_letters(text)
        {
            let hits = find(&other, true).0;
            found.extend(hits.into_iter().map(|hit| Hit { way: hit.way.max(MatchWay::Emoji), ..hit }));
        }
        if others.spelled
            && let Some(reading) = readings::spelled(text)
        {
            let hits = find(&reading, false).0;
            found.extend(hits.into_iter().map(|hit| Hit {
                way: hit.way.max(MatchWay::Letters),
                span: hit.span.within(text),
                ..hit
            }));
        }
        if others.fillers
            && let Some(reading) = readings::without_fillers(text, false)
        {
            let hits = find(&reading.text, false).0;
            found.extend(hits.into_iter().filter(|hit| self.is_filled(hit, &reading)));
        }
        // Particles are words in most texts: only words with the most disguises are looked for behind them.
        if others.particles
            && self.sound.word_count() > 0
            && let Some(reading) = readings::without_fillers(text, true)
        {
            let hits = find(&reading.text, false).0.into_iter();
            let hits = hits.filter(|hit| self.is_filled(hit, &reading) && self.words.is_sounding(hit.word));
            found.extend(hits.map(|hit| Hit { way: MatchWay::Fuzzy, ..hit }));
        }
        // Phrases with fillers stand in the text as written only.
        if !found.is_empty() && self.allowed.len() > 0 && (others.emoji || others.fillers || others.particles) {
            let letters = letters::read(text, false);
            self.drop_allowed(&FoldedText::plain(text, &letters), &mut found);
        }
        self.verdict(text, found)
    }

    /// Drops matches of other detectors that lie in an allowed phrase.
    pub fn drop_allowed_matches(&self, text: &str, found: &mut Vec<Match>) {
        if found.is_empty() || self.allowed.len() == 0 {
            return;
        }
        let letters = letters::read(text, false);
        let cover = self.allowed_cover(&FoldedText::plain(text, &letters));
        found.retain(|found| {
            let start = text.char_indices().nth(found.start).map_or(text.len(), |(place, _)| place);
            !cover.contains(&ByteSpan { start, end: start + found.text.len() })
        });
    }

    /// Returns true if the match has a filler inside, and nothing but fillers disguises it, or its romanisation.
    fn is_filled(&self, hit: &Hit, reading: &Reading) -> bool {
        let next = reading.replaced.partition_point(|&place| place <= hit.span.start);
        let pattern = self.words.pattern(hit.word);
        let is_han = || {
            pattern.spacing.is_none()
                && pattern.letters.iter().all(|&letter| class_of(letter) == LetterClass::Ideographic)
        };
        reading.replaced.get(next).is_some_and(|&place| place < hit.span.end)
            && match hit.way {
                MatchWay::Gap => is_han(),
                way => way == MatchWay::Sound,
            }
    }

    /// Returns the candidates of a quick scan, and what other readings the text may have.
    fn find_suspects(&self, content_type: ContentType, text: &str, by_sound: bool) -> (Vec<Hit>, OtherReadings) {
        let scan = self.plain.scan(text);
        let ends_in = |view: &Matcher, may_have: bool| {
            if may_have && view.word_count() > 0 { view.scan(text).ends } else { Vec::new() }
        };
        let suspects = Suspects {
            leet: ends_in(&self.leet, scan.may_be_leet),
            // A model does not disguise words by others.
            sound: ends_in(&self.sound, by_sound && content_type != ContentType::Answer),
            plain: scan.ends,
            is_split: scan.may_be_split,
        };
        let found = if suspects.is_empty() { Vec::new() } else { self.confirmed(content_type, text, &suspects) };
        (found, scan.others)
    }

    pub(super) fn confirmed(&self, content_type: ContentType, text: &str, suspects: &Suspects) -> Vec<Hit> {
        let letters = letters::read(text, false);
        let page = FoldedText { text, letters: &letters, runs: &[], leet: false, sound: false, content_type };
        let mut found = Vec::new();
        self.collect(&self.plain, &page, &suspects.plain, &mut found);
        if !suspects.leet.is_empty() {
            let letters = letters::read(text, true);
            self.collect(&self.leet, &FoldedText { letters: &letters, ..page }, &suspects.leet, &mut found);
        }
        if suspects.is_split {
            self.collect_split(&page, &mut found);
        }
        self.collect(&self.sound, &page, &suspects.sound, &mut found);
        found.retain(|hit| self.words.applies_to(hit.word, content_type));
        if found.iter().any(Hit::is_indirect) {
            drop_own_vocabulary(&page, &mut found);
        }
        if !found.is_empty() && self.allowed.len() > 0 {
            self.drop_allowed(&page, &mut found);
        }
        found
    }

    pub(super) fn verdict(&self, text: &str, mut found: Vec<Hit>) -> Vec<Match> {
        found.sort_unstable_by(|left, right| self.order(left, right));
        found.dedup_by(|later, kept| later.word == kept.word && later.span == kept.span);
        self.described(text, &found)
    }

    /// By position and then by text, because word numbers depend on the order of the list. The most certain way first.
    fn order(&self, left: &Hit, right: &Hit) -> Ordering {
        let place = |found: &Hit| (found.span.start, Reverse(found.span.end));
        let words = place(left).cmp(&place(right)).then_with(|| self.words.compare(left.word, right.word));
        words.then_with(|| left.way.cmp(&right.way))
    }

    /// Verifies the words that may end at these positions.
    fn collect(&self, view: &Matcher, page: &FoldedText<'_>, ends: &[MatchEnd], found: &mut Vec<Hit>) {
        if ends.is_empty() {
            return;
        }
        let runs = view.runs(page.letters);
        let page = FoldedText { runs: &runs, leet: view.is_leet(), sound: view.is_sound(), ..*page };
        view.candidates_at(ends, page.letters, &runs, |last_run, word| {
            let candidate = Candidate { page: &page, pattern: self.words.pattern(word), last_run };
            found.extend(candidate.confirmed().map(|Confirmed { span, way }| Hit { word, span, way }));
        });
    }

    /// Finds words whose characters are split into their parts.
    fn collect_split(&self, page: &FoldedText<'_>, found: &mut Vec<Hit>) {
        self.collect_recombined(page, false, found);
        if split_characters::split_characters().overlap(page.letters) {
            self.collect_recombined(page, true, found);
        }
    }

    fn collect_recombined(&self, page: &FoldedText<'_>, later: bool, found: &mut Vec<Hit>) {
        let parts = page.letters;
        let (letters, is_made) = split_characters::split_characters().recombine(parts, later);
        let made: Vec<_> =
            letters.iter().zip(is_made).filter(|(_, is_made)| *is_made).map(|(letter, _)| letter).collect();
        if made.is_empty() {
            return;
        }
        // Both lists are in the order of the text, and there may be as many candidates as letters.
        let has_made = |span: &ByteSpan| {
            let next = made.partition_point(|letter| (letter.start as usize) < span.start);
            made.get(next).is_some_and(|letter| letter.end as usize <= span.end)
        };
        let values: Vec<char> = parts.iter().map(|letter| letter.value).collect();
        let runs = self.plain.runs(&letters);
        let page = FoldedText { letters: &letters, runs: &runs, ..*page };
        self.plain.candidates(&runs, |last_run, word| {
            let candidate = Candidate { page: &page, pattern: self.words.pattern(word), last_run };
            let spans = candidate.confirmed().map(|confirmed| confirmed.span);
            let spans = spans.filter(|span| has_made(span) && !is_cut(parts, &values, span));
            found.extend(spans.map(|span| Hit { word, span, way: MatchWay::Split }));
        });
    }

    fn drop_allowed(&self, page: &FoldedText<'_>, found: &mut Vec<Hit>) {
        let cover = self.allowed_cover(page);
        found.retain(|found| !cover.contains(&found.span));
    }

    /// Returns the places of the allowed phrases in a text.
    fn allowed_cover(&self, page: &FoldedText<'_>) -> SpanCover {
        let runs = self.allowed_matcher.runs(page.letters);
        let page = FoldedText { runs: &runs, ..*page };
        let mut spans = Vec::new();
        self.allowed_matcher.candidates(&runs, |last_run, phrase| {
            let candidate = Candidate { page: &page, pattern: self.allowed.pattern(phrase), last_run };
            spans.extend(candidate.confirmed_exactly().map(|span| (span.start, span.end)));
        });
        SpanCover::new(spans)
    }

    /// Converts sorted byte positions into character positions, each counted from the one before.
    fn described(&self, text: &str, found: &[Hit]) -> Vec<Match> {
        let (mut bytes, mut start) = (0, 0);
        let describe = |Hit { word, span, way }: &Hit| {
            start += text[bytes..span.start].chars().count();
            bytes = span.start;
            let text = text[span.start..span.end].to_owned();
            let (word, labels) = (self.words.text(*word).to_owned(), self.words.labels(*word));
            Match {
                word,
                kind: labels.kind.clone(),
                severity: labels.severity,
                tags: labels.tags.clone(),
                way: *way,
                start,
                end: start + text.chars().count(),
                text,
            }
        };
        found.iter().map(describe).collect()
    }
}

/// Drops words that are only found by sound or parts in the vocabulary of this app.
fn drop_own_vocabulary(page: &FoldedText<'_>, found: &mut Vec<Hit>) {
    let vocabulary = app_vocabulary();
    let (terms, doubts) = vocabulary.terms_in(page);
    for hit in found.iter_mut().filter(|hit| hit.way == MatchWay::Sound && doubts.contains(&hit.span)) {
        hit.way = MatchWay::Fuzzy;
    }
    found.retain(|hit| {
        let first = page.letters.partition_point(|letter| (letter.end as usize) <= hit.span.start);
        let last = page.letters.partition_point(|letter| (letter.end as usize) < hit.span.end);
        let is_own = || terms.contains(&hit.span) || vocabulary.is_quoted(page.letters, first, last);
        !hit.is_indirect() || !is_own()
    });
}

/// Returns true if a common word, in the letters as written, overlaps this span only partly. `values` are the values of
/// these letters.
fn is_cut(letters: &[Letter], values: &[char], span: &ByteSpan) -> bool {
    let first = letters.partition_point(|letter| (letter.start as usize) < span.start);
    let last = letters.partition_point(|letter| (letter.end as usize) < span.end);
    let starts = letters.get(first).is_some_and(|letter| letter.start as usize == span.start);
    let ends = letters.get(last).is_some_and(|letter| letter.end as usize == span.end);
    starts && ends && (dictionary().straddles(values, first) || dictionary().straddles(values, last + 1))
}

/// The possible ends of words in each view, for texts that need more than a quick scan.
pub(super) struct Suspects {
    pub(super) plain: Vec<MatchEnd>,
    pub(super) leet: Vec<MatchEnd>,
    pub(super) sound: Vec<MatchEnd>,
    /// Recombined letters may form words at any position.
    pub(super) is_split: bool,
}

impl Suspects {
    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.leet.is_empty() && self.sound.is_empty() && !self.is_split
    }
}

/// A word and its position.
pub(super) struct Hit {
    word: usize,
    span: ByteSpan,
    way: MatchWay,
}

impl Hit {
    /// Returns true if the text has other letters than the word.
    fn is_indirect(&self) -> bool {
        !matches!(self.way, MatchWay::Exact | MatchWay::Gap | MatchWay::Letters)
    }
}
