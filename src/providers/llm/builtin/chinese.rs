//! The wording of an interpretation in simplified Chinese.

use super::topic::{self, Topic};
use super::{ChangingLine, HexagramDescription, HexagramFacts, Reading, quoted};

/// Returns the whole text, one paragraph per item.
pub(super) fn paragraphs(reading: &Reading) -> Vec<String> {
    let facts = &reading.facts;
    let mut paragraphs = Vec::new();
    if topic::is_danger(reading) {
        paragraphs.push(DANGER.to_owned());
    }
    match &facts.primary {
        Some(primary) => {
            paragraphs.push(opening(reading, primary));
            paragraphs.push(format!("卦意：{}", primary.judgement));
            paragraphs.push(changes(facts.changing.as_deref()));
            paragraphs.extend(direction(facts));
            paragraphs.extend(inner_tendency(primary, facts.nuclear.as_ref()));
            paragraphs.push(advice(reading, primary));
        }
        None => paragraphs.extend(nothing_found(reading)),
    }
    paragraphs.extend(professionals(reading));
    paragraphs.push(foundation(facts));
    paragraphs
}

const DANGER: &str = "你的话里似乎藏着很深的痛苦。请先不要独自承受：现在就联系一位你信任的人，\
     或当地的急救与心理援助电话。下面的文字可以以后再看。";

const WHAT_TO_SEND: &str = "若要解读，请发送以下任意一种：自下而上的六爻数字（6 老阴、7 少阳、8 少阴、9 老阳），\
     例如 {\"lines\": [7, 8, 8, 8, 7, 9]}；或本卦与动爻，例如「本卦：水雷屯，动爻：初九」；\
     或本卦与变卦的卦名、卦符或卦序。";

const DISCLOSURE: &str = "以上文字由本服务的离线规则依照卦象结构写成，并非大语言模型所作；\
     请当作静心思考的参考，重要的决定仍由你自己作出。";

fn opening(reading: &Reading, primary: &HexagramDescription) -> String {
    let question = match quoted(&reading.question) {
        Some(question) => format!("你问的是「{question}」。"),
        None => "这一次没有写下具体的问题，且就卦论卦。".to_owned(),
    };
    let (upper, lower) = (&primary.upper, &primary.lower);
    format!(
        "{question}\n本卦是 {}。上卦{}为{}，其性{}；下卦{}为{}，其性{}。其象为：{}。",
        named(primary),
        upper.chinese_name,
        upper.image,
        upper.attribute,
        lower.chinese_name,
        lower.image,
        lower.attribute,
        primary.image,
    )
}

fn named(hexagram: &HexagramDescription) -> String {
    format!(
        "{} {}（{}，{}，第{}卦）",
        hexagram.sign, hexagram.chinese_full_name, hexagram.chinese_name, hexagram.pinyin, hexagram.number
    )
}

fn changes(changing: Option<&[ChangingLine]>) -> String {
    let Some(lines) = changing else {
        return "数据没有说明哪些爻在动，所以这里不谈爻变。".to_owned();
    };
    let count = lines.len();
    let introduction = match count {
        0 => return "六爻安静，没有动爻：眼下的局面较为稳定，以本卦的卦意为主即可。".to_owned(),
        1 => "此次只有一爻在动，要紧之处就在这里：".to_owned(),
        2 | 3 => format!("此次有 {count} 爻在动，变化集中在这几处："),
        4 | 5 => format!("此次有 {count} 爻在动，局面正在大幅转变，宜多看变卦的方向："),
        _ => "六爻皆动，局面将整个翻转，宜以变卦为归宿：".to_owned(),
    };
    let lines: Vec<String> = lines.iter().map(change).collect();
    format!("{introduction}\n{}", lines.join("\n"))
}

fn change(line: &ChangingLine) -> String {
    let turn = if line.is_from_yang { "由阳变阴" } else { "由阴变阳" };
    format!("· {}（第{}爻，{turn}）：{}", line.name, line.position, line.meaning)
}

fn direction(facts: &HexagramFacts) -> Option<String> {
    let relating = facts.relating.as_ref()?;
    Some(format!(
        "变化所向，是变卦 {}。其象为：{}。顺着这个方向看：{}",
        named(relating),
        relating.image,
        relating.judgement
    ))
}

fn inner_tendency(primary: &HexagramDescription, nuclear: Option<&HexagramDescription>) -> Option<String> {
    let nuclear = nuclear?;
    if nuclear.number == primary.number {
        return Some("互卦仍是本卦自身，表里如一，内在的倾向与眼前所见相同。".to_owned());
    }
    Some(format!("内里的倾向，看互卦 {}：{}。它在暗处提醒你：{}", named(nuclear), nuclear.image, nuclear.judgement))
}

fn advice(reading: &Reading, primary: &HexagramDescription) -> String {
    let (subject, counsel) = match topic::of(reading) {
        Topic::Career => {
            ("就事业而言", "先想清楚此刻该主动推进，还是等候配合，再定一个近期可以完成的小目标，把卦意落到实处。")
        }
        Topic::Love => ("就感情而言", "卦象说的是相处的态度，而不是对方的命运：坦诚说出感受，也给彼此留下回应的时间。"),
        Topic::Health => ("就健康而言", "卦意可以提醒你留意作息、饮食与情绪的节奏，但不能代替检查和治疗。"),
        Topic::Wealth => ("就财运而言", "卦意重在分寸：先守住自己承受得起的底线，再谈增益，不因一时的涨落改变步调。"),
        Topic::Study => ("就学业而言", "把卦意化作每日的功课：定一个小而稳的节奏，不懂之处及早请教。"),
        Topic::Family => ("就家庭而言", "先听家人说完，再说自己的话；把关心落在一件具体的小事上，比讲道理更有力量。"),
        Topic::Travel => ("就出行而言", "多留一些余地：核对行程，备好替代的路线，遇到阻碍便从容改期。"),
        Topic::Legal => ("就官司与纠纷而言", "先把事实与证据理清，能够和解之处不必意气相争。"),
        Topic::Other => {
            ("就你所问的事而言", "把卦意放回具体的处境里：想一想其中哪一句最触动你，那里往往就是可以着手的地方。")
        }
    };
    format!(
        "{subject}，下卦{}之{}好比你自己的状态，上卦{}之{}好比外在的处境。{counsel}",
        primary.lower.chinese_name, primary.lower.attribute, primary.upper.chinese_name, primary.upper.attribute,
    )
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
    if !facts.evidence.is_empty() {
        sentences.push(format!("依据：{}。", facts.evidence.join("；")));
    }
    if !facts.conflicts.is_empty() {
        let conflicts = facts.conflicts.join("；");
        sentences.push(format!("另外：{conflicts}。"));
    }
    sentences.push(DISCLOSURE.to_owned());
    sentences.concat()
}
