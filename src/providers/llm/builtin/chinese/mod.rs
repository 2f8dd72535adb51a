//! The wording of an interpretation in simplified Chinese.

use super::topic::{self, Topic};
use super::{
    BecomesFacts, ChartFacts, ClassicFacts, ClassicText, HexagramDescription, HexagramFacts, LineFacts, NatureFacts,
    Reading, StateFacts, Weight, quoted,
};

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
            paragraphs.extend(reading.classic.as_ref().map(texts));
            paragraphs.extend(reading.chart.as_ref().map(chart));
            paragraphs.push(sides(reading, primary));
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
        "{question}\n本卦是 {}，上卦{}为{}，下卦{}为{}。{}{}",
        named(primary),
        upper.chinese_name,
        upper.image,
        lower.chinese_name,
        lower.image,
        changes(&reading.facts),
        occasion(reading),
    )
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
    let Some(relating) = &facts.relating else { return "六爻皆静，没有动爻。".to_owned() };
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    format!("{}动，变卦是 {}，其象为：{}。", names.join("、"), named(relating), relating.image)
}

/// Returns the method and the time, as far as they are known.
fn occasion(reading: &Reading) -> String {
    let method = reading.method.and_then(method).unwrap_or_default();
    let Some(moment) = reading.chart.as_ref().and_then(|chart| chart.moment.as_ref()) else {
        return if method.is_empty() { String::new() } else { format!("\n此卦{method}。") };
    };
    let ([year, month, day, hour], [first, second]) = (&moment.pillars, moment.void);
    let separator = if method.is_empty() { "" } else { "，" };
    format!(
        "\n此卦{method}{separator}起于当地时间 {}：{year}年{month}月{day}日{hour}时，旬空{first}{second}。",
        moment.local
    )
}

fn method(name: &str) -> Option<&'static str> {
    match name {
        "three_coins" => Some("以三枚铜钱摇成"),
        "yarrow_stalks" => Some("以蓍草揲成"),
        "manual" => Some("由你自己起得"),
        "time" => Some("按时间以梅花易数起得"),
        "numbers" => Some("按所报的数以梅花易数起得"),
        _ => None,
    }
}

fn texts(classic: &ClassicFacts) -> String {
    let texts: Vec<String> = classic.texts.iter().map(|text| verse(text, classic.texts.len() > 1)).collect();
    format!("{}\n{}", rule(classic), texts.join("\n"))
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

fn chart(chart: &ChartFacts) -> String {
    let with_role = |role| chart.lines.iter().find(|line| line.role == Some(role));
    let mut sentences = vec![format!("以六爻看，卦属{}宫。", chart.palace)];
    sentences.extend(with_role("世").map(|line| format!("世爻是你这一边，{}。", standing(line))));
    sentences.extend(with_role("应").map(|line| format!("应爻是对方或所问之事，{}。", standing(line))));
    if chart.moment.is_none() {
        sentences.push("不知道起卦的时间，所以不论旺衰与空亡。".to_owned());
    }
    let moving = chart.lines.iter().filter_map(|line| Some(movement(line, line.becomes.as_ref()?)));
    let moving = moving.map(|sentence| format!("\n· {sentence}"));
    [sentences.concat()].into_iter().chain(moving).collect()
}

/// Returns place, nature and strength of a line: 在三爻妻财辰土，…
fn standing(line: &LineFacts) -> String {
    let place = format!("在{}{}", position(line.position), nature(line.nature));
    let Some(state) = &line.state else { return place };
    let weight = match Weight::of(state, line.clash_effect) {
        Weight::Strong => "大致有力",
        Weight::Even => "强弱相抵",
        Weight::Weak => "大致乏力",
    };
    format!("{place}，{}，{weight}", conditions(state, line.clash_effect).join("、"))
}

fn conditions(state: &StateFacts, clash_effect: Option<&'static str>) -> Vec<String> {
    let day = match state.day_effect {
        "生" => "得日辰生助",
        "扶" => "得日辰相扶",
        "克" => "受日辰所克",
        "泄" => "泄气于日辰",
        _ => "耗力于日辰",
    };
    let mut conditions = vec![format!("月令为{}", state.strength), day.to_owned()];
    conditions.extend(state.is_void.then(|| "逢旬空".to_owned()));
    conditions.extend(state.is_month_broken.then(|| "逢月破".to_owned()));
    conditions.extend(clash_effect.map(|effect| format!("日冲{effect}")));
    conditions
}

fn movement(line: &LineFacts, becomes: &BecomesFacts) -> String {
    let effect = match becomes.relation {
        "回头生" => "变出的爻回头来生它，这股力量多半有后劲",
        "回头克" => "变出的爻回头来克它，这股力量恐难持久",
        "化泄" => "它去生变出的爻，付出或多于所得",
        "化耗" => "它去克变出的爻，成事或要费些力气",
        _ => "变后五行相同，力量大致不改",
    };
    let progress = match becomes.progress {
        Some("进神") => "，且化进神，势头渐长",
        Some(_) => "，且化退神，势头渐消",
        None => "",
    };
    format!("{}{}动，化{}：{effect}{progress}。", position(line.position), nature(line.nature), nature(becomes.nature))
}

fn position(position: u8) -> &'static str {
    ["初爻", "二爻", "三爻", "四爻", "五爻", "上爻"].get(usize::from(position).saturating_sub(1)).copied().unwrap_or("")
}

fn nature(nature: NatureFacts) -> String {
    let element = match nature.element {
        "wood" => "木",
        "fire" => "火",
        "earth" => "土",
        "metal" => "金",
        _ => "水",
    };
    format!("{}{}{element}", nature.kin, nature.branch)
}

/// Returns the trigrams of both sides, in the words of the question's topic.
fn sides(reading: &Reading, primary: &HexagramDescription) -> String {
    let (subject, other) = match topic::of(reading) {
        Topic::Career => ("就事业而言", "职场与机会"),
        Topic::Love => ("就感情而言", "对方"),
        Topic::Health => ("就健康而言", "外在的影响"),
        Topic::Wealth => ("就财运而言", "市场与对手"),
        Topic::Study => ("就学业而言", "课业与考场"),
        Topic::Family => ("就家庭而言", "家人"),
        Topic::Travel => ("就出行而言", "途中的境况"),
        Topic::Legal => ("就官司与纠纷而言", "对方与裁断者"),
        Topic::Other => ("就你所问的事而言", "外在的处境"),
    };
    format!(
        "{subject}，内卦{}之{}近于你自己的状态，外卦{}之{}近于{other}。合起来是：{}",
        primary.lower.chinese_name,
        primary.lower.attribute,
        primary.upper.chinese_name,
        primary.upper.attribute,
        primary.counsel,
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
