//! Classifies the topic of a question and decides which line stands for the matter (用神).
//!
//! Uses the client's question type, and the words of the question if that type is unknown. Each word of the vocabulary
//! that occurs adds its weight to its topic. Questions about health, money or the law refer the reader to a professional.

use std::{collections::HashMap, sync::LazyLock};

use super::vocabulary::{Entry, PERSONS, PersonEntry, VOCABULARY};
use super::{AskerGender, Reading};

/// The topics with words of their own, in the order in which they win a tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Topic {
    Lost,
    Pets,
    Legal,
    Children,
    Health,
    Papers,
    Study,
    Business,
    Career,
    Wealth,
    Family,
    Love,
    Friends,
    Home,
    Travel,
    Other,
}

impl Topic {
    pub(super) const ALL: [Self; 16] = [
        Self::Lost,
        Self::Pets,
        Self::Legal,
        Self::Children,
        Self::Health,
        Self::Papers,
        Self::Study,
        Self::Business,
        Self::Career,
        Self::Wealth,
        Self::Family,
        Self::Love,
        Self::Friends,
        Self::Home,
        Self::Travel,
        Self::Other,
    ];

    /// The topics in which the asker wants something to hold together, so that a clash harms and a combination helps.
    pub(super) fn wants_union(self) -> bool {
        !matches!(self, Self::Health | Self::Legal | Self::Travel | Self::Lost | Self::Other)
    }
}

/// The line for which a question asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sought {
    /// A line of this kin.
    Kin(&'static str),
    /// The line of the asker (世).
    Subject,
    /// The line of the other side (应).
    Object,
    /// The line of the partner, which depends on the asker.
    Partner,
}

/// Somebody for whom, or about whom, the asker asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Person {
    Man,
    Woman,
    Parent,
    Child,
    Sibling,
    Animal,
}

impl Person {
    /// Returns the person whom a question names first in the order of the vocabulary. Pronouns do not count.
    pub(super) fn named_in(question: &str) -> Option<Self> {
        let text = normalized(question);
        let named = |words: &str, separator: char, has: &dyn Fn(&str) -> bool| {
            words.split(separator).any(|word| !PRONOUNS.contains(&word) && has(word))
        };
        let is_named = |entry: &&PersonEntry| {
            named(entry.chinese, ' ', &|word| text.has_chinese(word))
                || named(entry.english, '|', &|word| text.has_english(word))
        };
        PERSONS.iter().find(is_named).map(|entry| entry.person)
    }

    fn kin(self) -> &'static str {
        match self {
            Self::Man => "官鬼",
            Self::Woman => "妻财",
            Self::Parent => "父母",
            Self::Child | Self::Animal => "子孙",
            Self::Sibling => "兄弟",
        }
    }
}

/// The reason for the line of a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartnerReason {
    /// The asker's profile names their gender.
    Profile(AskerGender),
    /// The question names the partner's gender.
    Question(Person),
    /// Neither does, or both name the same one.
    Open,
}

/// A question as the interpreter understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Matter {
    pub topic: Topic,
    pub sought: Sought,
    /// The person whose matter it is, if not the asker's own.
    pub person: Option<Person>,
    pub partner: Option<PartnerReason>,
}

impl Matter {
    pub(super) fn of(reading: &Reading) -> Self {
        let text = normalized(&reading.question);
        let hits = hits(&text);
        let stated = stated(reading);
        let topic = stated.or_else(|| strongest(&hits)).unwrap_or(Topic::Other);
        let sought = sought(topic, &hits);
        let person = person(topic, &text);
        let matter = Self { topic, sought, person, partner: None };
        match (sought, person) {
            (Sought::Partner, _) => matter.with_partner(reading.asker, &text),
            (_, Some(person)) => Self { sought: Sought::Kin(person.kin()), ..matter },
            _ => matter,
        }
    }

    fn with_partner(self, asker: Option<AskerGender>, text: &Normalized) -> Self {
        let named = match (text.has_person(Person::Man), text.has_person(Person::Woman)) {
            (true, false) => Some(Person::Man),
            (false, true) => Some(Person::Woman),
            _ => None,
        };
        let (sought, reason) = match (asker, named) {
            (Some(AskerGender::Male), Some(Person::Man)) | (Some(AskerGender::Female), Some(Person::Woman)) => {
                (Sought::Object, PartnerReason::Open)
            }
            (Some(AskerGender::Male), _) => (Sought::Kin("妻财"), PartnerReason::Profile(AskerGender::Male)),
            (Some(AskerGender::Female), _) => (Sought::Kin("官鬼"), PartnerReason::Profile(AskerGender::Female)),
            (None, Some(person)) => (Sought::Kin(person.kin()), PartnerReason::Question(person)),
            (None, None) => (Sought::Object, PartnerReason::Open),
        };
        Self { sought, person: None, partner: Some(reason), ..self }
    }
}

/// Words of the vocabulary that name somebody by their sex alone.
const PRONOUNS: [&str; 8] = ["他", "她", "he", "him", "his", "she", "her", "hers"];

/// Returns the topics that need a professional.
pub(super) fn needing_a_professional(reading: &Reading) -> Vec<Topic> {
    let matched = hits(&normalized(&reading.question));
    let touched =
        |topic| stated(reading) == Some(topic) || matched.iter().any(|hit| hit.topic == topic && hit.weight >= 3);
    let needs = |topic| match topic {
        // Pregnancy and its treatment.
        Topic::Health => touched(topic) || touched(Topic::Children),
        _ => touched(topic),
    };
    [Topic::Health, Topic::Wealth, Topic::Legal].into_iter().filter(|topic| needs(*topic)).collect()
}

/// A part of a topic with counsel of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aspect {
    /// Money that is owed to the asker.
    Debt,
    /// Something to buy or sell.
    Trade,
    /// A job that the asker may lose.
    Layoff,
    /// The return of a former partner.
    Reunion,
    Surgery,
}

impl Aspect {
    pub(super) fn of(reading: &Reading, topic: Topic) -> Option<Self> {
        let text = normalized(&reading.question);
        let has = |chinese, english| text.has_chinese(chinese) || text.has_english(english);
        let aspects = match topic {
            Topic::Wealth => &[
                (
                    Self::Debt,
                    "欠我 能还吗 会还 还我 还给我 讨债 要债 账款 要回 讨回 追回",
                    "owes me|owe me|owed to me|i lent|pay me back|repay me|money back",
                ),
                (
                    Self::Trade,
                    "卖 买 股 基金 投资 币 抛 仓",
                    "sell*|sold|buy*|stock*|shares|fund*|invest*|crypto|bitcoin",
                ),
            ][..],
            Topic::Career => &[(
                Self::Layoff,
                "会被裁 被裁吗 裁到我 会裁员 要裁员 在裁员 会被辞退 会被开除 会被优化 会失业",
                "be laid off|get laid off|lay me off|layoff*|be fired|get fired|fire me|lose my job|be made redundant",
            )],
            Topic::Love => &[(
                Self::Reunion,
                "复合 挽回 回头 回心转意 回到我",
                "back together|come back|get back with|take me back|return to me|reconcile*",
            )],
            Topic::Health => &[(Self::Surgery, "手术 开刀", "surgery|operation|operate*")],
            _ => &[],
        };
        aspects.iter().find(|(_, chinese, english)| has(chinese, english)).map(|(aspect, ..)| *aspect)
    }
}

/// Returns true if the question leaves a choice between two things, for which one casting is not enough.
pub(super) fn is_choice(reading: &Reading) -> bool {
    let question = reading.question.to_lowercase();
    let chinese = question.contains("还是") && !question.contains("还是不");
    chinese || (question.contains(" or ") && !question.contains(" or not"))
}

fn stated(reading: &Reading) -> Option<Topic> {
    let stated = reading.question_type.as_deref()?;
    strongest(&hits(&normalized(stated))).filter(|topic| *topic != Topic::Other)
}

/// Lower-case text, and its words in Latin letters with single spaces around them.
struct Normalized {
    chinese: String,
    english: String,
}

fn normalized(text: &str) -> Normalized {
    let chinese = text.to_lowercase().replace('’', "'").replace("其他", "其它");
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '\'' | '-' | 'é' | '+');
    let words = chinese.split(|letter| !is_word(letter)).map(|word| word.trim_matches(['\'', '-']));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).map(without_genitive).collect();
    let english = format!("{} ", words.join(" "));
    Normalized { chinese, english }
}

fn without_genitive(word: &str) -> &str {
    match word {
        "it's" | "he's" | "she's" | "master's" | "driver's" => word,
        _ => word.strip_suffix("'s").unwrap_or(word),
    }
}

impl Normalized {
    fn has_person(&self, person: Person) -> bool {
        PERSONS
            .iter()
            .filter(|entry| entry.person == person)
            .any(|entry| self.has_chinese(entry.chinese) || self.has_english(entry.english))
    }

    fn has_chinese(&self, words: &str) -> bool {
        words.split(' ').any(|word| self.chinese.contains(word))
    }

    fn has_english(&self, phrases: &str) -> bool {
        word_starts(&self.english).any(|rest| phrases.split('|').any(|phrase| begins_with(rest, phrase)))
    }

    /// Returns true if the asker speaks of themselves, apart from "my son" or 我妈.
    fn names_the_asker(&self) -> bool {
        let mut rest = self.chinese.replace("我的", "我");
        for word in PERSONS.iter().flat_map(|entry| entry.chinese.split(' ')) {
            rest = rest.replace(&format!("我{word}"), "").replace(&format!("我家{word}"), "");
        }
        rest.contains('我') || self.has_english("i|me|we|us|i'm|i've|i'll|myself")
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

/// The words of the vocabulary by their first letter.
struct Index {
    chinese: HashMap<char, Vec<(&'static str, &'static Entry)>>,
    english: HashMap<char, Vec<(&'static str, &'static Entry)>>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index { chinese: HashMap::new(), english: HashMap::new() };
    for entry in VOCABULARY {
        let words = [(&mut index.chinese, entry.chinese, ' '), (&mut index.english, entry.english, '|')];
        for (by_letter, words, separator) in words {
            for word in words.split(separator) {
                if let Some(first) = word.chars().next() {
                    by_letter.entry(first).or_default().push((word, entry));
                }
            }
        }
    }
    index
});

/// Finds the longest word of the vocabulary at each place. Found words do not overlap.
fn hits(text: &Normalized) -> Vec<&'static Entry> {
    let mut found = Vec::new();
    let mut rest = text.chinese.as_str();
    while let Some(first) = rest.chars().next() {
        let longest = longest(&INDEX.chinese, first, |word| rest.starts_with(word));
        found.extend(longest.map(|(_, entry)| entry));
        let length = longest.map_or(first.len_utf8(), |(word, _)| word.len());
        rest = rest.get(length..).unwrap_or_default();
    }
    let mut rest = text.english.as_str();
    while let Some(first) = rest.chars().next() {
        let longest = longest(&INDEX.english, first, |phrase| begins_with(rest, phrase));
        found.extend(longest.map(|(_, entry)| entry));
        // Goes on after the word in which the phrase ends.
        let end = longest.map_or(0, |(phrase, _)| phrase.trim_end_matches('*').len());
        let next = rest.get(end..).and_then(|after| after.find(' ')).map_or(rest.len(), |space| end + space + 1);
        rest = rest.get(next..).unwrap_or_default();
    }
    found
}

/// Returns the longest word of those with this first letter; of equal ones the first.
fn longest(
    by_letter: &HashMap<char, Vec<(&'static str, &'static Entry)>>,
    first: char,
    is_here: impl Fn(&str) -> bool,
) -> Option<(&'static str, &'static Entry)> {
    let here = by_letter.get(&first)?.iter().copied().filter(|(word, _)| is_here(word));
    here.rev().max_by_key(|(word, _)| word.len())
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
    let usual = VOCABULARY.iter().find(|entry| entry.topic == topic && entry.weight > 0);
    let usual = usual.map_or(Sought::Subject, |entry| entry.sought);
    let is_thing = |hit: &&&Entry| matches!(hit.topic, Topic::Papers | Topic::Pets | Topic::Home);
    let special = |hit: &&&Entry| hit.topic == topic && hit.weight > 1 && hit.sought != usual;
    let found = hits.iter().find(special).or_else(|| hits.iter().find(|hit| topic == Topic::Lost && is_thing(hit)));
    found.map_or(usual, |hit| hit.sought)
}

/// Returns the person whose matter it is, if not the asker's own.
fn person(topic: Topic, text: &Normalized) -> Option<Person> {
    let named = || PERSONS.iter().map(|entry| entry.person).find(|person| text.has_person(*person));
    let is_together = || {
        let company = ["和", "跟", "与", "陪", "带"];
        company.iter().any(|word| text.chinese.contains(word)) || text.has_english("with")
    };
    match topic {
        Topic::Family | Topic::Health => named(),
        Topic::Study | Topic::Travel | Topic::Career if !is_together() && !text.names_the_asker() => named(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
