//! Writes SVG elements from top to bottom. All text is escaped here.

use std::fmt::Write as _;

use super::{Card, Theme, WIDTH};

const SANS: &str = "system-ui,-apple-system,'PingFang SC','Noto Sans CJK SC','Microsoft YaHei',sans-serif";
const SERIF: &str = "Georgia,'Times New Roman','Songti SC','Noto Serif CJK SC','Noto Sans CJK SC',SimSun,serif";
/// Colours of paper, panel, rules, text, muted text and accents.
const LIGHT: [&str; 6] = ["#fbf8f1", "#f3ecdd", "#ddd4c0", "#24211c", "#6b6355", "#a3301d"];
const DARK: [&str; 6] = ["#17181b", "#212327", "#3a3c42", "#eee9de", "#a8a196", "#f0866c"];

/// The side of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The weight of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Normal,
    Bold,
}

/// The elements drawn so far, and the height that they take.
pub(super) struct Canvas {
    elements: String,
    /// The elements before the panel that is being drawn.
    below_panel: Option<String>,
    y: u32,
}

/// Horizontal position and anchor of a text.
type Place = (u32, Anchor);

impl Canvas {
    pub(super) fn new() -> Self {
        Self { elements: String::with_capacity(8 * 1024), below_panel: None, y: 0 }
    }

    pub(super) fn y(&self) -> u32 {
        self.y
    }

    pub(super) fn down(&mut self, distance: u32) {
        self.y += distance;
    }

    pub(super) fn move_to(&mut self, y: u32) {
        self.y = y;
    }

    /// Writes text on the current base line. Classes are `i` for ink, `m` for muted and `a` for accents.
    pub(super) fn text(&mut self, class: &str, place: Place, size: u32, text: &str) {
        self.weighted(class, place, (size, Weight::Normal), text);
    }

    pub(super) fn weighted(&mut self, class: &str, place: Place, (size, weight): (u32, Weight), text: &str) {
        let weight = if weight == Weight::Bold { " font-weight=\"600\"" } else { "" };
        self.write_text(class, place, size, weight, text);
    }

    pub(super) fn title(&mut self, place: Place, size: u32, text: &str) {
        self.write_text("i s", place, size, " font-weight=\"600\"", text);
    }

    pub(super) fn verse(&mut self, place: Place, size: u32, text: &str, language: &str) {
        self.write_text("i s", place, size, &format!(" lang=\"{language}\""), text);
    }

    pub(super) fn passage(&mut self, place: Place, size: u32, text: &str, language: &str) {
        self.write_text("m", place, size, &format!(" lang=\"{language}\""), text);
    }

    fn write_text(&mut self, class: &str, (x, anchor): Place, size: u32, attributes: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (y, text) = (self.y, escaped(text));
        self.element(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{anchor}{attributes}>{text}</text>"
        ));
    }

    /// Draws a rectangle, filled by the class.
    pub(super) fn rectangle(&mut self, class: &str, (x, y): (u32, u32), (width, height): (u32, u32), radius: u32) {
        self.element(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\"/>"
        ));
    }

    /// Draws a line of a hexagram, from `x` and `width` wide, with the mark of a changing line to its right.
    pub(super) fn line_of(&mut self, value: u8, (x, width): (u32, u32), height: u32) {
        let (is_yang, is_changing) = (matches!(value, 7 | 9), matches!(value, 6 | 9));
        let class = if is_changing { "af" } else { "if" };
        let y = self.y;
        if is_yang {
            self.rectangle(class, (x, y), (width, height), 1);
        } else {
            let part = width * 42 / 100;
            self.rectangle(class, (x, y), (part, height), 1);
            self.rectangle(class, (x + width - part, y), (part, height), 1);
        }
        // The marks of old lines: a circle for yang and a cross for yin.
        let (mark, middle, radius) = (x + width + height / 2 + 6, y + height / 2, height / 2);
        if value == 9 {
            self.element(format_args!("<circle class=\"as\" cx=\"{mark}\" cy=\"{middle}\" r=\"{radius}\"/>"));
        } else if value == 6 {
            let (left, right, top, bottom) = (mark - radius, mark + radius, middle - radius, middle + radius);
            self.element(format_args!(
                "<path class=\"as\" d=\"M{left} {top}L{right} {bottom}M{right} {top}L{left} {bottom}\"/>"
            ));
        }
    }

    pub(super) fn arrow(&mut self, x: u32, y: u32) {
        let (left, right) = (x - 9, x + 9);
        let (back, top, bottom) = (right - 5, y - 5, y + 5);
        self.element(format_args!(
            "<path class=\"ms\" d=\"M{left} {y}H{right}M{back} {top}L{right} {y}L{back} {bottom}\"/>"
        ));
    }

    pub(super) fn rule(&mut self, x: u32, width: u32) {
        self.rectangle("r", (x, self.y), (width, 1), 0);
    }

    /// Begins a panel, whose size is known at its end and which lies below the elements until then.
    pub(super) fn begin_panel(&mut self) {
        self.below_panel = Some(std::mem::take(&mut self.elements));
    }

    pub(super) fn end_panel(&mut self, corner: (u32, u32), size: (u32, u32)) {
        let above = std::mem::replace(&mut self.elements, self.below_panel.take().unwrap_or_default());
        self.rectangle("p", corner, size, 10);
        self.elements.push_str(&above);
    }

    /// Returns the document.
    pub(super) fn finish(self, card: &Card) -> String {
        let (height, style) = (self.y, style(card.theme));
        let (title, description) = (escaped(&card.title), escaped(&card.description));
        let (language, elements, pixels) = (card.language, self.elements, (2 * WIDTH, 2 * height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"yarrow-card\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{}\" height=\"{}\" role=\"img\" lang=\"{language}\" xml:lang=\"{language}\" direction=\"ltr\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n<style>{style}</style>\n\
             <rect class=\"b\" width=\"{WIDTH}\" height=\"{height}\"/>\n{elements}</svg>\n",
            pixels.0, pixels.1,
        )
    }

    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = writeln!(self.elements, "{element}");
    }
}

/// Returns the style sheet. Its rules apply to cards only, also where the SVG is part of a page.
fn style(theme: Theme) -> String {
    let shape = format!(
        ".yarrow-card{{max-width:100%;height:auto;display:block;margin:0 auto}}\
         .yarrow-card text{{font-family:{SANS};white-space:pre}}\
         .yarrow-card .s{{font-family:{SERIF}}}\
         .yarrow-card .as,.yarrow-card .ms{{fill:none;stroke-width:1.5}}"
    );
    match theme {
        Theme::Light => shape + &colours(LIGHT),
        Theme::Dark => shape + &colours(DARK),
        Theme::Auto => format!("{shape}{}@media (prefers-color-scheme:dark){{{}}}", colours(LIGHT), colours(DARK)),
    }
}

fn colours([paper, panel, rule, ink, muted, accent]: [&str; 6]) -> String {
    format!(
        ".yarrow-card{{background:{paper}}}.yarrow-card .b{{fill:{paper}}}.yarrow-card .p{{fill:{panel}}}\
         .yarrow-card .r{{fill:{rule}}}.yarrow-card .i,.yarrow-card .if{{fill:{ink}}}.yarrow-card .m{{fill:{muted}}}\
         .yarrow-card .a,.yarrow-card .af{{fill:{accent}}}.yarrow-card .as{{stroke:{accent}}}\
         .yarrow-card .ms{{stroke:{muted}}}.yarrow-card .o{{fill:{paper}}}"
    )
}

/// Escapes text for XML and leaves out characters that XML does not have.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{FFFE}' | '\u{FFFF}' => {}
            character => escaped.push(character),
        }
    }
    escaped
}
