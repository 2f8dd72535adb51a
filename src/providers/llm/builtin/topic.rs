//! Classifies the topic of a question.
//!
//! Uses the client's question type, and the words of the question only if that type is unknown. Questions about health,
//! money or the law refer the reader to a professional. Signs of danger come first.

use super::Reading;

/// The topics with advice of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Career,
    Love,
    Health,
    Wealth,
    Study,
    Family,
    Travel,
    Legal,
    Other,
}

/// In the order of matching: serious topics first, since a question can touch several. English words match whole words;
/// Chinese ones match anywhere.
const VOCABULARY: [(Topic, &str, &str); 8] = [
    (
        Topic::Legal,
        "legal law laws lawsuit lawsuits lawyer court litigation dispute custody",
        "官司 诉讼 法律 律师 法院 打官 仲裁 纠纷",
    ),
    (
        Topic::Health,
        "health healthy illness ill sick sickness disease doctor surgery operation medicine cancer \
         pregnant pregnancy depression anxiety pain",
        "健康 身体 疾病 生病 病情 病 手术 医 怀孕 抑郁 焦虑 养生 疼",
    ),
    (
        Topic::Wealth,
        "wealth money finance finances financial invest investing investment investments stock stocks \
         crypto loan debt fortune income mortgage",
        "财 投资 股票 基金 理财 金钱 赚钱 借钱 贷款 债 收入 钱",
    ),
    (
        Topic::Study,
        "study studies studying exam exams school education university college degree learning",
        "学业 学习 考试 考研 高考 考公 升学 读书 学校 留学 论文",
    ),
    (
        Topic::Love,
        "love relationship relationships romance romantic marriage marry dating boyfriend girlfriend \
         husband wife partner divorce",
        "感情 爱情 姻缘 婚 恋 桃花 情感 男友 女友 男朋友 女朋友 复合 前任 相亲",
    ),
    (
        Topic::Travel,
        "travel travelling traveling trip journey flight relocation moving abroad",
        "出行 旅行 旅游 旅途 远行 出差 出国 搬家 行程",
    ),
    (
        Topic::Family,
        "family home parents parent mother father child children son daughter siblings",
        "家庭 家人 父母 母亲 父亲 子女 孩子 儿子 女儿 家宅 亲人 家运",
    ),
    (
        Topic::Career,
        "career job jobs work working business promotion startup company employment interview boss \
         project",
        "事业 工作 职 创业 公司 升迁 跳槽 面试 生意 老板 项目 仕途",
    ),
];

const DANGER_CHINESE: &str = "自杀 轻生 不想活 想死 活不下去 自残 结束生命";
const DANGER_ENGLISH: [&str; 8] =
    ["suicide", "suicidal", "kill myself", "killing myself", "end my life", "want to die", "self-harm", "hurt myself"];

/// Returns the topic that the reading addresses.
pub(super) fn of(reading: &Reading) -> Topic {
    match stated(reading) {
        Some(topic) => topic,
        None => among(&reading.question).unwrap_or(Topic::Other),
    }
}

/// Returns the topics that need a professional.
pub(super) fn needing_a_professional(reading: &Reading) -> Vec<Topic> {
    let touched = [stated(reading), among(&reading.question)];
    [Topic::Health, Topic::Wealth, Topic::Legal].into_iter().filter(|topic| touched.contains(&Some(*topic))).collect()
}

/// Returns true if the question suggests that someone is in danger.
pub(super) fn is_danger(reading: &Reading) -> bool {
    let question = reading.question.to_lowercase();
    DANGER_CHINESE.split(' ').any(|word| question.contains(word))
        || DANGER_ENGLISH.iter().any(|phrase| question.contains(phrase))
}

fn stated(reading: &Reading) -> Option<Topic> {
    among(reading.question_type.as_deref().unwrap_or_default())
}

fn among(text: &str) -> Option<Topic> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    VOCABULARY
        .into_iter()
        .find(|(_, english, chinese)| {
            english.split(' ').any(|word| words.contains(&word)) || chinese.split(' ').any(|word| text.contains(word))
        })
        .map(|(topic, _, _)| topic)
}

#[cfg(test)]
mod tests {
    use super::super::HexagramFacts;
    use super::*;
    use crate::types::Locale;

    fn reading(question_type: Option<&str>, question: &str) -> Reading {
        Reading {
            locale: Locale::Chinese,
            question_type: question_type.map(str::to_owned),
            question: question.to_owned(),
            facts: HexagramFacts::default(),
            classic: None,
            method: None,
            chart: None,
        }
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
        ];
        for (english, chinese, topic) in spellings {
            assert_eq!(of(&reading(Some(english), "")), topic);
            assert_eq!(of(&reading(Some(chinese), "")), topic);
        }
    }

    #[test]
    fn uses_the_question_if_the_type_is_unknown() {
        assert_eq!(of(&reading(None, "这次考试能过吗")), Topic::Study);
        assert_eq!(of(&reading(Some("综合"), "我该跳槽吗")), Topic::Career);
        assert_eq!(of(&reading(None, "Will my trip go well?")), Topic::Travel);
        assert_eq!(of(&reading(Some("love"), "my new job")), Topic::Love);
        assert_eq!(of(&reading(None, "lawn and homework")), Topic::Other);
        assert_eq!(of(&reading(None, "")), Topic::Other);
    }

    #[test]
    fn names_a_professional_for_every_topic_touched() {
        let touched = |question_type, question| needing_a_professional(&reading(question_type, question));
        assert_eq!(touched(Some("health"), ""), [Topic::Health]);
        assert_eq!(touched(Some("career"), "要不要做手术"), [Topic::Health]);
        assert_eq!(touched(Some("财运"), "the lawsuit"), [Topic::Wealth, Topic::Legal]);
        assert_eq!(touched(Some("love"), "does she like me"), []);
    }

    #[test]
    fn detects_danger() {
        assert!(is_danger(&reading(None, "我不想活了")));
        assert!(is_danger(&reading(None, "I want to END MY LIFE")));
        assert!(!is_danger(&reading(None, "生活很好")));
    }
}
