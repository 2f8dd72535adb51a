#![doc = include_str!("../README.md")]

mod digits;
mod metadata;

use std::{fmt, str::FromStr};

use digits::ZEROS;
use metadata::{Lengths, Metadata};

/// Longer texts are no numbers.
const MOST_CHARACTERS: usize = 250;
/// The most digits of a number inside of its country.
const MOST_DIGITS: usize = 17;

/// A country or territory, by its two-letter ISO 3166 code.
#[derive(Clone, Copy)]
pub struct Region(&'static Metadata);

impl Region {
    pub fn code(self) -> &'static str {
        self.0.region
    }

    /// The calling code, without `+`.
    pub fn calling_code(self) -> u16 {
        self.0.calling_code
    }
}

impl FromStr for Region {
    type Err = ();

    fn from_str(code: &str) -> Result<Self, ()> {
        let mut regions = metadata::all().iter().filter(|metadata| metadata.region.len() == 2);
        regions.find(|metadata| metadata.region == code).map(Self).ok_or(())
    }
}

impl fmt::Display for Region {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code())
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code())
    }
}

impl PartialEq for Region {
    fn eq(&self, other: &Self) -> bool {
        self.code() == other.code()
    }
}

impl Eq for Region {}

/// The service that a number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Mobile,
    FixedLine,
    /// The region's mobile numbers look like those of its fixed lines.
    FixedLineOrMobile,
    /// Among others toll-free, premium, shared cost, pagers and voicemail.
    Other,
}

/// A number that can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    pub calling_code: u16,
    /// The digits behind the calling code, with zeros that belong to the number.
    pub national: String,
    /// None if the text is a possible number of the country, but none that is assigned.
    pub assigned: Option<(Region, Kind)>,
}

impl Number {
    /// Reads any spelling of a number: with or without calling code, international prefix and national prefix, in the
    /// digits of any script. A number without a calling code is one of `default`. Characters that are neither digits nor
    /// `+` are passed over.
    ///
    /// Returns none if the text is no number.
    pub fn parse(text: &str, default: Region) -> Option<Self> {
        if text.len() > MOST_CHARACTERS {
            return None;
        }
        let text = text.trim_start_matches(|character| !is_plus(character) && ascii_digit(character).is_none());
        let digits: String = text.chars().filter_map(ascii_digit).collect();
        let (metadata, digits) = split_calling_code(text.starts_with(is_plus), digits, default.0)?;
        let national = without_national_prefix(&digits, metadata);
        let national = match metadata.length(national.len()) {
            Lengths::Possible | Lengths::TooLong => national,
            Lengths::TooShort | Lengths::Local | Lengths::Invalid => digits,
        };
        if !(2..=MOST_DIGITS).contains(&national.len()) {
            return None;
        }
        let assigned = assigned(metadata.calling_code, &national);
        Some(Self { calling_code: metadata.calling_code, national, assigned })
    }

    /// The number with `+` and its calling code.
    pub fn e164(&self) -> String {
        format!("+{}{}", self.calling_code, self.national)
    }
}

fn is_plus(character: char) -> bool {
    matches!(character, '+' | '＋')
}

fn ascii_digit(character: char) -> Option<char> {
    let after = ZEROS.partition_point(|zero| *zero <= character);
    let zero = ZEROS.get(after.checked_sub(1)?)?;
    char::from_digit(u32::from(character) - u32::from(*zero), 10)
}

/// Finds the country, and removes what stands before the number inside of it.
fn split_calling_code(
    has_plus: bool,
    digits: String,
    default: &'static Metadata,
) -> Option<(&'static Metadata, String)> {
    let international = if has_plus { Some(digits.as_str()) } else { default.without_international_prefix(&digits) };
    if let Some(digits) = international {
        if digits.starts_with('0') {
            return None;
        }
        let codes = (1..=3).filter_map(|length| digits.split_at_checked(length));
        let mut known =
            codes.filter_map(|(code, rest)| Some((metadata::main_of(code.parse().ok()?)?, rest.to_owned())));
        return known.next();
    }
    if let Some(rest) = digits.strip_prefix(&default.calling_code.to_string()) {
        let stripped = without_national_prefix(rest, default);
        let is_better = !default.general.matches(&digits) && default.general.matches(&stripped);
        if is_better || matches!(default.length(digits.len()), Lengths::TooLong) {
            return Some((default, rest.to_owned()));
        }
    }
    Some((default, digits))
}

/// Removes the national prefix, unless only the whole is a number.
fn without_national_prefix(digits: &str, metadata: &Metadata) -> String {
    let stripped = metadata.without_national_prefix(digits);
    match stripped {
        Some(stripped) if metadata.general.matches(&stripped) || !metadata.general.matches(digits) => stripped,
        _ => digits.to_owned(),
    }
}

/// The region and kind of a number, if it is assigned.
fn assigned(calling_code: u16, national: &str) -> Option<(Region, Kind)> {
    let regions: Vec<_> = metadata::of_code(calling_code).collect();
    let region = match *regions.as_slice() {
        [only] => only,
        _ => regions.into_iter().find(|region| match &region.leading_digits {
            Some(leading) => leading.begins(national),
            None => region.kind(national).is_some(),
        })?,
    };
    Some((Region(region), region.kind(national)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(text: &str, region: &str) -> String {
        let number = Number::parse(text, region.parse().unwrap());
        match number.and_then(|number| number.assigned.map(|assigned| (number, assigned))) {
            Some((number, (region, kind))) => format!("{} {} {region} {kind:?}", number.calling_code, number.national),
            None => "-".to_owned(),
        }
    }

    #[test]
    fn reads_numbers_as_libphonenumber_does() {
        let mut wrong = Vec::new();
        for line in include_str!("../cases.tsv").lines() {
            let [text, region, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let found = verdict(text, region);
            if found != expected {
                wrong.push(format!("{text} in {region}: {expected} became {found}"));
            }
        }
        assert!(wrong.is_empty(), "{}: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    }

    #[test]
    fn reads_digits_of_all_scripts() {
        for text in
            ["+86 138 0013 8000", "００８６１３８００１３８０００", "١٣٨٠٠١٣٨٠٠٠", "१३८००१३८०००", "tel:138-0013-8000"]
        {
            assert_eq!(verdict(text, "CN"), "86 13800138000 CN Mobile", "{text}");
        }
    }

    #[test]
    fn knows_regions_by_two_letters_only() {
        assert_eq!("GB".parse::<Region>().unwrap().calling_code(), 44);
        for text in ["", "gb", "001", "XX", "GBR"] {
            assert!(text.parse::<Region>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_number_is_read_from_its_own_form(text in "[+0-9 ]{0,24}|.*", region in "CN|US|IT|AR|MX|GB|RU") {
            let region = region.parse().unwrap();
            if let Some(number) = Number::parse(&text, region).filter(|number| number.assigned.is_some()) {
                prop_assert_eq!(Number::parse(&number.e164(), region), Some(number));
            }
        }
    }
}
