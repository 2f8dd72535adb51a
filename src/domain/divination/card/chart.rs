//! The chart of a card: a row for each line, the top line first.

use super::{
    Card, ChartRow, MARGIN, Nature, WIDTH,
    canvas::{Anchor, Canvas, Weight},
    wrap::is_one_line,
};

/// Positions of the parts of a row.
const LINE: (u32, u32) = (MARGIN, 30);
const FIRST: u32 = 70;
const BECOMES: u32 = 208;
const END: u32 = WIDTH - MARGIN;

pub(super) fn draw(canvas: &mut Canvas, card: &Card) {
    canvas.down(22);
    canvas.text("m", (MARGIN, Anchor::Start), 12, &card.palace);
    if let Some(pattern) = &card.pattern {
        if !is_one_line(&format!("{} {pattern}", card.palace), 12, END - MARGIN) {
            canvas.down(18);
        }
        canvas.text("m", (END, Anchor::End), 12, pattern);
    }
    canvas.down(8);
    canvas.rule(MARGIN, WIDTH - 2 * MARGIN);
    for row in card.rows.iter().rev() {
        if card.language.starts_with("zh") {
            one_line(canvas, row);
        } else {
            two_lines(canvas, row);
        }
        canvas.rule(MARGIN, WIDTH - 2 * MARGIN);
    }
}

/// Draws a row whose words are one or two characters each.
fn one_line(canvas: &mut Canvas, row: &ChartRow) {
    canvas.down(12);
    canvas.line_of(row.value, LINE, 8);
    canvas.down(9);
    if let Some(spirit) = &row.spirit {
        canvas.text("m", (FIRST, Anchor::Start), 12, spirit);
    }
    let x = FIRST + if row.spirit.is_some() { 32 } else { 0 };
    canvas.weighted("i", (x, Anchor::Start), (14, Weight::Bold), &row.nature.kin);
    canvas.text("i", (x + 33, Anchor::Start), 14, &row.nature.branch);
    if let Some(role) = &row.role {
        badge(canvas, x + 80, 16, role);
    }
    if let Some(becomes) = &row.becomes {
        canvas.weighted("a", (BECOMES, Anchor::Start), (14, Weight::Bold), &becomes.nature.kin);
        canvas.text("i", (BECOMES + 33, Anchor::Start), 14, &becomes.nature.branch);
    }
    if row.becomes.is_some() || row.hidden.is_some() {
        canvas.down(18);
    }
    if let Some(becomes) = &row.becomes {
        canvas.text("m", (BECOMES, Anchor::Start), 12, &becomes.effect);
    }
    if let Some(Nature { kin, branch }) = &row.hidden {
        canvas.text("m", (x, Anchor::Start), 12, &format!("伏 {kin} {branch}"));
    }
    canvas.down(10);
}

/// Draws a row whose words are long.
fn two_lines(canvas: &mut Canvas, row: &ChartRow) {
    canvas.down(17);
    canvas.weighted("i", (FIRST, Anchor::Start), (13, Weight::Bold), &row.nature.kin);
    if let Some(becomes) = &row.becomes {
        canvas.weighted("a", (BECOMES, Anchor::Start), (13, Weight::Bold), &becomes.nature.kin);
    }
    if let Some(role) = &row.role {
        badge(canvas, FIRST + 72, 54, role);
    }
    canvas.down(5);
    canvas.line_of(row.value, LINE, 8);
    canvas.down(11);
    canvas.text("i", (FIRST, Anchor::Start), 11, &row.nature.branch);
    if let Some(becomes) = &row.becomes {
        canvas.text("i", (BECOMES, Anchor::Start), 11, &becomes.nature.branch);
    }
    if row.spirit.is_some() || row.becomes.is_some() {
        canvas.down(16);
    }
    if let Some(spirit) = &row.spirit {
        canvas.text("m", (FIRST, Anchor::Start), 12, spirit);
    }
    if let Some(becomes) = &row.becomes {
        canvas.text("m", (BECOMES, Anchor::Start), 12, &becomes.effect);
    }
    if let Some(Nature { kin, branch }) = &row.hidden {
        canvas.down(16);
        canvas.text("m", (FIRST, Anchor::Start), 12, &format!("hidden: {kin} {branch}"));
    }
    canvas.down(10);
}

/// Draws a word on a filled ground, on the current base line.
fn badge(canvas: &mut Canvas, x: u32, width: u32, text: &str) {
    canvas.rectangle("af", (x, canvas.y() - 12), (width, 16), 3);
    canvas.weighted("o", (x + width / 2, Anchor::Middle), (11, Weight::Bold), text);
}
