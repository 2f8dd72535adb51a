//! Prints the chart of six lines, at a time if one is given: `cast 788976 2026-01-15T23:30:00+08:00`.

use std::{
    error::Error,
    io::{Write, stdout},
};

use jiff::{Timestamp, tz};
use liuyao::{
    LocalTime,
    chart::{CalendarMoment, Chart, DayStart, MissingMoment},
    hexagram::Cast,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let lines = arguments.next().ok_or("the six lines are missing, such as 788976")?;
    let moment = match arguments.next() {
        Some(time) => {
            let at = time.parse::<Timestamp>()?.as_millisecond();
            let local = LocalTime::at(at, &tz::TimeZone::get("Asia/Shanghai")?);
            local.and_then(|local| CalendarMoment::new(local, DayStart::At23)).ok_or(MissingMoment::OutOfRange)
        }
        None => Err(MissingMoment::Unknown),
    };
    let chart = Chart::new(&Cast::from_lines(lines.parse()?), moment);
    for line in chart.lines.iter().rev() {
        let (kin, branch) = (line.nature.kin.name(), line.nature.branch.name());
        let becomes = line.becomes.map(|line| format!(" → {}{}", line.nature.kin.name(), line.nature.branch.name()));
        writeln!(stdout(), "{} {kin}{branch}{}", line.value, becomes.unwrap_or_default())?;
    }
    Ok(())
}
