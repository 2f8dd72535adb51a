//! Growth and revenue: charts over days, and retention by weeks.

use maud::{Markup, html};

use crate::{
    http::console::views::{
        chart::{FigureChart, chart},
        context::{ViewContext, href},
        format::{self, ShownMoney, with_query},
        forms::{Control, Field},
        layout::{self, PageBody, Place},
        lists::{self, Filters},
        parts::{self, GrowthTone, Stat, panel, stats},
        texts::{self, Text},
    },
    types::Currency,
};

/// The range of days, as typed.
#[derive(Clone, Debug, Default)]
pub struct Range {
    pub from: String,
    pub to: String,
    /// 7, 30, 90, 365, or none for typed days.
    pub days: Option<u32>,
    pub error: Option<String>,
}

/// A sum over the range, beside the sum of the range before.
#[derive(Clone, Debug)]
pub struct Sum {
    pub name: Text,
    pub value: i64,
    pub before: i64,
    /// Set for money, which is in hundredths.
    pub currency: Option<Currency>,
    pub tone: GrowthTone,
}

/// A week of registrations, with the share that came back in each later week.
#[derive(Clone, Debug)]
pub struct Cohort {
    pub week: String,
    pub users: i64,
    /// Tenths of a percent.
    pub kept: Vec<i64>,
}

/// The money of a channel or app store in one currency.
#[derive(Clone, Debug)]
pub struct ChannelMoney {
    pub channel: String,
    pub revenue: ShownMoney,
    pub refunds: ShownMoney,
}

/// A page of figures.
#[derive(Clone, Debug)]
pub struct Figures<'a> {
    pub range: Range,
    pub sums: Vec<Sum>,
    pub charts: Vec<FigureChart<'a>>,
    /// The steps from a request for a code to a new user, only on the growth page.
    pub funnel: Vec<(Text, i64)>,
    /// Only on the growth page; empty without figures of active users.
    pub cohorts: Vec<Cohort>,
    /// Only on the revenue page.
    pub money: Vec<ChannelMoney>,
    /// The last day that the figures contain.
    pub through: String,
}

/// Renders the growth page.
pub fn growth(cx: &ViewContext, figures: &Figures<'_>) -> Markup {
    render(cx, figures, Place::Growth)
}

/// Renders the revenue page.
pub fn revenue(cx: &ViewContext, figures: &Figures<'_>) -> Markup {
    render(cx, figures, Place::Revenue)
}

/// Returns the filter of a range of days.
pub(super) fn range<'a>(cx: &ViewContext, path: &str, range: &'a Range) -> Filters<'a> {
    let preset = |text, days: u32| {
        let days_text = days.to_string();
        (cx.t(text).to_owned(), with_query(&href(path), &[("days", &days_text)]), range.days == Some(days))
    };
    Filters {
        action: href(path),
        fields: vec![
            Field::new("from", Text::From, Control::Date, &range.from).error(range.error.as_deref()),
            Field::new("to", Text::To, Control::Date, &range.to),
        ],
        presets: vec![
            preset(Text::Last7Days, 7),
            preset(Text::Last30Days, 30),
            preset(Text::Last90Days, 90),
            preset(Text::LastYear, 365),
        ],
        region: "figures",
    }
}

/// Returns the address of the CSV file of a range.
pub(super) fn export(place: Place, range: &Range) -> String {
    with_query(&href(&format!("{}.csv", place.path())), &[("from", &range.from), ("to", &range.to)])
}

fn render(cx: &ViewContext, figures: &Figures<'_>, place: Place) -> Markup {
    let sums: Vec<_> = figures
        .sums
        .iter()
        .map(|sum| Stat {
            name: sum.name,
            value: format::figure(sum.value, sum.currency),
            detail: parts::trend(cx, sum.tone, sum.before, sum.value),
            href: None,
            line: &[],
        })
        .collect();
    let title = cx.t(place.title());
    let csv = export(place, &figures.range);
    let body = html! {
        (layout::heading(title, None, &html! { a.button href=(csv) download { (cx.t(Text::ExportCsv)) } }))
        (lists::filters(cx, &range(cx, place.path(), &figures.range)))
        div.stack id="figures" {
            (stats(cx, &sums))
            div.columns.charts { @for one in &figures.charts { section.card { (chart(cx, one)) } } }
            @if !figures.funnel.is_empty() { (funnel(cx, &figures.funnel)) }
            @if !figures.cohorts.is_empty() { (retention(cx, &figures.cohorts)) }
            @if !figures.money.is_empty() { (money(cx, &figures.money)) }
            p.hint { (texts::figures_through(cx.language, &figures.through, &cx.zone.name)) }
        }
    };
    layout::page(cx, &PageBody::new(title, place, body).with_charts())
}

fn funnel(cx: &ViewContext, steps: &[(Text, i64)]) -> Markup {
    let high = steps.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    panel(
        "code-funnel",
        cx.t(Text::CodesFunnel),
        &html! {
            dl.bars { @for (name, count) in steps {
                div { dt { (cx.t(*name)) } dd { meter max=(high) value=(count) aria-label=(cx.t(*name)) {} span.num { (format::number(*count)) } } }
            } }
        },
    )
}

fn money(cx: &ViewContext, rows: &[ChannelMoney]) -> Markup {
    let columns = [
        lists::text(Text::Channel),
        lists::text(Text::Currency),
        lists::number(Text::Revenue),
        lists::number(Text::RefundedMoney),
    ];
    panel(
        "money-by-channel",
        cx.t(Text::MoneyByChannel),
        &lists::table(
            cx,
            Text::MoneyByChannel,
            &columns,
            rows.iter().map(|row| {
                vec![
                    html! { (texts::code(cx.language, &row.channel)) },
                    html! { (row.revenue.1) },
                    html! { (row.revenue.text()) },
                    html! { (row.refunds.text()) },
                ]
            }),
        ),
    )
}

fn retention(cx: &ViewContext, cohorts: &[Cohort]) -> Markup {
    let weeks = cohorts.iter().map(|cohort| cohort.kept.len()).max().unwrap_or(0);
    panel(
        "retention",
        cx.t(Text::Retention),
        &html! {
            p.hint { (cx.t(Text::RetentionHint)) }
            div.scroll tabindex="0" role="group" aria-label=(cx.t(Text::RetentionHint)) {
                table.heat {
                    caption.sr { (cx.t(Text::Retention)) }
                    thead { tr {
                        th scope="col" { (cx.t(Text::Week)) }
                        th.num scope="col" { (cx.t(Text::Users)) }
                        @for week in 1..=weeks { th.num scope="col" { "+" (week) } }
                    } }
                    tbody { @for cohort in cohorts { tr {
                        th scope="row" { (cohort.week) }
                        td.num { (format::number(cohort.users)) }
                        @for week in 0..weeks {
                            @match cohort.kept.get(week) {
                                Some(share) => { td.num.{ "h" ((share / 100).clamp(0, 9)) } { (share / 10) "%" } }
                                None => { td {} }
                            }
                        }
                    } } }
                }
            }
        },
    )
}
