//! Names and short phrases in simplified Chinese.

use super::super::topic::{PartnerReason, Person, Sought, Topic};
use super::super::{AskerGender, LineFacts, NatureFacts};
use crate::{Branch, Element};

pub(super) fn position(position: u8) -> &'static str {
    ["初爻", "二爻", "三爻", "四爻", "五爻", "上爻"].get(usize::from(position).saturating_sub(1)).copied().unwrap_or("")
}

pub(super) fn element(element: Element) -> &'static str {
    match element {
        Element::Wood => "木",
        Element::Fire => "火",
        Element::Earth => "土",
        Element::Metal => "金",
        Element::Water => "水",
    }
}

pub(super) fn nature(nature: NatureFacts) -> String {
    format!("{}{}{}", nature.kin, nature.branch.name(), element(nature.branch.element()))
}

/// Returns place and nature: 三爻妻财辰土.
pub(super) fn line(line: &LineFacts) -> String {
    format!("{}{}", position(line.position), nature(line.nature))
}

pub(super) fn method(name: &str) -> Option<&'static str> {
    match name {
        "three_coins" => Some("以三枚铜钱摇成"),
        "yarrow_stalks" => Some("以蓍草揲成"),
        "manual" => Some("由你自己起得"),
        "time" => Some("按时间以梅花易数起得"),
        "numbers" => Some("按所报的数以梅花易数起得"),
        _ => None,
    }
}

/// Returns the direction in which a branch lies.
pub(super) fn direction(branch: Branch) -> &'static str {
    match branch {
        Branch::Zi => "正北",
        Branch::Chou | Branch::Yin => "东北",
        Branch::Mao => "正东",
        Branch::Chen | Branch::Si => "东南",
        Branch::Wu => "正南",
        Branch::Wei | Branch::Shen => "西南",
        Branch::You => "正西",
        Branch::Xu | Branch::Hai => "西北",
    }
}

/// Returns the month in whose first days the month of a branch ends.
pub(super) fn month_end(branch: Branch) -> &'static str {
    let months = ["一月", "二月", "三月", "四月", "五月", "六月", "七月", "八月", "九月", "十月", "十一月", "十二月"];
    months[branch as usize]
}

/// Returns the months in which an element feeds or equals another.
pub(super) fn months(element: Element) -> &'static str {
    match element {
        Element::Wood => "水木当令的月份（立冬以后到清明前后）",
        Element::Fire => "木火当令的月份（立春以后到小暑前后）",
        Element::Earth => "火土当令的月份（立夏到立秋，以及每季的末月）",
        Element::Metal => "土金当令的月份（小暑以后到寒露前后）",
        Element::Water => "金水当令的月份（立秋以后到小寒前后）",
    }
}

pub(super) fn spirit(name: &str) -> &'static str {
    match name {
        "青龙" => "临青龙，带喜气",
        "朱雀" => "临朱雀，多牵涉言语、文书和消息",
        "勾陈" => "临勾陈，慢而牵连",
        "螣蛇" => "临螣蛇，多疑虑缠绕",
        "白虎" => "临白虎，来势急，防伤损",
        _ => "临玄武，有没说破的地方",
    }
}

/// Returns the question's matter, as in 问工作.
pub(super) fn matter(topic: Topic) -> &'static str {
    match topic {
        Topic::Lost => "失物",
        Topic::Pets => "宠物",
        Topic::Legal => "官司纠纷",
        Topic::Children => "生育",
        Topic::Health => "健康",
        Topic::Papers => "文书证件",
        Topic::Study => "学业考试",
        Topic::Business => "生意",
        Topic::Career => "工作",
        Topic::Wealth => "钱财",
        Topic::Love => "感情",
        Topic::Friends => "人际",
        Topic::Home => "房屋居所",
        Topic::Travel => "出行",
        Topic::Family => "家事",
        Topic::Other => "此事",
    }
}

/// Returns the other side of the question, for which the object line stands.
pub(super) fn other_side(topic: Topic) -> &'static str {
    match topic {
        Topic::Lost => "东西所在的地方",
        Topic::Pets => "它的环境",
        Topic::Legal => "对方当事人",
        Topic::Children => "伴侣",
        Topic::Health => "医者与环境",
        Topic::Papers => "受理的一方",
        Topic::Study => "考场与学校",
        Topic::Business => "客户与合作方",
        Topic::Career => "用人的一方",
        Topic::Wealth => "交易的另一方",
        Topic::Love => "对方",
        Topic::Friends => "那个人",
        Topic::Home => "卖方、房东与邻里",
        Topic::Travel => "目的地",
        Topic::Family => "家里其他人",
        Topic::Other => "外面的人与事",
    }
}

/// Returns the part that lines of a kin play in a topic.
pub(super) fn role(topic: Topic, kin: &str) -> &'static str {
    let [parents, officials, wealth, children, siblings] = match topic {
        Topic::Career => ["合同与单位", "职位与上司", "薪酬", "自在与下属", "同事与竞争者"],
        Topic::Business => ["合同与门面", "官方与风险", "利润", "客源与产品", "同行与合伙人"],
        Topic::Wealth => ["契据与操劳", "税费与风险", "钱财", "财源", "分财的人与开销"],
        Topic::Love => ["长辈与名分", "男方", "女方", "儿女与玩心", "旁人与竞争者"],
        Topic::Study => ["试卷与文凭", "名次与录取", "钱与分心的事", "放松与创意", "同场的对手"],
        Topic::Health => ["劳累与思虑", "病症", "饮食", "医药", "体力消耗"],
        Topic::Children => ["长辈与操心", "病痛与忧虑", "母体", "孩子", "姊妹与消耗"],
        Topic::Family => ["父母长辈", "丈夫与压力", "妻子与家用", "儿女", "兄弟姐妹"],
        Topic::Friends => ["规矩与文字", "是非与压力", "钱与利益", "玩伴与和气", "朋友同辈"],
        Topic::Home => ["房屋与契约", "官方与隐患", "价款", "福气与晚辈", "竞争者与开销"],
        Topic::Travel => ["行李与车船", "途中的麻烦", "盘缠", "平安", "同伴与耽搁"],
        Topic::Papers => ["文书本身", "审批的机关", "费用", "变通的余地", "同批的申请人"],
        Topic::Lost => ["证件、衣物、钥匙一类", "偷拿的人", "财物", "线索与宠物", "家人或同住的人"],
        Topic::Legal => ["状纸与证据", "裁断的机关", "钱款", "和解的余地", "分担的人与耗费"],
        Topic::Pets => ["照料与操心", "病症", "吃食", "小家伙自己", "同伴"],
        Topic::Other => ["文书与长辈", "压力与规矩", "钱财", "福气与晚辈", "同辈与开销"],
    };
    match kin {
        "父母" => parents,
        "官鬼" => officials,
        "妻财" => wealth,
        "子孙" => children,
        _ => siblings,
    }
}

/// Returns the sentence that names the line for the matter, without its place.
pub(super) fn significator(
    topic: Topic,
    sought: Sought,
    person: Option<Person>,
    partner: Option<PartnerReason>,
) -> String {
    let matter = matter(topic);
    match (sought, partner, person) {
        (Sought::Kin(kin), Some(PartnerReason::Profile(AskerGender::Male)), _) => {
            format!("男问感情，以{kin}为对方")
        }
        (Sought::Kin(kin), Some(PartnerReason::Profile(AskerGender::Female)), _) => {
            format!("女问感情，以{kin}为对方")
        }
        (Sought::Kin(kin), Some(_), _) => format!("你问的是{}，以{kin}为用神", role(topic, kin)),
        (_, Some(_), _) => "问感情而不论男女，以应爻为对方".to_owned(),
        (Sought::Kin(kin), None, Some(person)) if topic == Topic::Family => {
            format!("问的是{}，以{kin}为用神", self::person(person))
        }
        (Sought::Kin(kin), None, Some(person)) => format!("这是替{}问{matter}，以{kin}为用神", self::person(person)),
        (Sought::Kin(kin), None, None) => format!("问{matter}，以{kin}（{}）为用神", role(topic, kin)),
        (Sought::Object | Sought::Partner, None, _) => format!("问{matter}而重在对方，以应爻为用神"),
        (Sought::Subject, None, _) if topic == Topic::Other => "泛问一事，以世爻（你自己）为用神".to_owned(),
        (Sought::Subject, None, _) => format!("问{matter}，以世爻（你自己）为用神"),
    }
}

fn person(person: Person) -> &'static str {
    match person {
        Person::Man => "男方",
        Person::Woman => "女方",
        Person::Parent => "长辈",
        Person::Child => "孩子",
        Person::Sibling => "兄弟姐妹或朋友",
        Person::Animal => "宠物",
    }
}
