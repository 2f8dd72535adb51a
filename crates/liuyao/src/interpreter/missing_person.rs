//! The casting about a missing person: the tradition of the line that stands for them, without verdict, time or place.
//!
//! It follows the service's words about the police. A person is never read as a lost object, so 妻财 is not used.

use super::{ChartFacts, HexagramDescription, LineFacts, MissingPerson, Reading, Written, topic::Person};

/// The line that stands for the person: a kin, or the line of the other side (应).
#[derive(Clone, Copy)]
enum PersonLine {
    Kin(&'static str),
    Other,
}

/// Returns the paragraph; empty if no hexagram is known.
pub(super) fn paragraph(reading: &Reading, missing: &MissingPerson) -> String {
    let (Some(primary), Some(chart)) = (&reading.facts.primary, &reading.chart) else { return String::new() };
    let line = PersonLine::of(Person::named_in(&missing.question));
    match missing.written {
        Written::Simplified => simplified(primary, line, line.find(chart)),
        Written::Traditional => traditional(primary, line, line.find(chart)),
        Written::English => english(primary, line, line.find(chart)),
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

/// Returns the name of a line in Chinese.
fn place(line: &LineFacts) -> &'static str {
    ["初爻", "二爻", "三爻", "四爻", "五爻", "上爻"].get(usize::from(line.position) - 1).copied().unwrap_or_default()
}

fn simplified(primary: &HexagramDescription, line: PersonLine, found: Option<&LineFacts>) -> String {
    let line = match line {
        PersonLine::Kin(kin) => format!("「{kin}」一爻"),
        PersonLine::Other => "应爻".to_owned(),
    };
    let seen = found.map_or_else(
        || "没有显现在卦中".to_owned(),
        |found| {
            let movement = if found.becomes.is_some() { "动" } else { "静" };
            format!("在{}，临{}，是{movement}爻", place(found), found.nature.branch.name())
        },
    );
    let name = &primary.chinese_full_name;
    format!(
        "至于卦：得{name}。按传统，寻人看人不看物，这里以{line}代表此人，它{seen}。这只是传统的读法，说不出人在哪里，\
         也说不出人是否平安；请以报警和寻找为先。"
    )
}

fn traditional(primary: &HexagramDescription, line: PersonLine, found: Option<&LineFacts>) -> String {
    let line = match line {
        PersonLine::Kin("子孙") => "「子孫」一爻".to_owned(),
        PersonLine::Kin(kin) => format!("「{kin}」一爻"),
        PersonLine::Other => "應爻".to_owned(),
    };
    let seen = found.map_or_else(
        || "沒有顯現在卦中".to_owned(),
        |found| {
            let movement = if found.becomes.is_some() { "動" } else { "靜" };
            format!("在{}，臨{}，是{movement}爻", place(found), found.nature.branch.name())
        },
    );
    let sign = &primary.sign;
    format!(
        "至於卦：得 {sign}（第 {} 卦）。按傳統，尋人看人不看物，這裡以{line}代表此人，它{seen}。這只是傳統的讀法，\
         說不出人在哪裡，也說不出人是否平安；請以報警和尋找為先。",
        primary.number
    )
}

fn english(primary: &HexagramDescription, line: PersonLine, found: Option<&LineFacts>) -> String {
    let line = match line {
        PersonLine::Kin("父母") => "the line of Parents",
        PersonLine::Kin("子孙") => "the line of Offspring",
        PersonLine::Kin("兄弟") => "the line of Siblings",
        PersonLine::Kin(_) => "the line of Officials",
        PersonLine::Other => "the line of the other side",
    };
    let seen = found.map_or_else(
        || "does not appear in it".to_owned(),
        |found| {
            let movement = if found.becomes.is_some() { "changes" } else { "rests" };
            format!("is line {} from the bottom and {movement}", found.position)
        },
    );
    format!(
        "As to the casting: it is hexagram {}, {}. By tradition a person is read as a person and not as a thing, here by \
         {line}, which {seen}. This is only how the tradition reads it. It cannot tell where somebody is or whether they \
         are safe; the police and the search come first.",
        primary.number, primary.english_name
    )
}
