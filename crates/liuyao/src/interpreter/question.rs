//! Reads a question: its topic, its aim, the person and circumstances, and the line that stands for the matter (用神).
//!
//! Words are in `assets/interpreter`, in simplified Chinese and English. The longest word at a place wins, and words with
//! weight 0 only hide shorter ones. A type that the client states decides the topic, unless it names none.

use std::{collections::HashMap, sync::LazyLock};

use named_enum::named_enum;

use super::{AskerGender, Reading};
use crate::{chart::Kin, script::to_simplified};

named_enum! {
    /// The subject of a question, in the order in which they win a tie.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Topic {
        Lost = "lost",
        Pets = "pets",
        Legal = "legal",
        Children = "children",
        Health = "health",
        Papers = "papers",
        Study = "study",
        Business = "business",
        Career = "career",
        Wealth = "wealth",
        Family = "family",
        Love = "love",
        Friends = "friends",
        Vehicle = "vehicle",
        Home = "home",
        Travel = "travel",
        Other = "other",
    }
}

named_enum! {
    /// The sense in which a question wants its answer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Aim {
        /// Something hoped for.
        Wish = "wish",
        /// Something dreaded.
        Fear = "fear",
        /// To do something or not, or one of two things.
        Choice = "choice",
        When = "when",
        Who = "who",
        /// A fact, welcome or not.
        Fact = "fact",
    }
}

named_enum! {
    /// Somebody for whom, or about whom, a question asks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Person {
        Parent = "parent",
        Child = "child",
        Sibling = "sibling",
        Animal = "animal",
        Man = "man",
        Woman = "woman",
    }
}

/// The line for which a question asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    Kin(Kin),
    /// The line of the asker (世).
    Subject,
    /// The line of the other side (应).
    Object,
    /// The line of the partner, which depends on the asker.
    Partner,
}

/// The reason for the line of a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartnerReason {
    /// The asker's profile names their gender.
    Profile(AskerGender),
    /// The question names the partner's.
    Question(Person),
    /// Neither does, or both name the same one.
    Open,
}

/// A question as the interpreter understands it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matter {
    pub topic: Topic,
    pub aim: Aim,
    /// The thing asked about would be bad news.
    pub is_unwelcome: bool,
    pub sought: Sought,
    /// The person whose matter it is, if not the asker's own.
    pub person: Option<Person>,
    pub partner: Option<PartnerReason>,
    /// Circumstances with rules or words of their own, such as `long` for an old illness.
    pub aspects: Vec<&'static str>,
    /// The two things between which the asker chooses, as written.
    pub options: Option<[String; 2]>,
    /// The topic and words of a second question in the same text.
    pub second: Option<(Topic, String)>,
    /// Topics that need a professional.
    pub professionals: Vec<Topic>,
}

struct Entry {
    topic: Topic,
    line: Sought,
    weight: u8,
}

/// Words with one meaning.
struct WordList {
    kind: &'static str,
    name: &'static str,
    chinese: Vec<&'static str>,
    english: Vec<&'static str>,
}

struct Vocabulary {
    entries: Vec<Entry>,
    /// Words of topics with the place of their entry, by first letter.
    chinese: HashMap<char, Vec<(&'static str, usize)>>,
    english: HashMap<char, Vec<(&'static str, usize)>>,
    lists: Vec<WordList>,
}

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(Vocabulary::read);

fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().skip(1).map(|row| row.split('\t').collect())
}

fn words(cell: &'static str) -> impl Iterator<Item = &'static str> {
    cell.split('|').filter(|word| *word != "-")
}

impl Vocabulary {
    fn read() -> Self {
        let (mut entries, mut chinese, mut english) = (Vec::new(), HashMap::new(), HashMap::new());
        for row in rows(include_str!("../../../../assets/interpreter/topics.tsv")) {
            let [topic, line, weight, in_chinese, in_english] = row.as_slice() else { continue };
            for (by_letter, cell) in [(&mut chinese, in_chinese), (&mut english, in_english)] {
                for word in words(cell) {
                    let Some(first) = word.chars().next() else { continue };
                    by_letter.entry(first).or_insert_with(Vec::new).push((word, entries.len()));
                }
            }
            let line = match *line {
                "世" => Sought::Subject,
                "应" => Sought::Object,
                "partner" => Sought::Partner,
                kin => Kin::from_name(kin).map_or(Sought::Subject, Sought::Kin),
            };
            let topic = Topic::from_name(topic).unwrap_or(Topic::Other);
            entries.push(Entry { topic, line, weight: weight.parse().unwrap_or(0) });
        }
        let lists = rows(include_str!("../../../../assets/interpreter/words.tsv")).filter_map(|row| {
            let [kind, name, chinese, english] = row.try_into().ok()?;
            Some(WordList { kind, name, chinese: words(chinese).collect(), english: words(english).collect() })
        });
        Self { entries, chinese, english, lists: lists.collect() }
    }

    fn of(&self, kind: &str) -> impl Iterator<Item = &WordList> {
        self.lists.iter().filter(move |list| list.kind == kind)
    }
}

/// Text in lower case and simplified characters, and its Latin words with single spaces around them.
struct Text {
    chinese: String,
    english: String,
}

impl Text {
    fn new(text: &str) -> Self {
        let chinese = to_simplified(&text.to_lowercase()).replace('’', "'").replace("其他", "其它");
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '\'' | '-' | 'é' | '+');
        let words = chinese.split(|letter| !is_word(letter)).map(|word| word.trim_matches(['\'', '-']));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).map(without_genitive).collect();
        let english = format!("{} ", words.join(" "));
        Self { chinese, english }
    }

    fn has(&self, list: &WordList) -> bool {
        self.has_chinese(&list.chinese) || self.has_english(&list.english)
    }

    fn has_any(&self, kind: &str) -> bool {
        VOCABULARY.of(kind).any(|list| self.has(list))
    }

    fn has_named(&self, kind: &str, name: &str) -> bool {
        VOCABULARY.of(kind).any(|list| list.name == name && self.has(list))
    }

    fn has_chinese(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.chinese.contains(word))
    }

    fn has_english(&self, phrases: &[&str]) -> bool {
        word_starts(&self.english).any(|rest| phrases.iter().any(|phrase| begins_with(rest, phrase)))
    }

    /// Returns true if the asker speaks of themselves, apart from "my son" or 我妈.
    fn names_the_asker(&self) -> bool {
        let mut rest = self.chinese.replace("我的", "我");
        for word in VOCABULARY.of("person").flat_map(|list| &list.chinese) {
            rest = rest.replace(&format!("我{word}"), "").replace(&format!("我家{word}"), "");
        }
        rest.contains('我') || self.has_english(&["i", "me", "we", "us", "i'm", "i've", "i'll", "myself"])
    }

    /// Returns the places of the longest words of the vocabulary. They do not overlap.
    fn hits(&self) -> Vec<&'static Entry> {
        let mut found = Vec::new();
        let mut rest = self.chinese.as_str();
        while let Some(first) = rest.chars().next() {
            let longest = longest(&VOCABULARY.chinese, first, |word| rest.starts_with(word));
            found.extend(longest.map(|(_, entry)| &VOCABULARY.entries[entry]));
            let length = longest.map_or(first.len_utf8(), |(word, _)| word.len());
            rest = rest.get(length..).unwrap_or_default();
        }
        let mut rest = self.english.as_str();
        while let Some(first) = rest.chars().next() {
            let longest = longest(&VOCABULARY.english, first, |phrase| begins_with(rest, phrase));
            found.extend(longest.map(|(_, entry)| &VOCABULARY.entries[entry]));
            // Goes on after the word in which the phrase ends.
            let end = longest.map_or(0, |(phrase, _)| phrase.trim_end_matches('*').len());
            let next = rest.get(end..).and_then(|after| after.find(' ')).map_or(rest.len(), |space| end + space + 1);
            rest = rest.get(next..).unwrap_or_default();
        }
        found
    }
}

fn without_genitive(word: &str) -> &str {
    match word {
        "it's" | "he's" | "she's" | "master's" | "driver's" => word,
        _ => word.strip_suffix("'s").unwrap_or(word),
    }
}

/// Returns the rest of the text from each of its words.
fn word_starts(text: &str) -> impl Iterator<Item = &str> {
    let starts = std::iter::once(0).chain(text.match_indices(' ').map(|(place, _)| place + 1));
    starts.filter_map(|start| text.get(start..)).filter(|rest| !rest.is_empty())
}

/// Returns true if the text begins with these whole words.
fn begins_with(text: &str, phrase: &str) -> bool {
    match phrase.strip_suffix('*') {
        Some(stem) => text.starts_with(stem),
        None => text.strip_prefix(phrase).is_some_and(|rest| rest.starts_with(' ')),
    }
}

/// Returns the longest word of those with this first letter; of equal ones the first.
fn longest(
    by_letter: &HashMap<char, Vec<(&'static str, usize)>>,
    first: char,
    is_here: impl Fn(&str) -> bool,
) -> Option<(&'static str, usize)> {
    by_letter.get(&first)?.iter().copied().filter(|(word, _)| is_here(word)).rev().max_by_key(|(word, _)| word.len())
}

impl Person {
    /// Returns the person whom a question names first in the order of the vocabulary. Pronouns do not count.
    pub(super) fn named_in(question: &str) -> Option<Self> {
        let text = Text::new(question);
        let is_pronoun = |word: &&str| {
            VOCABULARY.of("pronoun").any(|list| list.chinese.contains(word) || list.english.contains(word))
        };
        let is_named = |list: &&WordList| {
            list.chinese.iter().filter(|word| !is_pronoun(word)).any(|word| text.chinese.contains(word))
                || list.english.iter().filter(|word| !is_pronoun(word)).any(|word| text.has_english(&[word]))
        };
        VOCABULARY.of("person").find(is_named).and_then(|list| Self::from_name(list.name))
    }

    pub(super) fn kin(self) -> Kin {
        match self {
            Self::Man => Kin::Officials,
            Self::Woman => Kin::Wealth,
            Self::Parent => Kin::Parents,
            Self::Child | Self::Animal => Kin::Children,
            Self::Sibling => Kin::Siblings,
        }
    }
}

impl Topic {
    /// Returns true for topics in which the asker wants something to hold together, so that a clash harms.
    pub(super) fn wants_union(self) -> bool {
        !matches!(self, Self::Health | Self::Legal | Self::Travel | Self::Lost | Self::Other | Self::Vehicle)
    }
}

impl Matter {
    pub fn of(reading: &Reading) -> Self {
        let text = Text::new(&reading.question);
        let hits = text.hits();
        let stated = reading.question_type.as_deref().and_then(|stated| strongest(&Text::new(stated).hits()));
        let stated = stated.filter(|topic| *topic != Topic::Other);
        let parts = parts(&reading.question);
        let first = parts.first().and_then(|(topic, _)| *topic).filter(|_| parts.len() > 1);
        let topic = stated.or(first).or_else(|| strongest(&hits)).unwrap_or(Topic::Other);
        let second = parts.into_iter().skip(1).find(|(other, _)| other.is_some_and(|other| other != topic));
        let touched = |topic| stated == Some(topic) || hits.iter().any(|hit| hit.topic == topic && hit.weight >= 3);
        let needs = |topic: &Topic| touched(*topic) || (*topic == Topic::Health && touched(Topic::Children));
        let options = options(&reading.question);
        let (aim, is_unwelcome) = aim(&text, topic, options.is_some());
        let sought = sought(topic, &hits);
        let person = person(topic, &text);
        let matter = Self {
            topic,
            aim,
            is_unwelcome,
            sought: person.map_or(sought, |person| Sought::Kin(person.kin())),
            person,
            partner: None,
            aspects: aspects(topic, &text),
            options,
            second: second.and_then(|(topic, words)| Some((topic?, words))),
            professionals: [Topic::Health, Topic::Wealth, Topic::Legal].into_iter().filter(needs).collect(),
        };
        if sought == Sought::Partner { matter.with_partner(reading.asker, &text) } else { matter }
    }

    pub fn has(&self, aspect: &str) -> bool {
        self.aspects.contains(&aspect)
    }

    fn with_partner(self, asker: Option<AskerGender>, text: &Text) -> Self {
        let has = |person: Person| text.has_named("person", person.name());
        let named = match (has(Person::Man), has(Person::Woman)) {
            (true, false) => Some(Person::Man),
            (false, true) => Some(Person::Woman),
            _ => None,
        };
        let (sought, reason) = match (asker, named) {
            (Some(AskerGender::Male), Some(Person::Man)) | (Some(AskerGender::Female), Some(Person::Woman)) => {
                (Sought::Object, PartnerReason::Open)
            }
            (Some(AskerGender::Male), _) => (Sought::Kin(Kin::Wealth), PartnerReason::Profile(AskerGender::Male)),
            (Some(AskerGender::Female), _) => {
                (Sought::Kin(Kin::Officials), PartnerReason::Profile(AskerGender::Female))
            }
            (None, Some(person)) => (Sought::Kin(person.kin()), PartnerReason::Question(person)),
            (None, None) => (Sought::Object, PartnerReason::Open),
        };
        Self { sought, person: None, partner: Some(reason), ..self }
    }
}

/// Returns the topics of the questions in a text, with their words.
fn parts(question: &str) -> Vec<(Option<Topic>, String)> {
    let is_end = |letter| matches!(letter, '?' | '？' | '。' | '；' | ';' | '\n' | '!' | '！' | '.');
    let marked =
        question.replace("，另外", "？").replace("，还有", "？").replace("，以及", "？").replace(" and also ", "?");
    let marked = marked.replace("吗，", "吗？").replace("嗎，", "嗎？");
    let parts = marked.split(is_end).map(str::trim).filter(|part| !part.is_empty());
    let asked = parts.filter_map(|part| {
        let text = Text::new(part);
        let asks = text.has_chinese(&[
            "吗",
            "呢",
            "会不会",
            "能不能",
            "要不要",
            "该",
            "什么",
            "何",
            "怎么",
            "是不是",
            "有没有",
        ]) || text
            .has_english(&["will", "should", "is", "are", "does", "do", "can", "when", "who", "how", "what", "am"]);
        let hits = text.hits();
        let is_clear = hits.iter().any(|hit| hit.weight >= 3);
        asks.then(|| (strongest(&hits).filter(|_| is_clear), part.to_owned()))
    });
    asked.collect()
}

/// Returns the two things between which the asker chooses.
fn options(question: &str) -> Option<[String; 2]> {
    const OPENERS: [&str; 18] = [
        "选",
        "選",
        "我应该",
        "我該",
        "我该",
        "应该",
        "應該",
        "是该",
        "是該",
        "到底",
        "现在",
        "現在",
        "该",
        "該",
        "should i ",
        "should we ",
        "shall i ",
        "is it better to ",
    ];
    // Only ASCII changes, so that places are the same in both.
    let lower = question.to_ascii_lowercase();
    let separator = ["还是", "還是", "或者", " or "].into_iter().find(|word| lower.contains(word))?;
    let clause = |letter| matches!(letter, '？' | '?' | '。' | '.' | '！' | '；' | '\n' | '，' | ',');
    let (part, lower) = question.split(clause).zip(lower.split(clause)).find(|(_, lower)| lower.contains(separator))?;
    let place = lower.find(separator)?;
    let (before, after) = (part.get(..place)?, part.get(place + separator.len()..)?);
    let is_turn =
        ["不", "没", "很", "想", "会", "要", "觉得", "有", "not"].iter().any(|word| after.trim().starts_with(word));
    if is_turn || before.trim().is_empty() || after.trim().is_empty() {
        return None;
    }
    // The words before the first option end with the last of these.
    let ends = OPENERS.iter().filter_map(|opener| Some(lower.get(..place)?.rfind(opener)? + opener.len()));
    let before =
        ends.max().and_then(|end| before.get(end..)).filter(|option| !option.trim().is_empty()).unwrap_or(before);
    let short = |text: &str| {
        let text = text.trim().trim_end_matches(['呢', '好', '吗', '嗎']).trim_start_matches("是");
        (!text.is_empty() && text.chars().count() <= 40).then(|| text.to_owned())
    };
    Some([short(before)?, short(after)?])
}

/// Returns the aim of a question, and whether it asks about something bad.
fn aim(text: &Text, topic: Topic, has_options: bool) -> (Aim, bool) {
    let is = |aim: Aim| text.has_named("aim", aim.name());
    // 会不会 asks, and does not deny.
    let plain = Text { chinese: text.chinese.replace("会不会", "会"), english: text.english.clone() };
    let is_unwelcome = text.has_any("unwelcome") && !plain.has_any("opposite");
    let opens_with_doubt = || {
        VOCABULARY
            .of("doubt")
            .any(|list| list.name == "opening" && list.english.iter().any(|word| begins_with(&text.english, word)))
            && !text.has_named("doubt", "future")
    };
    let aim = if is(Aim::When) {
        Aim::When
    } else if is(Aim::Who) {
        Aim::Who
    } else if has_options || is(Aim::Choice) {
        Aim::Choice
    } else if text.has_any("hope") {
        Aim::Wish
    } else if is(Aim::Fact) || opens_with_doubt() {
        Aim::Fact
    } else if (is_unwelcome && topic != Topic::Lost) || text.has_any("fear") {
        // A loss was bad luck already; to find the thing is a hope.
        Aim::Fear
    } else {
        Aim::Wish
    };
    (aim, is_unwelcome)
}

fn aspects(topic: Topic, text: &Text) -> Vec<&'static str> {
    let of_topic =
        |list: &&WordList| list.name.split_once('.').is_some_and(|(of, _)| of == topic.name()) && text.has(list);
    VOCABULARY
        .of("aspect")
        .filter(of_topic)
        .filter_map(|list| list.name.split_once('.'))
        .map(|(_, name)| name)
        .collect()
}

/// Returns the topic with the greatest weight; none if no word was found. The health of an animal is a question about the
/// animal, and a lost animal is something lost.
fn strongest(hits: &[&Entry]) -> Option<Topic> {
    let has = |topic, weight| hits.iter().any(|hit| hit.topic == topic && hit.weight >= weight);
    let (has_animal, is_lost) = (has(Topic::Pets, 2), has(Topic::Lost, 3));
    let topic_of = |hit: &Entry| match hit.topic {
        Topic::Pets if is_lost => Topic::Lost,
        Topic::Health if has_animal => Topic::Pets,
        topic => topic,
    };
    let weight =
        |topic| -> u32 { hits.iter().filter(|hit| topic_of(hit) == topic).map(|hit| u32::from(hit.weight)).sum() };
    let weights = Topic::ALL.map(|topic| (topic, weight(topic)));
    let most = weights.iter().map(|(_, weight)| *weight).max().filter(|most| *most > 0)?;
    weights.into_iter().find(|(_, weight)| *weight == most).map(|(topic, _)| topic)
}

/// Returns the line that the words of a topic ask for. A word with a line of its own, such as 加薪 beside 工作, decides.
fn sought(topic: Topic, hits: &[&Entry]) -> Sought {
    let usual = VOCABULARY.entries.iter().find(|entry| entry.topic == topic && entry.weight > 0);
    let usual = usual.map_or(Sought::Subject, |entry| entry.line);
    let is_thing = |hit: &&&Entry| matches!(hit.topic, Topic::Papers | Topic::Pets | Topic::Home | Topic::Vehicle);
    let special = |hit: &&&Entry| hit.topic == topic && hit.weight > 1 && hit.line != usual;
    let found = hits.iter().find(special).or_else(|| hits.iter().find(|hit| topic == Topic::Lost && is_thing(hit)));
    found.map_or(usual, |hit| hit.line)
}

/// Returns the person whose matter it is, if not the asker's own.
fn person(topic: Topic, text: &Text) -> Option<Person> {
    let named = || Person::ALL.into_iter().find(|person| text.has_named("person", person.name()));
    let is_together = || text.has_chinese(&["和", "跟", "与", "陪", "带"]) || text.has_english(&["with"]);
    match topic {
        Topic::Family | Topic::Health => named(),
        Topic::Study | Topic::Travel | Topic::Career if !is_together() && !text.names_the_asker() => named(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
