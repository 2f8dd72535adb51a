//! Reads questions offline: `read < questions.tsv`, a row for each with language (`s`, `t` or `e`), lines and question,
//! separated by tabs, and optionally a time such as `2026-01-15T23:30:00+08:00`.

use std::{
    error::Error,
    io::{Write, stdin, stdout},
};

use jiff::{Timestamp, tz::TimeZone};
use liuyao::{
    LocalTime,
    chart::{CalendarMoment, Chart, DayStart, MissingMoment},
    hexagram::{Cast, Facts},
    interpreter::{Reading, View, Written, interpret},
};

fn main() -> Result<(), Box<dyn Error>> {
    let zone = TimeZone::get("Asia/Shanghai")?;
    for row in stdin().lines() {
        let row = row?;
        let mut cells = row.split('\t');
        let mut cell = || cells.next().ok_or("a row has language, lines and question");
        let written = match cell()? {
            "t" => Written::Traditional,
            "e" => Written::English,
            _ => Written::Simplified,
        };
        let cast = Cast::from_lines(cell()?.parse()?);
        let question = cell()?.to_owned();
        let moment = match cells.next() {
            Some(time) => LocalTime::at(time.parse::<Timestamp>()?.as_millisecond(), &zone)
                .and_then(|local| CalendarMoment::new(local, DayStart::At23))
                .ok_or(MissingMoment::OutOfRange),
            None => Err(MissingMoment::Unknown),
        };
        let reading = Reading {
            written,
            question_type: None,
            asker: None,
            facts: Facts::from_cast(cast),
            method: Some("three_coins"),
            chart: Some(Chart::new(&cast, moment)),
            view: View::default(),
            is_about_missing_person: false,
            question,
        };
        writeln!(stdout(), "## {} ({})\n\n{}\n", reading.question, cast.lines(), interpret(&reading))?;
    }
    Ok(())
}
