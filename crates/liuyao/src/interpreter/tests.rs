use super::*;
use crate::{
    Branch, StemBranch,
    chart::{CalendarMoment, DayStart},
    hexagram::Cast,
};

/// Returns a reading of six lines in a month, on a day.
pub(super) fn at(month: &str, day: &str, lines: &str, question: &str) -> Reading {
    let [month, day] = [Branch::from_name(month), StemBranch::from_name(day).map(StemBranch::branch)];
    let _ = day;
    reading(month, lines, question)
}

fn reading(_: Option<Branch>, lines: &str, question: &str) -> Reading {
    let cast = Cast::from_lines(lines.parse().unwrap());
    Reading {
        written: Written::Simplified,
        question_type: None,
        question: question.to_owned(),
        asker: None,
        facts: Facts::from_cast(cast),
        method: Some("three_coins"),
        chart: Some(Chart::new(&cast, Err(crate::chart::MissingMoment::Unknown))),
        is_about_missing_person: false,
    }
}

fn dated(month: &str, day: &str, lines: &str, question: &str) -> Reading {
    let zone = jiff::tz::TimeZone::get("Asia/Shanghai").unwrap();
    let (month, day) = (Branch::from_name(month).unwrap(), StemBranch::from_name(day).unwrap());
    let noon = CalendarMoment::latest_noon(month, day, jiff::civil::date(2026, 1, 1), &zone).unwrap();
    let moment = CalendarMoment::new(noon, DayStart::At23).unwrap();
    assert_eq!((moment.pillars.month.branch(), moment.pillars.day), (month, day));
    let cast = Cast::from_lines(lines.parse().unwrap());
    Reading { chart: Some(Chart::new(&cast, Ok(moment))), ..reading(None, lines, question) }
}

#[test]
fn classical_cases_agree() {
    let (mut agree, mut opposite) = (0, 0);
    for row in include_str!("../../tests/classical-cases.tsv").lines().skip(1) {
        let [month, day, lines, question, outcome] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let reading = dated(month, day, lines, question);
        let matter = Matter::of(&reading);
        let assessment = assess(reading.chart.as_ref().unwrap(), &matter, true).unwrap();
        let expected = Outlook::from_name(outcome).unwrap();
        match assessment.outlook {
            found if found == expected => agree += 1,
            Outlook::Mixed => {}
            _ => opposite += 1,
        }
        println!("{} {month}月{day} {lines} {question} {outcome} -> {} ({}) {:?} 用{}{} {}", if assessment.outlook == expected { "OK " } else if assessment.outlook == Outlook::Mixed { "mix" } else { "OPP" },
            assessment.outlook.name(), assessment.score(), matter.topic, assessment.significator.nature().kin.name(), assessment.significator.nature().branch.name(),
            assessment.evidence.iter().map(|e| format!("{}{:+}@{}", e.reason.name(), e.weight, e.position.unwrap_or(0))).collect::<Vec<_>>().join(" "));
        if std::env::var("LINES").is_ok() {
            for line in reading.chart.as_ref().unwrap().lines.iter().rev() {
                println!("     {} {}{}{}{} {}", line.position, line.nature.kin.name(), line.nature.branch.name(), line.role.map_or("", |r| r.name()), line.state.map_or(String::new(), |s| format!(" {}{}{}{}", s.strength.name(), s.day_effect.name(), if s.void {"空"} else {""}, if s.month_break {"破"} else {""})) + line.clash_effect.map_or("", |c| c.name()), line.becomes.map_or(String::new(), |b| format!("-> {}{} {}{}", b.nature.kin.name(), b.nature.branch.name(), b.relation.name(), b.progress.map_or("", |p| p.name()))));
            }
        }
    }
    println!("agree {agree} opposite {opposite}");
    assert!(agree >= 20 && opposite <= 2, "{agree} agree, {opposite} opposite");
}
