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
fn reads_the_parts_of_questions() {
    for row in include_str!("../../../tests/question-parts.tsv").lines().skip(1) {
        let [part, expected, question] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let matter = matter(question);
        let answer = |place: usize| matter.answers.as_ref().map(|answers| answers[place].clone());
        let found = match part {
            "topic" => Some(matter.topic.name().to_owned()),
            "line" => Some(match matter.sought {
                Sought::Kin(kin) => kin.name().to_owned(),
                Sought::Subject => "世".to_owned(),
                Sought::Object | Sought::Partner => "应".to_owned(),
            }),
            "other" => matter.other.map(|other| other.name),
            "aspect" => matter.has(expected).then(|| expected.to_owned()),
            "options" => matter.options.map(|options| options.join(" | ")),
            "second" => matter.second.map(|(topic, _)| topic.name().to_owned()),
            "no" => answer(0),
            "yes" => answer(3),
            _ => unreachable!(),
        };
        assert_eq!(found.unwrap_or_default(), expected, "{part}: {question}");
    }
}

#[test]
fn a_stated_type_decides_in_both_languages_unless_it_names_no_topic() {
    let spellings =
        "career 事业 Love 感情 health 健康 WEALTH 财运 study 学业 family 家庭 travel 出行 legal 官司 other 其他";
    let spellings: Vec<&str> = spellings.split(' ').collect();
    for pair in spellings.chunks(2) {
        let expected = Topic::from_name(&pair[0].to_lowercase()).unwrap();
        assert_eq!([topic(Some(pair[0]), ""), topic(Some(pair[1]), "")], [expected; 2], "{pair:?}");
    }
    assert_eq!(topic(Some("lost items"), ""), Topic::Lost);
    assert_eq!(topic(Some("love"), "my new job"), Topic::Love);
    assert_eq!(topic(Some("综合"), "我该跳槽吗"), Topic::Career);
}

#[test]
fn the_partner_is_read_by_the_asker_and_then_by_the_words() {
    use AskerGender::{Female, Male};
    assert_eq!(sought("我们能结婚吗", Some(Male)), Sought::Kin(Kin::Wealth));
    assert_eq!(sought("我们能结婚吗", Some(Female)), Sought::Kin(Kin::Officials));
    // Of two men or two women, the line opposite the asker's stands for the partner.
    assert_eq!(sought("我和男朋友能走下去吗", Some(Male)), Sought::Object);
    assert_eq!(sought("Will my wife come back to me?", Some(Female)), Sought::Object);
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
fn names_are_no_animals() {
    assert_ne!(topic(None, "汪先生会帮我吗"), Topic::Pets);
    assert_ne!(topic(None, "姓牛的同事可信吗"), Topic::Pets);
}
