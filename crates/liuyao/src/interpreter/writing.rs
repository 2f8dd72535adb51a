//! Writes a reading: one tree that chooses phrases for all languages.

use super::{
    Aim, Assessment, Matter, Outlook, Person, Reading, Reason, Sought, Timing, Topic, View, Weight, Written, assess,
    assessment::cause_of_failure, phrases::Phrases, question::PartnerReason,
};
use crate::{
    Branch, ElementRelation,
    chart::{
        ActingTrigram, BodyAndUse, ChartLine, ClashEffect, Kin, LineNature, LineRole, SelectedText, Stage, StarPlace,
        TextSelection, trigram_element,
    },
    hexagram::{ClassicalText, Hexagram, Judgement, LineClassic, Trigram},
    interpreter::AskerGender,
    script::verbatim,
};

/// Maximum characters quoted from a question.
const MAX_QUOTE_LENGTH: usize = 80;
/// Maximum number of rules named on each side.
const MAX_EVIDENCE: usize = 6;
/// Maximum number of moving lines named that do not bear on the matter.
const MAX_ASIDES: usize = 2;

/// Returns the whole text, one paragraph per item.
pub(super) fn paragraphs(reading: &Reading) -> Vec<String> {
    let words = Phrases(reading.written);
    let writer = Writer { reading, words };
    let matter = Matter::of(reading);
    let mut paragraphs = match reading.facts.primary {
        Some(primary) => writer.of_hexagram(primary, &matter),
        None => writer.nothing_found(),
    };
    let professionals: Vec<String> =
        matter.professionals.iter().map(|topic| words.term("professional", topic.name()).to_owned()).collect();
    paragraphs.push(words.join(&professionals));
    paragraphs.push(writer.foundation());
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

struct Writer<'a> {
    reading: &'a Reading,
    words: Phrases,
}

impl Writer<'_> {
    fn of_hexagram(&self, primary: Hexagram, matter: &Matter) -> Vec<String> {
        let facts = &self.reading.facts;
        let chart = self.reading.chart.as_ref();
        let assessment = chart.and_then(|chart| assess(chart, matter, facts.cast.is_some()));
        let texts = self.texts(primary);
        let mut paragraphs = vec![self.opening(primary, matter), self.quotations(&texts)];
        let scene = assessment.as_ref().map(|assessment| Scene { writer: self, assessment });
        match (self.reading.view, &scene) {
            (View::Images, _) => paragraphs.push(self.way(primary)),
            (View::Lines, Some(scene)) => paragraphs.extend([scene.setting(), scene.each_line(), scene.timing()]),
            (_, Some(scene)) => {
                paragraphs.push(self.images(primary));
                paragraphs.extend(self.body_and_use());
                paragraphs.extend([scene.setting(), scene.evidence(), scene.sides(), scene.timing()]);
            }
            (_, None) => paragraphs.push(self.images(primary)),
        }
        if chart.is_none_or(|chart| chart.moment.is_none()) {
            paragraphs.push(self.trigrams(primary, matter.topic));
        }
        paragraphs.push(self.conclusion(matter, assessment.as_ref(), texts.texts.first()));
        let words = self.words;
        paragraphs
            .into_iter()
            .enumerate()
            .map(|(place, text)| if place < 2 { text } else { words.capitalised(&text) })
            .collect()
    }

    fn opening(&self, primary: Hexagram, matter: &Matter) -> String {
        let words = self.words;
        let question = match quoted(&self.reading.question) {
            Some(question) => words.say("opening.question", &[("question", &verbatim(&question))]),
            None => words.get("opening.none").to_owned(),
        };
        let second = matter.second.as_ref().map(|(topic, part)| {
            let part = verbatim(&quoted(part).unwrap_or_default());
            let [first, second] = [matter.topic, *topic].map(|topic| words.term("topic", topic.name()));
            words.say("opening.second", &[("matter", first), ("second", second), ("words", &part)])
        });
        let (upper, lower, locale) = (primary.upper(), primary.lower(), self.reading.written.locale());
        let named = words.say(
            "opening.hexagram",
            &[
                ("named", &self.named(primary)),
                ("upper", upper.chinese_name()),
                ("upper_image", upper.image(locale)),
                ("lower", lower.chinese_name()),
                ("lower_image", lower.image(locale)),
            ],
        );
        let asked = words.join(&[question, second.unwrap_or_default()]);
        format!("{asked}\n{}", words.join(&[named, self.changes()]))
    }

    fn changes(&self) -> String {
        let (words, facts) = (self.words, &self.reading.facts);
        let Some(cast) = facts.cast else { return words.get("opening.unknown_changes").to_owned() };
        let Some(relating) = facts.relating else { return String::new() };
        let changing = cast.changing();
        let name = |position: &u8| {
            if words.is_english() {
                words.term("ordinal", &position.to_string()).to_owned()
            } else {
                cast.line_name(*position, self.reading.written.locale())
            }
        };
        let names: Vec<String> = changing.iter().map(name).collect();
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
        words
            .say("opening.changes", &[("lines", &words.say(key, &[("list", &list)])), ("named", &self.named(relating))])
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

    fn named(&self, hexagram: Hexagram) -> String {
        self.words.say(
            "named",
            &[
                ("sign", hexagram.sign()),
                ("full_name", &self.full_name(hexagram)),
                ("name", &self.name(hexagram)),
                ("pinyin", hexagram.pinyin()),
                ("number", &hexagram.number().to_string()),
                ("english", hexagram.english_name()),
            ],
        )
    }

    /// Returns the name by which a sentence calls a hexagram.
    fn called(&self, hexagram: Hexagram) -> String {
        if self.words.is_english() { hexagram.english_name().to_owned() } else { self.full_name(hexagram) }
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
        let verses = selection.texts.iter().map(|text| self.verse(*text, is_one));
        std::iter::once(rule).chain(verses).collect::<Vec<_>>().join("\n")
    }

    fn verse(&self, selected: SelectedText, is_one: bool) -> String {
        let words = self.words;
        let rank = match (is_one, selected.is_main) {
            (true, _) => "",
            (false, true) => words.get("verse.main"),
            (false, false) => words.get("verse.minor"),
        };
        let part = match selected.line_classic() {
            Some(line) if words.is_english() => {
                selected.position.map_or(line.label(), |position| words.term("position", &position.to_string()))
            }
            Some(line) => line.label(),
            None => words.get("verse.judgement"),
        };
        words.say(
            "verse",
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

    /// Returns the image of the hexagram and of the one that it leads to or contains.
    fn images(&self, primary: Hexagram) -> String {
        let (words, locale) = (self.words, self.reading.written.locale());
        let say = |key, hexagram: Hexagram| {
            let (name, image, counsel) = (self.called(hexagram), hexagram.image(locale), hexagram.counsel(locale));
            words.say(key, &[("name", &name), ("image", image), ("counsel", counsel)])
        };
        let nuclear = primary.nuclear();
        let further = match self.reading.facts.relating {
            Some(relating) => say("image.relating", relating),
            None if nuclear != primary => say("image.nuclear", nuclear),
            None => String::new(),
        };
        words.join(&[say("image", primary), further.trim_start().to_owned()])
    }

    /// Returns the hexagrams that the primary one contains, faces and leads to.
    fn way(&self, primary: Hexagram) -> String {
        let (words, locale) = (self.words, self.reading.written.locale());
        let say = |key: &str, hexagram: Hexagram| {
            words.say(
                key,
                &[
                    ("name", &self.called(hexagram)),
                    ("text", &self.classic(hexagram.classical_image())),
                    ("plain", hexagram.plain_judgement(locale)),
                    ("image", hexagram.image(locale)),
                    ("counsel", hexagram.counsel(locale)),
                ],
            )
        };
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

    /// Returns the trigrams as the two sides of the question.
    fn trigrams(&self, primary: Hexagram, topic: Topic) -> String {
        let (lower, upper, locale) = (primary.lower(), primary.upper(), self.reading.written.locale());
        self.words.say(
            "trigrams",
            &[
                ("lower", lower.chinese_name()),
                ("lower_image", lower.image(locale)),
                ("lower_attribute", lower.attribute(locale)),
                ("upper", upper.chinese_name()),
                ("upper_image", upper.image(locale)),
                ("upper_attribute", upper.attribute(locale)),
                ("other", self.words.term("other", topic.name())),
            ],
        )
    }

    /// Returns the answer in the sense of the question, advice, and how verse and chart agree.
    fn conclusion(&self, matter: &Matter, assessment: Option<&Assessment<'_>>, main: Option<&SelectedText>) -> String {
        let words = self.words;
        let charted = assessment.filter(|assessment| assessment.is_telling());
        let judgement = main.and_then(SelectedText::judgement_of);
        let outlook = charted.map_or_else(
            || match judgement.map(|(judgement, _)| judgement) {
                Some(Judgement::Good) => Outlook::Favourable,
                Some(Judgement::Warning) => Outlook::Adverse,
                _ => Outlook::Mixed,
            },
            |assessment| assessment.outlook,
        );
        let verdict = self.verdict(matter, assessment, outlook);
        let advice = words.say_first(&advice_keys(matter, outlook), &[]);
        let mut sentences = vec![words.say("conclusion", &[("verdict", &verdict), ("advice", &advice)])];
        // A text says nothing about a fact or a person.
        let is_asked = |judgement: Judgement| {
            judgement != Judgement::Even
                && !matches!(matter.aim, Aim::Fact | Aim::Who)
                && !matter.has("mourning")
                && matter.options.is_none()
        };
        if let Some((judgement, clause)) = judgement.filter(|(judgement, _)| is_asked(*judgement)) {
            let key = match charted {
                Some(_) if matter.aim == Aim::Fear => format!("agreement.fear.{}.{}", judgement.name(), outlook.name()),
                Some(_) => format!("agreement.{}.{}", judgement.name(), outlook.name()),
                None => format!("agreement.text.{}", judgement.name()),
            };
            sentences.push(words.say(&key, &[("clause", &self.classic(clause))]));
        }
        if matter.options.is_some() {
            sentences.push(words.get("choice.note").to_owned());
        }
        words.join(&sentences)
    }

    fn verdict(&self, matter: &Matter, assessment: Option<&Assessment<'_>>, outlook: Outlook) -> String {
        let words = self.words;
        let scene = assessment.map(|assessment| Scene { writer: self, assessment });
        let group = match matter.aim {
            Aim::Wish => "wish",
            Aim::Fear => "fear",
            Aim::Fact if matter.is_unwelcome => "unwelcome_fact",
            Aim::Fact => "fact",
            Aim::Choice if matter.options.is_some() => "choice",
            Aim::Choice => "whether",
            Aim::When => "when",
            Aim::Who => "who",
        };
        let days = scene.as_ref().and_then(Scene::days);
        let group = if group == "when" && days.is_none() { "when.no_days" } else { group };
        let who = scene.as_ref().map(Scene::who).unwrap_or_default();
        let [first, second] = matter.options.clone().unwrap_or_default().map(|option| verbatim(&option));
        let values = [
            ("days", days.as_deref().unwrap_or_default()),
            ("who", who.as_str()),
            ("first", &first),
            ("second", &second),
        ];
        words.say_first(&keys(group, matter, outlook), &values)
    }

    fn nothing_found(&self) -> Vec<String> {
        let words = self.words;
        let found = match self.reading.facts.relating {
            Some(relating) => words.say("nothing.relating", &[("named", &self.named(relating))]),
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

/// Returns the keys of a group from the most special: by aspect, by topic, and for all.
fn keys(group: &str, matter: &Matter, outlook: Outlook) -> Vec<String> {
    let (topic, outlook) = (matter.topic.name(), outlook.name());
    let aspects = matter.aspects.iter().map(|aspect| format!("{group}.{topic}.{aspect}.{outlook}"));
    aspects.chain([format!("{group}.{topic}.{outlook}"), format!("{group}.{outlook}")]).collect()
}

fn advice_keys(matter: &Matter, outlook: Outlook) -> Vec<String> {
    let special = match matter.aim {
        Aim::Choice if matter.options.is_some() => return keys("choice_advice", matter, outlook),
        Aim::Fear => keys("fear_advice", matter, outlook),
        Aim::Fact => keys("fact_advice", matter, outlook),
        Aim::Who => keys("who_advice", matter, outlook),
        Aim::Wish | Aim::Choice | Aim::When => Vec::new(),
    };
    special.into_iter().chain(keys("advice", matter, outlook)).collect()
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

    fn nature(&self, nature: LineNature) -> String {
        let words = self.words();
        words.say(
            "nature",
            &[
                ("kin", words.term("kin", nature.kin.name())),
                ("branch", words.term("branch", nature.branch.name())),
                ("element", words.term("element", nature.element.name())),
            ],
        )
    }

    fn line(&self, line: &ChartLine) -> String {
        let position = self.words().term("position", &line.position.to_string());
        self.words().say("line", &[("position", position), ("nature", &self.nature(line.nature))])
    }

    /// Returns the part that lines of a kin play in the topic.
    fn role(&self, kin: Kin) -> &'static str {
        self.words().get(&format!("role.{}.{}", self.assessment.matter.topic.name(), kin.name()))
    }

    /// Returns method, time and palace, and the line for the matter with its strength.
    fn setting(&self) -> String {
        let (words, chart) = (self.words(), self.assessment.chart);
        let method = self.writer.reading.method.and_then(|method| words.find(&format!("method.{method}")));
        let moment = chart.moment.as_ref().map(|moment| {
            let pillars = moment.pillars;
            let [year, month, day, hour] =
                [pillars.year, pillars.month, pillars.day, pillars.hour].map(|pillar| pillar.to_string());
            let animal = |branch: Branch| words.term("branch", branch.name());
            let void = moment.void.map(animal).join(if words.is_english() { " and " } else { "" });
            let local = moment.local.to_string().chars().take(16).collect::<String>().replace('T', " ");
            let (date, time) = local.split_once(' ').unwrap_or((&local, ""));
            words.say(
                "setting.moment",
                &[
                    ("local", &local),
                    ("date", date),
                    ("time", time),
                    ("year", &year),
                    ("month", &month),
                    ("day", &day),
                    ("hour", &hour),
                    ("void", &void),
                    ("day_animal", &with_article(animal(pillars.day.branch()))),
                    ("month_animal", animal(pillars.month.branch())),
                ],
            )
        });
        let cast = match (method, moment.as_deref()) {
            (Some(method), Some(moment)) => words.say("setting.both", &[("method", method), ("moment", moment)]),
            (Some(method), None) => words.say("setting.method", &[("method", method)]),
            (None, Some(moment)) => words.say("setting.time", &[("moment", moment)]),
            (None, None) => String::new(),
        };
        let palace = words.say(
            "setting.palace",
            &[
                ("palace", chart.palace.trigram.chinese_name()),
                ("pinyin", chart.palace.trigram.pinyin()),
                ("element", words.term("element", chart.palace.element.name())),
                ("stage", words.term("stage", chart.palace.stage.name())),
            ],
        );
        let no_time = chart.moment.is_none().then(|| words.get("setting.no_time").to_owned());
        let parts = [
            Some(cast),
            Some(palace),
            no_time,
            Some(self.place()),
            self.strength(),
            self.spirit(),
            Some(self.gods()),
            self.whereabouts(),
        ];
        words.join(&parts.map(Option::unwrap_or_default))
    }

    /// Returns the sentence that names the line for the matter.
    fn place(&self) -> String {
        let (words, matter, significator) = (self.words(), self.assessment.matter, &self.assessment.significator);
        let kin = match matter.sought {
            Sought::Kin(kin) => kin,
            _ => significator.nature().kin,
        };
        let key = match (matter.sought, matter.partner, matter.person) {
            (Sought::Kin(_), Some(PartnerReason::Profile(AskerGender::Male)), _) => "matter.man",
            (Sought::Kin(_), Some(PartnerReason::Profile(AskerGender::Female)), _) => "matter.woman",
            (Sought::Kin(_), Some(_), _) => "matter.partner",
            (_, Some(_), _) => "matter.open",
            (Sought::Kin(_), None, Some(_)) if matter.topic == Topic::Family => "matter.family",
            (Sought::Kin(_), None, Some(_)) => "matter.person",
            (Sought::Kin(_), None, None) => "matter.kin",
            (Sought::Object | Sought::Partner, None, _) => "matter.object",
            (Sought::Subject, None, _) if matter.topic == Topic::Other => "matter.general",
            (Sought::Subject, None, _) => "matter.subject",
        };
        let name = words.term("kin", kin.name());
        let person = matter.person.map(|person| words.term("person", person.name()));
        let chosen = words.say(
            key,
            &[
                ("kin", name),
                ("role", self.role(kin)),
                ("person", person.unwrap_or_default()),
                ("matter", words.term("topic", matter.topic.name())),
            ],
        );
        let line = self.line(significator.line);
        if let Some(hidden) = significator.hidden {
            let hidden = self.nature(hidden.nature);
            let values = [("matter", chosen.as_str()), ("kin", name), ("hidden", &hidden), ("line", &line)];
            return words.say("place.hidden", &values);
        }
        let choice =
            significator.choice.map(|choice| words.say(&format!("choice.{}", choice.name()), &[("kin", name)]));
        words.say("place", &[("matter", &chosen), ("choice", &choice.unwrap_or_default()), ("line", &line)])
    }

    fn strength(&self) -> Option<String> {
        let pillars = self.assessment.chart.moment.as_ref()?.pillars;
        let animal = |branch: Branch| self.words().term("branch", branch.name());
        let values = [("month", animal(pillars.month.branch())), ("day", animal(pillars.day.branch()))];
        Some(self.words().say(&format!("weight.{}", self.assessment.weight?.name()), &values))
    }

    fn spirit(&self) -> Option<String> {
        let significator = &self.assessment.significator;
        let has_spirit =
            significator.hidden.is_none() && !matches!(self.assessment.matter.topic, Topic::Lost | Topic::Pets);
        let spirit = significator.line.spirit.filter(|_| has_spirit)?;
        let words = self.words();
        Some(
            format!("{}{}", if words.is_english() { "" } else { "它" }, words.term("spirit", spirit.name()))
                + words.get("sentence.end"),
        )
    }

    fn gods(&self) -> String {
        let [source, harm, rival] = self.assessment.gods().map(|kin| self.words().term("kin", kin.name()));
        self.words().say("gods", &[("source", source), ("harm", harm), ("rival", rival)])
    }

    fn whereabouts(&self) -> Option<String> {
        let (words, significator) = (self.words(), &self.assessment.significator);
        if self.assessment.matter.topic != Topic::Lost {
            return None;
        }
        let branch = significator.nature().branch;
        let key = match (significator.hidden, significator.line.position) {
            (Some(_), _) => "where.hidden",
            (None, 1..=3) => "where.lower",
            (None, _) => "where.upper",
        };
        Some(words.say(key, &[("branch", branch.name()), ("direction", words.term("direction", branch.name()))]))
    }

    /// Returns the rules that stand for and against the matter.
    fn evidence(&self) -> String {
        let (words, assessment) = (self.words(), self.assessment);
        let list = |key: &str, is_wanted: &dyn Fn(i32, Reason) -> bool| {
            let mut found: Vec<_> = assessment.evidence.iter().filter(|it| is_wanted(it.weight, it.reason)).collect();
            found.sort_by_key(|evidence| std::cmp::Reverse(evidence.weight.abs()));
            let mut said: Vec<String> = Vec::new();
            for evidence in found.into_iter().take(if key == "aside" { MAX_ASIDES } else { MAX_EVIDENCE }) {
                let phrase = self.reason(evidence.reason, evidence.position);
                if !said.contains(&phrase) {
                    said.push(phrase);
                }
            }
            let list = said.join(words.get("clause.end"));
            if list.is_empty() { list } else { words.say(key, &[("list", &list)]) }
        };
        let is_for = |weight: i32, reason: Reason| weight > 0 || (weight == 0 && reason.is_harm_averted());
        let rests = assessment.knows_changes && assessment.chart.lines.iter().all(|line| !line.is_active());
        let still = if rests { words.get("still").to_owned() } else { String::new() };
        let is_against = |weight: i32, reason: Reason| !is_for(weight, reason) && reason != Reason::Aside;
        let is_aside = |_: i32, reason: Reason| reason == Reason::Aside;
        words.join(&[list("for", &is_for), list("against", &is_against), list("aside", &is_aside), still])
    }

    fn reason(&self, reason: Reason, position: Option<u8>) -> String {
        let (words, assessment) = (self.words(), self.assessment);
        let line = position.and_then(|position| assessment.line_at(position));
        let becomes = line.and_then(|line| line.becomes).map(|new| self.nature(new.nature)).unwrap_or_default();
        let mover = line.map(|line| {
            let key = if line.becomes.is_some() { "mover.moves" } else { "mover.stirred" };
            words.say(key, &[("line", &self.line(line)), ("role", self.role(line.nature.kin)), ("becomes", &becomes)])
        });
        let pillars = assessment.chart.moment.as_ref().map(|moment| moment.pillars);
        let animal = |branch: Option<Branch>| branch.map_or("", |branch| words.term("branch", branch.name()));
        words.say(
            &format!("reason.{}", reason.name()),
            &[
                ("line", &line.map(|line| self.line(line)).unwrap_or_default()),
                ("role", line.map_or("", |line| self.role(line.nature.kin))),
                ("becomes", &becomes),
                ("mover", mover.as_deref().unwrap_or_default()),
                ("why", line.map_or("", |line| words.term("why", cause_of_failure(line)))),
                ("month", animal(pillars.map(|pillars| pillars.month.branch()))),
                ("day", animal(pillars.map(|pillars| pillars.day.branch()))),
            ],
        )
    }

    /// Returns the part, strength, movement and stars of each line.
    fn each_line(&self) -> String {
        let (words, assessment) = (self.words(), self.assessment);
        let describe = |line: &ChartLine| {
            let role = match line.role {
                Some(LineRole::Subject) => words.get("view.line.subject").to_owned(),
                Some(LineRole::Object) => {
                    words.say("view.line.object", &[("other", words.term("other", assessment.matter.topic.name()))])
                }
                None => String::new(),
            };
            let strength = Weight::of(line).map(|weight| words.term("view.line", weight.name()));
            let moves = match line.becomes {
                Some(new) => words.say("view.line.moves", &[("becomes", &self.nature(new.nature))]),
                None if line.is_active() => words.get("view.line.stirred").to_owned(),
                None => String::new(),
            };
            let has = |place: &&StarPlace| place.branches.contains(&line.nature.branch);
            let stars: Vec<&str> =
                assessment.chart.stars.iter().filter(has).map(|place| words.term("star", place.star.name())).collect();
            let stars = if stars.is_empty() {
                String::new()
            } else {
                words.say("view.line.stars", &[("list", &stars.join(words.get("list.and")))])
            };
            words.say(
                "view.line",
                &[
                    ("line", &self.line(line)),
                    ("role", self.role(line.nature.kin)),
                    ("spirit", &role),
                    ("strength", strength.unwrap_or_default()),
                    ("moves", &moves),
                    ("stars", &stars),
                ],
            )
        };
        let lines: Vec<String> = assessment.chart.lines.iter().map(describe).collect();
        let all = lines.join(words.get("clause.end")) + words.get("sentence.end").trim_end();
        words.join(&[words.get("view.lines").to_owned(), all])
    }

    /// Returns the relation of asker and other side.
    fn sides(&self) -> String {
        let (words, assessment) = (self.words(), self.assessment);
        let (topic, object, subject) = (assessment.matter.topic, assessment.object, assessment.subject);
        let stage = match assessment.chart.palace.stage {
            Stage::Wandering => words.get("sides.wandering"),
            Stage::Returning => words.get("sides.returning"),
            _ => "",
        };
        let is_object = assessment.significator.line.position == object.position;
        let has_other = !matches!(topic, Topic::Lost | Topic::Pets | Topic::Other)
            && !is_object
            && assessment.matter.person.is_none();
        if !has_other {
            return stage.to_owned();
        }
        let relation = match object.nature.element.relation_to(subject.nature.element) {
            ElementRelation::Feeds => "sides.feeds",
            ElementRelation::Controls => "sides.controls",
            ElementRelation::Same => "sides.same",
            ElementRelation::FedBy => "sides.fed_by",
            ElementRelation::ControlledBy => "sides.controlled_by",
        };
        let tie = if object.nature.branch.combines_with(subject.nature.branch) {
            "sides.combination"
        } else if object.nature.branch.clashes_with(subject.nature.branch) {
            "sides.clash"
        } else {
            "sides.none"
        };
        let state = match object.state {
            Some(state) if state.void && state.month_break => "sides.void_broken",
            Some(state) if state.void && object.clash_effect == Some(ClashEffect::Stirred) => "sides.void_struck",
            Some(state) if state.void && object.is_active() => "sides.void_moving",
            Some(state) if state.void => "sides.void",
            Some(state) if state.month_break => "sides.broken",
            _ => "sides.none",
        };
        let sides = words.say(
            "sides",
            &[
                ("other", words.term("other", topic.name())),
                ("line", &self.line(object)),
                ("relation", words.get(relation)),
                ("tie", words.get(tie)),
                ("state", words.get(state)),
            ],
        );
        words.join(&[sides, stage.to_owned()])
    }

    /// Returns the name of a branch's day with its next date.
    fn day(&self, branch: Branch) -> String {
        let words = self.words();
        let name = words.term("branch", branch.name());
        let moment = self.assessment.chart.moment.as_ref();
        let date = moment.and_then(|moment| Some((moment, moment.next_days()?[branch as usize])));
        let said = match date {
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

    /// Returns the first days at which the matter may come about.
    fn days(&self) -> Option<String> {
        let words = self.words();
        let partner = |branch: Branch| Branch::ALL[(13 - branch as usize) % 12];
        let both = |one: Branch, other: Branch| format!("{}{}{}", self.day(one), words.get("days.or"), self.day(other));
        self.assessment.timings.first().map(|timing| match *timing {
            Timing::Void { branch, .. } | Timing::Triad(branch) => self.day(branch),
            Timing::MonthBreak { branch, .. } | Timing::Moving(branch) => both(branch, partner(branch)),
            Timing::Hidden { branch, above } => both(branch, above.plus(6)),
            Timing::Bound(branch) | Timing::Grave(branch) | Timing::Harm(branch) => self.day(branch.plus(6)),
            Timing::Resting(branch) => both(branch, branch.plus(6)),
            Timing::Season(element) => words.term("season", element.name()).to_owned(),
        })
    }

    fn timing(&self) -> String {
        let (words, assessment) = (self.words(), self.assessment);
        if assessment.timings.is_empty() || self.writer.reading.question.trim().is_empty() {
            return String::new();
        }
        let topic = assessment.matter.topic;
        let first = (topic == Topic::Lost).then(|| words.get("timing.lost").to_owned());
        let branch = words.term("branch", assessment.significator.nature().branch.name());
        let is_long = matches!(topic, Topic::Children | Topic::Legal | Topic::Study);
        let last = is_long.then(|| words.say("timing.long", &[("branch", branch)]));
        let times = assessment.timings.iter().map(|timing| self.time(*timing));
        let list: Vec<String> = first.into_iter().chain(times).chain(last).collect();
        words.say("timing", &[("list", &list.join(words.get("clause.end")))])
    }

    fn time(&self, timing: Timing) -> String {
        let words = self.words();
        let partner = |branch: Branch| Branch::ALL[(13 - branch as usize) % 12];
        let today = self.assessment.chart.moment.as_ref().map(|moment| moment.pillars.day.branch());
        let (key, branch) = match timing {
            Timing::Void { branch, is_struck: true } => ("timing.void_struck", branch),
            Timing::Void { branch, .. } => ("timing.void", branch),
            Timing::MonthBreak { branch, .. } => ("timing.month_break", branch),
            Timing::Hidden { branch, above } if today == Some(above.plus(6)) => ("timing.hidden_open", branch),
            Timing::Hidden { branch, .. } => ("timing.hidden", branch),
            Timing::Bound(branch) => ("timing.bound", branch),
            Timing::Grave(branch) => ("timing.grave", branch),
            Timing::Triad(branch) => ("timing.triad", branch),
            Timing::Moving(branch) => ("timing.moving", branch),
            Timing::Resting(branch) => ("timing.resting", branch),
            Timing::Harm(branch) => ("timing.harm", branch),
            Timing::Season(element) => {
                return words.say("timing.season", &[("season", words.term("season", element.name()))]);
            }
        };
        let animal = |branch: Branch| words.term("branch", branch.name());
        let month = if let Timing::MonthBreak { month, .. } = timing { Some(month) } else { None };
        let above = if let Timing::Hidden { above, .. } = timing { self.day(above.plus(6)) } else { String::new() };
        let month_end = month.map(|month| words.term("month", &(month as usize + 1).to_string()));
        words.say(
            key,
            &[
                ("branch", animal(branch)),
                ("partner", animal(partner(branch))),
                ("day", &self.day(branch)),
                ("opposite", &self.day(branch.plus(6))),
                ("partner_day", &self.day(partner(branch))),
                ("above", &above),
                ("branch_month", month.map_or("", animal)),
                ("month_end", month_end.unwrap_or_default()),
            ],
        )
    }

    /// Returns the kind of person that a line shows: the partner's, a thief's, or the other side's.
    fn who(&self) -> String {
        let (words, assessment) = (self.words(), self.assessment);
        let thief = || assessment.chart.lines.iter().find(|line| line.nature.kin == Kin::Officials);
        let line = match assessment.matter.topic {
            Topic::Love => assessment.significator.line,
            Topic::Lost => thief().unwrap_or(assessment.object),
            _ => assessment.object,
        };
        words.say(
            "who.line",
            &[
                ("line", &self.line(line)),
                ("kin", words.term("who", line.nature.kin.name())),
                ("element", words.term("who_element", line.nature.element.name())),
                ("direction", words.term("direction", line.nature.branch.name())),
            ],
        )
    }
}

fn with_article(animal: &str) -> String {
    let article = if animal.starts_with('O') { "an" } else { "a" };
    format!("{article} {animal}")
}

/// Returns the question shortened to one line; `None` if there is no question.
fn quoted(question: &str) -> Option<String> {
    let words: Vec<&str> = question.split_whitespace().collect();
    let line: String = words.join(" ").chars().filter(|letter| !letter.is_control()).collect();
    if line.is_empty() {
        return None;
    }
    let mut quote: String = line.chars().take(MAX_QUOTE_LENGTH).collect();
    if quote.len() < line.len() {
        quote.push('…');
    }
    Some(quote)
}

/// Returns topic, aim, 用神 with its helpers and enemies, evidence and next days as data, with its phrases in words.
pub(super) fn analysis(reading: &Reading, matter: &Matter, assessment: &Assessment<'_>) -> serde_json::Value {
    let writer = Writer { reading, words: Phrases(reading.written) };
    let scene = Scene { writer: &writer, assessment };
    let said = |text: String| reading.written.convert(&text);
    let significator = &assessment.significator;
    let evidence = assessment.evidence.iter().map(|it| {
        let text = said(scene.reason(it.reason, it.position));
        serde_json::json!({ "weight": it.weight, "position": it.position, "text": text })
    });
    let [source, harm, rival] = assessment.gods().map(Kin::name);
    serde_json::json!({
        "topic": matter.topic.name(),
        "aim": matter.aim.name(),
        "isUnwelcome": matter.is_unwelcome,
        "person": matter.person.map(Person::name),
        "circumstances": matter.aspects,
        "options": matter.options,
        "secondTopic": matter.second.as_ref().map(|(topic, _)| topic.name()),
        "line": {
            "用神": significator.nature().kin.name(),
            "branch": significator.nature().branch.name(),
            "position": significator.line.position,
            "isHidden": significator.hidden.is_some(),
            "strength": assessment.weight.map(Weight::name),
            "元神": source,
            "忌神": harm,
            "仇神": rival,
        },
        "evidence": evidence.collect::<Vec<_>>(),
        "outlook": assessment.outlook.name(),
        "days": assessment.timings.iter().map(|timing| said(scene.time(*timing))).collect::<Vec<_>>(),
    })
}
