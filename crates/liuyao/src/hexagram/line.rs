//! A cast line, and the six lines of a cast.
//!
//! Rejects all values except 6, 7, 8 and 9 and all counts except six, and reports the invalid line.

use std::fmt;
use std::str::FromStr;

/// A cast line. Old lines change into their opposites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Line {
    /// 6: yin, changing to yang.
    OldYin,
    /// 7: yang, at rest.
    YoungYang,
    /// 8: yin, at rest.
    YoungYin,
    /// 9: yang, changing to yin.
    OldYang,
}

/// Six cast lines, bottom up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lines([Line; 6]);

/// The error for a number that is no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a line; a line is 6, 7, 8 or 9")]
pub struct UnknownLine(pub u8);

/// The error for values that are not six lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinesError {
    /// The number of values is not six.
    #[error("a cast has six lines, found {found}")]
    Count { found: usize },
    /// The value at this position, counted from 1 at the bottom, is not a line.
    #[error("line {position} from the bottom is {found}; a line is 6, 7, 8 or 9")]
    Value { position: u8, found: u8 },
    /// The character at this position, counted from 1 at the bottom, is not a digit.
    #[error("line {position} from the bottom is not a digit; a line is 6, 7, 8 or 9")]
    NotADigit { position: u8 },
}

impl Line {
    /// Returns the traditional number, 6 to 9.
    pub fn value(self) -> u8 {
        match self {
            Self::OldYin => 6,
            Self::YoungYang => 7,
            Self::YoungYin => 8,
            Self::OldYang => 9,
        }
    }

    /// Returns the line of this kind and state.
    pub fn new(is_yang: bool, is_changing: bool) -> Self {
        match (is_yang, is_changing) {
            (true, true) => Self::OldYang,
            (true, false) => Self::YoungYang,
            (false, true) => Self::OldYin,
            (false, false) => Self::YoungYin,
        }
    }

    /// Returns true if the line is yang now, before any change.
    pub fn is_yang(self) -> bool {
        matches!(self, Self::YoungYang | Self::OldYang)
    }

    /// Returns true if the line changes into its opposite.
    pub fn is_changing(self) -> bool {
        matches!(self, Self::OldYin | Self::OldYang)
    }
}

impl TryFrom<u8> for Line {
    type Error = UnknownLine;

    fn try_from(value: u8) -> Result<Self, UnknownLine> {
        match value {
            6 => Ok(Self::OldYin),
            7 => Ok(Self::YoungYang),
            8 => Ok(Self::YoungYin),
            9 => Ok(Self::OldYang),
            other => Err(UnknownLine(other)),
        }
    }
}

impl Lines {
    /// Creates six lines, given from the bottom.
    pub fn new(lines: [Line; 6]) -> Self {
        Self(lines)
    }

    /// Returns the lines from the bottom.
    pub fn as_array(&self) -> &[Line; 6] {
        &self.0
    }

    /// Returns the traditional numbers from the bottom.
    pub fn values(&self) -> [u8; 6] {
        self.0.map(Line::value)
    }

    /// Returns the same lines in reverse order.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let mut lines = self.0;
        lines.reverse();
        Self(lines)
    }
}

impl TryFrom<&[u8]> for Lines {
    type Error = LinesError;

    fn try_from(values: &[u8]) -> Result<Self, LinesError> {
        let values: [u8; 6] = values.try_into().map_err(|_| LinesError::Count { found: values.len() })?;
        Self::try_from(values)
    }
}

impl TryFrom<[u8; 6]> for Lines {
    type Error = LinesError;

    fn try_from(values: [u8; 6]) -> Result<Self, LinesError> {
        let mut lines = [Line::YoungYin; 6];
        for ((line, value), position) in lines.iter_mut().zip(values).zip(1..) {
            *line = Line::try_from(value).map_err(|UnknownLine(found)| LinesError::Value { position, found })?;
        }
        Ok(Self(lines))
    }
}

/// Writes the six digits from the bottom, such as `789678`, as stored in the database.
impl fmt::Display for Lines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values().iter().try_for_each(|value| write!(formatter, "{value}"))
    }
}

/// Parses the output of `Display`.
impl FromStr for Lines {
    type Err = LinesError;

    fn from_str(text: &str) -> Result<Self, LinesError> {
        let found = text.chars().count();
        if found != 6 {
            return Err(LinesError::Count { found });
        }
        let mut values = [0; 6];
        for ((value, letter), position) in values.iter_mut().zip(text.chars()).zip(1..) {
            let digit = letter.to_digit(10).and_then(|digit| u8::try_from(digit).ok());
            *value = digit.ok_or(LinesError::NotADigit { position })?;
        }
        Self::try_from(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_traditional_numbers() {
        let known = [(6, false, true), (7, true, false), (8, false, false), (9, true, true)];
        for (value, is_yang, is_changing) in known {
            let line = Line::try_from(value).unwrap();
            assert_eq!(line.value(), value);
            assert_eq!((line.is_yang(), line.is_changing()), (is_yang, is_changing));
            assert_eq!(Line::new(is_yang, is_changing), line);
        }
        for value in (0..6).chain(10..=u8::MAX) {
            assert_eq!(Line::try_from(value), Err(UnknownLine(value)));
        }
    }

    #[test]
    fn errors_name_the_line_and_its_value() {
        let wrong_value = Lines::try_from([7, 8, 5, 7, 8, 9].as_slice()).unwrap_err();
        assert_eq!(wrong_value, LinesError::Value { position: 3, found: 5 });
        assert_eq!(wrong_value.to_string(), "line 3 from the bottom is 5; a line is 6, 7, 8 or 9");
        let too_few = Lines::try_from([7, 8].as_slice()).unwrap_err();
        assert_eq!(too_few.to_string(), "a cast has six lines, found 2");
        assert_eq!("78967".parse::<Lines>(), Err(LinesError::Count { found: 5 }));
        assert_eq!("7八9678".parse::<Lines>(), Err(LinesError::NotADigit { position: 2 }));
    }

    #[test]
    fn lines_parse_their_own_text() {
        for number in 0..4_u32.pow(6) {
            let values = std::array::from_fn(|place| u8::try_from(number >> (2 * place) & 3).unwrap() + 6);
            let lines = Lines::try_from(values).unwrap();
            assert_eq!(lines.values(), values);
            assert_eq!(lines.to_string().parse(), Ok(lines));
            assert_eq!(lines.reversed().reversed(), lines);
        }
    }
}
