//! The casting about a missing person: the tradition of the line that stands for them, without verdict, time or place.
//!
//! It follows the service's words about the police. A person is never read as a lost object, so 妻财 is not used.

use super::{ChartFacts, LineFacts, Reading, topic::Person};
use crate::types::Locale;

/// The line that stands for the person: a kin, or the line of the other side (应).
#[derive(Clone, Copy)]
enum PersonLine {
    Kin(&'static str),
    Other,
}

/// Returns the paragraph; empty if no hexagram is known.
pub(super) fn paragraph(reading: &Reading, question: &str) -> String {
    let (Some(primary), Some(chart)) = (&reading.facts.primary, &reading.chart) else { return String::new() };
    let person = Person::named_in(question);
    match reading.locale {
        Locale::Chinese => {
            let name = &primary.chinese_full_name;
            format!(
                "至于卦：得{name}。按传统，寻人看人不看物，{}。这只是传统的读法，说不出人在哪里，也说不出人是否平安；\
                 请以报警和寻找为先。",
                chinese(chart, person)
            )
        }
        Locale::English => {
            let name = &primary.english_name;
            format!(
                "As to the casting: it is hexagram {}, {name}. {}. This is only how the tradition reads it. It cannot tell \
                 where somebody is or whether they are safe; the police and the search come first.",
                primary.number,
                english(chart, person)
            )
        }
    }
}

impl PersonLine {
    fn of(person: Option<Person>) -> Self {
        match person {
            Some(Person::Parent) => Self::Kin("父母"),
            Some(Person::Child | Person::Animal) => Self::Kin("子孙"),
            Some(Person::Sibling) => Self::Kin("兄弟"),
            Some(Person::Man) => Self::Kin("官鬼"),
            Some(Person::Woman) | None => Self::Other,
        }
    }

    fn find(self, chart: &ChartFacts) -> Option<&LineFacts> {
        chart.lines.iter().find(|line| match self {
            Self::Kin(kin) => line.nature.kin == kin,
            Self::Other => line.role == Some("应"),
        })
    }
}

fn chinese(chart: &ChartFacts, person: Option<Person>) -> String {
    let line = PersonLine::of(person);
    let subject = match line {
        PersonLine::Kin(kin) => format!("这里以「{kin}」一爻代表此人"),
        PersonLine::Other => "这里以应爻代表此人".to_owned(),
    };
    let Some(found) = line.find(chart) else { return format!("{subject}，它没有显现在卦中") };
    let place = ["初爻", "二爻", "三爻", "四爻", "五爻", "上爻"].get(usize::from(found.position) - 1).unwrap_or(&"");
    let movement = if found.becomes.is_some() { "动" } else { "静" };
    format!("{subject}，它在{place}，临{}，是{movement}爻", found.nature.branch.name())
}

fn english(chart: &ChartFacts, person: Option<Person>) -> String {
    let line = PersonLine::of(person);
    let name = match line {
        PersonLine::Kin("父母") => "the line of Parents",
        PersonLine::Kin("子孙") => "the line of Offspring",
        PersonLine::Kin("兄弟") => "the line of Siblings",
        PersonLine::Kin(_) => "the line of Officials",
        PersonLine::Other => "the line of the other side",
    };
    let subject = format!("By tradition a person is read as a person and not as a thing, here by {name}");
    let Some(found) = line.find(chart) else { return format!("{subject}, which does not appear in it") };
    let movement = if found.becomes.is_some() { "changes" } else { "rests" };
    format!("{subject}, which is line {} from the bottom and {movement}", found.position)
}
