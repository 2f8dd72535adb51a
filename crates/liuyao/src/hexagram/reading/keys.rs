//! Classifies field names.
//!
//! Names are compared without case, separators or the difference between traditional and simplified characters:
//! `benGua`, `ben_gua` and `BENGUA` are equal. The value of an unknown name ([`Key::Other`]) is searched but never
//! counts as a hexagram. The nuclear, opposite and inverse hexagrams are ignored on purpose, because they follow from
//! the primary one and could be mistaken for it.

use super::{HexagramRole, normalize};

/// Maximum characters of a field name that are compared.
const MAX_KEY_LENGTH: usize = 64;

/// The meaning of a field, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A hexagram. Without a role it is the hexagram of the enclosing object. Numbers and English names count only
    /// under a firm name.
    Hexagram {
        role: Option<HexagramRole>,
        is_firm: bool,
    },
    /// Six lines. A firm name has no other meaning.
    Lines {
        role: Option<HexagramRole>,
        is_firm: bool,
    },
    Changing,
    UpperTrigram,
    LowerTrigram,
    /// A number that identifies a hexagram, unless it is the key of a database table.
    HexagramIdentifier(Option<HexagramRole>),
    /// A property that identifies the hexagram of the enclosing object.
    Identity(HexagramKey),
    /// A value that must not be read as the cast.
    Ignored,
    Other,
}

/// The kind of an identifying property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HexagramKey {
    /// A name, or a sign.
    Name,
    /// The King Wen number.
    Number,
    /// A number that may have another meaning.
    Identifier,
}

/// The meaning of a field of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineField {
    /// The line itself. Of several such fields the one with the lowest rank counts.
    Value(usize),
    IsYin,
    Changing,
    Position,
    Other,
}

const PRIMARY_STEMS: &str = "primary bengua 本卦";
const LOOSE_PRIMARY_STEMS: &str = "ben zhugua zhu main original orig base present current 主卦 原卦 正卦";
const RELATING_STEMS: &str = "relating biangua zhigua resulting transformed 变卦 之卦";
const LOOSE_RELATING_STEMS: &str = "bian zhi changed change changingto transforming future secondary second target \
    derived becoming";
const GENERIC_STEMS: &str = "hexagram hex gua guaxiang kingwen 卦 得卦";

const HEXAGRAM_SUFFIXES: &str = "hexagram gua name names ming guaname guaming hexagramname number no num order \
    hexagramnumber hexagramno symbol sign unicode 名 名称 序 象";
const IDENTIFIER_SUFFIXES: &str = "id hexagramid guaid";
const LINES_SUFFIXES: &str = "lines yao yaos yaolist binary code linevalues";

const LINES: &str = "lines yao yaos yaolist yaolines yaovalues yaoxiang sixlines sixyao sixyaos liuyao \
    liuyaos linevalues 六爻 爻";
const LOOSE_LINES: &str = "line values throws tosses coins coinresults cast casts results binary bits code \
    pattern figure 爻象 卦爻";
const CHANGING: &str = "changing changinglines changingline changingpositions changinglinepositions \
    changinglinenumbers changingyao changingyaos changedlines changelines moving \
    movinglines movingline movingpositions movingposition movingyao movingyaos dong \
    dongyao dongyaos dongyaolist bianyao 动爻 变爻";
const UPPER: &str = "upper uppertrigram uppergua shanggua outer outertrigram waigua above top 上卦 外卦";
const LOWER: &str = "lower lowertrigram lowergua xiagua inner innertrigram neigua below bottom 下卦 内卦";
const NAMES: &str = "name names chinesename namecn namezh zhname cnname fullname longname chinesefullname \
    shortname title zh cn en chinese english englishname nameen enname symbol sign \
    unicode glyph 名 名称";
const NUMBERS: &str = "number no num kingwennumber 序号";
const IDENTIFIERS: &str = "id order sequence xu";
const IGNORED: &str = "hugua hu inter intername interhexagram mutual mutualhexagram cuogua zonggua opposite \
    inverse inverted reverse reversed complement query airesult analysis answer user \
    nickname 互卦 错卦 综卦 问题 解读 解析";
const IGNORED_STARTS: &str = "nuclear hugua opposite inverse question interpret explan prompt";

/// Classifies a field by its name.
pub(super) fn classify(key: &str) -> Key {
    let key = bare(key);
    let is = |list: &'static str| words(list).any(|word| word == key);
    if is(IGNORED) || words(IGNORED_STARTS).any(|start| key.starts_with(start)) {
        return Key::Ignored;
    }
    if is(CHANGING) {
        return Key::Changing;
    }
    if is(LINES) || is(LOOSE_LINES) {
        let is_firm = is(LINES);
        return Key::Lines { role: None, is_firm };
    }
    if is(UPPER) {
        return Key::UpperTrigram;
    }
    if is(LOWER) {
        return Key::LowerTrigram;
    }
    if is(NAMES) {
        return Key::Identity(HexagramKey::Name);
    }
    if is(NUMBERS) {
        return Key::Identity(HexagramKey::Number);
    }
    if is(IDENTIFIERS) {
        return Key::Identity(HexagramKey::Identifier);
    }
    composed(&key).unwrap_or(Key::Other)
}

/// Classifies a field inside the object of one line.
pub(super) fn line_field(key: &str) -> LineField {
    match bare(key).as_str() {
        "value" | "val" => LineField::Value(0),
        "sum" | "total" => LineField::Value(1),
        "number" | "num" => LineField::Value(2),
        "type" | "kind" => LineField::Value(3),
        "yinyang" | "polarity" | "nature" | "阴阳" => LineField::Value(4),
        "isyang" | "yang" => LineField::Value(5),
        "yao" | "line" | "爻" => LineField::Value(6),
        "code" | "state" | "symbol" => LineField::Value(7),
        "name" | "名" => LineField::Value(8),
        "coins" | "coinvalues" => LineField::Value(9),
        "isyin" | "yin" => LineField::IsYin,
        "changing" | "ischanging" | "moving" | "ismoving" | "changed" | "change" | "dong" | "isdong" | "isbian"
        | "动" | "动爻" => LineField::Changing,
        "position" | "pos" | "index" | "place" | "level" | "yaowei" | "爻位" => LineField::Position,
        _ => LineField::Other,
    }
}

/// Returns a name without case and separators.
pub(super) fn bare(key: &str) -> String {
    let start: String = key.chars().take(MAX_KEY_LENGTH).collect();
    normalize::normalize(&start).chars().filter(|letter| letter.is_alphanumeric()).collect()
}

fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(' ')
}

/// Splits a name into a stem (which hexagram) and a suffix (which property of it).
fn composed(key: &str) -> Option<Key> {
    let families: [(&str, Option<HexagramRole>, bool); 5] = [
        (PRIMARY_STEMS, Some(HexagramRole::Primary), true),
        (LOOSE_PRIMARY_STEMS, Some(HexagramRole::Primary), false),
        (RELATING_STEMS, Some(HexagramRole::Relating), true),
        (LOOSE_RELATING_STEMS, Some(HexagramRole::Relating), false),
        (GENERIC_STEMS, None, true),
    ];
    families.into_iter().find_map(|(stems, role, is_firm)| {
        words(stems).filter_map(|stem| key.strip_prefix(stem)).find_map(|suffix| of_suffix(suffix, role, is_firm))
    })
}

/// A suffix about hexagrams makes a loose stem firm.
fn of_suffix(suffix: &str, role: Option<HexagramRole>, is_firm: bool) -> Option<Key> {
    if suffix.is_empty() || words(HEXAGRAM_SUFFIXES).any(|word| word == suffix) {
        let is_firm = is_firm || suffix.contains("hexagram") || suffix.contains("gua");
        return Some(Key::Hexagram { role, is_firm });
    }
    if words(LINES_SUFFIXES).any(|word| word == suffix) {
        return Some(Key::Lines { role, is_firm });
    }
    let is_identifier = words(IDENTIFIER_SUFFIXES).any(|word| word == suffix);
    (is_firm && is_identifier).then_some(Key::HexagramIdentifier(role))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hexagram(role: Option<HexagramRole>, is_firm: bool) -> Key {
        Key::Hexagram { role, is_firm }
    }

    #[test]
    fn spelling_of_names_makes_no_difference() {
        for key in ["benGua", "ben_gua", "BenGua", "ben-gua", "本卦", "primary", "primaryHexagram"] {
            assert_eq!(classify(key), hexagram(Some(HexagramRole::Primary), true), "{key}");
        }
        for key in ["bianGua", "zhi_gua", "变卦", "變卦", "之卦", "relatingHexagram", "bianguaming"] {
            assert_eq!(classify(key), hexagram(Some(HexagramRole::Relating), true), "{key}");
        }
        for key in ["hexagram", "gua", "guaName", "gua_ming", "hexagramNumber", "kingWen", "卦名"] {
            assert_eq!(classify(key), hexagram(None, true), "{key}");
        }
    }

    #[test]
    fn a_stem_without_suffix_is_loose() {
        assert_eq!(classify("original"), hexagram(Some(HexagramRole::Primary), false));
        assert_eq!(classify("originalHexagram"), hexagram(Some(HexagramRole::Primary), true));
        assert_eq!(classify("mainGua"), hexagram(Some(HexagramRole::Primary), true));
        assert_eq!(classify("changedName"), hexagram(Some(HexagramRole::Relating), false));
        assert_eq!(classify("transformedHexagram"), hexagram(Some(HexagramRole::Relating), true));
    }

    #[test]
    fn distinguishes_lines_and_changes() {
        let lines = |role, is_firm| Key::Lines { role, is_firm };
        for key in ["lines", "yao", "yaos", "sixLines", "liuyao", "六爻", "line_values"] {
            assert_eq!(classify(key), lines(None, true), "{key}");
        }
        assert_eq!(classify("binary"), lines(None, false));
        assert_eq!(classify("primaryLines"), lines(Some(HexagramRole::Primary), true));
        for key in ["changing", "changingLines", "movingLines", "dongYao", "动爻", "變爻"] {
            assert_eq!(classify(key), Key::Changing, "{key}");
        }
    }

    #[test]
    fn distinguishes_identifiers_and_numbers() {
        assert_eq!(classify("hexagramId"), Key::HexagramIdentifier(None));
        let relating = Some(HexagramRole::Relating);
        assert_eq!(classify("bianGuaId"), Key::HexagramIdentifier(relating));
        assert_eq!(classify("id"), Key::Identity(HexagramKey::Identifier));
        assert_eq!(classify("mainId"), Key::Other);
    }

    #[test]
    fn fields_that_do_not_describe_the_cast_are_ignored() {
        for key in ["nuclear", "nuclearHexagram", "huGua", "互卦", "question", "aiResult", "综卦"] {
            assert_eq!(classify(key), Key::Ignored, "{key}");
        }
        for key in ["", "data", "result", "castAt", "createdAt", "guardian", "benefit"] {
            assert_eq!(classify(key), Key::Other, "{key}");
        }
    }
}
