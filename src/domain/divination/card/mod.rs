//! The picture of a casting as SVG, for sharing.
//!
//! [`render`] is a pure function of plain data: it knows no hexagrams, and no time. A card has no script and refers to
//! nothing outside. Browsers do not wrap text in SVG, so lines are broken here by estimated widths, and the height of the
//! card follows from them.

mod canvas;
mod chart;
mod content;
mod words;
mod wrap;

use canvas::{Anchor, Canvas, Weight};
pub use content::CardOptions;
use wrap::{Break, cleaned, is_one_line, wrapped};

use crate::types::named_enum;

/// The width of a card; all other measures are in the same unit. A phone is about as wide in pixels.
const WIDTH: u32 = 360;
const MARGIN: u32 = 20;
const CENTRE: u32 = WIDTH / 2;
/// Lines of a question that are shown.
const MAX_QUESTION_LINES: usize = 18;
/// The room for Latin text with serifs, which is narrower than estimated, in percent.
const SERIF_ROOM: u32 = 112;

named_enum! {
    /// The colours of a card.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Theme {
        Light = "light",
        Dark = "dark",
        /// Those that the reader's system prefers.
        Auto = "auto",
    }
}

/// The content of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The language tag.
    pub language: &'static str,
    pub theme: Theme,
    /// The name of the picture for screen readers.
    pub title: String,
    /// The content of the picture for screen readers.
    pub description: String,
    pub question: Option<String>,
    /// Time, place and method.
    pub heading: String,
    pub primary: Figure,
    pub relating: Option<Figure>,
    /// Empty if the time is not known.
    pub pillars: Vec<PillarCell>,
    /// The palace, at the head of the chart.
    pub palace: String,
    /// The patterns of the hexagrams.
    pub pattern: Option<String>,
    /// The lines of the chart, bottom up.
    pub rows: [ChartRow; 6],
    pub verses: Vec<Verse>,
    pub footer: String,
}

/// A hexagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    pub label: String,
    pub name: String,
    pub note: String,
    /// 6 to 9, bottom up.
    pub lines: [u8; 6],
}

/// A pillar of the time, or the void branches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PillarCell {
    pub label: String,
    pub value: String,
    /// The reading of the characters, for readers of another language.
    pub sound: Option<String>,
}

/// A line of the chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartRow {
    /// 6 to 9.
    pub value: u8,
    pub spirit: Option<String>,
    pub nature: Nature,
    pub role: Option<String>,
    pub becomes: Option<Becomes>,
    pub hidden: Option<Nature>,
}

/// The assignments of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nature {
    pub kin: String,
    /// Stem, branch and element.
    pub branch: String,
}

/// The line into which a changing line turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Becomes {
    pub nature: Nature,
    /// The effect on the line that changed.
    pub effect: String,
}

/// A text to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verse {
    pub label: String,
    /// The text in large letters.
    pub lead: Passage,
    /// The text below in small letters.
    pub note: Passage,
}

/// A text and its language tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    pub language: &'static str,
    pub text: String,
}

/// Draws a card.
pub fn render(card: &Card) -> String {
    let mut canvas = Canvas::new();
    heading(&mut canvas, card);
    if let Some(question) = &card.question {
        self::question(&mut canvas, question);
    }
    figures(&mut canvas, card);
    verses(&mut canvas, &card.verses);
    pillars(&mut canvas, &card.pillars);
    chart::draw(&mut canvas, card);
    footer(&mut canvas, &card.footer);
    canvas.finish(card)
}

fn heading(canvas: &mut Canvas, card: &Card) {
    canvas.down(16);
    for line in wrapped(&card.heading, 12, WIDTH - 2 * MARGIN, Break::Anywhere) {
        canvas.down(16);
        canvas.text("m", (CENTRE, Anchor::Middle), 12, &line);
    }
}

fn question(canvas: &mut Canvas, question: &str) {
    let lines = wrapped(&cleaned(question), 16, WIDTH - 2 * MARGIN - 14, Break::Anywhere);
    if lines.is_empty() {
        return;
    }
    canvas.down(18);
    let (top, is_cut) = (canvas.y(), lines.len() > MAX_QUESTION_LINES);
    for (place, line) in lines.into_iter().take(MAX_QUESTION_LINES).enumerate() {
        let dots = if is_cut && place + 1 == MAX_QUESTION_LINES { "…" } else { "" };
        canvas.down(if place == 0 { 16 } else { 24 });
        canvas.text("i", (MARGIN + 14, Anchor::Start), 16, &(line + dots));
    }
    canvas.down(6);
    canvas.rectangle("af", (MARGIN, top), (3, canvas.y() - top), 1);
}

fn figures(canvas: &mut Canvas, card: &Card) {
    canvas.down(20);
    let top = canvas.y();
    let Some(relating) = &card.relating else {
        return figure(canvas, &card.primary, CENTRE, (20, WIDTH - 2 * MARGIN));
    };
    let half = CENTRE - MARGIN;
    let room = half - 10;
    let is_short = [&card.primary, relating].iter().all(|figure| is_one_line(&figure.name, 20, room));
    let size = if is_short { 20 } else { 17 };
    figure(canvas, &card.primary, MARGIN + half / 2, (size, room));
    let bottom = canvas.y();
    canvas.move_to(top);
    figure(canvas, relating, CENTRE + half / 2, (size, room));
    canvas.arrow(CENTRE, top + 74);
    canvas.move_to(bottom.max(canvas.y()));
}

/// Draws a hexagram around `x`, with its name below in letters of a size and within a width.
fn figure(canvas: &mut Canvas, figure: &Figure, x: u32, (size, width): (u32, u32)) {
    canvas.down(12);
    canvas.text("m", (x, Anchor::Middle), 12, &figure.label);
    canvas.down(14);
    for value in figure.lines.iter().rev() {
        canvas.line_of(*value, (x - 46, 92), 10);
        canvas.down(17);
    }
    canvas.down(3);
    for line in wrapped(&figure.name, size, width, Break::Anywhere) {
        canvas.down(size + 4);
        canvas.title((x, Anchor::Middle), size, &line);
    }
    canvas.down(18);
    canvas.text("m", (x, Anchor::Middle), 12, &figure.note);
}

fn verses(canvas: &mut Canvas, verses: &[Verse]) {
    canvas.down(20);
    let top = canvas.y();
    canvas.begin_panel();
    let (x, width) = (MARGIN + 16, WIDTH - 2 * MARGIN - 32);
    for (place, verse) in verses.iter().enumerate() {
        canvas.down(if place == 0 { 9 } else { 19 });
        for line in wrapped(&verse.label, 12, width, Break::Anywhere) {
            canvas.down(17);
            canvas.weighted("a", (x, Anchor::Start), (12, Weight::Bold), &line);
        }
        canvas.down(4);
        let room = if verse.lead.language == "en" { width * SERIF_ROOM / 100 } else { width };
        for line in wrapped(&verse.lead.text, 18, room, Break::Clauses) {
            canvas.down(27);
            canvas.verse((x, Anchor::Start), 18, &line, verse.lead.language);
        }
        canvas.down(4);
        for line in wrapped(&verse.note.text, 14, width, Break::Anywhere) {
            canvas.down(21);
            canvas.passage((x, Anchor::Start), 14, &line, verse.note.language);
        }
    }
    canvas.down(18);
    canvas.end_panel((MARGIN, top), (WIDTH - 2 * MARGIN, canvas.y() - top));
}

fn pillars(canvas: &mut Canvas, pillars: &[PillarCell]) {
    let Ok(count) = u32::try_from(pillars.len()) else { return };
    if count == 0 {
        return;
    }
    canvas.down(12);
    let (top, width) = (canvas.y(), (WIDTH - 2 * MARGIN) / count);
    for (place, pillar) in (0..count).zip(pillars) {
        let x = MARGIN + place * width + width / 2;
        canvas.move_to(top + 14);
        canvas.text("m", (x, Anchor::Middle), 12, &pillar.label);
        canvas.down(23);
        canvas.title((x, Anchor::Middle), 18, &pillar.value);
        if let Some(sound) = &pillar.sound {
            canvas.down(16);
            canvas.text("m", (x, Anchor::Middle), 12, sound);
        }
    }
    canvas.down(10);
}

fn footer(canvas: &mut Canvas, text: &str) {
    canvas.down(30);
    let lines = wrapped(&cleaned(text), 12, WIDTH - 2 * MARGIN, Break::Anywhere);
    for line in lines {
        canvas.text("m", (CENTRE, Anchor::Middle), 12, &line);
        canvas.down(16);
    }
    canvas.down(4);
}

#[cfg(test)]
mod tests;
