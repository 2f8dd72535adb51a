//! The content of a session's card, in the words of one language.

use super::{Becomes, Card, ChartRow, Figure, Nature, Passage, PillarCell, Theme, Verse, render, words};
use crate::{
    domain::divination::{
        chart::{
            Branch, CalendarMoment, ChangedLine, Chart, ChartLine, LineNature, SelectedPart, SelectedText,
            TextSelection, chart_of,
        },
        hexagram::{Cast, Hexagram, LineClassic},
        sessions::Session,
    },
    types::Locale,
};

/// The language tag of Chinese text.
const CHINESE: &str = "zh-Hans";

/// The options of a card.
#[derive(Clone, Copy, Debug)]
pub struct CardOptions<'brand> {
    pub locale: Locale,
    pub theme: Theme,
    /// Show the question.
    pub with_question: bool,
    /// The name at the foot.
    pub brand: &'brand str,
}

impl CardOptions<'_> {
    /// Draws the card of a session as SVG.
    pub fn draw(&self, session: &Session) -> String {
        render(&self.card(session))
    }

    fn card(&self, session: &Session) -> Card {
        let locale = self.locale;
        let chart = chart_of(&session.cast, session.cast_time().as_ref());
        let (primary, relating) = (session.cast.primary(), session.cast.relating());
        let verses: Vec<_> =
            TextSelection::of(&session.cast).texts.into_iter().map(|text| verse(text, locale)).collect();
        let names: Vec<_> = [Some(primary), relating].into_iter().flatten().map(|one| name(one, locale)).collect();
        let title = names.join(" → ");
        Card {
            language: words::in_language(locale, CHINESE, "en"),
            theme: self.theme,
            description: description(&title, session.cast, &verses, locale),
            title,
            question: self.with_question.then(|| session.question.clone()),
            heading: heading(session, chart.moment.as_ref(), locale),
            primary: figure(
                primary,
                session.cast.lines().values(),
                words::in_language(locale, "本卦", "Primary"),
                locale,
            ),
            relating: relating.map(|relating| {
                let at_rest = relating.figure().map(|is_yang| if is_yang { 7 } else { 8 });
                figure(relating, at_rest, words::in_language(locale, "之卦", "Relating"), locale)
            }),
            pillars: chart.moment.as_ref().map(|moment| pillars(moment, locale)).unwrap_or_default(),
            palace: palace(&chart, locale),
            pattern: pattern(&chart, locale),
            rows: chart.lines.map(|line| row(&line, locale)),
            verses,
            footer: self.brand.to_owned(),
        }
    }
}

fn name(hexagram: Hexagram, locale: Locale) -> String {
    words::in_language(locale, hexagram.chinese_full_name(), hexagram.english_name()).to_owned()
}

fn figure(hexagram: Hexagram, lines: [u8; 6], label: &str, locale: Locale) -> Figure {
    let (number, pinyin) = (hexagram.number(), hexagram.pinyin());
    let note = match locale {
        Locale::Chinese => format!("第 {number} 卦 · {pinyin}"),
        Locale::English => format!("{number} · {} {pinyin}", hexagram.chinese_name()),
    };
    Figure { label: label.to_owned(), name: name(hexagram, locale), note, lines }
}

/// Returns the local time, the place and the method; only the method if the time is not known.
fn heading(session: &Session, moment: Option<&CalendarMoment>, locale: Locale) -> String {
    let method = words::method(session.method, locale);
    let Some(moment) = moment else { return method.to_owned() };
    let local = moment.local.to_string().chars().take(16).collect::<String>().replace('T', " ");
    format!("{local} · {} · {method}", session.time_zone)
}

fn pillars(moment: &CalendarMoment, locale: Locale) -> Vec<PillarCell> {
    let is_english = locale == Locale::English;
    let pillars = &moment.pillars;
    let pairs = [pillars.year, pillars.month, pillars.day, pillars.hour];
    let labels = words::in_language(locale, ["年", "月", "日", "时"], ["Year", "Month", "Day", "Hour"]);
    let pillar = |(label, pair): (&str, _)| PillarCell {
        label: label.to_owned(),
        value: format!("{pair}"),
        sound: is_english.then(|| words::sound_of(pair)),
    };
    let void = PillarCell {
        label: words::in_language(locale, "旬空", "Void").to_owned(),
        value: moment.void.map(Branch::name).concat(),
        sound: is_english.then(|| moment.void.map(words::branch_sound).join(", ")),
    };
    labels.into_iter().zip(pairs).map(pillar).chain([void]).collect()
}

fn palace(chart: &Chart, locale: Locale) -> String {
    let (palace, element) = (chart.palace, words::element(chart.palace.element, locale));
    let stage = words::stage(palace.stage, locale);
    match locale {
        Locale::Chinese => format!("{}宫（{element}）· {stage}", palace.trigram.chinese_name()),
        Locale::English => {
            format!("Palace of {} {} ({element}), {stage}", palace.trigram.chinese_name(), palace.trigram.pinyin())
        }
    }
}

fn pattern(chart: &Chart, locale: Locale) -> Option<String> {
    let name = |pattern| words::pattern(pattern, locale);
    match (chart.pattern.map(name), chart.relating_pattern.map(name)) {
        (primary, None) => primary.map(ToOwned::to_owned),
        (Some(primary), Some(relating)) => Some(format!("{primary} → {relating}")),
        (None, Some(relating)) => Some([words::in_language(locale, "变", "becomes "), relating].concat()),
    }
}

fn row(line: &ChartLine, locale: Locale) -> ChartRow {
    ChartRow {
        value: line.value,
        spirit: line.spirit.map(|spirit| words::spirit(spirit, locale).to_owned()),
        nature: nature(line.nature, locale),
        role: line.role.map(|role| words::role(role, locale).to_owned()),
        becomes: line.becomes.map(|becomes| self::becomes(becomes, locale)),
        hidden: line.hidden.map(|hidden| nature(hidden.nature, locale)),
    }
}

fn nature(nature: LineNature, locale: Locale) -> Nature {
    let (pair, element) =
        (format!("{}{}", nature.stem.name(), nature.branch.name()), words::element(nature.element, locale));
    let branch = match locale {
        Locale::Chinese => format!("{pair}{element}"),
        Locale::English => format!("{pair} {}, {element}", words::sound(nature.stem, nature.branch)),
    };
    Nature { kin: words::kin(nature.kin, locale).to_owned(), branch }
}

fn becomes(line: ChangedLine, locale: Locale) -> Becomes {
    let relation = words::relation(line.relation, locale);
    let effect = match line.progress {
        Some(progress) => words::progress(progress, locale),
        None => relation,
    };
    Becomes { nature: nature(line.nature, locale), effect: effect.to_owned() }
}

fn verse(selected: SelectedText, locale: Locale) -> Verse {
    let label = selected.line_classic().map_or("卦辞", LineClassic::label);
    let classical = Passage { language: CHINESE, text: selected.text().simplified.to_owned() };
    let plain = selected.plain(locale).to_owned();
    match locale {
        Locale::Chinese => Verse {
            label: format!("{} · {label}", selected.hexagram.chinese_name()),
            lead: classical,
            note: Passage { language: CHINESE, text: plain },
        },
        Locale::English => Verse {
            label: format!("{} · {} {label}", selected.hexagram.english_name(), part(selected)),
            lead: Passage { language: "en", text: plain },
            note: classical,
        },
    }
}

fn part(selected: SelectedText) -> &'static str {
    match (selected.part, selected.position) {
        (SelectedPart::Judgement, _) => "judgement",
        (SelectedPart::AllLines, _) => "all lines",
        (SelectedPart::Line, Some(1)) => "bottom line",
        (SelectedPart::Line, Some(2)) => "second line",
        (SelectedPart::Line, Some(3)) => "third line",
        (SelectedPart::Line, Some(4)) => "fourth line",
        (SelectedPart::Line, Some(5)) => "fifth line",
        (SelectedPart::Line, _) => "top line",
    }
}

fn description(title: &str, cast: Cast, verses: &[Verse], locale: Locale) -> String {
    let changing: Vec<_> = cast.changing().into_iter().map(|position| cast.line_name(position, locale)).collect();
    let changes = match (changing.as_slice(), locale) {
        ([], Locale::Chinese) => "无动爻".to_owned(),
        ([], Locale::English) => "No changing lines".to_owned(),
        (lines, Locale::Chinese) => format!("动爻：{}", lines.join("、")),
        (lines, Locale::English) => format!("Changing: {}", lines.join(", ")),
    };
    let stop = words::in_language(locale, "。", ". ");
    let mut text = [title, stop, &changes, stop].concat();
    let colon = words::in_language(locale, "：", ": ");
    for verse in verses {
        text.extend([&*verse.label, colon, &*verse.lead.text, " "]);
    }
    text.trim_end().to_owned()
}
