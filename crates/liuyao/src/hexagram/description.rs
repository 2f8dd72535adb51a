//! Describes a cast to the interpreters as plain data.
//!
//! Providers do not know this module. Every text is looked up here, in one language, and passed on as an owned string.

use super::cast::Cast;
use super::catalog::{Hexagram, Trigram};
use super::reading::Facts;
use crate::Locale;
use crate::interpreter::{ChangingLine, HexagramDescription, HexagramFacts, TrigramDescription};

impl Facts {
    /// Returns the facts in the words of one language, for an interpreter.
    pub fn described(&self, locale: Locale) -> HexagramFacts {
        let describe = |hexagram: Hexagram| describe_hexagram(hexagram, locale);
        HexagramFacts {
            primary: self.primary.map(describe),
            relating: self.relating.map(describe),
            nuclear: self.primary.map(Hexagram::nuclear).map(describe),
            changing: self.cast.map(|cast| describe_changes(cast, locale)),
            has_assumptions: self.has_assumptions(),
            evidence: self.found.iter().map(|it| it.sentence(locale)).collect(),
            conflicts: self.conflicts.iter().map(|it| it.sentence(locale)).collect(),
        }
    }
}

fn describe_hexagram(hexagram: Hexagram, locale: Locale) -> HexagramDescription {
    HexagramDescription {
        number: hexagram.number(),
        sign: hexagram.sign().to_owned(),
        chinese_name: hexagram.chinese_name().to_owned(),
        chinese_full_name: hexagram.chinese_full_name().to_owned(),
        pinyin: hexagram.pinyin().to_owned(),
        english_name: hexagram.english_name().to_owned(),
        counsel: hexagram.counsel(locale).to_owned(),
        image: hexagram.image(locale).to_owned(),
        upper: describe_trigram(hexagram.upper(), locale),
        lower: describe_trigram(hexagram.lower(), locale),
    }
}

fn describe_trigram(trigram: Trigram, locale: Locale) -> TrigramDescription {
    TrigramDescription {
        sign: trigram.sign().to_owned(),
        chinese_name: trigram.chinese_name().to_owned(),
        pinyin: trigram.pinyin().to_owned(),
        english_name: trigram.english_name().to_owned(),
        image: trigram.image(locale).to_owned(),
        attribute: trigram.attribute(locale).to_owned(),
    }
}

fn describe_changes(cast: Cast, locale: Locale) -> Vec<ChangingLine> {
    let figure = cast.primary().figure();
    cast.changing()
        .into_iter()
        .map(|position| ChangingLine {
            position,
            name: cast.line_name(position, locale),
            is_from_yang: figure[usize::from(position) - 1],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::reading::read;
    use super::*;
    use crate::interpreter::{Reading, interpret};

    #[test]
    fn a_cast_is_described_in_one_language() {
        let facts = read(r#"{"lines": [9, 8, 8, 8, 7, 6]}"#);
        let chinese = facts.described(Locale::Chinese);
        let primary = chinese.primary.unwrap();
        assert_eq!((primary.number, primary.sign.as_str()), (3, "䷂"));
        assert_eq!(primary.upper.image, "水");
        assert_eq!(chinese.relating.unwrap().chinese_full_name, "风地观");
        assert_eq!(chinese.nuclear.unwrap().chinese_full_name, "山地剥");
        let changing = chinese.changing.unwrap();
        let named: Vec<(u8, &str, bool)> =
            changing.iter().map(|line| (line.position, line.name.as_str(), line.is_from_yang)).collect();
        assert_eq!(named, [(1, "初九", true), (6, "上六", false)]);
        let english = facts.described(Locale::English);
        assert_eq!(english.primary.unwrap().upper.attribute, "danger");
        assert_eq!(english.evidence, ["the field lines was read as six lines, bottom up 9, 8, 8, 8, 7, 6"]);
    }

    #[test]
    fn unknown_changes_stay_unknown() {
        let described = read("得屯卦").described(Locale::English);
        assert!(described.primary.is_some());
        assert_eq!(described.changing, None);
    }

    #[test]
    fn describes_every_cast_in_both_languages() {
        for primary in Hexagram::all() {
            for relating in Hexagram::all() {
                let changing = primary.differing_positions(relating);
                let facts = Facts::from_cast(Cast::from_hexagram(primary, &changing));
                let reading = Reading {
                    locale: Locale::Chinese,
                    question_type: None,
                    question: String::new(),
                    asker: None,
                    facts: facts.described(Locale::Chinese),
                    classic: None,
                    method: None,
                    chart: None,
                    body_and_use: None,
                    missing_person: None,
                };
                let text = interpret(&reading);
                assert!(text.contains(primary.chinese_full_name()));
                assert!(text.contains(relating.chinese_full_name()));
                let reading = Reading { locale: Locale::English, facts: facts.described(Locale::English), ..reading };
                let text = interpret(&reading);
                assert!(text.contains(primary.counsel(Locale::English)));
                assert!(text.contains(relating.english_name()));
            }
        }
    }
}
