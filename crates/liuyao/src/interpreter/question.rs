//! Reads a question: its topic, its aim, the person and circumstances, and the line that stands for the matter (用神).
//!
//! Words are in `assets/interpreter`, in simplified Chinese and English. The longest word at a place wins, words with
//! weight 0 only hide shorter ones, and words of the clause that asks decide or count twice. Verbs weigh more than
//! places and persons. A type that the client states decides the topic, unless it names none.

use std::{collections::HashMap, ops::Range, sync::LazyLock};

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

/// Somebody else whose act or mind a question asks about, such as a landlord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// The asker's word for them.
    pub name: String,
    pub line: Sought,
    topic: Option<Topic>,
    /// True if they do what is asked about; false if they only gave cause to ask.
    pub acts: bool,
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
    pub person_named: Option<&'static str>,
    /// The reason for the line of a partner: the asker's gender, what the question says, or that it is open.
    pub partner: Option<&'static str>,
    pub other: Option<Other>,
    /// Circumstances with rules or words of their own, such as `long` for an old illness.
    pub aspects: Vec<&'static str>,
    /// True for a matter of months rather than days.
    pub is_slow: bool,
    /// The time that the question names, such as `week`; `dated` if it names the day of the matter.
    pub within: Option<&'static str>,
    /// The answers no, perhaps not, perhaps and yes in the words of the question.
    pub answers: Option<[String; 4]>,
    /// True if the clause that asks names the body or an illness.
    pub asks_of_body: bool,
    /// The two things between which the asker chooses, as written.
    pub options: Option<[String; 2]>,
    /// The one of the two things that keeps what is, which the asker's own line shows.
    pub stays: usize,
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

/// Words with the place of what they stand for, by first letter.
type ByLetter = HashMap<char, Vec<(&'static str, usize)>>;

struct Vocabulary {
    entries: Vec<Entry>,
    /// Words of topics with the place of their entry.
    chinese: ByLetter,
    english: ByLetter,
    /// The lists, and where those of each kind are.
    lists: Vec<WordList>,
    kinds: HashMap<&'static str, Range<usize>>,
    /// Words with the place of their list: other spellings, persons, and other people.
    spellings: ByLetter,
    persons: ByLetter,
    others: ByLetter,
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
        let mut lists: Vec<WordList> = lists.collect();
        lists.sort_by_key(|list| list.kind);
        let mut kinds: HashMap<&str, Range<usize>> = HashMap::new();
        for (place, list) in lists.iter().enumerate() {
            kinds.entry(list.kind).or_insert(place..place).end = place + 1;
        }
        let by_letter = |kind: &str| {
            let mut found = ByLetter::new();
            for place in kinds.get(kind).cloned().unwrap_or_default() {
                for word in lists[place].chinese.iter().chain(&lists[place].english) {
                    found.entry(word.chars().next().unwrap_or_default()).or_default().push((*word, place));
                }
            }
            found
        };
        let [spellings, persons, others] = ["spelling", "person", "other"].map(by_letter);
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
        Self { entries, chinese, english, lists, kinds, spellings, persons, others, pairs }
    }

    fn of(&self, kind: &str) -> impl Iterator<Item = &WordList> {
        self.kinds.get(kind).map_or(&[][..], |places| &self.lists[places.clone()]).iter()
    }
}

/// Text in lower case and simplified characters, and its Latin words with single spaces around them.
struct Text {
    chinese: String,
    english: String,
}

impl Text {
    fn new(text: &str) -> Self {
        let plain = to_simplified(&text.to_lowercase()).replace('’', "'").replace("其他", "其它");
        let (mut chinese, mut rest) = (String::with_capacity(plain.len()), plain.as_str());
        while let Some(first) = rest.chars().next() {
            let longest = longest(&VOCABULARY.spellings, first, |word| rest.starts_with(word));
            let length = longest.map_or(first.len_utf8(), |(word, _)| word.len());
            chinese.push_str(longest.map_or(&rest[..length], |(_, list)| VOCABULARY.lists[list].name));
            rest = &rest[length..];
        }
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
        VOCABULARY.of("question").any(|list| self.has_chinese(&list.chinese))
            || self.opens_with("question", "opening")
            || doubled(&self.chinese, "").is_some() && offered(&self.chinese).is_none()
    }

    /// Returns the topic of the animal, relative or other person of whom it speaks; none if it may speak of a partner.
    fn other_than_a_partner(&self, hits: &[&Entry], other: Option<&Other>) -> Option<Topic> {
        if hits.iter().any(|hit| hit.topic == Topic::Pets && hit.weight >= 2) {
            return Some(Topic::Pets);
        }
        let names_love = |is_said: fn(u8) -> bool| hits.iter().any(|it| it.topic == Topic::Love && is_said(it.weight));
        match Person::first_in(self).filter(|person| person.is_relative()) {
            Some(_) if !names_love(|weight| weight >= 2) => Some(Topic::Family),
            // Of a boss or a neighbour, coldness and silence are no love.
            _ if !names_love(|weight| weight == 2 || weight >= 5) => other.and_then(|other| other.topic),
            _ => None,
        }
    }

    /// Returns true if it asks what a relative does: 老婆会反对吗, 我儿子能, "will my son".
    fn begins_with_a_relative(&self) -> bool {
        let Some((_, word)) = Person::named(self).filter(|(person, _)| person.is_relative()) else { return false };
        let mut asked = openers("auxiliary").filter_map(|verb| self.english.strip_prefix(*verb)?.strip_prefix(" my "));
        let own = self.chinese.trim_start_matches(['我', '的', '们']);
        own.starts_with(word) || asked.any(|rest| begins_with(rest, word))
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
        let is_person = |after: &str| {
            let first = after.chars().next().unwrap_or_default();
            longest(&VOCABULARY.persons, first, |word| after.starts_with(word)).is_some()
        };
        let is_relation = |after: &str| {
            let after = after.trim_start_matches('的');
            is_person(after) || after.strip_prefix('家').is_some_and(is_person)
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
        self.chinese.trim_end_matches(is_clause_end).ends_with("好不好") || offered(&self.chinese).is_some()
    }
}

/// Returns the place, in characters, of the first verb that is asked as 去不去 is, of others than these.
pub(super) fn doubled(text: &str, others: &str) -> Option<usize> {
    let letters: Vec<char> = text.chars().collect();
    let is_doubled = |place: usize| {
        letters[place + 1] == '不' && letters[place] == letters[place + 2] && !others.contains(letters[place])
    };
    (0..letters.len().saturating_sub(2)).find(|place| is_doubled(*place))
}

/// Returns the place of a verb that asks whether to do something. 卖不卖得出 asks if it can be done.
fn offered(text: &str) -> Option<usize> {
    const OTHERS: &str = "是会能有好对可想爱知在行收批给来回肯同录够该应值适要合靠还帮答";
    let place = doubled(text, OTHERS)?;
    text.chars().nth(place + 3).is_none_or(|next| !"得到成中".contains(next)).then_some(place)
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
fn longest(by_letter: &ByLetter, first: char, is_here: impl Fn(&str) -> bool) -> Option<(&'static str, usize)> {
    by_letter.get(&first)?.iter().copied().filter(|(word, _)| is_here(word)).rev().max_by_key(|(word, _)| word.len())
}

impl Other {
    /// Returns the other person who does what is asked about, for whom its pronoun stands, or with whom the asker deals.
    fn of(text: &Text, asked: &Text) -> Option<Self> {
        let says = |name: &str, clause: &str| openers(name).any(|word| clause.starts_with(word));
        let before = text.chinese.split(is_clause_end).next().unwrap_or_default();
        let meant = |named: Option<Self>| {
            let unnamed = || Person::first_in(text).is_none().then(|| Self::new("应", String::new()))?;
            named.map(|other| Self { acts: true, ..other }).or_else(unnamed)
        };
        let has_pronoun = |clause: &str| {
            let is_subject = |(before, after): (&str, &str)| !before.contains('我') && !after.starts_with('的');
            ['他', '她'].into_iter().filter_map(|word| clause.split_once(word)).any(is_subject)
        };
        let in_clause = |clause: &str| {
            let clauses = [Some(clause), says("no_subject", clause).then_some(before)];
            clauses.into_iter().flatten().find_map(|clause| {
                let of_pronoun = || has_pronoun(clause).then(|| meant(Self::in_chinese(&text.chinese))).flatten();
                Self::in_chinese(clause).or_else(of_pronoun)
            })
        };
        let of_asked = asked.chinese.split(is_clause_end).filter(|clause| !clause.is_empty()).find_map(in_clause);
        // In 客户说考虑，… the client gives cause to ask.
        let tells = || openers("tells").any(|word| before.contains(word)).then(|| Self::in_chinese(before)).flatten();
        let words: Vec<&str> = asked.english.split_whitespace().collect();
        let start = words.iter().take(4).position(|word| openers("auxiliary").any(|verb| verb == word));
        let in_english = || match *words.get(start? + 1)? {
            "he" | "she" | "they" => meant((0..text.english.len()).find_map(|place| {
                let is_start = place == 0 || text.english.as_bytes()[place - 1] == b' ';
                is_start.then(|| Self::in_english(&text.english, place)).flatten()
            })),
            "i" | "we" | "you" | "it" => Self::dealt_with(&asked.english),
            _ => (start? + 1..words.len().min(start? + 5)).find_map(|place| {
                Self::in_english(&asked.english, words[..place].iter().map(|word| word.len() + 1).sum())
            }),
        };
        of_asked.or_else(|| Some(Self { acts: false, ..tells()? })).or_else(in_english)
    }

    /// Returns the relative who gives or owes, or else whoever does.
    fn holder(text: &Text, asked: &Text) -> Option<Self> {
        let mut named = [asked, text].into_iter().filter_map(Person::named);
        let relative = named.find(|(person, _)| person.is_relative());
        let own = |word| if restatement::is_latin(word) { format!("your {word}") } else { word.to_owned() };
        let name = relative.map(|(_, word)| own(word)).unwrap_or_default();
        let line = relative.map_or("应", |(person, _)| person.kin().name());
        Some(Self { acts: asked.begins_with_a_relative(), ..Self::new(line, name)? })
    }

    fn new(list: &str, name: String) -> Option<Self> {
        let (topic, line) = list.split_once('.').unwrap_or(("", list));
        Some(Self { name, line: Sought::from_name(line)?, topic: Topic::from_name(topic), acts: true })
    }

    /// Returns the first person named in a clause. In 该不该跟老板谈 the boss does not act.
    fn in_chinese(clause: &str) -> Option<Self> {
        clause.char_indices().find_map(|(place, _)| {
            let (before, rest) = clause.split_at(place);
            let (word, list) = longest(&VOCABULARY.others, rest.chars().next()?, |word| rest.starts_with(word))?;
            let list = VOCABULARY.lists.get(list).filter(|_| !restatement::is_latin(word))?;
            let after = &rest[word.len()..];
            let before = before.trim_end_matches(['的', '们']).trim_end_matches('我');
            let has = |name: &str, is_here: &dyn Fn(&str) -> bool| openers(name).any(|word| is_here(word));
            let acts = !has("object_of", &|word| before.ends_with(word));
            let is_part = has("acting", &|word| after.contains(word)) && !before.contains('我');
            let is_aside = has("modifies", &|word| after.starts_with(word));
            Some(Self { acts, ..Self::new(list.name, word.to_owned()).filter(|_| !is_aside && (is_part || !acts))? })
        })
    }

    /// Returns the person whose name begins at a place, with the words by which the asker calls them.
    fn in_english(text: &str, place: usize) -> Option<Self> {
        let (before, rest) = text.split_at(place);
        let (word, list) = longest(&VOCABULARY.others, rest.chars().next()?, |word| begins_with(rest, word))?;
        let list = VOCABULARY.lists.get(list)?;
        let is_own = before.ends_with("my ") || before.ends_with("our ");
        Self::new(list.name, format!("{} {word}", if is_own { "your" } else { "the" }))
    }

    /// Returns the person with whom the asker deals, as in "make peace with my neighbour".
    fn dealt_with(text: &str) -> Option<Self> {
        let found = openers("deals").find_map(|word| {
            let place = text.find(word)? + word.len();
            let place = place + text[place..].find(' ')? + 1;
            Self::in_english(text, place)
        })?;
        Some(Self { acts: false, ..found })
    }
}

impl Person {
    /// Returns the person whom a question names first. Pronouns do not count.
    pub(super) fn named_in(question: &str) -> Option<Self> {
        Self::first_in(&Text::new(question))
    }

    fn first_in(text: &Text) -> Option<Self> {
        Self::named(text).map(|(person, _)| person)
    }

    /// Returns the person whom a text names first, with the asker's word for them.
    fn named(text: &Text) -> Option<(Self, &'static str)> {
        let pronouns = VOCABULARY.of("pronoun").next()?;
        let is_noun = |word: &&str| !pronouns.chinese.contains(word) && !pronouns.english.contains(word);
        let persons = |rest: &str, is_here: &dyn Fn(&str) -> bool| {
            let found = longest(&VOCABULARY.persons, rest.chars().next()?, |word| is_here(word) && is_noun(&word));
            found.and_then(|(word, list)| Some((Self::from_name(VOCABULARY.lists[list].name)?, word)))
        };
        let places = text.chinese.char_indices().filter_map(|(place, _)| text.chinese.get(place..));
        let mut in_chinese = places.filter(|rest| !rest.starts_with(|letter: char| letter.is_ascii()));
        let in_english = || word_starts(&text.english).find_map(|rest| persons(rest, &|word| begins_with(rest, word)));
        in_chinese.find_map(|rest| persons(rest, &|word| rest.starts_with(word))).or_else(in_english)
    }

    fn is_relative(self) -> bool {
        matches!(self, Self::Parent | Self::Child | Self::Sibling)
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
        let asking = clauses(&reading.question);
        let clauses: Vec<&str> = asking.iter().map(|(clause, _)| *clause).collect();
        let of_clauses = clauses.join("，");
        let is_part = !clauses.is_empty() && of_clauses != reading.question;
        let part = is_part.then(|| Text::new(&of_clauses));
        let asked = part.as_ref().unwrap_or(&text);
        let hits = text.hits();
        let asked_hits = part.as_ref().map_or_else(|| hits.clone(), Text::hits);
        let other = Other::of(&text, asked);
        let stated = reading.question_type.as_deref().map(Text::new);
        let stated =
            stated.and_then(|stated| strongest(&stated.hits(), 1, None).filter(|topic| *topic != Topic::Other));
        let options = options(&reading.question);
        let is_several = asking.len() > 1 && options.is_none();
        let mut parts = asking.iter().filter(|_| is_several).map(|(clause, text)| {
            (
                strongest(&text.hits(), DECISIVE, None).map(|topic| text.turned(topic)),
                clause.trim_end_matches(is_clause_end),
            )
        });
        let first = parts.next().and_then(|(topic, _)| topic);
        let turned = text.other_than_a_partner(&hits, other.as_ref());
        let turned = turned.or_else(|| asked.other_than_a_partner(&asked_hits, None));
        let turned = if asked.begins_with_a_relative() { Some(Topic::Family) } else { turned };
        let all = || strongest(&[&hits[..], &asked_hits].concat(), CERTAIN, turned);
        let read = || strongest(&asked_hits, DECISIVE, turned).or_else(all).map(|topic| text.turned(topic));
        // Dealings with a neighbour are read as such, though the question speaks of a home.
        let of_dealings = other.as_ref().filter(|other| other.acts && text.has_named("aspect", "any.dealings"));
        let is_partner = matches!(Person::first_in(asked), Some(Person::Man | Person::Woman));
        let of_relative = Some(Topic::Family).filter(|_| asked.begins_with_a_relative());
        let of_relative = of_relative.filter(|_| text.has_named("aspect", "any.dealings"));
        let of_dealings = of_dealings
            .filter(|_| !is_partner)
            .and_then(|other| other.topic.filter(|_| turned.is_none() || turned == other.topic));
        let topic = stated.or(of_relative).or(of_dealings).or(first).or_else(read).unwrap_or(Topic::Other);
        let second = parts.find(|(other, _)| other.is_some_and(|other| other != topic));
        let is_asked = |topic| asked_hits.iter().any(|hit| hit.topic == topic && hit.weight >= 5);
        let touched = |other| stated == Some(other) || topic == other || (topic != Topic::Pets && is_asked(other));
        // Money between people needs no adviser.
        let invests =
            ["wealth.trade", "wealth.invest", "wealth.loan"].into_iter().any(|name| text.has_named("aspect", name));
        let needs = |other: &Topic| match other {
            Topic::Wealth => touched(*other) && (invests || stated == Some(*other)),
            Topic::Health => touched(*other) || touched(Topic::Children),
            _ => touched(*other),
        };
        let (aim, is_unwelcome) = aim(asked, topic, options.is_some());
        let sought = sought(topic, &hits, &asked_hits);
        let person = person(topic, asked).filter(|_| Person::first_in(asked).is_some());
        let person = person.or_else(|| self::person(topic, &text));
        let aspects = circumstances(topic, person, [&text, asked], options.is_some(), other.as_ref());
        let within = VOCABULARY.of("within").find(|list| text.has(list)).map(|list| list.name);
        let is_slow = text.has_named("scale", "months")
            || !(text.has_named("scale", "days") || topic.is_quick() || aspects.contains(&"recent"));
        let is_between_people = aspects.contains(&"debt") || aspects.contains(&"deposit");
        let is_given = matches!(topic, Topic::Wealth | Topic::Home | Topic::Business | Topic::Papers | Topic::Vehicle);
        let is_held = topic == Topic::Wealth && is_between_people || is_given && asked.begins_with_a_relative();
        let other = other.or_else(|| is_held.then(|| Other::holder(&text, asked))?);
        let is_read = !matches!(topic, Topic::Love | Topic::Legal | Topic::Health | Topic::Children);
        let other = other.filter(|_| is_read);
        // Trust, intentions and favours are read from the other person's own line, and what they give from that of the thing.
        let is_of_person = sought == Sought::Object
            || aim == Aim::Fact
            || matches!(topic, Topic::Friends | Topic::Other | Topic::Travel)
            || topic == Topic::Career && sought != Sought::Kin(Kin::Wealth);
        let is_whole = |other: &Other| topic == Topic::Career && other.line == Sought::Object;
        let sought = match &other {
            Some(other) if aspects.contains(&"person") => other.line,
            Some(other) if is_of_person && other.acts && !is_whole(other) => other.line,
            None if aspects.contains(&"person") => Sought::Object,
            _ if topic == Topic::Family && person.is_none() && aim == Aim::Choice => Sought::Subject,
            _ => sought,
        };
        let mut people = [asked, &text].into_iter().filter_map(Person::named);
        let person_named = people.find(|(other, _)| Some(*other) == person).map(|(_, word)| word);
        let matter = Self {
            topic,
            aim,
            is_unwelcome,
            sought: person.map_or(sought, |person| Sought::Kin(person.kin())),
            person,
            person_named,
            partner: None,
            other,
            aspects,
            is_slow,
            within,
            answers: restatement::answers(&reading.question, &clauses),
            asks_of_body: asked_hits
                .iter()
                .any(|hit| matches!(hit.topic, Topic::Health | Topic::Children | Topic::Pets) && hit.weight > 0),
            stays: options.as_ref().map_or(0, stays),
            options,
            act: act(&reading.question),
            second: second.and_then(|(topic, words)| Some((topic?, words.trim().to_owned()))),
            professionals: [Topic::Health, Topic::Wealth, Topic::Legal].into_iter().filter(needs).collect(),
        };
        if sought == Sought::Partner { matter.with_partner(reading.asker, &text) } else { matter }
    }

    /// Returns true if rank and paper are weighed.
    pub(super) fn is_exam(&self) -> bool {
        ["exam", "admission", "contest", "award", "thesis"].into_iter().any(|aspect| self.has(aspect))
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
                (Sought::Object, "open")
            }
            (Some(AskerGender::Male), _) => (Sought::Kin(Kin::Wealth), "man"),
            (Some(AskerGender::Female), _) => (Sought::Kin(Kin::Officials), "woman"),
            (None, Some(person)) => (Sought::Kin(person.kin()), "partner"),
            (None, None) => (Sought::Object, "open"),
        };
        Self { sought, person: None, partner: Some(reason), other: None, ..self }
    }
}

/// Returns the clauses that ask, with their text; none if a question has no words of a question.
fn clauses(question: &str) -> Vec<(&str, Text)> {
    let clauses = question.split_inclusive(is_clause_end).filter(|clause| !clause.trim().is_empty());
    let clauses = clauses.map(|clause| (clause, Text::new(clause)));
    clauses.filter(|(clause, text)| clause.ends_with(['?', '？']) || text.asks()).collect()
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
        let text = text.rsplit_once('是').map_or(text, |(_, after)| after);
        let text = openers("first").fold(text, |text, word| text.trim_start_matches(*word));
        (!text.is_empty() && text.chars().count() <= 40).then(|| text.to_owned())
    };
    Some([short(before)?, short(after)?])
}

/// Returns the one of two things that keeps what the asker has; the first if neither says so.
fn stays(options: &[String; 2]) -> usize {
    let [first, second] = options.each_ref().map(|option| Text::new(option));
    let is_kept =
        !first.has_any("stay") && second.has_any("stay") || first.has_any("leave") && !second.has_any("leave");
    usize::from(is_kept)
}

/// Returns the act of a question whether to do something.
fn act(question: &str) -> Option<String> {
    let lower = question.to_ascii_lowercase();
    let named = openers("act").find_map(|opener| Some(lower.find(opener)? + opener.len()));
    let doubled = || Some(question.char_indices().nth(offered(question)? + 2)?.0);
    let denied = || openers("or_not").find_map(|opener| Some(question.find(opener)? + opener.len()));
    let start = named.or_else(doubled).or_else(denied)?;
    let act = question.get(start..)?.split(is_clause_end).next()?.trim().trim_end_matches(['呢', '吗', '嗎', '好']);
    (1..=60).contains(&act.chars().count()).then(|| act.to_owned())
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
    let asked = text.chinese.split_once("会不会").map_or("", |(_, asked)| asked);
    let tail = Text { chinese: asked.to_owned(), english: text.english.clone() };
    let is_open = text.has_named("doubt", "whether") && !tail.has_any("welcome");
    // In "will she call when she is back" no word asks for a time.
    let is_yes_or_no = text.opens_with("auxiliary", "opening") && !text.chinese.contains('吗');
    let named = [Aim::When, Aim::Who, Aim::Where, Aim::Why].into_iter().find(|aim| is(*aim) && !is_yes_or_no);
    let by_sign = [
        (has_options, Aim::Choice),
        (is(Aim::How) || text.chinese.contains("怎么") && !text.has_named("aim", "how_not"), Aim::How),
        (is(Aim::Choice) || text.offers_choice(), Aim::Choice),
        (text.has_any("hope"), Aim::Wish),
        (is(Aim::Fact) || is_doubt() || text.chinese.starts_with('是') && topic != Topic::Lost, Aim::Fact),
        // A loss was bad luck already; to find the thing is a hope.
        ((is_unwelcome && topic != Topic::Lost) || text.has_any("fear") || is_open, Aim::Fear),
    ];
    let found = by_sign.into_iter().find(|(is_so, _)| *is_so).map(|(_, aim)| aim);
    let aim = named.or(found).unwrap_or(Aim::Wish);
    // Facts about health are feared.
    (aim, is_unwelcome || (aim == Aim::Fact && topic == Topic::Health))
}

/// Returns the circumstances that have rules or words of their own, apart from acts that are another person's.
fn circumstances(
    topic: Topic,
    person: Option<Person>,
    [text, asked]: [&Text; 2],
    has_options: bool,
    other: Option<&Other>,
) -> Vec<&'static str> {
    let lets = text.has_named("aspect", "any.tenant");
    let is_of_asker = |it: &str| other.is_none() || !matches!(it, "buy" | "change" | "move" | "sell");
    let is_fact = asked.chinese.replace("还是", "").contains('是') || asked.opens_with("question", "either");
    let is_choice = asked.has_named("aim", "choice") || asked.chinese.ends_with('好');
    let either = (has_options && is_fact && !is_choice).then_some("either");
    let found = aspects(topic, person, text).into_iter().chain(either);
    // A tenant who moves out is no move of the asker's.
    found.filter(|it| (*it != "rent" || !lets) && is_of_asker(it)).collect()
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
    let has_sibling = || hits.iter().any(|hit| hit.topic == Topic::Family && hit.line == Sought::Kin(Kin::Siblings));
    let topic_of = |hit: &Entry| match hit.topic {
        Topic::Health if has_animal => Topic::Pets,
        Topic::Friends if other == Some(Topic::Family) && has_sibling() => Topic::Family,
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
    let is_taken = || text.has_chinese(&["陪", "带"]);
    let is_together = || is_taken() || text.has_chinese(&["和", "跟", "与"]) || text.has_english(&["with"]);
    match topic {
        Topic::Health if !text.names_the_asker() => Person::first_in(text).or_else(of_pronoun),
        Topic::Family if is_taken() && text.names_the_asker() => None,
        Topic::Family | Topic::Health => Person::first_in(text),
        Topic::Study if Person::first_in(text) == Some(Person::Child) => Some(Person::Child),
        Topic::Friends if !text.names_the_asker() => Person::first_in(text).filter(|person| *person == Person::Child),
        Topic::Study | Topic::Travel | Topic::Career if !is_together() && !text.names_the_asker() => {
            let known = Person::named(text).filter(|(_, word)| openers("anyone").all(|other| other != word));
            known.map(|(person, _)| person)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
