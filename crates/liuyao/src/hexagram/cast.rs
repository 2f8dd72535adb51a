//! A cast: six lines and the hexagrams derived from them.
//!
//! The relating hexagram is absent when no line changes, instead of repeating the primary one.

use super::catalog::Hexagram;
use super::line::{Line, Lines};
use crate::Locale;

/// Six cast lines and everything derived from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cast {
    lines: Lines,
}

impl Cast {
    /// Creates the cast of these lines.
    pub fn from_lines(lines: Lines) -> Self {
        Self { lines }
    }

    /// Creates the cast of a hexagram with changing lines at these positions (1 to 6). Other positions are ignored.
    pub fn from_hexagram(primary: Hexagram, changing: &[u8]) -> Self {
        let figure = primary.figure();
        let mut lines = figure.map(|is_yang| Line::new(is_yang, false));
        for ((line, is_yang), position) in lines.iter_mut().zip(figure).zip(1..) {
            *line = Line::new(is_yang, changing.contains(&position));
        }
        Self::from_lines(Lines::new(lines))
    }

    /// Returns the six lines as cast.
    pub fn lines(&self) -> Lines {
        self.lines
    }

    /// Returns the hexagram of the lines before any change.
    pub fn primary(&self) -> Hexagram {
        Hexagram::from_figure(self.lines.as_array().map(Line::is_yang))
    }

    /// Returns the positions of the changing lines, ascending, 1 at the bottom.
    pub fn changing(&self) -> Vec<u8> {
        (1..).zip(self.lines.as_array()).filter(|(_, line)| line.is_changing()).map(|(position, _)| position).collect()
    }

    /// Returns the hexagram after the changes; `None` if no line changes.
    pub fn relating(&self) -> Option<Hexagram> {
        let changing = self.changing();
        (!changing.is_empty()).then(|| self.primary().with_lines_changed(&changing))
    }

    /// Returns the nuclear hexagram of the primary one.
    pub fn nuclear(&self) -> Hexagram {
        self.primary().nuclear()
    }

    /// Returns the name of the line at a position (1 to 6): 初九, 六二; "bottom line", "second line".
    pub fn line_name(&self, position: u8, locale: Locale) -> String {
        let Some(line) = self.line(position) else {
            return String::new();
        };
        match locale {
            Locale::Chinese => chinese_line_name(position, line.is_yang()),
            Locale::English => english_line_name(position).to_owned(),
        }
    }

    /// Returns the line at a position, 1 at the bottom.
    pub fn line(&self, position: u8) -> Option<Line> {
        let place = usize::from(position).checked_sub(1)?;
        self.lines.as_array().get(place).copied()
    }
}

fn chinese_line_name(position: u8, is_yang: bool) -> String {
    let kind = if is_yang { '九' } else { '六' };
    match position {
        1 => format!("初{kind}"),
        2 => format!("{kind}二"),
        3 => format!("{kind}三"),
        4 => format!("{kind}四"),
        5 => format!("{kind}五"),
        _ => format!("上{kind}"),
    }
}

fn english_line_name(position: u8) -> &'static str {
    match position {
        1 => "bottom line",
        2 => "second line",
        3 => "third line",
        4 => "fourth line",
        5 => "fifth line",
        _ => "top line",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(digits: &str) -> Cast {
        Cast::from_lines(digits.parse().unwrap())
    }

    #[test]
    fn derives_the_hexagrams_of_a_known_cast() {
        let cast = cast("788976");
        assert_eq!(cast.primary().chinese_full_name(), "泽雷随");
        assert_eq!(cast.changing(), [4, 6]);
        assert_eq!(cast.relating().unwrap().chinese_full_name(), "风雷益");
        assert_eq!(cast.nuclear().chinese_full_name(), "风山渐");
    }

    #[test]
    fn a_cast_without_changes_has_no_relating_hexagram() {
        let cast = cast("788878");
        assert_eq!(cast.primary().number(), 3);
        assert_eq!(cast.changing(), [0; 0]);
        assert_eq!(cast.relating(), None);
    }

    #[test]
    fn six_changing_lines_yield_the_complement() {
        assert_eq!(cast("999999").relating(), Hexagram::from_number(2));
        assert_eq!(cast("666666").relating(), Hexagram::from_number(1));
    }

    #[test]
    fn relating_is_an_involution_over_the_changing_lines() {
        for primary in Hexagram::all() {
            for relating in Hexagram::all() {
                let changing = primary.differing_positions(relating);
                let forth = Cast::from_hexagram(primary, &changing);
                let back = Cast::from_hexagram(relating, &changing);
                assert_eq!(forth.primary(), primary);
                assert_eq!(forth.changing(), changing);
                assert_eq!(forth.relating().unwrap_or(primary), relating);
                assert_eq!(back.relating().unwrap_or(relating), primary);
            }
        }
    }

    #[test]
    fn names_lines_by_position_and_kind() {
        let cast = cast("986797");
        let names: Vec<String> = (1..=6).map(|position| cast.line_name(position, Locale::Chinese)).collect();
        assert_eq!(names, ["初九", "六二", "六三", "九四", "九五", "上九"]);
        assert_eq!(cast.line_name(1, Locale::English), "bottom line");
        assert_eq!(cast.line_name(0, Locale::English), "");
    }
}
