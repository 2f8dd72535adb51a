//! Phone numbers in one canonical form.
//!
//! Every spelling of a number (spaces, full-width digits, `+86`, `0086`) becomes one text, so that one person has one
//! account and one budget. The text is the plain national digits for the default region, E.164 for the others.

use phone_numbers::{Kind, Number};
use serde::Serialize;
use smol_str::SmolStr;

use super::is_invisible;
use crate::error::{Fault, FieldCode};

/// Calling codes.
const ARGENTINA: u16 = 54;
const CHINA: u16 = 86;
const MEXICO: u16 = 52;

/// A country or territory, by its two-letter ISO 3166 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region(phone_numbers::Region);

impl std::str::FromStr for Region {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|()| format!("`{text}` is not a two-letter region code"))
    }
}

impl std::fmt::Display for Region {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The regions of accepted phone numbers.
#[derive(Clone, Debug)]
pub struct PhoneRules {
    /// The region of numbers written without a country code.
    pub default_region: Region,
    pub allowed_regions: Vec<Region>,
}

/// A mobile number of an allowed region, in canonical form. Stored inline, so that reading a user allocates nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct PhoneNumber(SmolStr);

impl PhoneNumber {
    /// Reads any spelling of a number.
    ///
    /// # Errors
    /// `invalid_format`, `not_mobile` or `region_not_allowed`.
    pub fn parse(text: &str, rules: &PhoneRules) -> Result<Self, Fault> {
        let text = text.trim();
        let text = text.strip_prefix("tel:").unwrap_or(text);
        // The library also takes vanity letters and extensions, and passes over what it cannot read.
        if text.chars().count() > 32 || !text.chars().all(is_phone_character) {
            return Err(invalid());
        }
        let text: String = text.chars().filter(|character| !is_invisible(*character)).collect();
        let default = rules.default_region;
        let number = read(&text, default.0).filter(is_assigned);
        let number = number.or_else(|| parse_after_zero(&text, default)).ok_or_else(invalid)?;
        let (region, kind) = number.assigned.ok_or_else(invalid)?;
        if !rules.allowed_regions.contains(&Region(region)) {
            return Err(Fault::new(
                FieldCode::RegionNotAllowed,
                ("numbers of this region are not served", "不支持该国家或地区的号码"),
            ));
        }
        if !matches!(kind, Kind::Mobile | Kind::FixedLineOrMobile) {
            return Err(Fault::new(FieldCode::NotMobile, ("must be a mobile number", "须为手机号")));
        }
        Ok(if region == default.0 { Self(number.national.into()) } else { Self(number.e164().into()) })
    }

    /// Takes a number that the service stored itself.
    pub fn from_canonical(text: &str) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number with `+` and its country code, as providers want it.
    pub fn e164(&self, rules: &PhoneRules) -> String {
        if self.0.starts_with('+') {
            return self.0.to_string();
        }
        format!("+{}{}", rules.default_region.0.calling_code(), self.0)
    }

    /// Returns the region of the number; none if several regions share its range.
    pub fn region(&self, rules: &PhoneRules) -> Option<Region> {
        // The canonical text of another region has its calling code.
        if !self.0.starts_with('+') {
            return Some(rules.default_region);
        }
        let (region, _) = read(&self.0, rules.default_region.0)?.assigned?;
        Some(Region(region))
    }

    /// The country code, and the number as it is inside of the country.
    pub fn code_and_national(&self, rules: &PhoneRules) -> (u16, String) {
        let region = rules.default_region.0;
        match read(&self.0, region) {
            Some(number) => (number.calling_code, number.national),
            None => (region.calling_code(), self.0.to_string()),
        }
    }
}

fn is_assigned(number: &Number) -> bool {
    number.assigned.is_some()
}

/// Reads a number whose country code stands behind a single zero: `086-13800138000`.
fn parse_after_zero(text: &str, region: Region) -> Option<Number> {
    let (before, after) = text.split_once(['0', '０'])?;
    if before.contains(|character: char| character.is_numeric() || "+＋".contains(character)) {
        return None;
    }
    let number = read(&format!("+{after}"), region.0).filter(is_assigned)?;
    (number.calling_code == region.0.calling_code()).then_some(number)
}

/// Reads a number and gives the spellings of one mobile number one form.
///
/// Numbers of Argentina are called with a 9 before the area from abroad, and written without it. Address books hold
/// numbers of Mexico with a 1 that was given up. The metadata lacks numbers of China Telecom that begin with 149.
fn read(text: &str, default: phone_numbers::Region) -> Option<Number> {
    let number = Number::parse(text, default)?;
    let kind = number.assigned.map(|(_, kind)| kind);
    let national = match (number.calling_code, kind) {
        (ARGENTINA, Some(Kind::FixedLine)) => format!("9{}", number.national),
        (MEXICO, None) => number.national.strip_prefix('1').unwrap_or_default().to_owned(),
        (CHINA, None) if number.national.starts_with("149") && number.national.len() == 11 => {
            return Some(Number { assigned: Some(("CN".parse().ok()?, Kind::Mobile)), ..number });
        }
        _ => return Some(number),
    };
    let other = Number::parse(&format!("+{}{national}", number.calling_code), default);
    other.filter(is_assigned).or(Some(number))
}

/// Returns true for digits, for what people put between them, and for the invisible marks that come with a number copied
/// from a contact.
fn is_phone_character(character: char) -> bool {
    character.is_numeric()
        || character.is_whitespace()
        || "+＋-‐‑–−－.()（）".contains(character)
        || is_invisible(character) && !character.is_control()
}

fn invalid() -> Fault {
    Fault::new(FieldCode::InvalidFormat, ("must be a phone number", "须为电话号码"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> PhoneRules {
        let region = |code: &str| code.parse().unwrap();
        PhoneRules { default_region: region("CN"), allowed_regions: vec![region("CN"), region("GB")] }
    }

    #[test]
    fn normalises_all_spellings() {
        let spellings = [
            "13800138000",
            " 138 0013 8000 ",
            "+8613800138000",
            "008613800138000",
            "086-13800138000",
            "(086) 138 0013 8000",
            "０８６－13800138000",
            "08613800138000",
            "86-13800138000",
            "138-0013-8000",
            "１３８００１３８０００",
            "\u{202d}138 0013 8000\u{202c}",
            "\u{feff}13800138000",
            "tel:+86-13800138000",
            "138−0013−8000",
        ];
        for spelling in spellings {
            let number = PhoneNumber::parse(spelling, &rules()).unwrap();
            assert_eq!(number.as_str(), "13800138000", "{spelling}");
            assert_eq!(number.e164(&rules()), "+8613800138000");
        }
    }

    #[test]
    fn all_chinese_data_card_ranges_are_mobile() {
        for number in ["14501234567", "14701234567", "14901234567"] {
            let parsed = PhoneNumber::parse(number, &rules()).unwrap();
            assert_eq!((parsed.as_str(), parsed.region(&rules())), (number, Some(rules().default_region)));
        }
        assert_eq!(PhoneNumber::parse("1490123456", &rules()).unwrap_err().code, FieldCode::InvalidFormat);
    }

    #[test]
    fn keeps_the_country_code_of_other_regions() {
        assert_eq!(PhoneNumber::parse("+44 7400 123456", &rules()).unwrap().as_str(), "+447400123456");
    }

    #[test]
    fn both_spellings_of_a_number_are_one() {
        let regions = ["AR", "MX"].map(|code| code.parse().unwrap());
        let rules = PhoneRules { allowed_regions: regions.to_vec(), ..rules() };
        for (expected, spellings) in [
            ("+5491123456789", ["+54 9 11 2345 6789", "+54 11 2345 6789", "+54 011 15 2345 6789"]),
            ("+525512345678", ["+52 55 1234 5678", "+52 1 55 1234 5678", "0052 1 5512345678"]),
        ] {
            for spelling in spellings {
                assert_eq!(PhoneNumber::parse(spelling, &rules).unwrap().as_str(), expected, "{spelling}");
            }
        }
    }

    #[test]
    fn rejects_numbers_that_are_not_allowed_mobile_numbers() {
        let code = |text: &str| PhoneNumber::parse(text, &rules()).unwrap_err().code;
        assert_eq!(code("01062345678"), FieldCode::NotMobile);
        assert_eq!(code("+12025550123"), FieldCode::RegionNotAllowed);
        for text in [
            "",
            "abc",
            "123",
            "1380013800",
            "138001380000",
            "044-7400123456",
            "0013800138000",
            "13800138000 ext 5",
            "1380013800O",
            "13800138000\0",
            "13800138000#5",
            "13800138000/1",
            "13800138000;",
        ] {
            assert_eq!(code(text), FieldCode::InvalidFormat, "{text}");
        }
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn canonical_numbers_parse_to_themselves(text in "[ +＋0-9０-９().（）-]{0,24}|.*") {
                if let Ok(number) = PhoneNumber::parse(&text, &rules()) {
                    prop_assert_eq!(PhoneNumber::parse(number.as_str(), &rules()), Ok(number.clone()));
                    prop_assert_eq!(PhoneNumber::parse(&number.e164(&rules()), &rules()), Ok(number));
                }
            }

            #[test]
            fn ignores_prefixes_and_separators(digits in "13[0-9]{9}", prefix in "(\\+86|0086|86 |)", gap in "[ -]?", at in 3_usize..8) {
                let spelling = format!("{prefix}{}{gap}{}", &digits[..at], &digits[at..]);
                prop_assume!(!prefix.starts_with("86"));
                let read = PhoneNumber::parse(&spelling, &rules()).unwrap();
                prop_assert_eq!(read.as_str(), digits);
            }
        }
    }
}
