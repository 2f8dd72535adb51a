//! The content of a session's card, in the words of one language.

use liuyao::{interpreter::Written, script::verbatim};

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

/// The language tag of text in simplified Chinese.
const SIMPLIFIED: &str = "zh-Hans";

/// The options of a card.
#[derive(Clone, Copy, Debug)]
pub struct CardOptions<'brand> {
    pub written: Written,
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
        let (written, locale) = (self.written, self.written.locale());
        let chart = chart_of(&session.cast, session.cast_time().as_ref());
        let (primary, relating) = (session.cast.primary(), session.cast.relating());
        let verses: Vec<_> =
            TextSelection::of(&session.cast).texts.into_iter().map(|text| verse(text, written)).collect();
        let names: Vec<_> = [Some(primary), relating].into_iter().flatten().map(|one| name(one, written)).collect();
        let title = names.join(" → ");
        Card {
            language: language(written),
            theme: self.theme,
            description: description(&title, session.cast, &verses, written),
            title,
            question: self.with_question.then(|| session.question.clone()),
            heading: heading(session, chart.moment.as_ref(), written),
            primary: figure(
                primary,
                session.cast.lines().values(),
                words::in_language(locale, "本卦", "Primary"),
                written,
            ),
            relating: relating.map(|relating| {
                let at_rest = relating.figure().map(|is_yang| if is_yang { 7 } else { 8 });
                figure(relating, at_rest, &written.convert(words::in_language(locale, "之卦", "Relating")), written)
            }),
            pillars: chart.moment.as_ref().map(|moment| pillars(moment, written)).unwrap_or_default(),
            palace: written.convert(&palace(&chart, locale)),
            pattern: pattern(&chart, locale).map(|pattern| written.convert(&pattern)),
            rows: chart.lines.map(|line| row(&line, written)),
            verses,
            footer: self.brand.to_owned(),
        }
    }
}

fn language(written: Written) -> &'static str {
    match written {
        Written::Simplified => SIMPLIFIED,
        Written::Traditional => "zh-Hant",
        Written::English => "en",
    }
}

fn name(hexagram: Hexagram, written: Written) -> String {
    match written {
        Written::Simplified => hexagram.chinese_full_name().to_owned(),
        Written::Traditional => {
            let short = verbatim(hexagram.traditional_name());
            written.convert(&hexagram.chinese_full_name().replace(hexagram.chinese_name(), &short))
        }
        Written::English => hexagram.english_name().to_owned(),
    }
}

fn figure(hexagram: Hexagram, lines: [u8; 6], label: &str, written: Written) -> Figure {
    let (number, pinyin) = (hexagram.number(), hexagram.pinyin());
    let note = match written.locale() {
        Locale::Chinese => format!("第 {number} 卦 · {pinyin}"),
        Locale::English => format!("{number} · {} {pinyin}", hexagram.chinese_name()),
    };
    Figure { label: label.to_owned(), name: name(hexagram, written), note, lines }
}

/// Returns the local time, the place and the method; only the method if the time is not known.
fn heading(session: &Session, moment: Option<&CalendarMoment>, written: Written) -> String {
    let method = written.convert(words::method(session.method, written.locale()));
    let Some(moment) = moment else { return method };
    let local = moment.local.to_string().chars().take(16).collect::<String>().replace('T', " ");
    format!("{local} · {} · {method}", session.time_zone)
}

fn pillars(moment: &CalendarMoment, written: Written) -> Vec<PillarCell> {
    let locale = written.locale();
    let is_english = locale == Locale::English;
    let pillars = &moment.pillars;
    let pairs = [pillars.year, pillars.month, pillars.day, pillars.hour];
    let labels = words::in_language(locale, ["年", "月", "日", "时"], ["Year", "Month", "Day", "Hour"]);
    let pillar = |(label, pair): (&str, _)| PillarCell {
        label: written.convert(label),
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

fn row(line: &ChartLine, written: Written) -> ChartRow {
    let locale = written.locale();
    let own = |text: &str| written.convert(text);
    ChartRow {
        value: line.value,
        spirit: line.spirit.map(|spirit| own(words::spirit(spirit, locale))),
        nature: nature(line.nature, written),
        role: line.role.map(|role| own(words::role(role, locale))),
        becomes: line.becomes.map(|becomes| self::becomes(becomes, written)),
        hidden: line.hidden.map(|hidden| nature(hidden.nature, written)),
    }
}

fn nature(nature: LineNature, written: Written) -> Nature {
    let locale = written.locale();
    let (pair, element) =
        (format!("{}{}", nature.stem.name(), nature.branch.name()), words::element(nature.element, locale));
    let branch = match locale {
        Locale::Chinese => format!("{pair}{element}"),
        Locale::English => format!("{pair} {}, {element}", words::sound(nature.stem, nature.branch)),
    };
    Nature { kin: written.convert(words::kin(nature.kin, locale)), branch }
}

fn becomes(line: ChangedLine, written: Written) -> Becomes {
    let locale = written.locale();
    let relation = words::relation(line.relation, locale);
    let effect = match line.progress {
        Some(progress) => words::progress(progress, locale),
        None => relation,
    };
    Becomes { nature: nature(line.nature, written), effect: written.convert(effect) }
}

fn verse(selected: SelectedText, written: Written) -> Verse {
    let label = written.convert(selected.line_classic().map_or("卦辞", LineClassic::label));
    let is_traditional = written == Written::Traditional;
    let (text, hexagram) = (selected.text(), selected.hexagram);
    let text = if is_traditional { text.traditional } else { text.simplified };
    let name = if is_traditional { hexagram.traditional_name() } else { hexagram.chinese_name() };
    let script = if is_traditional { "zh-Hant" } else { SIMPLIFIED };
    let classical = Passage { language: script, text: text.to_owned() };
    let plain = written.convert(selected.plain(written.locale()));
    match written.locale() {
        Locale::Chinese => Verse {
            label: format!("{name} · {label}"),
            lead: classical,
            note: Passage { language: script, text: plain },
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

fn description(title: &str, cast: Cast, verses: &[Verse], written: Written) -> String {
    let locale = written.locale();
    let changing: Vec<_> = cast.changing().into_iter().map(|position| cast.line_name(position, locale)).collect();
    let changes = match (changing.as_slice(), locale) {
        ([], Locale::Chinese) => "无动爻".to_owned(),
        ([], Locale::English) => "No changing lines".to_owned(),
        (lines, Locale::Chinese) => format!("动爻：{}", lines.join("、")),
        (lines, Locale::English) => format!("Changing: {}", lines.join(", ")),
    };
    let changes = written.convert(&changes);
    let stop = words::in_language(locale, "。", ". ");
    let mut text = [title, stop, &changes, stop].concat();
    let colon = words::in_language(locale, "：", ": ");
    for verse in verses {
        text.extend([&*verse.label, colon, &*verse.lead.text, " "]);
    }
    text.trim_end().to_owned()
}
