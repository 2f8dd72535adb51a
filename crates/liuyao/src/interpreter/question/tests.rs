use super::*;
use crate::{
    hexagram::Facts,
    interpreter::{View, Written},
};

pub(crate) fn asked(question_type: Option<&str>, question: &str, asker: Option<AskerGender>) -> Reading {
    Reading {
        written: Written::Simplified,
        question_type: question_type.map(str::to_owned),
        question: question.to_owned(),
        asker,
        facts: Facts::default(),
        method: None,
        chart: None,
        view: View::default(),
        is_about_missing_person: false,
    }
}

fn matter(question: &str) -> Matter {
    Matter::of(&asked(None, question, None))
}

fn topic(question_type: Option<&str>, question: &str) -> Topic {
    Matter::of(&asked(question_type, question, None)).topic
}

fn sought(question: &str, asker: Option<AskerGender>) -> Sought {
    Matter::of(&asked(None, question, asker)).sought
}

/// Returns the questions in a column whose topic, and those whose aim, is not the one of the table.
fn missed(table: &str, column: usize) -> (usize, Vec<String>, Vec<String>) {
    let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|row| row.split('\t').collect()).collect();
    let found = rows.iter().map(|row| (row, matter(row[column])));
    let (mut topics, mut aims) = (Vec::new(), Vec::new());
    for (row, matter) in found {
        if matter.topic.name() != row[0] {
            topics.push(format!("{} ({})", row[column], matter.topic.name()));
        }
        if matter.aim.name() != row[1] {
            aims.push(format!("{} ({})", row[column], matter.aim.name()));
        }
    }
    (rows.len(), topics, aims)
}

/// The questions were written before the rules that read them.
#[test]
fn reads_topic_and_aim_of_fresh_questions() {
    let chinese = include_str!("../../../tests/chinese-questions.tsv");
    for column in [2, 3] {
        let (count, topics, aims) = missed(chinese, column);
        assert!(count == 60 && topics.len() <= 6 && aims.len() <= 10, "{topics:?} {aims:?}");
    }
    let (count, topics, aims) = missed(include_str!("../../../tests/ordinary-questions.tsv"), 2);
    assert!(count == 529 && topics.len() <= 6 && aims.len() <= 9, "{topics:#?} {aims:#?}");
    let (count, topics, aims) = missed(include_str!("../../../tests/english-questions.tsv"), 2);
    assert!(count == 40 && topics.len() <= 2 && aims.len() <= 6, "{topics:?} {aims:?}");
}

#[test]
fn recognises_everyday_questions() {
    let missed = |table: &'static str| {
        let rows: Vec<(&str, &str)> = table.lines().skip(1).filter_map(|row| row.split_once('\t')).collect();
        let missed: Vec<_> =
            rows.iter().filter(|(expected, question)| topic(None, question).name() != *expected).collect();
        (rows.len(), missed.into_iter().map(|(_, question)| *question).collect::<Vec<_>>())
    };
    assert_eq!(missed(include_str!("../../../tests/everyday-questions.tsv")), (80, Vec::new()));
    let (count, further) = missed(include_str!("../../../tests/further-questions.tsv"));
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
    assert_eq!(sought("我们能结婚吗", Some(Male)), Sought::Kin(Kin::Wealth));
    assert_eq!(sought("我们能结婚吗", Some(Female)), Sought::Kin(Kin::Officials));
    assert_eq!(sought("我们能结婚吗", None), Sought::Object);
    assert_eq!(sought("老公还爱我吗", None), Sought::Kin(Kin::Officials));
    assert_eq!(sought("Does my girlfriend love me?", None), Sought::Kin(Kin::Wealth));
    // Of two men or two women, the line opposite the asker's stands for the partner.
    assert_eq!(sought("我和男朋友能走下去吗", Some(Male)), Sought::Object);
    assert_eq!(sought("Will my wife come back to me?", Some(Female)), Sought::Object);
}

#[test]
fn the_topic_chooses_the_line() {
    for (question, kin) in [
        ("面试能过吗", Kin::Officials),
        ("老板会给我加薪吗", Kin::Wealth),
        ("这只股票能涨吗", Kin::Wealth),
        ("考研能上岸吗", Kin::Parents),
        ("考公务员能成吗", Kin::Officials),
        ("今年能怀上吗", Kin::Children),
        ("这套房子能买吗", Kin::Parents),
        ("身份证丢了", Kin::Parents),
        ("项链丢了", Kin::Wealth),
        ("我的狗丢了还能找到吗", Kin::Children),
        ("签证能过吗", Kin::Parents),
        ("闺蜜还会理我吗", Kin::Siblings),
        ("我跟弟弟为了老房子吵架，还能和好吗", Kin::Siblings),
        ("房东能全额退押金吗，退押金要多久", Kin::Wealth),
    ] {
        assert_eq!(sought(question, None), Sought::Kin(kin), "{question}");
    }
    assert_eq!(sought("我最近总是失眠", None), Sought::Subject);
    assert_eq!(sought("这个合伙人可靠吗", None), Sought::Object);
    assert_eq!(sought("看中一间店，业主肯降租吗", None), Sought::Object);
}

#[test]
fn questions_for_somebody_else_ask_for_their_line() {
    for (question, kin) in [
        ("我妈的手术顺利吗", Kin::Parents),
        ("儿子高考能考上吗", Kin::Children),
        ("老公会被裁员吗", Kin::Officials),
        ("Will my brother pass his exam?", Kin::Siblings),
        ("我爸病了，他能好吗", Kin::Parents),
        ("他的病能好吗", Kin::Officials),
        ("弟弟离婚的事，爸妈能想开吗", Kin::Parents),
    ] {
        assert_eq!(sought(question, None), Sought::Kin(kin), "{question}");
    }
    assert_eq!(sought("和老公去旅行顺利吗", None), Sought::Subject);
}

#[test]
fn names_a_professional_for_every_topic_touched() {
    let touched = |question_type, question| Matter::of(&asked(question_type, question, None)).professionals;
    assert_eq!(touched(Some("health"), ""), [Topic::Health]);
    assert_eq!(touched(Some("career"), "要不要做手术"), [Topic::Health]);
    assert_eq!(touched(Some("财运"), "the lawsuit"), [Topic::Wealth, Topic::Legal]);
    assert_eq!(touched(None, "试管能成功吗"), [Topic::Health]);
    assert_eq!(touched(Some("love"), "does she like me"), []);
}

#[test]
fn tells_the_circumstances_apart() {
    for (question, aspect) in [
        ("公司要裁员，我会被裁吗", "layoff"),
        ("Am I going to be laid off?", "layoff"),
        ("和女朋友还能复合吗", "reunion"),
        ("單身很久了，會遇到對的人嗎", "single"),
        ("妈妈的手术顺利吗", "surgery"),
        ("我的老毛病会好吗", "long"),
        ("Will my flu pass quickly?", "recent"),
        ("爷爷去世了，家里会好吗", "mourning"),
        ("朋友借的五万块能还吗", "debt"),
        ("Should I sell my stocks?", "trade"),
        ("我的猫走丢了能找到吗", "animal"),
    ] {
        assert!(matter(question).has(aspect), "{question}: {:?}", matter(question));
    }
}

#[test]
fn names_are_no_animals_and_cars_no_houses() {
    assert_ne!(topic(None, "汪先生会帮我吗"), Topic::Pets);
    assert_ne!(topic(None, "姓牛的同事可信吗"), Topic::Pets);
    assert_eq!(topic(None, "这辆二手车能买吗"), Topic::Vehicle);
    assert_eq!(topic(None, "test"), Topic::Other);
    assert_eq!(topic(None, "欠薪仲裁能赢吗"), Topic::Legal);
    assert_eq!(topic(None, "wo de gongzuo hui shunli ma"), Topic::Career);
}

#[test]
fn a_choice_names_its_two_sides() {
    for (question, sides) in [
        ("我该留下还是离开", Some(["留下", "离开"])),
        ("Should I stay or go?", Some(["stay", "go"])),
        ("還是不行嗎", None),
        ("我还是很想他，他会回来吗", None),
    ] {
        let options = matter(question).options;
        assert_eq!(options.as_ref().map(|options| options.each_ref().map(String::as_str)), sides, "{question}");
    }
}

#[test]
fn a_second_question_is_noticed() {
    let second = |question| matter(question).second.map(|(topic, _)| topic);
    assert_eq!(second("我今年能升职吗？和女朋友能结婚吗？"), Some(Topic::Love));
    assert_eq!(second("Will I pass the exam? Will my cat recover?"), Some(Topic::Pets));
    assert_eq!(second("我今年能升职吗？老板怎么看我？"), None);
    assert_eq!(matter("我今年能升職嗎？和女朋友能結婚嗎？").topic, Topic::Career);
}

#[test]
fn a_question_of_yes_or_no_is_restated() {
    for (question, no, yes) in [
        ("房东会同意降五万吗", "房东多半不会同意降五万", "房东多半会同意降五万"),
        ("我爸还会理我嗎", "你爸多半不会理你", "你爸多半还会理你"),
        ("業主肯唔肯減租", "业主多半不肯减租", "业主多半肯减租"),
        ("这间铺子，租得出去吗", "这间铺子，多半租不出去", "这间铺子，多半租得出去"),
        ("伞是不是被司机拿走了", "伞多半不是被司机拿走的", "伞多半是被司机拿走了"),
        (
            "Will my best friend write to me?",
            "your best friend will probably not write to you",
            "your best friend will probably write to you",
        ),
        ("Is it still there?", "it is probably no longer there", "it is probably still there"),
    ] {
        let answers = matter(question).answers.map(|[no, _, _, yes]| [no, yes]);
        assert_eq!(answers, Some([no.to_owned(), yes.to_owned()]), "{question}");
    }
    for question in ["什么时候会下雨", "留下还是会离开", "Who will win?", "Will he stay or go?"] {
        assert_eq!(matter(question).answers, None, "{question}");
    }
}
