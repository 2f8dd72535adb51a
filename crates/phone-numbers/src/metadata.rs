//! The numbering plans, one line for each region.

use std::sync::{LazyLock, OnceLock};

use regex_lite::Regex;

use crate::Kind;

/// The fit of a count of digits with the numbers of a region.
pub enum Lengths {
    Possible,
    /// Possible inside of an area only.
    Local,
    TooShort,
    TooLong,
    /// Between two possible counts.
    Invalid,
}

/// A regular expression, compiled when it is first needed.
pub struct Pattern {
    source: &'static str,
    whole: OnceLock<Option<Regex>>,
    start: OnceLock<Option<Regex>>,
}

impl Pattern {
    const fn new(source: &'static str) -> Self {
        Self { source, whole: OnceLock::new(), start: OnceLock::new() }
    }

    /// Returns true if the pattern describes the whole text. An empty pattern describes none.
    pub fn matches(&self, text: &str) -> bool {
        let compile = || Regex::new(&format!("^(?:{})$", self.source)).ok();
        !self.source.is_empty() && self.whole.get_or_init(compile).as_ref().is_some_and(|regex| regex.is_match(text))
    }

    pub fn begins(&self, text: &str) -> bool {
        self.at_start().is_some_and(|regex| regex.is_match(text))
    }

    fn at_start(&self) -> Option<&Regex> {
        let compile = || Regex::new(&format!("^(?:{})", self.source)).ok();
        self.start.get_or_init(compile).as_ref()
    }
}

pub struct Metadata {
    pub calling_code: u16,
    pub region: &'static str,
    international_prefix: Pattern,
    national_prefix: Pattern,
    /// The text that takes the place of the national prefix and of what follows it.
    transform: &'static str,
    pub leading_digits: Option<Pattern>,
    lengths: Vec<usize>,
    local_lengths: Vec<usize>,
    pub general: Pattern,
    fixed_line: Pattern,
    mobile: Pattern,
    other: Pattern,
}

static METADATA: LazyLock<Vec<Metadata>> =
    LazyLock::new(|| include_str!("../metadata.tsv").lines().filter_map(read).collect());

pub fn all() -> &'static [Metadata] {
    &METADATA
}

/// The regions of a calling code, the one that it belongs to first.
pub fn of_code(calling_code: u16) -> impl Iterator<Item = &'static Metadata> {
    all().iter().filter(move |metadata| metadata.calling_code == calling_code)
}

pub fn main_of(calling_code: u16) -> Option<&'static Metadata> {
    of_code(calling_code).next()
}

fn read(line: &'static str) -> Option<Metadata> {
    let fields: [&str; 12] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let [code, region, international, national, transform, leading, lengths, local, general, fixed, mobile, other] =
        fields;
    let numbers = |list: &str| list.split(',').filter_map(|number| number.parse().ok()).collect();
    Some(Metadata {
        calling_code: code.parse().ok()?,
        region,
        international_prefix: Pattern::new(international),
        national_prefix: Pattern::new(national),
        transform,
        leading_digits: (!leading.is_empty()).then_some(Pattern::new(leading)),
        lengths: numbers(lengths),
        local_lengths: numbers(local),
        general: Pattern::new(general),
        fixed_line: Pattern::new(fixed),
        mobile: Pattern::new(mobile),
        other: Pattern::new(other),
    })
}

impl Metadata {
    pub fn length(&self, count: usize) -> Lengths {
        match (self.lengths.first(), self.lengths.last()) {
            _ if self.local_lengths.contains(&count) => Lengths::Local,
            _ if self.lengths.contains(&count) => Lengths::Possible,
            (Some(least), _) if count < *least => Lengths::TooShort,
            (_, Some(most)) if count > *most => Lengths::TooLong,
            _ => Lengths::Invalid,
        }
    }

    /// Removes the prefix of calls to other countries. No calling code begins with 0.
    pub fn without_international_prefix<'a>(&self, digits: &'a str) -> Option<&'a str> {
        let prefix = self.international_prefix.at_start()?.find(digits).filter(|found| !found.is_empty())?;
        digits.get(prefix.end()..).filter(|rest| !rest.starts_with('0'))
    }

    /// Removes the prefix of calls inside of the country.
    pub fn without_national_prefix(&self, digits: &str) -> Option<String> {
        if self.national_prefix.source.is_empty() {
            return None;
        }
        let prefix = self.national_prefix.at_start()?;
        let found = prefix.captures(digits)?;
        let last_group = found.get(prefix.captures_len() - 1);
        if self.transform.is_empty() || last_group.is_none() {
            return digits.get(found.get(0)?.end()..).map(str::to_owned);
        }
        Some(prefix.replace(digits, self.transform).into_owned())
    }

    pub fn kind(&self, national: &str) -> Option<Kind> {
        if !self.general.matches(national) {
            return None;
        }
        if self.other.matches(national) {
            return Some(Kind::Other);
        }
        let has_one_pattern = self.fixed_line.source == self.mobile.source;
        match self.fixed_line.matches(national) {
            true if has_one_pattern || self.mobile.matches(national) => Some(Kind::FixedLineOrMobile),
            true => Some(Kind::FixedLine),
            false => (!has_one_pattern && self.mobile.matches(national)).then_some(Kind::Mobile),
        }
    }
}
