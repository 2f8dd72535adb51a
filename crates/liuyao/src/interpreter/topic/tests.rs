use super::super::HexagramFacts;
use super::*;
use crate::Locale;

fn reading(question_type: Option<&str>, question: &str, asker: Option<AskerGender>) -> Reading {
    Reading {
        locale: Locale::Chinese,
        question_type: question_type.map(str::to_owned),
        question: question.to_owned(),
        asker,
        facts: HexagramFacts::default(),
        classic: None,
        method: None,
        chart: None,
        body_and_use: None,
        missing_person: None,
    }
}

fn topic(question_type: Option<&str>, question: &str) -> Topic {
    Matter::of(&reading(question_type, question, None)).topic
}

fn sought(question: &str, asker: Option<AskerGender>) -> Sought {
    Matter::of(&reading(None, question, asker)).sought
}

/// Returns the number of questions in a table, and those whose topic is not the one of the table.
fn missed(table: &'static str) -> (usize, Vec<&'static str>) {
    let rows: Vec<(&str, &str)> = table.lines().skip(1).filter_map(|row| row.split_once('\t')).collect();
    let name = |question| format!("{:?}", topic(None, question)).to_lowercase();
    let missed = rows.iter().filter(|(expected, question)| name(question) != *expected);
    (rows.len(), missed.map(|(_, question)| *question).collect())
}

#[test]
fn recognises_everyday_questions() {
    assert_eq!(missed(include_str!("questions.tsv")), (80, Vec::new()));
    // Written after the vocabulary, to measure it on questions that it was not made from.
    let (count, further) = missed(include_str!("further-questions.tsv"));
    assert!(count == 40 && further.len() <= 4, "{further:?}");
}

#[test]
fn recognises_stated_types_in_both_languages() {
    let spellings = [
        ("career", "事业", Topic::Career),
        ("Love", "感情", Topic::Love),
        ("health", "健康", Topic::Health),
        ("WEALTH", "财运", Topic::Wealth),
        ("study", "学业", Topic::Study),
        ("family", "家庭", Topic::Family),
        ("travel", "出行", Topic::Travel),
        ("legal", "官司", Topic::Legal),
        ("other", "其他", Topic::Other),
        ("business", "生意", Topic::Business),
        ("marriage", "婚姻", Topic::Love),
        ("lost items", "失物", Topic::Lost),
    ];
    for (english, chinese, expected) in spellings {
        assert_eq!(topic(Some(english), ""), expected, "{english}");
        assert_eq!(topic(Some(chinese), ""), expected, "{chinese}");
    }
}

#[test]
fn a_stated_type_decides_unless_it_names_no_topic() {
    assert_eq!(topic(Some("love"), "my new job"), Topic::Love);
    assert_eq!(topic(Some("综合"), "我该跳槽吗"), Topic::Career);
    assert_eq!(topic(None, "lawn and homework"), Topic::Other);
    assert_eq!(topic(None, ""), Topic::Other);
}

#[test]
fn longer_words_hide_shorter_ones() {
    assert_eq!(topic(None, "我该学医还是学法律"), Topic::Study);
    assert_eq!(topic(None, "Should I study medicine or law?"), Topic::Study);
    assert_eq!(topic(None, "工作签证下得来吗"), Topic::Papers);
    assert_eq!(topic(None, "这个可爱的生活"), Topic::Other);
}

#[test]
fn the_partner_is_read_by_the_asker_and_then_by_the_words() {
    use AskerGender::{Female, Male};
    assert_eq!(sought("我们能结婚吗", Some(Male)), Sought::Kin("妻财"));
    assert_eq!(sought("我们能结婚吗", Some(Female)), Sought::Kin("官鬼"));
    assert_eq!(sought("我们能结婚吗", None), Sought::Object);
    assert_eq!(sought("老公还爱我吗", None), Sought::Kin("官鬼"));
    assert_eq!(sought("Does my girlfriend love me?", None), Sought::Kin("妻财"));
    // Of two men or two women, the line opposite the asker's stands for the partner.
    assert_eq!(sought("我和男朋友能走下去吗", Some(Male)), Sought::Object);
    assert_eq!(sought("Will my wife come back to me?", Some(Female)), Sought::Object);
}

#[test]
fn the_topic_chooses_the_line() {
    for (question, kin) in [
        ("面试能过吗", "官鬼"),
        ("老板会给我加薪吗", "妻财"),
        ("这只股票能涨吗", "妻财"),
        ("考研能上岸吗", "父母"),
        ("考公务员能成吗", "官鬼"),
        ("今年能怀上吗", "子孙"),
        ("这套房子能买吗", "父母"),
        ("身份证丢了", "父母"),
        ("项链丢了", "妻财"),
        ("我的狗丢了还能找到吗", "子孙"),
        ("签证能过吗", "父母"),
        ("闺蜜还会理我吗", "兄弟"),
    ] {
        assert_eq!(sought(question, None), Sought::Kin(kin), "{question}");
    }
    assert_eq!(sought("我最近总是失眠", None), Sought::Subject);
    assert_eq!(sought("这个合伙人可靠吗", None), Sought::Object);
}

#[test]
fn questions_for_somebody_else_ask_for_their_line() {
    for (question, kin) in [
        ("我妈的手术顺利吗", "父母"),
        ("儿子高考能考上吗", "子孙"),
        ("老公会被裁员吗", "官鬼"),
        ("Will my brother pass his exam?", "兄弟"),
        ("我爸病了，他能好吗", "父母"),
    ] {
        assert_eq!(sought(question, None), Sought::Kin(kin), "{question}");
    }
    assert_eq!(sought("和老公去旅行顺利吗", None), Sought::Subject);
}

#[test]
fn names_a_professional_for_every_topic_touched() {
    let touched = |question_type, question| needing_a_professional(&reading(question_type, question, None));
    assert_eq!(touched(Some("health"), ""), [Topic::Health]);
    assert_eq!(touched(Some("career"), "要不要做手术"), [Topic::Health]);
    assert_eq!(touched(Some("财运"), "the lawsuit"), [Topic::Wealth, Topic::Legal]);
    assert_eq!(touched(None, "试管能成功吗"), [Topic::Health]);
    assert_eq!(touched(Some("love"), "does she like me"), []);
}

#[test]
fn tells_the_aspects_of_a_topic_apart() {
    let aspect = |question| {
        let reading = reading(None, question, None);
        Aspect::of(&reading, Matter::of(&reading).topic)
    };
    assert_eq!(aspect("公司要裁员，我会被裁吗"), Some(Aspect::Layoff));
    assert_eq!(aspect("Am I going to be laid off?"), Some(Aspect::Layoff));
    assert_eq!(aspect("和女朋友还能复合吗"), Some(Aspect::Reunion));
    assert_eq!(aspect("Will my ex come back to me?"), Some(Aspect::Reunion));
    assert_eq!(aspect("妈妈的手术顺利吗"), Some(Aspect::Surgery));
    assert_eq!(aspect("朋友借的五万块能还吗"), Some(Aspect::Debt));
    assert_eq!(aspect("Should I sell my stocks?"), Some(Aspect::Trade));
    let none = [
        "今年财运如何",
        "能借到钱吗",
        "欠的债能还清吗",
        "被裁员后能找到工作吗",
        "前男友结婚我要去吗",
        "I was laid off. Will I find a new job?",
    ];
    assert!(none.into_iter().all(|question| aspect(question).is_none()));
}

#[test]
fn detects_choices() {
    assert!(is_choice(&reading(None, "留下还是离开", None)));
    assert!(is_choice(&reading(None, "Should I stay or go?", None)));
    assert!(!is_choice(&reading(None, "还是不行吗", None)));
}
