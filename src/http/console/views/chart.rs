//! Charts: an image that the server draws, replaced by uPlot if JavaScript runs, and a table with the same values.

use std::{borrow::Cow, fmt::Write as _};

use maud::{Markup, html};

use super::{context::ViewContext, format, texts::Text};
use crate::types::{Currency, MicroAmount};

/// The unit of a chart's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Count,
    /// Values in hundredths of the currency.
    Money(Currency),
    /// Values in millionths of the currency of the models' price list.
    Cost,
    /// Values in microseconds.
    Duration,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Money(Currency::CNY) => "money",
            // Without a sign: the series name the currency.
            Self::Money(_) => "amount",
            Self::Cost => "cost",
            Self::Duration => "duration",
        }
    }

    fn text(self, value: i64) -> String {
        match self {
            Self::Count => format::number(value),
            Self::Money(currency) => format::ShownMoney(value, currency).text(),
            Self::Cost => MicroAmount::from_stored(value).to_string(),
            Self::Duration => format::duration(value),
        }
    }
}

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    /// One value per label; `None` where nothing was measured.
    pub values: Vec<Option<i64>>,
}

/// A chart over days or other labels.
#[derive(Clone, Debug)]
pub struct FigureChart<'a> {
    pub id: Cow<'a, str>,
    /// The quantity, without its periods.
    pub title: Text,
    pub unit: Unit,
    /// The header of the table's first column. Days, weeks and months are named in the title, too.
    pub label: Text,
    pub labels: Vec<String>,
    pub series: Vec<Series>,
    pub has_bars: bool,
}

const WIDTH: i64 = 600;
const HEIGHT: i64 = 180;

/// Renders a chart with its table.
pub fn chart(cx: &ViewContext, chart: &FigureChart<'_>) -> Markup {
    let is_blank = is_blank(chart);
    let title = title(cx, chart);
    html! {
        figure.chart id=(chart.id) data-chart=[(!is_blank).then(|| json(chart))] {
            figcaption {
                h2 { (title) }
                @if !is_blank { ul.legend { @for (index, series) in chart.series.iter().enumerate() {
                    li { span.key.{ "s" (index + 1) } {} (series.name) }
                } } }
            }
            @if is_blank { p.empty { (cx.t(Text::NoValues)) } }
            @else { div.plot role="img" aria-label={ (title) ": " (summary(chart)) } { (picture(chart)) } }
            details.data {
                summary { (cx.t(Text::ShowTable)) }
                div.table-box.dense tabindex="0" role="group" aria-label=(title) { table {
                    caption.sr { (title) }
                    thead { tr { th scope="col" { (cx.t(chart.label)) } @for series in &chart.series { th.num scope="col" { (series.name) } } } }
                    tbody { @for (index, label) in chart.labels.iter().enumerate().rev() { tr {
                        th scope="row" { (label) }
                        @for series in &chart.series {
                            td.num { @match series.values.get(index).copied().flatten() { Some(value) => (chart.unit.text(value)), None => "–" } }
                        }
                    } } }
                } }
            }
        }
    }
}

/// Returns the title with the length of the periods, because long ranges have sums of weeks or months.
fn title(cx: &ViewContext, chart: &FigureChart<'_>) -> String {
    let periods = match chart.label {
        Text::Day => cx.t(Text::ByDay),
        Text::Week => cx.t(Text::ByWeek),
        Text::Month => cx.t(Text::ByMonth),
        _ => "",
    };
    format!("{}{periods}", cx.t(chart.title))
}

/// Returns true if there is nothing to draw.
fn is_blank(chart: &FigureChart<'_>) -> bool {
    chart.series.iter().flat_map(|series| &series.values).all(|value| value.unwrap_or(0) == 0)
}

fn summary(chart: &FigureChart<'_>) -> String {
    let parts = chart.series.iter().filter_map(|series| {
        let values = || series.values.iter().flatten().copied();
        let (low, high, last) = (values().min()?, values().max()?, values().next_back()?);
        Some(format!(
            "{} {} – {}, → {}",
            series.name,
            chart.unit.text(low),
            chart.unit.text(high),
            chart.unit.text(last)
        ))
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// Returns the values as JSON for the script.
fn json(chart: &FigureChart<'_>) -> String {
    let mut out = String::from("{\"unit\":\"");
    let _ = write!(out, "{}\",\"bars\":{},\"labels\":[", chart.unit.name(), chart.has_bars);
    let quoted: Vec<_> = chart.labels.iter().map(|label| json_string(label)).collect();
    out.push_str(&quoted.join(","));
    out.push_str("],\"series\":[");
    for (index, series) in chart.series.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let values: Vec<_> =
            series.values.iter().map(|value| value.map_or("null".to_owned(), |value| value.to_string())).collect();
        let _ = write!(out, "{{\"name\":{},\"values\":[{}]}}", json_string(&series.name), values.join(","));
    }
    out.push_str("]}");
    out
}

fn json_string(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            character if character < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            character => out.push(character),
        }
    }
    out.push('"');
    out
}

fn picture(chart: &FigureChart<'_>) -> Markup {
    let all = || chart.series.iter().flat_map(|series| series.values.iter().flatten().copied());
    let high = all().max().unwrap_or(1).max(1);
    let count = i64::try_from(chart.labels.len()).unwrap_or(1).max(2);
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            @for line in 1..4 { path.rule d={ "M0 " (HEIGHT * line / 4) "H" (WIDTH) } {} }
            @for (index, series) in chart.series.iter().enumerate() {
                path.{ "s" (index + 1) } d=(line(&series.values, count, high, WIDTH, HEIGHT)) {}
            }
        }
    }
}

/// Renders a small line without axes.
pub fn sparkline(values: &[i64]) -> Markup {
    let high = values.iter().copied().max().unwrap_or(1).max(1);
    let count = i64::try_from(values.len()).unwrap_or(2).max(2);
    let values: Vec<_> = values.iter().copied().map(Some).collect();
    html! {
        svg.spark viewBox="0 0 120 32" preserveAspectRatio="none" focusable="false" { path d=(line(&values, count, high, 120, 32)) {} }
    }
}

fn line(values: &[Option<i64>], count: i64, high: i64, width: i64, height: i64) -> String {
    let mut path = String::new();
    let mut is_drawing = false;
    for (index, value) in values.iter().enumerate() {
        let Some(value) = value else {
            is_drawing = false;
            continue;
        };
        let x = i64::try_from(index).unwrap_or(0) * width / (count - 1);
        let y = height - 4 - (height - 8) * value / high;
        let _ = write!(path, "{}{x} {y}", if is_drawing { 'L' } else { 'M' });
        is_drawing = true;
    }
    path
}
