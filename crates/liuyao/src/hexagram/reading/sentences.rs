//! Sentences about what was read from which field, and what was not used.
//!
//! Each is one sentence without a full stop, fit for a list. The only client value repeated is the field's name,
//! reduced to letters and digits.

use super::super::catalog::Hexagram;
use super::{AcceptedContent, Conflict, Content, Count, Evidence, HexagramRole, LineOrder, NameForm, ReadingFault};
use crate::Locale;

impl Evidence {
    /// Returns a sentence about the value and its source.
    pub fn sentence(&self, locale: Locale) -> String {
        let read_as = read_as(&self.content, locale);
        let is_concluded = matches!(self.content, Content::Compared(_) | Content::TurnedBack(_));
        match locale {
            _ if is_concluded => read_as,
            Locale::Chinese => format!("{}读作{read_as}", field(&self.path, locale)),
            Locale::English => format!("{} was read as {read_as}", field(&self.path, locale)),
        }
    }
}

impl Conflict {
    /// Returns a sentence about the unused value and the reason.
    pub fn sentence(&self, locale: Locale) -> String {
        match (self, locale) {
            (Self::Contradiction { dropped, kept }, Locale::Chinese) => {
                let kept = kept_words(kept, locale);
                format!("{}，与所采用的{kept}不符，未予采用", dropped.sentence(locale))
            }
            (Self::Contradiction { dropped, kept }, Locale::English) => {
                let kept = kept_words(kept, locale);
                let dropped = dropped.sentence(locale);
                format!("{dropped}, which contradicts {kept} and was set aside")
            }
            (Self::Unreadable { path, problem }, Locale::Chinese) => {
                format!("{}{}", field(path, locale), problem_in_chinese(*problem))
            }
            (Self::Unreadable { path, problem }, Locale::English) => {
                format!("{} {}", field(path, locale), problem_in_english(*problem))
            }
        }
    }
}

fn field(path: &str, locale: Locale) -> String {
    match (path, locale) {
        ("", Locale::Chinese) => "所给数据".to_owned(),
        ("", Locale::English) => "the data as a whole".to_owned(),
        (path, Locale::Chinese) => format!("字段 {path} "),
        (path, Locale::English) => format!("the field {path}"),
    }
}

fn read_as(content: &Content, locale: Locale) -> String {
    match (content, locale) {
        (Content::Lines { lines, order }, Locale::Chinese) => {
            let values = listed(&lines.values(), locale);
            format!("自下而上的六爻 {values}{}", order_words(*order, locale))
        }
        (Content::Lines { lines, order }, Locale::English) => {
            let values = listed(&lines.values(), locale);
            let order = order_words(*order, locale);
            format!("six lines, bottom up {values}{order}")
        }
        (Content::Hexagram { role, hexagram, form }, Locale::Chinese) => {
            let name = hexagram_words(*role, *hexagram, locale);
            format!("{name}，{}", form_words(*form, locale))
        }
        (Content::Hexagram { role, hexagram, form }, Locale::English) => {
            let name = hexagram_words(*role, *hexagram, locale);
            format!("{name} ({})", form_words(*form, locale))
        }
        (Content::Changing(positions), _) => changing_words(positions, locale),
        (Content::Recounted(positions, count), _) => {
            format!("{}{}", changing_words(positions, locale), count_words(*count, locale))
        }
        (Content::Compared(positions), Locale::Chinese) => {
            format!("本卦与变卦相比较，得出{}", changing_words(positions, locale))
        }
        (Content::Compared(positions), Locale::English) => {
            format!("comparing the two hexagrams gives {}", changing_words(positions, locale))
        }
        (Content::TurnedBack(hexagram), Locale::Chinese) => {
            format!("由变卦将动爻还原，得出{}", hexagram_words(HexagramRole::Primary, *hexagram, locale))
        }
        (Content::TurnedBack(hexagram), Locale::English) => format!(
            "turning the changing lines of the relating hexagram back gives {}",
            hexagram_words(HexagramRole::Primary, *hexagram, locale)
        ),
    }
}

fn kept_words(kept: &AcceptedContent, locale: Locale) -> String {
    match (kept, locale) {
        (AcceptedContent::Lines(lines), Locale::Chinese) => {
            format!("六爻 {} ", listed(&lines.values(), locale))
        }
        (AcceptedContent::Lines(lines), Locale::English) => {
            format!("the six lines {}", listed(&lines.values(), locale))
        }
        (AcceptedContent::Hexagram(role, hexagram), _) => hexagram_words(*role, *hexagram, locale),
        (AcceptedContent::NothingChanges, Locale::Chinese) => "六爻安静、无动爻".to_owned(),
        (AcceptedContent::NothingChanges, Locale::English) => "a cast without changing lines".to_owned(),
        (AcceptedContent::Changing(positions), _) => changing_words(positions, locale),
    }
}

fn hexagram_words(role: HexagramRole, hexagram: Hexagram, locale: Locale) -> String {
    let number = hexagram.number();
    match (role, locale) {
        (HexagramRole::Primary, Locale::Chinese) => {
            format!("本卦「{}」（第{number}卦）", hexagram.chinese_full_name())
        }
        (HexagramRole::Relating, Locale::Chinese) => {
            format!("变卦「{}」（第{number}卦）", hexagram.chinese_full_name())
        }
        (HexagramRole::Primary, Locale::English) => {
            format!("the primary hexagram {number}, {}", hexagram.english_name())
        }
        (HexagramRole::Relating, Locale::English) => {
            format!("the relating hexagram {number}, {}", hexagram.english_name())
        }
    }
}

fn form_words(form: NameForm, locale: Locale) -> String {
    let (chinese, english) = match form {
        NameForm::YinYang(order) => {
            let order = order_words(order, locale);
            return match locale {
                Locale::Chinese => format!("按阴阳六爻{order}"),
                Locale::English => format!("by six lines of yin and yang{order}"),
            };
        }
        NameForm::Trigrams => ("按上下卦", "by its trigrams"),
        NameForm::FullName | NameForm::ShortName => ("按卦名", "by its Chinese name"),
        NameForm::Sign => ("按卦符", "by its sign"),
        NameForm::EnglishName => ("按英文卦名", "by its English name"),
        NameForm::Number => ("按卦序", "by its King Wen number"),
        NameForm::Identifier => ("按编号，假定为卦序", "by a number assumed to be the King Wen number"),
    };
    match locale {
        Locale::Chinese => chinese.to_owned(),
        Locale::English => english.to_owned(),
    }
}

/// Bottom up is the custom and is not mentioned.
fn order_words(order: LineOrder, locale: Locale) -> &'static str {
    match (order, locale) {
        (LineOrder::BottomUp, _) => "",
        (LineOrder::Stated, Locale::Chinese) => "，爻位由数据标明",
        (LineOrder::Stated, Locale::English) => ", placed as the data states",
        (LineOrder::TopDown, Locale::Chinese) => "，原数据自上而下排列，如此方与卦名相合",
        (LineOrder::TopDown, Locale::English) => {
            ", listed from the top down, since only so do they form the named hexagram"
        }
    }
}

fn count_words(count: Count, locale: Locale) -> &'static str {
    match (count, locale) {
        (Count::FromZero, Locale::Chinese) => "，原数据从零数起，如此方与变卦相合",
        (Count::FromTop, Locale::Chinese) => "，原数据自上而下数，如此方与变卦相合",
        (Count::FromZero, Locale::English) => {
            ", counted from zero, since only so do they lead to the relating hexagram"
        }
        (Count::FromTop, Locale::English) => {
            ", counted from the top, since only so do they lead to the relating hexagram"
        }
    }
}

fn changing_words(positions: &[u8], locale: Locale) -> String {
    match (positions, locale) {
        ([], Locale::Chinese) => "无动爻".to_owned(),
        ([], Locale::English) => "no changing lines".to_owned(),
        (positions, Locale::Chinese) => format!("动爻第 {} 爻", listed(positions, locale)),
        ([position], Locale::English) => format!("changing line {position}"),
        (positions, Locale::English) => format!("changing lines {}", listed(positions, locale)),
    }
}

fn listed(numbers: &[u8], locale: Locale) -> String {
    let separator = match locale {
        Locale::Chinese => "、",
        Locale::English => ", ",
    };
    let numbers: Vec<String> = numbers.iter().map(u8::to_string).collect();
    numbers.join(separator)
}

fn problem_in_chinese(problem: ReadingFault) -> &'static str {
    match problem {
        ReadingFault::TooLarge => "超过 64 KiB，未予读取",
        ReadingFault::TooDeep => "嵌套过深，未予读取",
        ReadingFault::NotSixLines => "读不出六爻",
        ReadingFault::NotPositions => "读不出动爻的爻位",
        ReadingFault::NotAHexagram => "读不出卦名或卦序",
        ReadingFault::SeveralHexagrams => "提到了几个卦，但没有说明哪一个是本卦",
    }
}

fn problem_in_english(problem: ReadingFault) -> &'static str {
    match problem {
        ReadingFault::TooLarge => "is larger than 64 KiB and was not read",
        ReadingFault::TooDeep => "is nested too deeply and was not read",
        ReadingFault::NotSixLines => "could not be read as six lines",
        ReadingFault::NotPositions => "could not be read as positions of changing lines",
        ReadingFault::NotAHexagram => "could not be read as a hexagram",
        ReadingFault::SeveralHexagrams => "names several hexagrams without saying which one is the primary",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(content: Content, locale: Locale) -> String {
        let path = "benGua".to_owned();
        Evidence { path, content }.sentence(locale)
    }

    #[test]
    fn evidence_names_field_value_and_form() {
        let hexagram = Hexagram::from_number(3).unwrap();
        let content = Content::Hexagram { role: HexagramRole::Primary, hexagram, form: NameForm::FullName };
        assert_eq!(sentence(content.clone(), Locale::Chinese), "字段 benGua 读作本卦「水雷屯」（第3卦），按卦名");
        assert_eq!(
            sentence(content, Locale::English),
            "the field benGua was read as the primary hexagram 3, Difficulty at the Beginning \
             (by its Chinese name)"
        );
    }

    #[test]
    fn evidence_states_the_order_of_lines() {
        let content = Content::Lines { lines: "789678".parse().unwrap(), order: LineOrder::TopDown };
        let english = sentence(content.clone(), Locale::English);
        assert!(english.contains("bottom up 7, 8, 9, 6, 7, 8, listed from the top down"));
        assert!(sentence(content, Locale::Chinese).contains("7、8、9、6、7、8，原数据自上而下"));
    }

    #[test]
    fn conflicts_name_both_values() {
        let conflict = Conflict::Contradiction {
            dropped: Evidence { path: "name".to_owned(), content: Content::Changing(vec![1, 2]) },
            kept: AcceptedContent::NothingChanges,
        };
        assert_eq!(
            conflict.sentence(Locale::English),
            "the field name was read as changing lines 1, 2, which contradicts a cast without \
             changing lines and was set aside"
        );
        assert_eq!(
            conflict.sentence(Locale::Chinese),
            "字段 name 读作动爻第 1、2 爻，与所采用的六爻安静、无动爻不符，未予采用"
        );
    }

    #[test]
    fn names_the_data_as_a_whole_without_field() {
        let conflict = Conflict::Unreadable { path: String::new(), problem: ReadingFault::TooLarge };
        assert_eq!(conflict.sentence(Locale::English), "the data as a whole is larger than 64 KiB and was not read");
        assert_eq!(conflict.sentence(Locale::Chinese), "所给数据超过 64 KiB，未予读取");
    }
}
