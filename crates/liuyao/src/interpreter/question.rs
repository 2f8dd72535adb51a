//! Reads a question: its topic, its aim, the person and circumstances, and the line that stands for the matter (用神).
//!
//! Words are in `assets/interpreter`, in simplified Chinese and English. The longest word at a place wins, words with
//! weight 0 only hide shorter ones, and words of the clause that asks decide or count twice. Verbs weigh more than
//! places and persons. A type that the client states decides the topic, unless it names none.

use std::{collections::HashMap, sync::LazyLock};

use named_enum::named_enum;

use super::{AskerGender, Reading, restatement};
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
        Where = "where",
        /// The way to do something.
        How = "how",
        Why = "why",
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
    /// True for a matter of months rather than days.
    pub is_slow: bool,
    /// The answers no, perhaps and yes in the words of the question.
    pub answers: Option<[String; 3]>,
    /// The two things between which the asker chooses, as written.
    pub options: Option<[String; 2]>,
    /// True if the first of two things gives up what the second keeps, so that the chart, which shows it, speaks for the second.
    pub gives_up: bool,
    /// The act of which the asker wants to know whether to do it, as written.
    pub act: Option<String>,
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
pub(super) struct WordList {
    kind: &'static str,
    pub name: &'static str,
    pub chinese: Vec<&'static str>,
    pub english: Vec<&'static str>,
}

struct Vocabulary {
    entries: Vec<Entry>,
    /// Words of topics with the place of their entry, by first letter.
    chinese: HashMap<char, Vec<(&'static str, usize)>>,
    english: HashMap<char, Vec<(&'static str, usize)>>,
    lists: Vec<WordList>,
    /// Lists of objects and of what is done to them, with the place of the entry that both stand for.
    pairs: Vec<[usize; 3]>,
}

/// The weight of an object together with what is done to it.
const PAIR: u8 = 7;
/// The weight that a clause that asks needs to decide the topic alone.
const DECISIVE: u32 = 5;
/// The least weight that makes a topic certain.
const CERTAIN: u32 = 2;

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
            let topic = Topic::from_name(topic).unwrap_or(Topic::Other);
            let line = Sought::from_name(line).unwrap_or(Sought::Subject);
            entries.push(Entry { topic, line, weight: weight.parse().unwrap_or(0) });
        }
        let lists = rows(include_str!("../../../../assets/interpreter/words.tsv")).filter_map(|row| {
            let [kind, name, chinese, english] = row.try_into().ok()?;
            Some(WordList { kind, name, chinese: words(chinese).collect(), english: words(english).collect() })
        });
        let lists: Vec<WordList> = lists.collect();
        let mut pairs = Vec::new();
        for (object, list) in lists.iter().enumerate().filter(|(_, list)| list.kind == "object") {
            let Some((topic, line)) = list.name.split_once('.') else { continue };
            let (topic, line) = (Topic::from_name(topic), Sought::from_name(line.trim_end_matches(char::is_numeric)));
            let usual = entries.iter().find(|entry: &&Entry| Some(entry.topic) == topic).map(|entry| entry.line);
            // A list with a line of its own, such as a landlord and a price, outweighs places.
            let weight = if line.is_some() { 2 * PAIR } else { PAIR };
            let line = line.or(usual);
            let act = lists.iter().position(|other| other.kind == "act" && other.name == list.name);
            if let (Some(topic), Some(line), Some(act)) = (topic, line, act) {
                pairs.push([object, act, entries.len()]);
                entries.push(Entry { topic, line, weight });
            }
        }
        Self { entries, chinese, english, lists, pairs }
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
        let spellings = VOCABULARY.of("spelling").flat_map(|list| list.chinese.iter().map(|word| (*word, list.name)));
        let chinese = spellings.fold(
            chinese,
            |text, (word, plain)| {
                if text.contains(word) { text.replace(word, plain) } else { text }
            },
        );
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

    fn opens_with(&self, kind: &str, name: &str) -> bool {
        let opens = |list: &WordList| list.english.iter().any(|word| begins_with(&self.english, word));
        VOCABULARY.of(kind).any(|list| list.name == name && opens(list))
    }

    /// Returns true if it has words of a question.
    fn asks(&self) -> bool {
        VOCABULARY.of("question").any(|list| self.has_chinese(&list.chinese)) || self.opens_with("question", "opening")
    }

    /// Returns the topic of the animal or relative whom its pronouns stand for; none if it may speak of a partner.
    fn other_than_a_partner(&self, hits: &[&Entry]) -> Option<Topic> {
        if hits.iter().any(|hit| hit.topic == Topic::Pets && hit.weight >= 2) {
            return Some(Topic::Pets);
        }
        let names_love = hits.iter().any(|hit| hit.topic == Topic::Love && hit.weight >= 2);
        let is_relative = |person: &Person| matches!(person, Person::Parent | Person::Child | Person::Sibling);
        Person::first_in(self).filter(|person| is_relative(person) && !names_love).map(|_| Topic::Family)
    }

    /// Returns the topic to which its words turn another, as a verb turns an animal into something lost.
    fn turned(&self, topic: Topic) -> Topic {
        let turns = VOCABULARY.of("turn").filter_map(|list| Some((list, list.name.split_once('.')?)));
        turns.fold(topic, |topic, (list, (from, to))| {
            let is_turned = topic.name() == from && self.has(list);
            Topic::from_name(to).filter(|_| is_turned).unwrap_or(topic)
        })
    }

    /// Returns true if the asker speaks of themselves, apart from "my son" or 我妈.
    fn names_the_asker(&self) -> bool {
        let is_relation = |after: &str| {
            let after = after.trim_start_matches('的');
            let at_home = after.strip_prefix('家').unwrap_or(after);
            let mut people = VOCABULARY.of("person").flat_map(|list| &list.chinese);
            people.any(|word| after.starts_with(word) || at_home.starts_with(word))
        };
        self.chinese.split('我').skip(1).any(|after| !is_relation(after))
            || self.has_english(&["i", "me", "we", "us", "i'm", "i've", "i'll", "myself"])
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
        let has = |list: usize| self.has(&VOCABULARY.lists[list]);
        let pairs = VOCABULARY.pairs.iter().filter(|[object, act, _]| has(*object) && has(*act));
        found.extend(pairs.map(|[_, _, entry]| &VOCABULARY.entries[*entry]));
        found
    }

    /// Returns true if it asks whether to do something, as 去不去 does. 卖不卖得出 asks if it can be done.
    fn offers_choice(&self) -> bool {
        const OTHERS: &str = "是会能有好对可想爱知在行收批给来回肯同录够";
        let letters: Vec<char> = self.chinese.chars().collect();
        let is_end = self.chinese.trim_end_matches(is_clause_end).ends_with("好不好");
        is_end
            || letters.windows(3).enumerate().any(|(place, three)| {
                three[1] == '不'
                    && three[0] == three[2]
                    && !OTHERS.contains(three[0])
                    && !letters.get(place + 3).is_some_and(|next| "得到成中".contains(*next))
            })
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
    /// Returns the person whom a question names first. Pronouns do not count.
    pub(super) fn named_in(question: &str) -> Option<Self> {
        Self::first_in(&Text::new(question))
    }

    fn first_in(text: &Text) -> Option<Self> {
        let pronouns = VOCABULARY.of("pronoun").next()?;
        let place = |list: &WordList| {
            let chinese = list.chinese.iter().filter(|word| !pronouns.chinese.contains(word));
            let chinese = chinese.filter_map(|word| text.chinese.find(word)).min();
            let is_named = |rest: &&str| {
                list.english.iter().any(|word| begins_with(rest, word) && !pronouns.english.contains(word))
            };
            let english = word_starts(&text.english).find(is_named).map(|rest| text.english.len() - rest.len());
            chinese.into_iter().chain(english).min()
        };
        let places = VOCABULARY.of("person").filter_map(|list| Some((place(list)?, list.name)));
        places.min_by_key(|(place, _)| *place).and_then(|(_, name)| Self::from_name(name))
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

impl Sought {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "世" => Some(Self::Subject),
            "应" => Some(Self::Object),
            "partner" => Some(Self::Partner),
            kin => Kin::from_name(kin).map(Self::Kin),
        }
    }
}

impl Topic {
    /// Returns true for topics in which the asker wants something to hold together, so that a clash harms.
    pub(super) fn wants_union(self) -> bool {
        !matches!(self, Self::Health | Self::Legal | Self::Travel | Self::Lost | Self::Other | Self::Vehicle)
    }

    /// Returns true for topics that are decided within days.
    fn is_quick(self) -> bool {
        matches!(self, Self::Lost | Self::Pets | Self::Travel | Self::Friends)
    }
}

impl Matter {
    pub fn of(reading: &Reading) -> Self {
        let text = Text::new(&reading.question);
        let clauses = clauses(&reading.question);
        let asked = Text::new(&clauses.join("，"));
        let asked = if clauses.is_empty() { Text::new(&reading.question) } else { asked };
        let (hits, asked_hits) = (text.hits(), asked.hits());
        let stated = reading.question_type.as_deref().map(Text::new);
        let stated =
            stated.and_then(|stated| strongest(&stated.hits(), 1, None).filter(|topic| *topic != Topic::Other));
        let parts = parts(&reading.question);
        let first = parts.first().and_then(|(topic, _)| *topic);
        let other = text.other_than_a_partner(&hits);
        let all = || strongest(&[&hits[..], &asked_hits].concat(), CERTAIN, other);
        let read = || strongest(&asked_hits, DECISIVE, other).or_else(all).map(|topic| text.turned(topic));
        let topic = stated.or(first).or_else(read).unwrap_or(Topic::Other);
        let second = parts.into_iter().skip(1).find(|(other, _)| other.is_some_and(|other| other != topic));
        let is_asked = |topic| asked_hits.iter().any(|hit| hit.topic == topic && hit.weight >= 5);
        let touched = |other| stated == Some(other) || topic == other || (topic != Topic::Pets && is_asked(other));
        // Money between people needs no adviser.
        let invests = ["wealth.trade", "wealth.loan"].into_iter().any(|name| text.has_named("aspect", name));
        let needs = |other: &Topic| match other {
            Topic::Wealth => touched(*other) && (invests || stated == Some(*other)),
            Topic::Health => touched(*other) || touched(Topic::Children),
            _ => touched(*other),
        };
        let options = options(&reading.question);
        let (aim, is_unwelcome) = aim(&asked, topic, options.is_some());
        let sought = sought(topic, &hits, &asked_hits);
        let person = person(topic, &asked).filter(|_| Person::first_in(&asked).is_some());
        let person = person.or_else(|| self::person(topic, &text));
        let aspects = aspects(topic, person, &text);
        let is_slow = text.has_named("scale", "months")
            || !(text.has_named("scale", "days") || topic.is_quick() || aspects.contains(&"recent"));
        let matter = Self {
            topic,
            aim,
            is_unwelcome,
            sought: person.map_or(sought, |person| Sought::Kin(person.kin())),
            person,
            partner: None,
            aspects,
            is_slow,
            answers: restatement::answers(&reading.question, &clauses),
            gives_up: options.as_ref().is_some_and(|options| {
                let [first, second] = options.each_ref().map(|option| Text::new(option).has_any("leave"));
                first && !second
            }),
            options,
            act: act(&reading.question),
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

/// Returns the clauses that ask; none if a question has no words of a question.
fn clauses(question: &str) -> Vec<&str> {
    let clauses = question.split_inclusive(is_clause_end).filter(|clause| !clause.trim().is_empty());
    clauses.filter(|clause| clause.ends_with(['?', '？']) || Text::new(clause).asks()).collect()
}

/// Returns the topics of the questions in a text, with their words; none if it asks only one.
fn parts(question: &str) -> Vec<(Option<Topic>, String)> {
    let is_end = |letter| is_clause_end(letter) && !matches!(letter, '，' | ',');
    let marks = ["，另外", "，还有", "，還有", "，以及", " and also "];
    let marked = marks.iter().fold(question.to_owned(), |text, mark| text.replace(mark, "？"));
    let marked = marked.replace("吗，", "吗？").replace("嗎，", "嗎？");
    let parts = marked.split_inclusive(is_end).map(|part| (part, part.trim_end_matches(is_end).trim()));
    let asked = parts.filter(|(_, words)| !words.is_empty()).filter_map(|(part, words)| {
        let text = Text::new(words);
        let asks = text.asks() || part.ends_with(['?', '？']);
        asks.then_some((text, words))
    });
    let asked: Vec<_> = asked.collect();
    if asked.len() < 2 {
        return Vec::new();
    }
    let topic = |text: &Text| strongest(&text.hits(), DECISIVE, None).map(|topic| text.turned(topic));
    asked.iter().map(|(text, words)| (topic(text), (*words).to_owned())).collect()
}

pub(super) fn is_clause_end(letter: char) -> bool {
    matches!(letter, '？' | '?' | '。' | '.' | '！' | '!' | '；' | ';' | '\n' | '，' | ',')
}

/// Returns the text in simplified characters, and Cantonese in the words of standard Chinese.
pub(super) fn standard(text: &str) -> String {
    let plain = to_simplified(text);
    if openers("cantonese").any(|word| plain.contains(word)) { Text::new(text).chinese } else { plain }
}

/// Returns the lists of words of a kind.
pub(super) fn words_of(kind: &str) -> impl Iterator<Item = &WordList> {
    VOCABULARY.of(kind)
}

/// Returns the words that open an option, an act or a sentence, in both scripts.
pub(super) fn openers(name: &str) -> impl Iterator<Item = &&str> {
    VOCABULARY.of("opener").filter(move |list| list.name == name).flat_map(|list| &list.chinese)
}

/// Returns the two things between which the asker chooses.
fn options(question: &str) -> Option<[String; 2]> {
    // Only ASCII changes, so that places are the same in both.
    let lower = question.to_ascii_lowercase();
    let separator = openers("separator").find(|word| lower.contains(**word))?;
    let parts = question.split(is_clause_end).zip(lower.split(is_clause_end));
    let (part, lower) = parts.into_iter().find(|(_, lower)| lower.contains(separator))?;
    let place = lower.find(separator)?;
    let (before, after) = (part.get(..place)?, part.get(place + separator.len()..)?);
    let is_turn = openers("turn").any(|word| after.trim().starts_with(word));
    if is_turn || before.trim().is_empty() || after.trim().is_empty() {
        return None;
    }
    // The words before the first option end with the last of these.
    let ends = openers("option").filter_map(|opener| Some(lower.get(..place)?.rfind(opener)? + opener.len()));
    let before =
        ends.max().and_then(|end| before.get(end..)).filter(|option| !option.trim().is_empty()).unwrap_or(before);
    let short = |text: &str| {
        let text = text.trim().trim_end_matches(['呢', '好', '吗', '嗎']);
        let text = openers("first").fold(text, |text, word| text.trim_start_matches(*word));
        (!text.is_empty() && text.chars().count() <= 40).then(|| text.to_owned())
    };
    Some([short(before)?, short(after)?])
}

/// Returns the act of a question whether to do something.
fn act(question: &str) -> Option<String> {
    let lower = question.to_ascii_lowercase();
    let start = openers("act").find_map(|opener| Some(lower.find(opener)? + opener.len()))?;
    let act = question.get(start..)?.split(is_clause_end).next()?.trim().trim_end_matches(['呢', '吗', '嗎', '好']);
    (2..=60).contains(&act.chars().count()).then(|| act.to_owned())
}

/// Returns the aim of a question, and whether it asks about something bad.
fn aim(text: &Text, topic: Topic, has_options: bool) -> (Aim, bool) {
    let is = |aim: Aim| text.has_named("aim", aim.name());
    // 会不会 asks, and does not deny.
    let plain = Text { chinese: text.chinese.replace("会不会", "会"), english: text.english.clone() };
    let willing = Text { chinese: text.chinese.replace("肯不肯", "肯"), english: text.english.clone() };
    let is_unwelcome = willing.has_any("unwelcome") && !plain.has_any("opposite");
    let is_doubt = || text.opens_with("doubt", "opening") && !text.has_named("doubt", "future");
    // To ask if something will happen that is not known to be welcome is to fear it.
    let is_open = text.has_named("doubt", "whether") && !plain.has_any("welcome");
    // In "will she call when she is back" no word asks for a time.
    let is_yes_or_no = text.opens_with("auxiliary", "opening") && !text.chinese.contains('吗');
    let named = [Aim::When, Aim::Who, Aim::Where, Aim::Why].into_iter().find(|aim| is(*aim) && !is_yes_or_no);
    let by_sign = [
        (has_options, Aim::Choice),
        (is(Aim::How), Aim::How),
        (is(Aim::Choice) || text.offers_choice(), Aim::Choice),
        (text.has_any("hope"), Aim::Wish),
        (is(Aim::Fact) || is_doubt(), Aim::Fact),
        // A loss was bad luck already; to find the thing is a hope.
        ((is_unwelcome && topic != Topic::Lost) || text.has_any("fear") || is_open, Aim::Fear),
    ];
    let found = by_sign.into_iter().find(|(is_so, _)| *is_so).map(|(_, aim)| aim);
    let aim = named.or(found).unwrap_or(Aim::Wish);
    // Facts about health are feared.
    (aim, is_unwelcome || (aim == Aim::Fact && topic == Topic::Health))
}

fn aspects(topic: Topic, person: Option<Person>, text: &Text) -> Vec<&'static str> {
    let aspects = VOCABULARY.of("aspect").filter_map(|list| Some((list, list.name.split_once('.')?)));
    let found = aspects.filter(|(list, (of, _))| (*of == topic.name() || *of == "any") && text.has(list));
    let of_person = (topic == Topic::Health && person.is_some()).then_some("person");
    // Without a question the chart speaks of the time ahead.
    let of_silence = (!text.chinese.contains(char::is_alphanumeric)).then_some("fortune");
    found.map(|(_, (_, name))| name).chain(of_person).chain(of_silence).collect()
}

/// Returns the topic with the greatest weight; none if it has less than the least. What is said of an animal is about the
/// animal, and a pronoun stands for the person or animal that the text names.
fn strongest(hits: &[&Entry], least: u32, other: Option<Topic>) -> Option<Topic> {
    let has_animal = other == Some(Topic::Pets) || hits.iter().any(|hit| hit.topic == Topic::Pets && hit.weight >= 2);
    let topic_of = |hit: &Entry| match hit.topic {
        Topic::Health if has_animal => Topic::Pets,
        Topic::Love => other.unwrap_or(Topic::Love),
        topic => topic,
    };
    let weight =
        |topic| -> u32 { hits.iter().filter(|hit| topic_of(hit) == topic).map(|hit| u32::from(hit.weight)).sum() };
    let weights = Topic::ALL.map(|topic| (topic, weight(topic)));
    let most = weights.iter().map(|(_, weight)| *weight).max().filter(|most| *most >= least)?;
    weights.into_iter().find(|(_, weight)| *weight == most).map(|(topic, _)| topic)
}

/// Returns the line that the words of a topic ask for. A word with a line of its own, such as 加薪 beside 工作, decides.
fn sought(topic: Topic, hits: &[&Entry], asked: &[&Entry]) -> Sought {
    let usual = VOCABULARY.entries.iter().find(|entry| entry.topic == topic && entry.weight > 0);
    let usual = usual.map_or(Sought::Subject, |entry| entry.line);
    let is_thing = |hit: &&&Entry| matches!(hit.topic, Topic::Papers | Topic::Pets | Topic::Vehicle);
    let special = |hit: &&&Entry| hit.topic == topic && hit.weight > 1 && hit.line != usual;
    // The clause that asks decides, if it names the topic.
    let named = if asked.iter().any(|hit| hit.topic == topic) { asked } else { hits };
    let found = named.iter().find(special).or_else(|| hits.iter().find(|hit| topic == Topic::Lost && is_thing(hit)));
    found.map_or(usual, |hit| hit.line)
}

/// Returns the person whose matter it is, if not the asker's own.
fn person(topic: Topic, text: &Text) -> Option<Person> {
    let of_pronoun = || [Person::Man, Person::Woman].into_iter().find(|person| text.has_named("person", person.name()));
    let is_together = || text.has_chinese(&["和", "跟", "与", "陪", "带"]) || text.has_english(&["with"]);
    match topic {
        Topic::Health if !text.names_the_asker() => Person::first_in(text).or_else(of_pronoun),
        Topic::Family | Topic::Health => Person::first_in(text),
        Topic::Study | Topic::Travel | Topic::Career if !is_together() && !text.names_the_asker() => {
            Person::first_in(text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
