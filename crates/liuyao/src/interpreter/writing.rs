//! Writes a reading by one tree that chooses phrases for all languages: the answer, its reasons, advice, the text, and last
//! the technical part.

use std::borrow::Cow;

use super::{
    Aim, Assessment, Evidence, Matter, Outlook, Person, Reading, Reason, Sought, Timing, TimingRule, Topic, View,
    Weight, Written, assess,
    assessment::line_reasons,
    phrases::Phrases,
    restatement::{is_latin, turned},
};
use crate::{
    Branch, ElementRelation,
    chart::{
        ActingTrigram, BodyAndUse, ChartLine, Kin, LineNature, LineRole, MarkKind, SelectedText, StarPlace,
        TextSelection, cause_of_failure, trigram_element,
    },
    hexagram::{ClassicalText, Hexagram, Judgement, LineClassic, Trigram},
    script::{to_simplified, to_traditional, verbatim},
};

/// Maximum characters quoted from a question.
const MAX_QUOTE_LENGTH: usize = 160;
/// Maximum number of rules named on the side of the answer, and on the other one.
const MAX_REASONS: [usize; 2] = [3, 2];
/// The aspects whose advice fits a decision.
const ACTS: [&str; 14] = [
    "abroad", "adopt", "breakup", "buy", "change", "doctor", "fortune", "lend", "marry", "mourning", "move", "sell",
    "surgery", "trade",
];
/// Maximum number of rules named for each of two things to choose from.
const MAX_SIDE_REASONS: usize = 2;

/// Returns the whole text, one paragraph per item.
pub(super) fn paragraphs(reading: &Reading) -> Vec<String> {
    let words = Phrases(reading.written);
    let writer = Writer { reading, words };
    let matter = Matter::of(reading);
    let mut paragraphs = match reading.facts.primary {
        Some(primary) => writer.of_hexagram(primary, &matter),
        None => writer.nothing_found(),
    };
    let professionals = matter.professionals.iter().map(|topic| words.term("professional", topic.name()).to_owned());
    paragraphs.push(words.join(&professionals.chain([writer.foundation()]).collect::<Vec<_>>()));
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

struct Writer<'a> {
    reading: &'a Reading,
    words: Phrases,
}

impl Writer<'_> {
    fn of_hexagram(&self, primary: Hexagram, matter: &Matter) -> Vec<String> {
        let (words, chart) = (self.words, self.reading.chart.as_ref());
        let assessment = chart.and_then(|chart| assess(chart, matter, self.reading.facts.cast.is_some()));
        let texts = self.texts(primary);
        let scene = assessment.as_ref().map(|assessment| Scene { writer: self, assessment });
        let told = scene.as_ref().filter(|scene| scene.assessment.is_telling());
        let judgement = texts.main().and_then(SelectedText::judgement_of);
        let outlook = match (told, judgement) {
            (Some(scene), _) => scene.assessment.outlook,
            (None, Some((Judgement::Good, _))) => Outlook::Favourable,
            (None, Some((Judgement::Warning, _))) => Outlook::Adverse,
            (None, _) => Outlook::Mixed,
        };
        let answer = told.map_or(outlook, |scene| scene.assessment.chosen());
        let keys = advice_keys(matter, told.map(|scene| scene.assessment), answer);
        let advice = words.say_first(&keys, &|_| None);
        let body = match (self.reading.view, &scene) {
            (View::Images, _) => [self.quotations(&texts), self.way(primary)].join("\n\n"),
            (View::Lines, Some(scene)) => scene.each_line(),
            (_, Some(scene)) => words.join(&[scene.reasons(answer), self.body_and_use().unwrap_or_default()]),
            (_, None) => String::new(),
        };
        let has_verse = self.reading.view != View::Images;
        let verse = texts.main().filter(|_| has_verse).map(|text| self.verse("verse.said", *text, true));
        let agreement = judgement.filter(|_| has_verse && !matter.has("mourning")).map(|(judgement, clause)| {
            let key = match (told, judgement, answer) {
                (None, judgement, _) => format!("agreement.text.{}", judgement.name()),
                (Some(_), Judgement::Good, Outlook::Adverse) if matter.options.is_none() => "agreement.too_good".into(),
                (Some(_), Judgement::Warning, Outlook::Favourable) if matter.options.is_none() => {
                    "agreement.warns".into()
                }
                _ => String::new(),
            };
            words.say(&key, &[("clause", &self.classic(clause))])
        });
        vec![
            words.capitalised(&self.answer(matter, scene.as_ref(), answer, &advice)),
            if has_verse { words.capitalised(&body) } else { body },
            words.capitalised(&self.counsel(matter, scene.as_ref(), answer, advice)),
            words.join(&[verse.unwrap_or_default(), agreement.unwrap_or_default()]),
            words.join(&[self.opening(primary), scene.map(|scene| scene.setting()).unwrap_or_default()]),
        ]
    }

    /// Returns the sentence that answers the question, and notes about what it leaves out.
    fn answer(&self, matter: &Matter, scene: Option<&Scene<'_>>, outlook: Outlook, advice: &str) -> String {
        let words = self.words;
        let verdict = self.verdict(matter, scene, outlook, advice.trim_end_matches(['。', '.']));
        let second = matter.second.as_ref().map(|(topic, part)| {
            let part = verbatim(&quoted(part).unwrap_or_default());
            words.say("opening.second", &[("second", words.term("topic", topic.name())), ("words", &part)])
        });
        words.join(&[words.say("conclusion", &[("verdict", &verdict)]), second.unwrap_or_default()])
    }

    /// Returns advice, the place of a lost thing and the time.
    fn counsel(&self, matter: &Matter, scene: Option<&Scene<'_>>, answer: Outlook, advice: String) -> String {
        let words = self.words;
        let advice = match matter.aim {
            Aim::How => {
                words.say("conclusion", &[("verdict", &words.say_first(&keys("wish", matter, answer), &|_| None))])
            }
            _ => advice,
        };
        // Of a place that the question names, the answer says enough.
        let is_searched = matter.topic == Topic::Lost
            && !matches!(matter.aim, Aim::Where | Aim::Fact)
            && answer != Outlook::Adverse
            && !matter.has("left")
            && !matter.has("theft");
        let place =
            scene.filter(|_| is_searched).map(|scene| words.say("whereabouts", &[("where", &scene.whereabouts())]));
        let time = scene.and_then(|scene| scene.time(answer));
        words.join(&[advice, place.unwrap_or_default(), time.unwrap_or_default()])
    }

    fn verdict(&self, matter: &Matter, scene: Option<&Scene<'_>>, outlook: Outlook, advice: &str) -> String {
        let words = self.words;
        let said = self.restated(matter, scene, outlook);
        let has_more = matches!(matter.aim, Aim::When | Aim::Where) && outlook != Outlook::Adverse;
        if let Some(said) = said.as_ref().filter(|_| !has_more) {
            return said.clone();
        }
        let days = scene.and_then(|scene| scene.days(scene.assessment.timing.as_ref()?));
        let group = match matter.aim {
            Aim::Fear => "fear",
            Aim::Fact if matter.is_unwelcome => "unwelcome_fact",
            Aim::Fact => "fact",
            Aim::Choice if matter.options.is_some() => "choice",
            Aim::Choice if matter.act.is_some() => "whether.act",
            Aim::Choice => "whether",
            Aim::When if days.is_none() => "when.no_days",
            Aim::When => "when",
            Aim::Who if scene.is_some() => "who",
            Aim::Where if scene.is_some() => "where",
            Aim::How if advice.is_empty() => "how_open",
            Aim::How => "how",
            Aim::Why if scene.is_some() => "why",
            Aim::Wish if matter.has("amount") => "amount",
            Aim::Wish | Aim::Who | Aim::Where | Aim::Why => "wish",
        };
        let option = |place: usize| Some(verbatim(&turned(&matter.options.as_ref()?[place])).into());
        let value = |name: &str| -> Option<Cow<'static, str>> {
            match name {
                "days" => days.clone().map(Cow::from),
                "who" => scene.map(|scene| scene.who().into()),
                "where" => scene.map(|scene| scene.whereabouts().into()),
                "cause" => scene.map(|scene| scene.cause().into()),
                "advice" => Some(advice.to_owned().into()),
                "act" => matter.act.as_deref().map(|act| verbatim(&turned(act)).into()),
                "first" => option(0),
                "second" => option(1),
                _ => None,
            }
        };
        let verdict = words.say_first(&keys(group, matter, outlook), &value);
        said.map_or(verdict.clone(), |said| words.say("restated.more", &[("said", &said), ("verdict", &verdict)]))
    }

    /// Returns the answer in the words of the question. Bad news about health is worded with more care.
    fn restated(&self, matter: &Matter, scene: Option<&Scene<'_>>, outlook: Outlook) -> Option<String> {
        let answers = matter.answers.as_ref()?;
        let is_guarded = matches!(matter.topic, Topic::Health | Topic::Children | Topic::Pets)
            && (outlook != Outlook::Favourable || matter.is_unwelcome && matter.asks_of_body);
        let is_open_choice = matter.aim == Aim::Choice && matter.options.is_none() && matter.act.is_none();
        let is_asked = !matches!(matter.aim, Aim::Choice | Aim::Who | Aim::How | Aim::Why) || is_open_choice;
        let is_even = matter.aim == Aim::Choice && outlook == Outlook::Mixed;
        if is_guarded || is_even || !is_asked || is_latin(&answers[0]) != self.words.is_english() {
            return None;
        }
        // 会不会 names what is feared, and 能不能 what is hoped for.
        let is_bad = matter.is_unwelcome || matter.aim == Aim::Fear && answers[0].contains("不会");
        let degree = match outlook {
            Outlook::Adverse => 0,
            Outlook::Mixed => 1 + usize::from(scene.is_none_or(|scene| scene.assessment.score() >= 0)),
            Outlook::Favourable => 3,
        };
        let said = &answers[if is_bad { 3 - degree } else { degree }];
        let said = if is_open_choice { said.replace("多半", "看来") } else { said.clone() };
        (!said.is_empty()).then(|| self.in_letters_of_the_question(&said))
    }

    /// Returns simplified words in the traditional characters of the question, which conversion might miss (台, 臺).
    fn in_letters_of_the_question(&self, said: &str) -> String {
        let question = &self.reading.question;
        let plain = to_simplified(question);
        if self.reading.written != Written::Traditional || plain == *question {
            return said.to_owned();
        }
        let letter = |letter: char| match plain.chars().zip(question.chars()).find(|(plain, _)| *plain == letter) {
            Some((_, own)) => own.to_string(),
            None => to_traditional(&letter.to_string()),
        };
        verbatim(&said.chars().map(letter).collect::<String>())
    }

    fn opening(&self, primary: Hexagram) -> String {
        let words = self.words;
        let question = match quoted(&self.reading.question) {
            Some(question) => words.say("opening.question", &[("question", &verbatim(&question))]),
            None => words.get("opening.none").to_owned(),
        };
        let named =
            words.say("opening.hexagram", &[("named", &self.phrase("named", primary)), ("changes", &self.changes())]);
        let unknown = if self.reading.facts.cast.is_none() { words.get("opening.unknown_changes") } else { "" };
        words.join(&[question, named, unknown.to_owned()])
    }

    fn changes(&self) -> String {
        let (words, facts) = (self.words, &self.reading.facts);
        let (Some(cast), Some(relating)) = (facts.cast, facts.relating) else { return String::new() };
        let name = |position: &u8| {
            if words.is_english() {
                words.term("ordinal", &position.to_string()).to_owned()
            } else {
                cast.line_name(*position, self.reading.written.locale())
            }
        };
        let names: Vec<String> = cast.changing().iter().map(name).collect();
        let list = match names.as_slice() {
            [others @ .., last] if words.is_english() && !others.is_empty() => {
                format!("{} and {last}", others.join(", "))
            }
            names => names.join(words.get("list.and")),
        };
        let key = match names.len() {
            1 => "lines.one",
            6 => "lines.all",
            _ => "lines.many",
        };
        words.say(
            "opening.changes",
            &[("lines", &words.say(key, &[("list", &list)])), ("named", &self.phrase("named", relating))],
        )
    }

    /// Returns the short name in the script of the reading.
    fn name(&self, hexagram: Hexagram) -> String {
        match self.reading.written {
            Written::Traditional => verbatim(hexagram.traditional_name()),
            _ => hexagram.chinese_name().to_owned(),
        }
    }

    /// Returns a classical text in its received form.
    fn classic(&self, text: ClassicalText) -> String {
        verbatim(if self.reading.written == Written::Traditional { text.traditional } else { text.simplified })
    }

    fn full_name(&self, hexagram: Hexagram) -> String {
        hexagram.chinese_full_name().replace(hexagram.chinese_name(), &self.name(hexagram))
    }

    /// Returns a phrase about a hexagram.
    fn phrase(&self, key: &str, hexagram: Hexagram) -> String {
        let locale = self.reading.written.locale();
        let value = |name: &str| -> Option<Cow<'static, str>> {
            Some(match name {
                "sign" => hexagram.sign().into(),
                "called" if self.words.is_english() => hexagram.english_name().into(),
                "called" | "full_name" => self.full_name(hexagram).into(),
                "name" => self.name(hexagram).into(),
                "pinyin" => hexagram.pinyin().into(),
                "number" => hexagram.number().to_string().into(),
                "english" => hexagram.english_name().into(),
                "text" => self.classic(hexagram.classical_image()).into(),
                "plain" => hexagram.plain_judgement(locale).into(),
                "image" => hexagram.image(locale).into(),
                "counsel" => hexagram.counsel(locale).into(),
                _ => return None,
            })
        };
        self.words.say_with(key, &value)
    }

    /// Returns the texts to read; only the judgement if the changing lines are unknown.
    fn texts(&self, primary: Hexagram) -> TextSelection {
        match self.reading.facts.cast {
            Some(cast) => TextSelection::of(&cast),
            None => TextSelection::of_judgement(primary),
        }
    }

    fn quotations(&self, selection: &TextSelection) -> String {
        let words = self.words;
        let main = selection.texts.first();
        let label = main.and_then(SelectedText::line_classic).map(LineClassic::label);
        let rule = match (self.reading.facts.cast, selection.rule.name()) {
            (None, _) => "rule.unknown".to_owned(),
            (Some(_), "six_changing") if label.is_some() => "rule.all_lines".to_owned(),
            (Some(_), rule) => format!("rule.{rule}"),
        };
        let main = main.map(|text| {
            if words.is_english() { text.hexagram.english_name().to_owned() } else { self.name(text.hexagram) }
        });
        let rule = words.say(&rule, &[("main", &main.unwrap_or_default()), ("label", label.unwrap_or_default())]);
        let is_one = selection.texts.len() == 1;
        let verses = selection.texts.iter().map(|text| self.verse("verse", *text, is_one));
        std::iter::once(rule).chain(verses).collect::<Vec<_>>().join("\n")
    }

    fn verse(&self, key: &str, selected: SelectedText, is_one: bool) -> String {
        let words = self.words;
        let rank = if is_one { "" } else { words.get(if selected.is_main { "verse.main" } else { "verse.minor" }) };
        let part = match selected.line_classic() {
            Some(line) if words.is_english() => {
                selected.position.map_or(line.label(), |position| words.term("position", &position.to_string()))
            }
            Some(line) => line.label(),
            None => words.get("verse.judgement"),
        };
        words.say(
            key,
            &[
                ("name", &self.name(selected.hexagram)),
                ("english", selected.hexagram.english_name()),
                ("part", part),
                ("rank", rank),
                ("text", &self.classic(selected.text())),
                ("plain", selected.plain(self.reading.written.locale())),
            ],
        )
    }

    /// Returns the hexagrams that the primary one contains, faces and leads to.
    fn way(&self, primary: Hexagram) -> String {
        let words = self.words;
        let say = |key: &str, hexagram| self.phrase(key, hexagram);
        let figure = primary.figure();
        let inverted = Hexagram::from_figure(std::array::from_fn(|line| figure[5 - line]));
        let opposite = Hexagram::from_figure(figure.map(|is_yang| !is_yang));
        let end =
            self.reading.facts.relating.map_or_else(|| say("view.stay", primary), |relating| say("view.end", relating));
        let way =
            [say("view.way", primary.nuclear()), say("view.inverted", inverted), say("view.opposite", opposite), end];
        let now = say("view.now", primary) + words.get("sentence.end").trim_end();
        words.join(&[vec![words.get("view.image").to_owned(), now], way.to_vec()].concat())
    }

    /// Returns body and use of a casting by time or numbers, in which exactly one line changes.
    fn body_and_use(&self) -> Option<String> {
        let words = self.words;
        let cast = self.reading.facts.cast.filter(|_| matches!(self.reading.method, Some("time" | "numbers")))?;
        let [changing] = cast.changing().try_into().ok()?;
        let both = BodyAndUse::new(cast.primary(), changing);
        let trigram = |trigram: Trigram| {
            let element = words.term("element", trigram_element(trigram).name());
            words
                .say("trigram", &[("name", trigram.chinese_name()), ("pinyin", trigram.pinyin()), ("element", element)])
        };
        let acts = |acting: ActingTrigram| {
            words.say(&format!("plum.acts.{}", acting.relation.name()), &[("trigram", &trigram(acting.trigram))])
        };
        let [lower, upper] = both.nuclear.map(acts);
        let nuclear = if lower == upper { lower } else { format!("{lower}{}{upper}", words.get("list.and")) };
        Some(words.say(
            "plum",
            &[
                ("body", &trigram(both.body.trigram)),
                ("use", &trigram(both.use_trigram.trigram)),
                ("effect", words.term("plum.use", both.use_trigram.relation.name())),
                ("nuclear", &nuclear),
                ("changed", &acts(both.changed)),
            ],
        ))
    }

    fn nothing_found(&self) -> Vec<String> {
        let words = self.words;
        let found = match self.reading.facts.relating {
            Some(relating) => words.say("nothing.relating", &[("named", &self.phrase("named", relating))]),
            None => words.get("nothing").to_owned(),
        };
        vec![found, words.get("nothing.send").to_owned()]
    }

    fn foundation(&self) -> String {
        let (words, facts, locale) = (self.words, &self.reading.facts, self.reading.written.locale());
        let list = |sentences: Vec<String>| sentences.join(words.get("clause.end"));
        let mut sentences = Vec::new();
        if facts.has_assumptions() && !facts.found.is_empty() {
            let found = list(facts.found.iter().map(|found| found.sentence(locale)).collect());
            sentences.push(words.say("based_on", &[("list", &found)]));
        }
        if !facts.conflicts.is_empty() {
            let conflicts = list(facts.conflicts.iter().map(|conflict| conflict.sentence(locale)).collect());
            sentences.push(words.say("besides", &[("list", &conflicts)]));
        }
        sentences.push(words.get("disclosure").to_owned());
        words.join(&sentences)
    }
}

/// Returns the keys of a group from the most special: by aspect of the topic, by topic, by aspect, and for all.
fn keys(group: &str, matter: &Matter, outlook: Outlook) -> Vec<String> {
    let (topic, outlook) = (matter.topic.name(), outlook.name());
    let of = |place: String| matter.aspects.iter().map(move |aspect| format!("{group}{place}.{aspect}.{outlook}"));
    let by_topic = of(format!(".{topic}")).chain([format!("{group}.{topic}.{outlook}")]);
    by_topic.chain(of(String::new())).chain([format!("{group}.{outlook}")]).collect()
}

/// Returns the kind of place of a lost thing, or only a direction.
fn place_name(assessment: &Assessment<'_>) -> &'static str {
    match (assessment.significator.hidden, assessment.significator.line.position) {
        _ if assessment.matter.topic != Topic::Lost => "direction",
        (Some(_), _) => "hidden",
        (None, 1..=3) => "lower",
        (None, _) => "upper",
    }
}

/// Returns the keys of advice that fits the topic and the answer, and then of advice by what decides it.
fn advice_keys(matter: &Matter, assessment: Option<&Assessment<'_>>, answer: Outlook) -> Vec<String> {
    let one = |group: &str, name: &str| vec![format!("{group}.{name}")];
    let of_topic = format!("advice.{}.{}", matter.topic.name(), answer.name());
    let is_of_other = assessment.is_some_and(Assessment::is_of_other);
    let of = |group: &str| [keys(group, matter, answer), keys("advice", matter, answer)].concat();
    let mut found = match (matter.aim, assessment.and_then(Assessment::sides)) {
        _ if matter.has("either") => return one("fact_advice", answer.name()),
        (_, Some(_)) if matter.topic == Topic::Health => return one("whether_advice.health", answer.name()),
        (_, Some([first, second])) => {
            let line = if answer == Outlook::Adverse { second } else { first };
            let weight = Weight::of(line).filter(|_| answer != Outlook::Mixed);
            return one("choice_advice", weight.map_or("mixed", Weight::name));
        }
        (Aim::Where, _) if matter.topic == Topic::Lost => {
            return one("where_advice", assessment.map_or("", place_name));
        }
        // To a question of when, advice for another aim does not fit, apart from debts and the body.
        (Aim::When, _) if !matter.has("debt") && !matter.asks_of_body => return Vec::new(),
        (Aim::Fact, _) => return keys("fact_advice", matter, answer),
        (Aim::Who, _) => return keys("who_advice", matter, answer),
        // Advice for a wish does not fit a decision, unless its aspect names the act.
        (Aim::Choice, _) => {
            let is_act = |key: &String| ACTS.iter().any(|act| key.split('.').any(|part| part == *act));
            let of_act = keys("advice", matter, answer).into_iter().take_while(|key| *key != of_topic).filter(is_act);
            keys("whether_advice", matter, answer).into_iter().chain(of_act).collect()
        }
        (Aim::Fear, _) => of("fear_advice"),
        (Aim::How, _) => of("how_advice"),
        _ => keys("advice", matter, answer),
    };
    found.retain(|key| !is_of_other || *key != of_topic);
    let is_own = match matter.topic {
        Topic::Health | Topic::Children | Topic::Pets | Topic::Lost | Topic::Travel | Topic::Legal => !is_of_other,
        _ => matches!(matter.aim, Aim::When | Aim::Where),
    };
    let is_relief = (matter.aim == Aim::Fear || matter.is_unwelcome) && answer == Outlook::Favourable;
    let decider = assessment.filter(|_| !is_own && !is_relief).and_then(|it| Some((it, it.decider(answer)?)));
    if let Some((assessment, it)) = decider {
        let is_asker = it.position == Some(assessment.subject.position) && it.reason.is_movement() && it.weight > 0;
        let key = if is_asker { "at_subject" } else { it.reason.name() };
        // The acts of others are not in the asker's hands.
        let acts = matter.other.as_ref().is_some_and(|other| other.acts);
        found.extend(acts.then(|| format!("by.other.{key}")).into_iter().chain([format!("by.{key}")]));
    }
    found
}

/// The chart of a reading, assessed.
struct Scene<'a> {
    writer: &'a Writer<'a>,
    assessment: &'a Assessment<'a>,
}

impl Scene<'_> {
    fn words(&self) -> Phrases {
        self.writer.words
    }

    /// Returns a phrase, about a line if it names one.
    fn phrase(&self, key: &str, line: Option<&ChartLine>) -> String {
        self.words().say_with(key, &|name| Some(self.value(name, line).unwrap_or_default()))
    }

    /// Returns a phrase with a list; empty if the list is.
    fn listed(&self, key: &str, line: Option<&ChartLine>, list: &[String]) -> String {
        let list = list.join(self.words().get("clause.end"));
        let value = |name: &str| if name == "list" { Some(Cow::from(list.clone())) } else { self.value(name, line) };
        if list.is_empty() { list } else { self.words().say_with(key, &|name| Some(value(name).unwrap_or_default())) }
    }

    /// Returns the value that a phrase names.
    fn value(&self, name: &str, line: Option<&ChartLine>) -> Option<Cow<'static, str>> {
        let (words, assessment, significator) = (self.words(), self.assessment, &self.assessment.significator);
        let (matter, chart) = (assessment.matter, assessment.chart);
        let (moment, palace) = (chart.moment.as_ref(), chart.palace);
        let term = |group: &str, name: &str| Cow::from(words.term(group, name));
        let animal = |branch: Branch| term("branch", branch.name());
        let local = || Some(moment?.local.to_string().chars().take(16).collect::<String>().replace('T', " "));
        let [source, harm, rival] = assessment.gods();
        Some(match name {
            "it" => words.get(if self.is_of_asker() { "it.own" } else { "it" }).into(),
            "line" => self.line(line?).into(),
            "role" => self.role(line.map_or(self.kin(), |line| line.nature.kin)).into(),
            "mover_role" if line?.role == Some(LineRole::Subject) => words.get("role.subject").into(),
            "mover_role" => self.role(line?.nature.kin).into(),
            // Rank and paper stand for themselves, though the exam is a child's.
            "exam_role" => term("role.study", line?.nature.kin.name()),
            "becomes" => self.nature(line?.becomes?.nature).into(),
            "mover" if line?.becomes.is_some() => self.phrase("mover.moves", line).into(),
            "mover" => self.phrase("mover.stirred", line).into(),
            "why" => term("why", cause_of_failure(line?).unwrap_or("checked")),
            "strength" => term("stands", assessment.weight?.name()),
            "weight" => term("stands", Weight::of(line?)?.name()),
            "seen" => term("view.line", Weight::of(line?)?.name()),
            "hidden" => self.nature(significator.nature()).into(),
            "kin" => term("kin", self.kin().name()),
            "who_kin" => term("who", line?.nature.kin.name()),
            "who_element" => term("who_element", line?.nature.element.name()),
            "direction" => term("direction", line.map_or(significator.nature(), |line| line.nature).branch.name()),
            "person" => self.person().into(),
            "matter" => self.topic().into(),
            "other" => self.other().into(),
            "others" => term("other", matter.topic.name()),
            "object" => words.get((line?.role == Some(LineRole::Object)).then_some("part.object")?).into(),
            "side" if line?.role == Some(LineRole::Subject) => words.get("side.subject").into(),
            "side" => words.get("side.object").into(),
            "court" => match assessment.court() {
                Some(court) => self.phrase("matter.legal.open", Some(court)).into(),
                None => words.get("matter.legal.hidden").into(),
            },
            "source" => term("kin", source.name()),
            "harm" => term("kin", harm.name()),
            "rival" => term("kin", rival.name()),
            "palace" => palace.trigram.chinese_name().into(),
            "pinyin" => palace.trigram.pinyin().into(),
            "element" => term("element", palace.element.name()),
            "stage" => term("stage", palace.stage.name()),
            "moment" => self.phrase("setting.moment", None).replace("a Ox", "an Ox").into(),
            "local" => local()?.into(),
            "date" => local()?.split_once(' ')?.0.to_owned().into(),
            "time" => local()?.split_once(' ')?.1.to_owned().into(),
            "void" => moment?.void.map(animal).join(if words.is_english() { " and " } else { "" }).into(),
            "month" => animal(moment?.pillars.month.branch()),
            "day" => animal(moment?.pillars.day.branch()),
            "month_pillar" => moment?.pillars.month.to_string().into(),
            "day_pillar" => moment?.pillars.day.to_string().into(),
            "month_end" => term("month", &(moment?.pillars.month.branch() as usize + 1).to_string()),
            "spirit" if line?.role == Some(LineRole::Subject) => words.get("view.line.subject").into(),
            "spirit" if line?.role == Some(LineRole::Object) => self.phrase("view.line.object", line).into(),
            "moves" if line?.becomes.is_some() => self.phrase("view.line.moves", line).into(),
            "moves" if line?.is_active() => words.get("view.line.stirred").into(),
            "stars" => {
                let has = |place: &&StarPlace| line.is_some_and(|line| place.branches.contains(&line.nature.branch));
                let stars: Vec<&str> =
                    chart.stars.iter().filter(has).map(|place| words.term("star", place.star.name())).collect();
                let list = stars.join(words.get("list.and"));
                words.say((!stars.is_empty()).then_some("view.line.stars")?, &[("list", &list)]).into()
            }
            _ => return None,
        })
    }

    /// Returns true if the line for the matter is the asker's own, and is called so.
    fn is_of_asker(&self) -> bool {
        let assessment = self.assessment;
        let is_subject = assessment.significator.line.position == assessment.subject.position;
        is_subject && !matches!(assessment.matter.sought, Sought::Kin(_)) || assessment.matter.topic == Topic::Legal
    }

    fn nature(&self, nature: LineNature) -> String {
        let words = self.words();
        let [kin, branch] = [words.term("kin", nature.kin.name()), words.term("branch", nature.branch.name())];
        let element = words.term("element", nature.element.name());
        words.say("nature", &[("kin", kin), ("branch", branch), ("element", element)])
    }

    fn line(&self, line: &ChartLine) -> String {
        let position = self.words().term("position", &line.position.to_string());
        self.words().say("line", &[("position", position), ("nature", &self.nature(line.nature))])
    }

    /// Returns the part that lines of a kin play in the topic.
    fn role(&self, kin: Kin) -> String {
        let (words, matter) = (self.words(), self.assessment.matter);
        if self.assessment.is_of_other() && kin == self.kin() {
            return self.other();
        }
        let is_other = matter.partner.is_some() && kin != self.kin();
        let of_partner = words.find(&format!("role.partner.{}", kin.name())).filter(|_| is_other);
        let god = self.assessment.gods().iter().position(|god| *god == kin).unwrap_or(3);
        let is_persons = matter.person.is_some() && !matches!(matter.topic, Topic::Family | Topic::Health);
        let of_person = is_persons.then(|| words.get(&format!("role.person.{god}")));
        let of_aspect = |aspect: &&str| words.find(&format!("role.{}.{aspect}.{}", matter.topic.name(), kin.name()));
        let of_topic = || words.get(&format!("role.{}.{}", matter.topic.name(), kin.name()));
        let found = of_partner.or(of_person).or_else(|| matter.aspects.iter().find_map(of_aspect));
        found.unwrap_or_else(of_topic).to_owned()
    }

    /// Returns the name of the other person whose act or mind is asked about.
    fn other(&self) -> String {
        let words = self.words();
        let name = self.assessment.matter.other.as_ref().map(|other| &other.name);
        let named = name.filter(|name| !name.is_empty() && is_latin(name) == words.is_english());
        named.cloned().unwrap_or_else(|| words.get("other.holder").to_owned())
    }

    /// Returns the name of the person whose matter it is.
    fn person(&self) -> String {
        let (words, matter) = (self.words(), self.assessment.matter);
        match matter.person_named.filter(|word| is_latin(word) == words.is_english()) {
            Some(word) if words.is_english() => format!("your {word}"),
            Some(word) => turned(word),
            None => matter.person.map_or("", |person| words.term("person", person.name())).to_owned(),
        }
    }

    /// Returns the name of the topic.
    fn topic(&self) -> String {
        let matter = self.assessment.matter;
        let of_aspect = matter.aspects.iter().map(|aspect| format!("topic.{}.{aspect}", matter.topic.name()));
        self.words()
            .say_first(&of_aspect.chain([format!("topic.{}", matter.topic.name())]).collect::<Vec<_>>(), &|_| None)
    }

    /// Returns the kin that is 用神.
    fn kin(&self) -> Kin {
        match self.assessment.matter.sought {
            Sought::Kin(kin) if !self.assessment.is_of_other() => kin,
            _ => self.assessment.significator.nature().kin,
        }
    }

    /// Returns the technical part: method, time and palace, and 用神 with its helpers and enemies.
    fn setting(&self) -> String {
        let (words, chart) = (self.words(), self.assessment.chart);
        let method = self.writer.reading.method.and_then(|method| words.find(&format!("method.{method}")));
        let method = method.map(|method| words.say("setting.method", &[("method", method)]));
        let moment = chart.moment.as_ref().map(|_| self.phrase("setting.time", None));
        let no_time = if chart.moment.is_none() { words.get("setting.no_time") } else { "" };
        let palace = self.phrase("setting.palace", None);
        words.join(&[method.unwrap_or_default(), moment.unwrap_or_default(), palace, no_time.to_owned(), self.place()])
    }

    /// Returns the sentence that names 用神, with its helpers and enemies.
    fn place(&self) -> String {
        let (words, matter) = (self.words(), self.assessment.matter);
        let is_legal = matter.topic == Topic::Legal;
        let key = match (matter.sought, matter.partner, matter.person) {
            _ if is_legal => "legal",
            (_, Some(reason), _) => reason,
            (Sought::Kin(_), None, Some(_)) if matter.topic == Topic::Family => "family",
            (Sought::Kin(_), None, Some(_)) => "person",
            (Sought::Kin(kin), None, None) if kin == self.kin() => "kin",
            (Sought::Kin(_) | Sought::Object | Sought::Partner, None, _) => "object",
            (Sought::Subject, None, _) if matter.topic == Topic::Other => "general",
            (Sought::Subject, None, _) => "subject",
        };
        let choice = self.assessment.significator.choice.map(|choice| words.term("choice", choice.name()));
        let end = if is_legal { words.get("sentence.end").to_owned() } else { self.phrase("gods", None) };
        format!("{}{}{end}", self.phrase(&format!("matter.{key}"), None), choice.unwrap_or_default())
    }

    /// Returns the place of a lost thing, or a direction.
    fn whereabouts(&self) -> String {
        self.phrase(&format!("where.{}", place_name(self.assessment)), None)
    }

    /// Returns the line that stands for the matter, the rules for and against it, and what the people in it do.
    fn reasons(&self, answer: Outlook) -> String {
        let (words, assessment) = (self.words(), self.assessment);
        if let Some(sides) = assessment.sides() {
            return words.join(&[self.sides(sides), self.stands()]);
        }
        let list = |key: &str, sign: i32, most: usize| {
            let is_told = |it: Reason| match it {
                Reason::DayControls => assessment.has(Reason::DayBreaks),
                // It is told with the lines in motion.
                Reason::Stirred => true,
                it => it.is_of_sides(),
            };
            let is_wanted =
                |it: &&Evidence| it.weight.signum() == sign && !it.reason.is_movement() && !is_told(it.reason);
            let mut found: Vec<_> = assessment.evidence.iter().filter(is_wanted).collect();
            found.sort_by_key(|evidence| std::cmp::Reverse(evidence.weight.abs()));
            let said: Vec<_> = found.into_iter().take(most).map(|it| self.reason(*it)).collect();
            self.listed(key, None, &said)
        };
        let [more, fewer] = MAX_REASONS;
        let [first, second] = if answer == Outlook::Adverse {
            [list("against", -1, more), list("for", 1, fewer)]
        } else {
            [list("for", 1, more), list("against", -1, fewer)]
        };
        words.join(&[self.stands(), first, second, self.movements(), self.asker(), self.other_person()])
    }

    /// Returns the lines of two things to choose from, each with its strength and what acts on it.
    fn sides(&self, sides: [&ChartLine; 2]) -> String {
        let (words, assessment) = (self.words(), self.assessment);
        let options = assessment.matter.options.clone().unwrap_or_default();
        let said = sides.into_iter().zip(options).map(|(line, option)| {
            let mut reasons = line_reasons(line);
            reasons.sort_by_key(|reason| std::cmp::Reverse(reason.weight().abs()));
            // The sentence names the line, so that its reasons need not.
            let unnamed = |name: &str| if name == "it" { None } else { self.value(name, Some(line)) };
            let own = reasons.into_iter().take(MAX_SIDE_REASONS).map(|reason| {
                words.say_with(&format!("reason.{}", reason.name()), &|name| Some(unnamed(name).unwrap_or_default()))
            });
            let change = line.becomes.map(|_| self.phrase("side.changes", Some(line)));
            let key = |feeds| if feeds { "side.生" } else { "side.克" };
            let moves = assessment.movers_on(line).map(|(mover, feeds)| self.phrase(key(feeds), Some(mover)));
            let said = self.listed("side", Some(line), &own.chain(change).chain(moves).collect::<Vec<_>>());
            words.say("side.option", &[("option", &verbatim(&turned(&option)))]) + &said
        });
        words.join(&said.collect::<Vec<_>>())
    }

    /// Returns the sentence about the asker's own line and what it does with the line for the matter.
    fn asker(&self) -> String {
        let (assessment, significator) = (self.assessment, &self.assessment.significator);
        let (subject, matter) = (assessment.subject, assessment.matter);
        let tells = assessment.evidence.iter().any(|it| it.reason.is_of_sides() && it.reason != Reason::SubjectVoid);
        let is_thing =
            matches!(matter.topic, Topic::Lost | Topic::Pets | Topic::Vehicle | Topic::Children | Topic::Other);
        let is_told = matter.person.is_none() && matter.topic != Topic::Legal && (tells || !is_thing);
        if significator.is(subject) || !is_told {
            return String::new();
        }
        self.of_person("you", subject, significator.nature().element.relation_to(subject.nature.element))
    }

    /// Returns the sentence about the other person's line and what it does with the asker's.
    fn other_person(&self) -> String {
        let Some(line) = self.assessment.other else { return String::new() };
        self.of_person("them", line, line.nature.element.relation_to(self.assessment.toward().element))
    }

    fn of_person(&self, key: &str, line: &ChartLine, neutral: ElementRelation) -> String {
        let assessment = self.assessment;
        let is_other = |position| assessment.other.is_some_and(|other| Some(other.position) == position);
        let is_known = |reason| reason != Reason::OtherVoid || assessment.other.is_some();
        let is_theirs =
            |it: &&Evidence| it.reason.is_of_sides() && is_known(it.reason) && is_other(it.position) == (key == "them");
        let mut found: Vec<_> = assessment.evidence.iter().filter(is_theirs).map(|it| self.reason(*it)).collect();
        if found.is_empty() {
            found.push(self.words().term(key, neutral.name()).to_owned());
        }
        self.listed(&format!("stands.{key}"), Some(line), &found)
    }

    /// Returns the sentence that names the line for the matter and its strength.
    fn stands(&self) -> String {
        let (matter, significator) = (self.assessment.matter, &self.assessment.significator);
        let key = match (matter.sought, matter.partner, matter.person) {
            _ if significator.hidden.is_some() => "hidden",
            (Sought::Subject, ..) => "self",
            _ if matter.topic == Topic::Legal => "self",
            _ if self.assessment.is_of_other() => "other_named",
            (Sought::Object | Sought::Partner, ..) => "other",
            (_, Some(_), _) => "partner",
            (_, _, Some(_)) => "person",
            _ => "kin",
        };
        self.phrase(&format!("stands.{key}"), Some(significator.line))
    }

    /// Returns the effect of each moving line.
    fn movements(&self) -> String {
        let (words, assessment) = (self.words(), self.assessment);
        let moving: Vec<&ChartLine> = assessment.chart.lines.iter().filter(|line| line.is_active()).collect();
        match moving.as_slice() {
            _ if !assessment.knows_changes => return String::new(),
            [] => return words.get("still").to_owned(),
            _ => {}
        }
        let mut told: Vec<String> = moving.iter().filter_map(|line| self.movement(line)).collect();
        let aside = moving.into_iter().filter(|line| self.movement(line).is_none());
        let names: Vec<&str> = aside.map(|line| words.term("position", &line.position.to_string())).collect();
        if !names.is_empty() {
            told.push(words.say("moves.neither", &[("list", &names.join(words.get("list.and")))]));
        }
        self.listed("moves", None, &told)
    }

    /// Returns the clause that says what a moving line does; none if it has no bearing.
    fn movement(&self, line: &ChartLine) -> Option<String> {
        let assessment = self.assessment;
        let of_line = |evidence: &&Evidence| evidence.position == Some(line.position) && evidence.reason.is_movement();
        let most = assessment.evidence.iter().filter(of_line).max_by_key(|evidence| evidence.weight.abs());
        let in_triad = || {
            let is_told = assessment.has(Reason::TriadHelps) || assessment.has(Reason::TriadHarms);
            let mut triads = assessment.chart.marks.iter().filter(|mark| mark.kind == MarkKind::Triad);
            is_told && triads.any(|mark| mark.positions.contains(&line.position))
        };
        let key = match (most, line.nature.element.relation_to(assessment.significator.nature().element)) {
            (Some(most), _) if most.reason != Reason::Aside => return Some(self.reason(*most)),
            (Some(_), _) if assessment.subject.position != line.position => return None,
            (Some(_), _) if line.becomes.is_none() => "move.self.stirred",
            (Some(_), _) => "move.self",
            _ if assessment.significator.is(line) && line.becomes.is_none() => "move.own.stirred",
            _ if assessment.significator.is(line) => "move.own",
            _ if in_triad() => "move.triad",
            (None, ElementRelation::Feeds) => "move.生",
            (None, ElementRelation::Controls) => "move.克",
            (None, ElementRelation::Same) => "move.同",
            (None, ElementRelation::FedBy) => "move.泄",
            (None, ElementRelation::ControlledBy) => "move.耗",
        };
        Some(self.phrase(key, Some(line)))
    }

    fn reason(&self, it: Evidence) -> String {
        let is_struck = self.assessment.significator.state().is_some_and(|state| state.day_clash);
        let is_own = it.position == Some(self.assessment.significator.line.position);
        let key = match it.reason {
            Reason::DayControls if is_struck => "day_strikes",
            Reason::TriadHarms if is_own => "triad_turns",
            reason => reason.name(),
        };
        self.phrase(&format!("reason.{key}"), it.position.and_then(|position| self.assessment.line_at(position)))
    }

    /// Returns the cause of what is wrong: the line that harms most, else 忌神.
    fn cause(&self) -> &'static str {
        let assessment = self.assessment;
        let harms = assessment.evidence.iter().filter(|it| it.weight < 0 && it.reason.is_movement());
        let line = harms.min_by_key(|it| it.weight).and_then(|it| assessment.line_at(it.position?));
        self.words().term("cause", line.map_or(assessment.gods()[1], |line| line.nature.kin).name())
    }

    /// Returns the part, strength, movement and stars of each line.
    fn each_line(&self) -> String {
        let words = self.words();
        let lines: Vec<_> =
            self.assessment.chart.lines.iter().map(|line| self.phrase("view.line", Some(line))).collect();
        let all = lines.join(words.get("clause.end")) + words.get("sentence.end").trim_end();
        words.join(&[words.get("view.lines").to_owned(), all])
    }

    /// Returns the name of a branch's day with its next date, or of its month in a slow matter.
    fn day(&self, branch: Branch) -> String {
        let words = self.words();
        let name = words.term("branch", branch.name());
        if self.assessment.matter.is_slow {
            // 子, the first branch, is the month of December.
            let number = ((branch as usize + 11) % 12 + 1).to_string();
            let values = [("branch", name), ("number", &number), ("month", words.term("month", &number))];
            return words.say("month.named", &values);
        }
        // The dates of the days after the month that breaks it are not those that come next.
        let is_after = |timing: &Timing| timing.rule == TimingRule::MonthBreak;
        let moment = self.assessment.chart.moment.as_ref();
        let moment = moment.filter(|_| !self.assessment.timing.as_ref().is_some_and(is_after));
        let said = match moment.and_then(|moment| Some((moment, moment.next_days()?[branch as usize]))) {
            Some((moment, date)) => {
                let is_today = branch == moment.pillars.day.branch();
                let next = words.get(if is_today { "day.after_today" } else { "day.next" });
                let (month, day) = (date.month().to_string(), date.day().to_string());
                let values = [("month", month.as_str()), ("day", &day), ("month_name", words.term("month", &month))];
                words.say("day.dated", &[("branch", name), ("next", next), ("date", &words.say("date", &values))])
            }
            None => words.say("day.bare", &[("branch", name)]),
        };
        said.replace("a Ox", "an Ox")
    }

    /// Returns the days or months at which the matter may come about; none after the time that the question names.
    fn days(&self, timing: &Timing) -> Option<String> {
        let (words, matter) = (self.words(), self.assessment.matter);
        let moment = self.assessment.chart.moment.as_ref();
        let today = moment.map(|moment| moment.local.date());
        let end = moment.and_then(|moment| moment.days_to_end_of(matter.within?));
        if timing.rule == TimingRule::Season {
            return end.is_none().then(|| words.term("season", timing.element.name()).to_owned());
        }
        let now = moment.map(|it| if matter.is_slow { it.pillars.month } else { it.pillars.day }.branch() as usize);
        // The next one first; the branch of now comes again last.
        let distance = |branch: &Branch| (*branch as usize + 11 - now.unwrap_or(11)) % 12;
        // The month of a branch begins about the sixth.
        let to_month = today.map_or(0, |today| 6 - i32::from(today.day()));
        let days_to = |branch: &Branch| match i32::try_from(distance(branch) + 1) {
            Ok(steps) if matter.is_slow => steps * 30 + to_month,
            steps => steps.unwrap_or_default(),
        };
        let is_after_break = timing.rule == TimingRule::MonthBreak && !matter.is_slow;
        let is_in_time = |branch: &&Branch| end.is_none_or(|end| days_to(branch) <= end && !is_after_break);
        let mut branches: Vec<Branch> = timing.branches.iter().filter(is_in_time).copied().collect();
        branches.sort_by_key(distance);
        let is_far = branches.get(1).is_some_and(|branch| matter.is_slow && distance(branch) >= 6);
        branches.truncate(if is_far { 1 } else { 2 });
        let named: Vec<String> = branches.into_iter().map(|branch| self.day(branch)).collect();
        (!named.is_empty()).then(|| named.join(words.get("days.or")))
    }

    /// Returns the sentence about the time, if the question asks for it or its end is open; to a question of when only the
    /// reason, because the answer names the time. After a no only a hindrance that passes has a time.
    fn time(&self, answer: Outlook) -> Option<String> {
        let matter = self.assessment.matter;
        let timing = self.assessment.timing.as_ref()?;
        let passes = !matches!(timing.rule, TimingRule::Moving | TimingRule::Resting | TimingRule::Triad);
        let is_event = match matter.topic {
            Topic::Travel | Topic::Study | Topic::Health => false,
            Topic::Pets | Topic::Friends | Topic::Family | Topic::Other => matter.has("ill") || matter.has("conflict"),
            _ => true,
        };
        let is_open = is_event
            && matter.within != Some("dated")
            && !matter.has("quality")
            && (answer == Outlook::Favourable || passes && matter.is_slow && matter.within.is_none());
        let key = match matter.aim {
            Aim::When => "timing.reason",
            Aim::Wish if !is_open || self.writer.reading.question.trim().is_empty() => return None,
            Aim::Wish if answer == Outlook::Adverse => "timing.adverse",
            Aim::Wish => "timing",
            _ => return None,
        };
        self.timed(key, timing)
    }

    /// Returns a phrase about a time with its days and the rule for it.
    fn timed(&self, key: &str, timing: &Timing) -> Option<String> {
        let because = self.phrase(&format!("because.{}", timing.rule.name()), None);
        Some(self.words().say(key, &[("because", &because), ("days", &self.days(timing)?)]))
    }

    /// Returns the kind of person that a line shows: the partner's, a thief's, or the other side's.
    fn who(&self) -> String {
        let assessment = self.assessment;
        let thief = || assessment.chart.lines.iter().find(|line| line.nature.kin == Kin::Officials);
        let line = match assessment.matter.topic {
            Topic::Love => assessment.significator.line,
            Topic::Lost => thief().unwrap_or(assessment.object),
            _ => assessment.object,
        };
        self.phrase("who.line", Some(line))
    }
}

/// Returns the question shortened to one line, at the end of a word; `None` if there is no question.
fn quoted(question: &str) -> Option<String> {
    let words: Vec<&str> = question.split_whitespace().collect();
    let line: String = words.join(" ").chars().filter(|letter| !letter.is_control()).collect();
    if line.is_empty() {
        return None;
    }
    let Some((end, _)) = line.char_indices().nth(MAX_QUOTE_LENGTH) else { return Some(line) };
    let quote = &line[..end];
    let word_end = quote.rfind(' ').filter(|place| *place > end / 2).unwrap_or(end);
    Some(format!("{}…", &quote[..word_end]))
}

/// Returns topic, aim, 用神 with its helpers and enemies, evidence and next days as data, with its phrases in words.
pub(super) fn analysis(reading: &Reading, matter: &Matter, assessment: &Assessment<'_>) -> serde_json::Value {
    let writer = Writer { reading, words: Phrases(reading.written) };
    let scene = Scene { writer: &writer, assessment };
    let said = |text: String| reading.written.convert(&text);
    let significator = &assessment.significator;
    let evidence = assessment.evidence.iter().map(|it| {
        let text = said(scene.reason(*it));
        serde_json::json!({ "weight": it.weight, "position": it.position, "text": text })
    });
    // In a dispute the line that is weighed is the asker's, and 用神 the court.
    let is_court = matter.topic == Topic::Legal;
    let [source, harm, rival] = assessment.gods().map(|kin| (!is_court).then_some(kin.name()));
    let shown = if is_court { assessment.court() } else { None };
    serde_json::json!({
        "topic": matter.topic.name(),
        "aim": matter.aim.name(),
        "isUnwelcome": matter.is_unwelcome,
        "person": matter.person.map(Person::name),
        "circumstances": matter.aspects,
        "options": matter.options,
        "secondTopic": matter.second.as_ref().map(|(topic, _)| topic.name()),
        "line": {
            "用神": scene.kin().name(),
            "branch": shown.map_or(significator.nature().branch, |line| line.nature.branch).name(),
            "position": shown.unwrap_or(significator.line).position,
            "isHidden": significator.hidden.is_some(),
            "strength": shown.map_or(assessment.weight, Weight::of).map(Weight::name),
            "元神": source,
            "忌神": harm,
            "仇神": rival,
        },
        "evidence": evidence.collect::<Vec<_>>(),
        "outlook": assessment.outlook.name(),
        "days": assessment.timing.as_ref().and_then(|it| scene.timed("timing.why", it)).map(said).into_iter().collect::<Vec<_>>(),
    })
}
