//! The engine: finds candidates with automata and verifies each.

use std::{
    cmp::{Ordering, Reverse},
    collections::HashSet,
    ops::{ControlFlow, Range},
};

use super::{
    app_vocabulary::app_vocabulary,
    candidate::{ByteSpan, Candidate, FoldedText},
    dictionary::{Listed, dictionary},
    folding::{LetterClass, class_of},
    homophones::{FREQUENT_LETTER, disguise_doubt},
    letters::{self, Letter, LetteredText, piece_around},
    lexicon::Lexicon,
    matcher::{MatchEnd, Matcher},
    pictures::Pictures,
    pinyin::pinyin_table,
    readings::{OtherReadings, Reading},
    rules::{Rules, SplitList},
    segmentation::{CONTEXT_LENGTH, TextWords, WordCut},
    similar_characters::{is_taboo, similar_characters},
    span_cover::SpanCover,
    split_characters::{PartPairs, split_characters},
    symbols::Equivalence,
    text_readings::TextReadings,
    types::{ContentType, MAX_MATCHES, Match, MatchWay, Word},
    verifier::Confirmed,
};

/// Letters around a match that are searched for terms of this app. Terms are shorter, even romanised.
const TERM_REACH: usize = 32;

/// A listed word that a text seems to have, and the other words that explain its letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquittedWord {
    /// The word as listed.
    pub word: String,
    /// The letters of the text that seem to be the word.
    pub text: String,
    pub words: Vec<String>,
}

/// A compiled list of words. Immutable and shareable.
pub struct Engine {
    words: Lexicon,
    allowed: Lexicon,
    pub(super) plain: Matcher,
    pub(super) leet: Matcher,
    pub(super) sound: Matcher,
    allowed_matcher: Matcher,
    /// Letters of the longest allowed phrase.
    longest_phrase: usize,
    /// The rules of the list, whose parts are among the words.
    rules: Rules,
    /// The words of emoji alone.
    pictures: Pictures,
}

impl Engine {
    /// Compiles a list. A word found inside an allowed phrase is no match. Entries without a letter, digit or
    /// emoji are ignored, and so are those with the comparison form of an earlier one. The order of the list does not matter.
    pub fn build(words: &[Word], allowed: &[String]) -> Self {
        let SplitList { words: listed, rules, parts } = SplitList::of(words);
        let phrases: Vec<Word> = allowed.iter().map(|text| Word { text: text.clone(), ..Word::default() }).collect();
        let (words, allowed) = (Lexicon::read(&listed, &parts), Lexicon::read(&phrases, &[]));
        Self {
            plain: Matcher::build(Equivalence::Plain, &words),
            leet: Matcher::build(Equivalence::Leet, &words),
            sound: Matcher::build(Equivalence::Sound, &words),
            allowed_matcher: Matcher::build(Equivalence::Plain, &allowed),
            longest_phrase: allowed.longest(),
            pictures: Pictures::of(&listed),
            words,
            allowed,
            rules,
        }
    }

    /// Returns the number of distinct words in the list.
    pub fn word_count(&self) -> usize {
        self.plain.word_count() - self.words.part_count() + self.rules.count() + self.pictures.count()
    }

    /// Returns the approximate memory of the list on the heap, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let views = self.plain.size() + self.leet.size() + self.sound.size() + self.allowed_matcher.size();
        views + self.words.size() + self.allowed.size()
    }

    /// Checks a text. Returns the first [`MAX_MATCHES`] at most. The time is proportional to the length of the text; only
    /// suspicious texts need an allocation.
    pub fn check(&self, content_type: ContentType, text: &str) -> Vec<Match> {
        let find =
            |text: &LetteredText<'_>, views, counts: Counts<'_>| self.find_suspects(content_type, text, views, counts);
        self.matches(content_type, text, self.check_readings(text, find))
    }

    /// Returns the listed words that a text seems to have, and that the words around them acquit. The time is proportional to
    /// the length of the text; a check does not do it.
    pub fn acquitted(&self, content_type: ContentType, text: &str) -> Vec<AcquittedWord> {
        let letters = letters::read(text, false);
        let words = TextWords::new(&letters);
        let written = |part: &Range<usize>| {
            text[letters[part.start].start as usize..letters[part.end - 1].end as usize].to_owned()
        };
        let mut found: Vec<AcquittedWord> = Vec::new();
        for view in [&self.plain, &self.sound] {
            let runs = view.runs(&letters);
            let page =
                FoldedText { content_type, runs: &runs, sound: view.is_sound(), ..FoldedText::plain(text, &letters) };
            let _ = view.candidates(&runs, |last_run, word| {
                let candidate = Candidate { page: &page, pattern: self.words.pattern(word), last_run };
                let is_wanted = self.words.is_listed(word) && self.words.applies_to(word, content_type);
                if let Some(part) = candidate.acquitted(&words).filter(|_| is_wanted) {
                    let around = piece_around(&letters, part.start, part.end - 1, CONTEXT_LENGTH);
                    let others = words.words_of(around).into_iter();
                    let others = others.filter(|other| other.start < part.end && other.end > part.start);
                    let word = self.words.text(word).to_owned();
                    found.push(AcquittedWord {
                        word,
                        text: written(&part),
                        words: others.map(|other| written(&other)).collect(),
                    });
                }
                if found.len() < MAX_MATCHES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        }
        found.dedup();
        found
    }

    /// Returns the matches of words and rules.
    pub(super) fn matches(&self, content_type: ContentType, text: &str, hits: Vec<Hit>) -> Vec<Match> {
        let (parts, mut words): (Vec<Hit>, Vec<Hit>) = hits.into_iter().partition(|hit| self.words.is_part(hit.word));
        words.truncate(MAX_MATCHES);
        let mut found = self.described(text, &words);
        let in_order = found.len();
        if !parts.is_empty() && words.len() < MAX_MATCHES {
            let present: HashSet<&str> = parts.iter().map(|hit| self.words.text(hit.word)).collect();
            if self.rules.may_match(&present) {
                found.extend(self.rules.check(content_type, self.described(text, &parts)));
            }
        }
        self.pictures.find(content_type, text, &mut found);
        if found.len() == in_order {
            return found;
        }
        let place = |found: &Match| (found.start, Reverse(found.end));
        found.sort_by(|left, right| place(left).cmp(&place(right)).then_with(|| left.word.cmp(&right.word)));
        found.dedup();
        found.truncate(MAX_MATCHES);
        found
    }

    /// Checks the readings of a text with a function that returns the matches in one reading, and what other readings the
    /// text may have. It may end once [`MAX_MATCHES`] matches count.
    pub(super) fn check_readings(
        &self,
        text: &str,
        find: impl Fn(&LetteredText<'_>, Views, Counts<'_>) -> (Vec<Hit>, OtherReadings),
    ) -> Vec<Hit> {
        let readings = TextReadings::new(text);
        let written = readings.written();
        let (mut found, others) = find(written, Views::All, &|_| true);
        let in_text = found.len();
        if others.emoji
            && !self.is_full(&mut found)
            && let Some(other) = readings.without_emoji()
        {
            let hits = find(other, Views::All, &|_| true).0;
            found.extend(hits.into_iter().map(|hit| Hit { way: hit.way.max(MatchWay::Emoji), ..hit }));
        }
        if others.spelled
            && !self.is_full(&mut found)
            && let Some(reading) = readings.spelled()
        {
            let hits = find(reading, Views::Written, &|_| true).0;
            found.extend(hits.into_iter().map(|hit| Hit {
                way: hit.way.max(MatchWay::Letters),
                span: hit.span.within(text),
                ..hit
            }));
        }
        for second in [false, true] {
            if others.spelled
                && !self.is_full(&mut found)
                && let Some(reading) = readings.named(second)
            {
                let is_named =
                    |hit: &Hit| self.words.is_sounding(hit.word) && !reading.replaced_in(&hit.span).is_empty();
                let hits = find(&reading.text, Views::All, &is_named).0.into_iter().filter(is_named);
                found.extend(hits.map(|hit| Hit { way: MatchWay::Fuzzy, span: hit.span.within(text), ..hit }));
            }
        }
        if others.fillers
            && !self.is_full(&mut found)
            && let Some(reading) = readings.without_fillers()
        {
            let counts = |hit: &Hit| self.filled(*hit, reading).is_some();
            let hits = find(&reading.text, Views::Plain, &counts).0.into_iter();
            found.extend(hits.filter_map(|hit| self.filled(hit, reading)));
            self.drop_filled_phrases(written, in_text, &mut found);
        }
        // Particles are words in most texts: only words with the most disguises are looked for behind them.
        if others.particles
            && !self.is_full(&mut found)
            && self.sound.word_count() > 0
            && let Some(reading) = readings.without_particles()
        {
            let filled = |hit: Hit| self.filled(hit, reading).filter(|hit| self.words.is_sounding(hit.word));
            let hits = find(&reading.text, Views::Plain, &|hit| filled(*hit).is_some()).0;
            let hits = hits.into_iter().filter_map(filled);
            found.extend(hits.map(|hit| Hit { way: MatchWay::Fuzzy, ..hit }));
            self.drop_filled_phrases(written, in_text, &mut found);
        }
        if others.lookalikes
            && !self.is_full(&mut found)
            && let Some(reading) = readings.resembled()
        {
            found.extend(self.resembling(written, reading, |counts| find(&reading.text, Views::Plain, counts).0));
        }
        self.sort(&mut found);
        found
    }

    /// Drops matches in allowed phrases with fillers, which stand in the text as written only.
    fn drop_filled_phrases(&self, written: &LetteredText<'_>, in_text: usize, found: &mut Vec<Hit>) {
        if found.len() > in_text && self.allowed.len() > 0 {
            self.drop_allowed(&FoldedText::plain(written.text(), written.letters()), found);
        }
    }

    /// Returns true if a text has so many words that more of them tell nothing new. Readings and views may find the same.
    fn is_full(&self, found: &mut Vec<Hit>) -> bool {
        self.has_many(found, &|_| true)
    }

    fn has_many(&self, found: &mut Vec<Hit>, counts: Counts<'_>) -> bool {
        let has_many = |found: &[Hit]| {
            let counted = found.iter().filter(|hit| !self.words.is_part(hit.word) && counts(hit));
            found.len() >= MAX_MATCHES && counted.take(MAX_MATCHES).count() == MAX_MATCHES
        };
        if !has_many(found) {
            return false;
        }
        self.sort(found);
        has_many(found)
    }

    /// Sorts the matches and drops duplicates.
    fn sort(&self, found: &mut Vec<Hit>) {
        found.sort_unstable_by(|left, right| self.order(left, right));
        found.dedup_by(|later, kept| later.word == kept.word && later.span == kept.span);
    }

    /// Drops matches of other detectors that lie in an allowed phrase.
    pub fn drop_allowed_matches(&self, text: &str, found: &mut Vec<Match>) {
        if found.is_empty() || self.allowed.len() == 0 {
            return;
        }
        let letters = letters::read(text, false);
        // In the order of the text: each position is counted from the one before.
        let (mut bytes, mut characters) = (0, 0);
        let spans: Vec<ByteSpan> = found
            .iter()
            .map(|found| {
                let rest = text[bytes..].char_indices();
                bytes += rest.map(|(place, _)| place).nth(found.start - characters).unwrap_or(text.len() - bytes);
                characters = found.start;
                ByteSpan { start: bytes, end: bytes + found.text.len() }
            })
            .collect();
        let cover = self.allowed_cover(&FoldedText::plain(text, &letters), spans.iter());
        let mut spans = spans.iter();
        found.retain(|_| spans.next().is_some_and(|span| !cover.contains(span)));
    }

    /// Returns the match if it has a filler inside, and nothing but fillers disguises it, or its romanisation.
    fn filled(&self, hit: Hit, reading: &Reading) -> Option<Hit> {
        let pattern = self.words.pattern(hit.word);
        let is_han = || {
            pattern.spacing.is_none()
                && (pattern.letters.iter().all(|&letter| class_of(letter) == LetterClass::Ideographic)
                    || matches!(pattern.letters[..], ['加', ..]))
        };
        let replaced = reading.replaced_in(&hit.span);
        let is_filled = match hit.way {
            MatchWay::Gap => is_han(),
            way => way == MatchWay::Sound,
        };
        if replaced.is_empty() || !is_filled {
            return None;
        }
        if replaced.iter().any(|replaced| replaced.is_doubtful) {
            return self.words.is_sounding(hit.word).then_some(Hit { way: MatchWay::Fuzzy, ..hit });
        }
        Some(hit)
    }

    /// Returns the matches of a reading in which similar characters stand for others, unless other words explain the text as
    /// written. Doubtful ones are found by shape.
    fn resembling(
        &self,
        written: &LetteredText<'_>,
        reading: &Reading,
        find: impl Fn(Counts<'_>) -> Vec<Hit>,
    ) -> Vec<Hit> {
        let page = FoldedText::plain(written.text(), written.letters());
        let words = TextWords::new(page.letters);
        let cut = |hit: &Hit| {
            let Range { start, end } = page.letters_of(&hit.span);
            let is_spread = (start + 1..end).any(|index| page.letters[index].gap.is_open());
            let listed = Listed { first: start, last: end - 1 };
            let replaced = reading.replaced_in(&hit.span);
            let doubt = disguise_doubt(replaced.len());
            let part = piece_around(page.letters, listed.first, listed.last, CONTEXT_LENGTH);
            if is_spread {
                return WordCut::None;
            }
            let is_word = || replaced.iter().any(|replaced| is_frequent(&written.text()[replaced.place..]));
            let is_short = end - start == 2 && part != (start..end);
            match words.cut(&part, listed, &self.words.pattern(hit.word).letters, doubt) {
                WordCut::None if is_short && is_word() => WordCut::Doubtful,
                cut => cut,
            }
        };
        let resembles = |hit: &Hit| {
            matches!(hit.way, MatchWay::Exact | MatchWay::Gap)
                && self.words.is_listed(hit.word)
                && self.words.is_sounding(hit.word)
                && reading.replaced_in(&hit.span).iter().any(|replaced| is_unlike(&written.text()[replaced.place..]))
                && cut(hit) != WordCut::Certain
        };
        let hits = find(&resembles).into_iter().filter(resembles);
        let mut found = hits.map(|hit| Hit { way: MatchWay::Shape, ..hit }).collect();
        drop_own_vocabulary(&page, &mut found);
        for hit in found.iter_mut().filter(|hit| cut(hit) == WordCut::None) {
            hit.way = MatchWay::Letters;
        }
        found
    }

    /// Returns the candidates of a quick scan, and what other readings the text may have.
    fn find_suspects(
        &self,
        content_type: ContentType,
        text: &LetteredText<'_>,
        views: Views,
        counts: Counts<'_>,
    ) -> (Vec<Hit>, OtherReadings) {
        let scan = self.plain.scan(text.text());
        let ends_in = |view: &Matcher, may_have: bool| {
            if may_have && view.word_count() > 0 { view.scan(text.text()).ends } else { Vec::new() }
        };
        let suspects = Suspects {
            leet: ends_in(&self.leet, views != Views::Plain && scan.may_be_leet),
            // A model does not disguise words by others.
            sound: ends_in(&self.sound, views == Views::All && content_type != ContentType::Answer),
            plain: scan.ends,
            is_split: views != Views::Plain && scan.may_be_split,
        };
        let found =
            if suspects.is_empty() { Vec::new() } else { self.confirmed(content_type, text, &suspects, counts) };
        (found, scan.others)
    }

    pub(super) fn confirmed(
        &self,
        content_type: ContentType,
        text: &LetteredText<'_>,
        suspects: &Suspects,
        counts: Counts<'_>,
    ) -> Vec<Hit> {
        let page = FoldedText { content_type, ..FoldedText::plain(text.text(), text.letters()) };
        let mut found = Found { engine: self, page: &page, counts, hits: Vec::new(), guilty: 0 };
        let _ = self.collect_all(text, suspects, &mut found);
        found.drop_innocent();
        found.hits
    }

    fn collect_all(&self, text: &LetteredText<'_>, suspects: &Suspects, found: &mut Found<'_, '_>) -> ControlFlow<()> {
        let page = found.page;
        self.collect(&self.plain, page, &suspects.plain, found)?;
        if !suspects.leet.is_empty() {
            let page = FoldedText { letters: text.letters_and_signs(), ..*page };
            self.collect(&self.leet, &page, &suspects.leet, found)?;
        }
        if suspects.is_split {
            self.collect_split(page, found)?;
        }
        self.collect(&self.sound, page, &suspects.sound, found)
    }

    /// Drops words for other content types, and those in the vocabulary of this app or in allowed phrases.
    fn drop_innocent(&self, page: &FoldedText<'_>, found: &mut Vec<Hit>) {
        found.retain(|hit| self.words.applies_to(hit.word, page.content_type));
        drop_own_vocabulary(page, found);
        if !found.is_empty() && self.allowed.len() > 0 {
            self.drop_allowed(page, found);
        }
    }

    /// By position and then by text, because word numbers depend on the order of the list. The most certain way first.
    fn order(&self, left: &Hit, right: &Hit) -> Ordering {
        let place = |found: &Hit| (found.span.start, Reverse(found.span.end));
        let words = place(left).cmp(&place(right)).then_with(|| self.words.compare(left.word, right.word));
        words.then_with(|| left.way.cmp(&right.way))
    }

    /// Verifies the words that may end at these positions.
    fn collect(
        &self,
        view: &Matcher,
        page: &FoldedText<'_>,
        ends: &[MatchEnd],
        found: &mut Found<'_, '_>,
    ) -> ControlFlow<()> {
        if ends.is_empty() {
            return ControlFlow::Continue(());
        }
        let runs = view.runs(page.letters);
        let page = FoldedText { runs: &runs, leet: view.is_leet(), sound: view.is_sound(), ..*page };
        let words = TextWords::new(page.letters);
        view.candidates_at(ends, page.letters, &runs, |last_run, word| {
            let candidate = Candidate { page: &page, pattern: self.words.pattern(word), last_run };
            match candidate.confirmed(&words) {
                Some(Confirmed { span, way }) => found.push(Hit { word, span, way }),
                None => ControlFlow::Continue(()),
            }
        })
    }

    /// Finds words whose characters are split into their parts.
    fn collect_split(&self, page: &FoldedText<'_>, found: &mut Found<'_, '_>) -> ControlFlow<()> {
        let pairs = split_characters().pairs_in(page.letters);
        if pairs.are_empty() {
            return ControlFlow::Continue(());
        }
        self.collect_recombined(page, &pairs, false, found)?;
        if pairs.overlap() {
            self.collect_recombined(page, &pairs, true, found)?;
        }
        ControlFlow::Continue(())
    }

    fn collect_recombined(
        &self,
        page: &FoldedText<'_>,
        pairs: &PartPairs,
        later: bool,
        found: &mut Found<'_, '_>,
    ) -> ControlFlow<()> {
        let parts = page.letters;
        let (letters, is_made) = pairs.recombine(parts, later);
        let made: Vec<_> =
            letters.iter().zip(is_made).filter(|(_, is_made)| *is_made).map(|(letter, _)| letter).collect();
        // Both lists are in the order of the text, and there may be as many candidates as letters.
        let has_made = |span: &ByteSpan| {
            let next = made.partition_point(|letter| (letter.start as usize) < span.start);
            made.get(next).is_some_and(|letter| letter.end as usize <= span.end)
        };
        let values: Vec<char> = parts.iter().map(|letter| letter.value).collect();
        let runs = self.plain.runs(&letters);
        let page = FoldedText { letters: &letters, runs: &runs, ..*page };
        let words = TextWords::new(&letters);
        self.plain.candidates(&runs, |last_run, word| {
            let candidate = Candidate { page: &page, pattern: self.words.pattern(word), last_run };
            let confirmed = candidate.confirmed(&words).filter(|Confirmed { way, .. }| *way < MatchWay::Fuzzy);
            let spans = confirmed.map(|confirmed| confirmed.span);
            match spans.filter(|span| has_made(span) && !is_cut(parts, &values, span)) {
                Some(span) => found.push(Hit { word, span, way: MatchWay::Split }),
                None => ControlFlow::Continue(()),
            }
        })
    }

    fn drop_allowed(&self, page: &FoldedText<'_>, found: &mut Vec<Hit>) {
        let cover = self.allowed_cover(page, found.iter().map(|hit| &hit.span));
        found.retain(|found| !cover.contains(&found.span));
    }

    /// Returns the places of the allowed phrases that may contain one of these spans.
    fn allowed_cover<'span>(&self, page: &FoldedText<'_>, spans: impl Iterator<Item = &'span ByteSpan>) -> SpanCover {
        // A phrase counts without repetitions, so that it is as long as listed; its neighbours matter too.
        let reach = self.longest_phrase + 1;
        let mut found = Vec::new();
        for part in page.parts_around(spans, reach) {
            let letters = &page.letters[part];
            let runs = self.allowed_matcher.runs(letters);
            let page = FoldedText { letters, runs: &runs, ..*page };
            let _ = self.allowed_matcher.candidates(&runs, |last_run, phrase| {
                let candidate = Candidate { page: &page, pattern: self.allowed.pattern(phrase), last_run };
                found.extend(candidate.confirmed_exactly().map(|span| (span.start, span.end)));
                ControlFlow::Continue(())
            });
        }
        SpanCover::new(found)
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

/// Tells which matches in a reading count for [`MAX_MATCHES`]: not those that the text as written does not bear out.
pub(super) type Counts<'reading> = &'reading dyn Fn(&Hit) -> bool;

/// The matches in one reading of a text.
struct Found<'engine, 'page> {
    engine: &'engine Engine,
    page: &'page FoldedText<'page>,
    counts: Counts<'page>,
    hits: Vec<Hit>,
    /// Number of matches that were kept when the innocent ones were dropped last.
    guilty: usize,
}

impl Found<'_, '_> {
    /// Adds a match, and breaks once there are enough.
    fn push(&mut self, hit: Hit) -> ControlFlow<()> {
        self.hits.push(hit);
        if self.hits.len() < self.guilty + MAX_MATCHES {
            return ControlFlow::Continue(());
        }
        self.drop_innocent();
        let is_full = self.engine.has_many(&mut self.hits, self.counts);
        self.guilty = self.hits.len();
        if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn drop_innocent(&mut self) {
        if self.guilty == 0 {
            self.engine.drop_innocent(self.page, &mut self.hits);
        } else {
            let mut fresh = self.hits.split_off(self.guilty);
            self.engine.drop_innocent(self.page, &mut fresh);
            self.hits.append(&mut fresh);
        }
        self.guilty = self.hits.len();
    }
}

/// Returns true if a text begins with a character that sounds otherwise than the one that it resembles. The others are left to
/// the comparison by sound.
fn is_unlike(text: &str) -> bool {
    let character = text.chars().next().unwrap_or_default();
    let (own, other) = (pinyin_table().reading(character), similar_characters().letter_of(character));
    other
        .map(|letter| pinyin_table().reading(letter))
        .is_some_and(|other| (own.sound, own.tone) != (other.sound, other.tone))
}

/// Returns true if a text begins with a character that is a word of many texts, and stands in for no letter of abuse.
fn is_frequent(text: &str) -> bool {
    let character = text.chars().next().unwrap_or_default();
    let is_taboo = similar_characters().letter_of(character).is_some_and(is_taboo);
    !is_taboo && dictionary().class(&[character]).is_some_and(|class| class >= FREQUENT_LETTER)
}

/// Drops words that are only found by sound or parts in the vocabulary of this app.
fn drop_own_vocabulary(page: &FoldedText<'_>, found: &mut Vec<Hit>) {
    if !found.iter().any(Hit::is_indirect) {
        return;
    }
    let vocabulary = app_vocabulary();
    let indirect = found.iter().filter(|hit| hit.is_indirect()).map(|hit| &hit.span);
    let (terms, doubts) = vocabulary.terms_in(page, page.parts_around(indirect, TERM_REACH));
    found.retain_mut(|hit| {
        if !hit.is_indirect() {
            return true;
        }
        if hit.way == MatchWay::Sound && doubts.contains(&hit.span) {
            hit.way = MatchWay::Fuzzy;
        }
        let is_quoted = || vocabulary.is_quoted(page.letters, page.letters_of(&hit.span));
        !(terms.contains(&hit.span) || is_quoted())
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

/// The views in which a reading of a text is compared with the words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Views {
    All,
    /// All but the comparison by sound.
    Written,
    /// Letters as they are, because the reading itself is a disguise.
    Plain,
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
#[derive(Clone, Copy)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_which_words_acquit_a_text() {
        let words = ["口交", "加微信"].map(|text| Word { text: text.into(), by_sound: true, ..Word::default() });
        let engine = Engine::build(&words, &[]);
        let acquitted = |text: &str| -> Vec<(String, String, String)> {
            let found = engine.acquitted(ContentType::Question, text).into_iter();
            found.map(|one| (one.word, one.text, one.words.join("|"))).collect()
        };
        let row = |one: &str, other: &str, words: &str| (one.to_owned(), other.to_owned(), words.to_owned());
        assert_eq!(acquitted("端口交换机坏了"), [row("口交", "口交", "端口|交换机")]);
        assert_eq!(acquitted("国家威信扫地"), [row("加微信", "家威信", "国家|威信扫地")]);
        assert_eq!(acquitted("加威信，口交"), []);
    }
}
