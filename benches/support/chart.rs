//! Bar charts as SVG.

use std::fmt::Write;

/// A group's label and its bars.
pub type Group = (String, Vec<(String, f64)>);

const WIDTH: usize = 860;
const NAMES: f64 = 330.0;
const ROW: usize = 18;
/// Readable on light and dark pages.
const TEXT: &str = "#888";
const COLOURS: [(&str, &str); 2] = [("Yarrow", "#2f81f7"), ("", "#9a9a9a")];

/// Draws horizontal bars in groups with their values. The longest bar takes the full width.
#[expect(clippy::cast_precision_loss, reason = "a few rows")]
pub fn bars(title: &str, groups: &[Group]) -> String {
    let rows: usize = groups.iter().map(|(_, bars)| bars.len() + 1).sum::<usize>() + 2;
    let longest = groups.iter().flat_map(|(_, bars)| bars).map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {}" font-family="sans-serif" font-size="12">"#,
        rows * ROW
    );
    let mut row = 1;
    text(&mut svg, 4.0, row, "start", "bold", title);
    for (name, bars) in groups {
        row += 1;
        for (index, (bar, value)) in bars.iter().enumerate() {
            row += usize::from(index > 0);
            if index == 0 {
                text(&mut svg, 4.0, row, "start", "bold", name);
            }
            text(&mut svg, NAMES - 6.0, row, "end", "normal", bar);
            let length = (value / longest * (WIDTH as f64 - NAMES - 60.0)).max(1.0);
            let colour = COLOURS.iter().find(|(start, _)| bar.starts_with(start)).map_or(TEXT, |(_, colour)| colour);
            // Writing to a string does not fail.
            let _ = write!(
                svg,
                r#"<rect x="{NAMES}" y="{}" width="{length:.1}" height="{}" fill="{colour}"/>"#,
                row * ROW - 12,
                ROW - 4
            );
            text(&mut svg, NAMES + length + 5.0, row, "start", "normal", &figure(*value));
        }
        row += 1;
    }
    svg + "</svg>\n"
}

fn figure(value: f64) -> String {
    if value < 0.1 { format!("{value:.3}") } else { format!("{value:.2}") }
}

#[expect(clippy::cast_precision_loss, reason = "a few rows")]
fn text(svg: &mut String, x: f64, row: usize, anchor: &str, weight: &str, text: &str) {
    let y = (row * ROW) as f64;
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = write!(
        svg,
        r#"<text x="{x:.1}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" fill="{TEXT}">{text}</text>"#
    );
}
