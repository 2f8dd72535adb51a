//! Phone numbers in one canonical form.
//!
//! Every spelling of a number (spaces, full-width digits, `+86`, `0086`) becomes one text, so that one person has one
//! account and one budget. The text is the plain national digits for the default region, E.164 for the others.

use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberFormat, PhoneNumberType};
use serde::Serialize;
use smol_str::SmolStr;

use super::is_invisible;
use crate::error::{Fault, FieldCode};

/// The country code of China.
const CHINA: i32 = 86;

/// A country or territory, by its two-letter ISO 3166 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region(rlibphonenumber::Region);

impl std::str::FromStr for Region {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| format!("`{text}` is not a two-letter region code"))
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
        let parse = |text: &str| PHONE_NUMBER_UTIL.parse(text, Some(rules.default_region.0)).ok().filter(is_valid);
        let number = parse(&text).or_else(|| parse_after_zero(&text, rules.default_region)).ok_or_else(invalid)?;
        let region = number.get_region_code().ok_or_else(invalid)?;
        let type_of_number = type_of(&number);
        if !rules.allowed_regions.contains(&Region(region)) {
            return Err(Fault::new(
                FieldCode::RegionNotAllowed,
                ("numbers of this region are not served", "不支持该国家或地区的号码"),
            ));
        }
        if !matches!(type_of_number, PhoneNumberType::Mobile | PhoneNumberType::FixedLineOrMobile) {
            return Err(Fault::new(FieldCode::NotMobile, ("must be a mobile number", "须为手机号")));
        }
        Ok(if region == rules.default_region.0 {
            Self::from_canonical(&number.get_national_significant_number())
        } else {
            Self::from_canonical(&number.format_as(PhoneNumberFormat::E164))
        })
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
        format!("+{}{}", code_of(rules.default_region), self.0)
    }

    /// Returns the region of the number; none if several regions share its range.
    pub fn region(&self, rules: &PhoneRules) -> Option<Region> {
        let number = PHONE_NUMBER_UTIL.parse(&self.0, Some(rules.default_region.0)).ok()?;
        number.get_region_code().map(Region)
    }

    /// The country code, and the number as it is inside of the country.
    pub fn code_and_national(&self, rules: &PhoneRules) -> (i32, String) {
        match PHONE_NUMBER_UTIL.parse(&self.0, Some(rules.default_region.0)) {
            Ok(number) => (number.country_code, number.get_national_significant_number()),
            Err(_) => (code_of(rules.default_region), self.0.to_string()),
        }
    }
}

/// Returns true if the number is valid in its region. One that is not is of no type.
fn is_valid(number: &rlibphonenumber::PhoneNumber) -> bool {
    type_of(number) != PhoneNumberType::Unknown
}

/// Reads a number whose country code stands behind a single zero: `086-13800138000`.
fn parse_after_zero(text: &str, region: Region) -> Option<rlibphonenumber::PhoneNumber> {
    let (before, after) = text.split_once(['0', '０'])?;
    if before.contains(|character: char| character.is_numeric() || "+＋".contains(character)) {
        return None;
    }
    let number = PHONE_NUMBER_UTIL.parse(format!("+{after}"), Some(region.0)).ok().filter(is_valid)?;
    (number.country_code == code_of(region)).then_some(number)
}

/// Returns the type of a number. The library does not know the mobile numbers of China Telecom that begin with 149.
fn type_of(number: &rlibphonenumber::PhoneNumber) -> PhoneNumberType {
    let is_in_china = number.country_code == CHINA;
    match number.get_type() {
        PhoneNumberType::Unknown if is_in_china => {
            let national = number.get_national_significant_number();
            let is_mobile = national.starts_with("149") && national.len() == 11;
            if is_mobile { PhoneNumberType::Mobile } else { PhoneNumberType::Unknown }
        }
        known => known,
    }
}

fn code_of(region: Region) -> i32 {
    PHONE_NUMBER_UTIL.get_country_code_for_region(region.0).unwrap_or_default()
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
            assert_eq!(PhoneNumber::parse(number, &rules()).unwrap().as_str(), number);
        }
        assert_eq!(PhoneNumber::parse("1490123456", &rules()).unwrap_err().code, FieldCode::InvalidFormat);
    }

    #[test]
    fn keeps_the_country_code_of_other_regions() {
        assert_eq!(PhoneNumber::parse("+44 7400 123456", &rules()).unwrap().as_str(), "+447400123456");
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
