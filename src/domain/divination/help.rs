//! Help in place of a verdict, for questions on which no oracle may give one.
//!
//! The texts are templates that an operator may override. Their numbers follow the region of the asker, the words the
//! script of the question. Nothing is stored about the class of a question; answers are counted by class alone.

use std::{path::Path, sync::LazyLock};

use serde::Deserialize;

use liuyao::interpreter::Written;

use crate::{
    config::Config,
    core::Core,
    domain::{
        identity::{preferences, users},
        moderation::risk::{Risk, RiskClass, Script, is_pinyin, script_of},
    },
    error::Result,
    metrics::Counter,
    providers::llm::ServiceAnswer,
    templates::{self, Template, TemplateSpec},
    types::{ChineseScript, LanguageTag, Locale, UserId},
};

const SETTING: &str = "help.template_dir";
const NUMBERS: &str = include_str!("../../../assets/help/numbers.toml");
/// The variables of all texts.
const VARIABLES: &[&str] = &["emergency", "ambulance", "police", "line", "support"];
/// Regions that write in traditional characters.
const TRADITIONAL: [&str; 3] = ["HK", "MO", "TW"];
const CLASSES: usize = RiskClass::ALL.len();
const LANGUAGES: usize = 3;

/// Declares the texts of the classes, each in three languages.
macro_rules! specs {
    ($($class:literal),*) => {
        [$(
            spec(concat!($class, ".zh-hans.txt"), include_str!(concat!("../../../assets/help/", $class, ".zh-hans.txt"))),
            spec(concat!($class, ".zh-hant.txt"), include_str!(concat!("../../../assets/help/", $class, ".zh-hant.txt"))),
            spec(concat!($class, ".en.txt"), include_str!(concat!("../../../assets/help/", $class, ".en.txt"))),
        )*]
    };
}

/// In the order of the classes.
static SPECS: [TemplateSpec; CLASSES * LANGUAGES] =
    specs!["emergency", "self_harm", "minor", "violence", "missing_person", "stopping_medicine", "crime", "gambling"];

const fn spec(name: &'static str, text: &'static str) -> TemplateSpec {
    TemplateSpec { name, text, required: &[], optional: VARIABLES, fault: |_| None }
}

/// The numbers of a region. Each value is in simplified Chinese, traditional Chinese and English.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    /// Region codes of phone numbers and locales.
    codes: Vec<String>,
    /// Prefixes of IANA time zones.
    zones: Vec<String>,
    emergency: [String; LANGUAGES],
    ambulance: [String; LANGUAGES],
    police: [String; LANGUAGES],
    line: [String; LANGUAGES],
    support: [String; LANGUAGES],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NumbersFile {
    region: Vec<Numbers>,
}

/// The help texts in use, and how often each class was answered.
pub struct HelpTexts {
    templates: [Template; CLASSES * LANGUAGES],
    regions: Vec<Numbers>,
    answers: [Counter; CLASSES],
}

/// The facts about an asker that choose words and numbers.
#[derive(Clone, Debug, Default)]
pub struct Asker {
    /// The code of the region of the phone number, or else of the locale.
    pub region: Option<String>,
    pub time_zone: Option<String>,
    pub locale: Option<Locale>,
    pub prefers_traditional: bool,
    /// The script that the preferences or the language tag name.
    pub script: Option<ChineseScript>,
}

/// The place where a question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelpOccasion {
    Interpretation,
    Chat,
}

/// The answer of the service to a question that needs help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpAnswer {
    pub class: RiskClass,
    pub text: String,
    pub written: Written,
    /// True if no model may add anything.
    pub is_whole: bool,
}

impl HelpAnswer {
    /// Returns the answer in the form in which a model request carries it.
    pub fn into_service_answer(self) -> ServiceAnswer {
        ServiceAnswer { text: self.text, is_whole: self.is_whole }
    }
}

impl HelpTexts {
    /// Reads the templates of `help.template_dir`; those that it does not have are built in.
    ///
    /// # Errors
    /// All faults of the files, each beginning with the name of the setting.
    pub fn load(config: &Config) -> Result<Self, Vec<String>> {
        Self::read(config.help.template_dir.as_ref().map(|directory| directory.0.as_path()))
    }

    fn read(directory: Option<&Path>) -> Result<Self, Vec<String>> {
        let templates = templates::load(SETTING, directory, &SPECS)?;
        let numbers: NumbersFile = toml::from_str(NUMBERS).map_err(|error| vec![format!("numbers.toml: {error}")])?;
        Ok(Self { templates, regions: numbers.region, answers: Default::default() })
    }

    /// Returns the files that override texts.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.templates.iter().filter_map(|template| template.file.as_deref())
    }

    /// Returns how often each class was answered since the start.
    pub fn counts(&self) -> impl Iterator<Item = (RiskClass, u64)> {
        RiskClass::ALL.into_iter().zip(&self.answers).map(|(class, count)| (class, count.get()))
    }

    /// Counts an answer.
    pub fn count(&self, class: RiskClass) {
        self.answers[class as usize].add(1);
    }

    /// Returns the answer to a question of this risk.
    pub fn answer(&self, risk: Risk, question: &str, asker: &Asker, occasion: HelpOccasion) -> HelpAnswer {
        let language = asker.language_of(question);
        let numbers = self.numbers(asker);
        let text = |class: RiskClass| {
            let template = &self.templates[class as usize * LANGUAGES + language as usize];
            numbers.map_or_else(|| template.text().to_owned(), |numbers| numbers.fill(template, language))
        };
        let text = if risk.is_self_inflicted {
            [text(risk.class), text(RiskClass::SelfHarm)].join("\n\n")
        } else {
            text(risk.class)
        };
        HelpAnswer { class: risk.class, text, written: language, is_whole: is_answered_alone(risk.class, occasion) }
    }

    /// Returns the numbers of the first region that is known; those of no region if none is.
    fn numbers(&self, asker: &Asker) -> Option<&Numbers> {
        let by_code = |code: &String| self.regions.iter().find(|region| region.codes.contains(code));
        let by_zone = |zone: &String| {
            let is_in = |prefix: &String| if prefix.ends_with('/') { zone.starts_with(prefix) } else { zone == prefix };
            self.regions.iter().find(|region| region.zones.iter().any(is_in))
        };
        // A known region decides also if it has no numbers here.
        let found = match &asker.region {
            Some(code) => by_code(code),
            None => asker.time_zone.as_ref().and_then(by_zone),
        };
        found.or_else(|| self.regions.last())
    }
}

impl Numbers {
    fn fill(&self, template: &Template, language: Written) -> String {
        let values = [&self.emergency, &self.ambulance, &self.police, &self.line, &self.support]
            .map(|words| &words[language as usize]);
        let named: Vec<(&str, &str)> = VARIABLES.iter().copied().zip(values.map(String::as_str)).collect();
        template.fill(&named)
    }
}

impl Asker {
    /// Returns what the service knows about a user who asks. `locale` is the language of a user who prefers none.
    pub fn find(core: &Core, user: UserId, tag: LanguageTag, locale: Locale) -> Result<Self> {
        core.store.read(|tx| {
            let phone = users::find_in(tx, user)?.phone_number;
            let of_phone = phone.and_then(|number| number.region(&core.phone_rules));
            let region = of_phone.map(|region| region.to_string()).or_else(|| tag.region_code());
            let writes_traditional = region.as_deref().is_some_and(|region| TRADITIONAL.contains(&region));
            let preferences = preferences::find_in(tx, user)?;
            let script = preferences.script.or(tag.is_traditional.then_some(ChineseScript::Traditional));
            Ok(Self {
                time_zone: preferences.time_zone.map(|zone| zone.to_string()),
                locale: Some(preferences.locale.unwrap_or(locale)),
                prefers_traditional: script.map_or(writes_traditional, |script| script == ChineseScript::Traditional),
                script,
                region,
            })
        })
    }

    /// Returns the language and script of a reading in a language: the preferred script, else that of the question, else
    /// that of the asker's region.
    pub fn written(&self, question: &str, locale: Locale) -> Written {
        match (locale, self.script, script_of(question)) {
            (Locale::English, ..) => Written::English,
            (_, Some(ChineseScript::Traditional), _) | (_, None, Script::Traditional) => Written::Traditional,
            (_, Some(ChineseScript::Simplified), _) | (_, None, Script::Simplified) => Written::Simplified,
            _ if self.prefers_traditional => Written::Traditional,
            _ => Written::Simplified,
        }
    }

    /// Returns the language of a question. Latin letters are English unless they are pinyin of a Chinese reader, whose
    /// language is also that of digits and signs.
    pub(super) fn language_of(&self, question: &str) -> Written {
        let preferred = if self.prefers_traditional { Written::Traditional } else { Written::Simplified };
        match script_of(question) {
            Script::Simplified => Written::Simplified,
            Script::Traditional => Written::Traditional,
            Script::SharedHan => preferred,
            Script::NoHan
                if self.locale != Some(Locale::English)
                    && (is_pinyin(question) || !question.contains(char::is_alphabetic)) =>
            {
                preferred
            }
            Script::NoHan => Written::English,
        }
    }
}

/// Returns the answer to a question in the built-in words for no known region.
pub fn general_answer(risk: Risk, question: &str) -> String {
    static BUILT_IN: LazyLock<Option<HelpTexts>> = LazyLock::new(|| HelpTexts::read(None).ok());
    let answer = |texts: &HelpTexts| texts.answer(risk, question, &Asker::default(), HelpOccasion::Interpretation).text;
    BUILT_IN.as_ref().map(answer).unwrap_or_default()
}

/// Adds the rule about a class to the instructions of a model.
pub fn with_rule(instructions: String, help: Option<&HelpAnswer>, locale: Locale) -> String {
    let Some(help) = help else { return instructions };
    let class = help.class.name();
    let rule = match (help.class, locale) {
        (RiskClass::Gambling, Locale::Chinese) => "不给出任何有利的判断，不谈输赢与时机，不鼓励下注或借钱。",
        (RiskClass::Gambling, Locale::English) => {
            "Give no favourable verdict, say nothing of winning or timing, and encourage neither a bet nor a loan."
        }
        (RiskClass::MissingPerson, Locale::Chinese) => {
            "请对方先报警、先寻找。卦象只作传统说法，按关系取用神，把人当人看，不当失物看；不断生死，不给时间与方位，不说“慢慢找”。"
        }
        (RiskClass::MissingPerson, Locale::English) => {
            "The police and the search come first. Treat the casting as a tradition about a person, never as a lost \
             object. Say nothing of life or death, of a time or a place, and never that there is no hurry."
        }
        (RiskClass::StoppingMedicine, Locale::Chinese) => {
            "不建议停药、减药或换药，也不作任何判断；请对方去问开药的医生或药师。"
        }
        (RiskClass::StoppingMedicine, Locale::English) => {
            "Never advise to stop, cut or replace a treatment and give no verdict on it: refer to the doctor or pharmacist."
        }
        (_, Locale::Chinese) => "不作判断，不谈卦象、吉凶与时机，不说教；话要短而温和，请对方现在就联系一个可信的人。",
        (_, Locale::English) => {
            "Give no verdict, no timing and no talk of hexagrams, and do not preach. Be brief and warm, and invite them to \
             reach a person they trust now."
        }
    };
    match locale {
        Locale::Chinese => format!(
            "{instructions}\n\n本次提问属于需要求助的一类（{class}）。服务器已在你的回答之前给出了求助的话和电话，不要重复。{rule}"
        ),
        Locale::English => format!(
            "{instructions}\n\nThis question is of a class that needs help ({class}). The server has put words of help and \
             telephone numbers before your answer; do not repeat them. {rule}"
        ),
    }
}

/// Returns true if the service answers alone. Otherwise a model goes on after its words.
pub const fn is_answered_alone(class: RiskClass, occasion: HelpOccasion) -> bool {
    match occasion {
        HelpOccasion::Interpretation => !matches!(class, RiskClass::Gambling | RiskClass::MissingPerson),
        HelpOccasion::Chat => matches!(class, RiskClass::Emergency | RiskClass::Crime | RiskClass::Minor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> HelpTexts {
        HelpTexts::read(None).unwrap()
    }

    fn asker(region: &str) -> Asker {
        Asker { region: Some(region.to_owned()), ..Asker::default() }
    }

    fn answer(class: RiskClass, question: &str, asker: &Asker) -> String {
        let risk = Risk { class, is_self_inflicted: false };
        texts().answer(risk, question, asker, HelpOccasion::Interpretation).text
    }

    #[test]
    fn each_class_has_its_texts_in_three_languages() {
        for (class, specs) in RiskClass::ALL.into_iter().zip(SPECS.chunks(LANGUAGES)) {
            for (spec, language) in specs.iter().zip(["zh-hans", "zh-hant", "en"]) {
                assert_eq!(spec.name, format!("{}.{language}.txt", class.name()));
            }
        }
    }

    #[test]
    fn no_text_has_a_verdict_a_time_or_an_open_variable() {
        for class in RiskClass::ALL {
            for region in ["CN", "HK", "TW", "US", "GB", "DE", "AU", "JP"] {
                for question in ["我们", "我們", "us"] {
                    let text = answer(class, question, &asker(region));
                    for word in ["{", "应期", "應期", "吉", "凶", "用神", "爻", "hexagram is", "verdict"] {
                        assert!(!text.contains(word), "{}: {word}: {text}", class.name());
                    }
                }
            }
        }
    }

    #[test]
    fn the_gravest_questions_are_answered_alone() {
        for (class, in_reading, in_chat) in [
            (RiskClass::Emergency, true, true),
            (RiskClass::SelfHarm, true, false),
            (RiskClass::Minor, true, true),
            (RiskClass::Violence, true, false),
            (RiskClass::MissingPerson, false, false),
            (RiskClass::StoppingMedicine, true, false),
            (RiskClass::Crime, true, true),
            (RiskClass::Gambling, false, false),
        ] {
            let alone = [HelpOccasion::Interpretation, HelpOccasion::Chat].map(|at| is_answered_alone(class, at));
            assert_eq!(alone, [in_reading, in_chat], "{}", class.name());
        }
    }

    #[test]
    fn an_act_that_has_begun_gets_the_emergency_number_first() {
        let risk = Risk { class: RiskClass::Emergency, is_self_inflicted: true };
        let answer = texts().answer(risk, "我吞了一瓶安眠药", &asker("CN"), HelpOccasion::Chat);
        let (first, rest) = answer.text.split_once('\n').unwrap();
        assert!(first.contains("120") && rest.contains("12356"), "{}", answer.text);
    }

    #[test]
    fn region_decides_the_numbers_and_the_question_the_script() {
        let zone = |zone: &str| Asker { time_zone: Some(zone.to_owned()), ..Asker::default() };
        for (asker, number) in [
            (asker("CA"), "988"),
            (asker("TW"), "1925"),
            (asker("JP"), "findahelpline.com"),
            (zone("America/New_York"), "988"),
            (zone("Australia/Perth"), "13 11 14"),
            (zone("America/Mexico_City"), "findahelpline.com"),
            (Asker { time_zone: Some("Europe/London".to_owned()), ..asker("FR") }, "116 123, where it exists"),
        ] {
            let text = answer(RiskClass::SelfHarm, "I want to die", &asker);
            assert!(text.contains(number), "{number}: {text}");
        }
        let traditional = Asker { prefers_traditional: true, ..Asker::default() };
        for (question, asker, beginning) in [
            ("我想輕生", &Asker::default(), "謝謝你願意"),
            ("我们不想活了", &traditional, "谢谢你愿意"),
            ("不想活了", &traditional, "謝謝你願意"),
            ("不想活了", &Asker::default(), "谢谢你愿意"),
            ("wo xiang zisha", &Asker::default(), "谢谢你愿意"),
            ("kms", &Asker::default(), "Thank you"),
        ] {
            let text = answer(RiskClass::SelfHarm, question, asker);
            assert!(text.starts_with(beginning), "{question}: {text}");
        }
    }
}
