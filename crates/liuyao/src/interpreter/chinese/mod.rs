//! The wording of an interpretation in simplified Chinese.

mod chart;
mod counsel;
mod terms;

use super::assessment::{Assessment, Outlook, assess};
use super::auspice::Auspice;
use super::topic::{self, Aspect, Matter, Topic};
use super::{
    ActingFacts, BodyAndUseFacts, ClassicFacts, ClassicText, HexagramDescription, HexagramFacts, Reading, TrigramFacts,
    quoted,
};

/// Returns the whole text, one paragraph per item.
pub(super) fn paragraphs(reading: &Reading) -> Vec<String> {
    let mut paragraphs = Vec::new();
    match &reading.facts.primary {
        Some(primary) => {
            let matter = Matter::of(reading);
            let assessment = assess(reading, matter);
            paragraphs.push(opening(reading, primary));
            paragraphs.extend(reading.classic.as_ref().map(texts));
            paragraphs.push(images(&reading.facts, primary));
            paragraphs.extend(reading.body_and_use.as_ref().map(body_and_use));
            paragraphs.extend(assessment.iter().flat_map(|assessment| chart::paragraphs(reading, assessment)));
            if reading.chart.as_ref().is_none_or(|chart| chart.moment.is_none()) {
                paragraphs.push(trigrams(matter.topic, primary));
            }
            paragraphs.push(conclusion(reading, matter, assessment.as_ref()));
        }
        None => paragraphs.extend(nothing_found(reading)),
    }
    paragraphs.extend(professionals(reading));
    paragraphs.push(foundation(&reading.facts));
    paragraphs
}

const WHAT_TO_SEND: &str = "若要解读，请发送以下任意一种：自下而上的六爻数字（6 老阴、7 少阳、8 少阴、9 老阳），\
     例如 {\"lines\": [7, 8, 8, 8, 7, 9]}；或本卦与动爻，例如「本卦：水雷屯，动爻：初九」；\
     或本卦与变卦的卦名、卦符或卦序。";

const DISCLOSURE: &str = "本文由离线规则依卦写成，并非大语言模型所作；重要的决定仍由你自己作出。";

fn opening(reading: &Reading, primary: &HexagramDescription) -> String {
    let question = match quoted(&reading.question) {
        Some(question) => format!("你问的是「{question}」。"),
        None => "这一次没有写下具体的问题，且就卦论卦。".to_owned(),
    };
    let (upper, lower) = (&primary.upper, &primary.lower);
    format!(
        "{question}\n得 {}，上{}为{}，下{}为{}。{}",
        named(primary),
        upper.chinese_name,
        upper.image,
        lower.chinese_name,
        lower.image,
        changes(&reading.facts),
    )
    .trim_end()
    .to_owned()
}

fn named(hexagram: &HexagramDescription) -> String {
    format!(
        "{} {}（{}，{}，第{}卦）",
        hexagram.sign, hexagram.chinese_full_name, hexagram.chinese_name, hexagram.pinyin, hexagram.number
    )
}

fn changes(facts: &HexagramFacts) -> String {
    let Some(lines) = facts.changing.as_deref() else {
        return "数据没有说明哪些爻在动，所以这里不谈爻变。".to_owned();
    };
    let Some(relating) = &facts.relating else { return String::new() };
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    format!("{}动，变为 {}。", names.join("、"), named(relating))
}

fn texts(classic: &ClassicFacts) -> String {
    let texts: Vec<String> = classic.texts.iter().map(|text| verse(text, classic.texts.len() > 1)).collect();
    format!("{}\n{}", rule(classic), texts.join("\n"))
}

/// Returns the image of the hexagram and of the one that it leads to or contains.
fn images(facts: &HexagramFacts, primary: &HexagramDescription) -> String {
    let image = format!("{}之象：{}。{}", primary.chinese_full_name, primary.image, primary.counsel);
    let further = match (&facts.relating, &facts.nuclear) {
        (Some(relating), _) => format!("事情往{}走：{}。", relating.chinese_full_name, relating.image),
        (None, Some(nuclear)) if nuclear.number != primary.number => {
            format!("卦中藏着互卦{}：{}。", nuclear.chinese_full_name, nuclear.image)
        }
        (None, _) => String::new(),
    };
    image + &further
}

fn rule(classic: &ClassicFacts) -> String {
    let main = classic.texts.first().map_or("", |text| text.chinese_name);
    match classic.rule {
        None => "先读本卦的卦辞：".to_owned(),
        Some("none_changing") => "六爻不动，读本卦的卦辞：".to_owned(),
        Some("one_changing") => "一爻动，读这一爻的爻辞：".to_owned(),
        Some("two_changing") => "两爻动，读这两爻的爻辞，以上面一爻为主：".to_owned(),
        Some("three_changing") => format!("三爻动，读本卦与变卦的卦辞，以{main}为主："),
        Some("four_changing") => "四爻动，读变卦中不动的两爻，以下面一爻为主：".to_owned(),
        Some("five_changing") => "五爻动，读变卦中不动的一爻：".to_owned(),
        Some(_) => match classic.texts.first().and_then(|text| text.label) {
            Some(label) => format!("六爻皆动，{main}卦读{label}："),
            None => "六爻皆动，读变卦的卦辞：".to_owned(),
        },
    }
}

fn verse(text: &ClassicText, is_one_of_several: bool) -> String {
    let rank = match (is_one_of_several, text.is_main) {
        (false, _) => "",
        (true, true) => "（主）",
        (true, false) => "（辅）",
    };
    let part = text.label.unwrap_or("卦辞");
    format!("{}·{part}{rank}「{}」{}", text.chinese_name, text.text, text.plain)
}

fn body_and_use(facts: &BodyAndUseFacts) -> String {
    let effect = match facts.use_trigram.relation {
        "生体" => "用生体，外面的事来成全你",
        "体生" => "体生用，是你在往外付出",
        "克体" => "用克体，事情压着你",
        "体克" => "体克用，拿得下，但要出力",
        _ => "体用比和，里外同气",
    };
    let acting = |acting: &ActingFacts| {
        let relation = match acting.relation {
            "体生" => "泄体",
            "体克" => "为体所克",
            other => other,
        };
        format!("{}{relation}", trigram(&acting.trigram))
    };
    let [lower, upper] = &facts.nuclear;
    let nuclear = if lower == upper { acting(lower) } else { format!("{}、{}", acting(lower), acting(upper)) };
    format!(
        "按梅花易数看体用：体是{}，用是{}，{effect}。中途看互卦，{nuclear}；结局看变卦，{}。",
        trigram(&facts.body),
        trigram(&facts.use_trigram.trigram),
        acting(&facts.changed),
    )
}

fn trigram(trigram: &TrigramFacts) -> String {
    format!("{}{}", trigram.chinese_name, terms::element(trigram.element))
}

/// Returns the trigrams as the two sides of the question.
fn trigrams(topic: Topic, primary: &HexagramDescription) -> String {
    let (lower, upper) = (&primary.lower, &primary.upper);
    format!(
        "下卦{}之{}近于你自己，上卦{}之{}近于{}。",
        lower.chinese_name,
        lower.attribute,
        upper.chinese_name,
        upper.attribute,
        terms::other_side(topic)
    )
}

/// Returns the counsel, and how verse and chart agree.
fn conclusion(reading: &Reading, matter: Matter, assessment: Option<&Assessment<'_>>) -> String {
    let main = reading.classic.as_ref().and_then(|classic| classic.texts.first());
    let auspice = main.and_then(Auspice::of);
    let charted = assessment.filter(|assessment| assessment.is_telling()).map(|assessment| assessment.outlook);
    let outlook = charted.unwrap_or(match auspice {
        Some(Auspice::Good(_)) => Outlook::Favourable,
        Some(Auspice::Warning(_)) => Outlook::Adverse,
        None => Outlook::Mixed,
    });
    let mut sentences =
        vec![format!("合起来看，{}", counsel::counsel(matter.topic, Aspect::of(reading, matter.topic), outlook))];
    sentences.extend(auspice.map(|auspice| agreement(auspice, charted)));
    if topic::is_choice(reading) {
        sentences.push("你问的是二选一，一卦只能断一头；可以给每个选项各起一卦，再放在一起比。".to_owned());
    }
    sentences.concat()
}

fn agreement(auspice: Auspice, charted: Option<Outlook>) -> String {
    match (auspice, charted) {
        // A single word, such as 亨, is too little to agree with.
        (Auspice::Good(clause), Some(Outlook::Favourable)) if clause.chars().count() == 1 => {
            format!("经文言「{clause}」，六爻也有力。")
        }
        (Auspice::Good(clause), Some(Outlook::Favourable)) => {
            format!("经文说「{clause}」，六爻也有力，两边说的是一回事。")
        }
        (Auspice::Good(clause), Some(Outlook::Mixed)) => {
            format!("经文说「{clause}」，六爻却只在半途：方向不错，火候未到。")
        }
        (Auspice::Good(clause), Some(Outlook::Adverse)) => {
            format!("经文说「{clause}」，六爻的力量却不足：路是对的，时候还没到。")
        }
        (Auspice::Warning(clause), Some(Outlook::Favourable)) => {
            format!("六爻有力，经文却以「{clause}」示警：事情可成，要当心的是做法。")
        }
        (Auspice::Warning(clause), Some(Outlook::Mixed)) => {
            format!("经文有「{clause}」之戒，六爻也只通一半，宁可慢一步。")
        }
        (Auspice::Warning(clause), Some(Outlook::Adverse)) => {
            format!("经文有「{clause}」之戒，六爻也不相助，两下都劝你停一停。")
        }
        (Auspice::Good(clause), None) => format!("这里以经文的「{clause}」为准。"),
        (Auspice::Warning(clause), None) => format!("这里以经文的「{clause}」之戒为准。"),
    }
}

fn professionals(reading: &Reading) -> Option<String> {
    let sentences: Vec<&str> = topic::needing_a_professional(reading)
        .into_iter()
        .filter_map(|topic| match topic {
            Topic::Health => Some("身体与心理的问题，请咨询医生等专业人士，不要因卦象而延误诊治。"),
            Topic::Wealth => Some("投资与借贷等财务决定，请咨询持牌的专业人士，卦象不构成理财建议。"),
            Topic::Legal => Some("法律事务，请咨询律师，卦象不构成法律意见。"),
            _ => None,
        })
        .collect();
    (!sentences.is_empty()).then(|| sentences.concat())
}

fn nothing_found(reading: &Reading) -> Vec<String> {
    let found = match &reading.facts.relating {
        Some(relating) => format!(
            "数据里只读到变卦 {}，没有读到可以确认的本卦，因此这里不作解读，也不会凭空补上一卦。",
            named(relating)
        ),
        None => "数据里没有读到可以确认的卦，因此这里不作解读，也不会凭空编造一卦。".to_owned(),
    };
    vec![found, WHAT_TO_SEND.to_owned()]
}

fn foundation(facts: &HexagramFacts) -> String {
    let mut sentences = Vec::new();
    if facts.has_assumptions && !facts.evidence.is_empty() {
        sentences.push(format!("依据：{}。", facts.evidence.join("；")));
    }
    if !facts.conflicts.is_empty() {
        let conflicts = facts.conflicts.join("；");
        sentences.push(format!("另外：{conflicts}。"));
    }
    sentences.push(DISCLOSURE.to_owned());
    sentences.concat()
}
