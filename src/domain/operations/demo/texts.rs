//! The texts of the demonstration.

use crate::domain::identity::users::Gender;

/// A user with a profile of their own.
pub struct DemoProfile {
    pub nickname: &'static str,
    pub gender: Gender,
    pub birthday: &'static str,
    pub signature: &'static str,
}

pub const PROFILES: [DemoProfile; 5] = [
    DemoProfile { nickname: "青山", gender: Gender::Female, birthday: "1990-05-17", signature: "心静则明" },
    DemoProfile { nickname: "临川", gender: Gender::Male, birthday: "1984-11-02", signature: "慢慢来" },
    DemoProfile { nickname: "Willow", gender: Gender::Female, birthday: "1999-03-21", signature: "One line at a time" },
    DemoProfile { nickname: "听雨", gender: Gender::Other, birthday: "2001-08-30", signature: "" },
    DemoProfile { nickname: "Stone", gender: Gender::Unknown, birthday: "1975-12-12", signature: "静观其变" },
];

/// The parts of the other nicknames.
pub const FIRST: [&str; 20] = [
    "云", "松", "竹", "秋", "晨", "暮", "南", "北", "远", "清", "素", "墨", "月", "星", "江", "溪", "石", "林", "小",
    "半",
];
pub const SECOND: [&str; 20] = [
    "舟", "溪", "野", "声", "鹿", "笙", "庭", "窗", "岸", "泉", "里", "禾", "砚", "眠", "桥", "灯", "影", "风", "雪",
    "棠",
];
pub const ENGLISH: [&str; 16] = [
    "Maple", "Juniper", "Harbor", "Robin", "Linden", "Clover", "Ember", "Finch", "Meadow", "Quill", "River", "Sage",
    "Thistle", "Wren", "Alder", "Birch",
];
pub const SIGNATURES: [&str; 8] =
    ["", "", "", "随遇而安", "日日是好日", "不急，慢慢走", "Keep it simple", "行到水穷处，坐看云起时"];

/// Question type, question, and six lines from the bottom up.
pub const QUESTIONS: [(&str, &str, [u8; 6]); 20] = [
    ("career", "今年换工作合适吗？", [7, 8, 8, 8, 7, 6]),
    ("love", "我和他还能继续走下去吗？", [8, 7, 9, 7, 8, 8]),
    ("study", "考试准备得怎么样？", [7, 7, 8, 7, 6, 8]),
    ("family", "过年要不要回老家？", [8, 8, 8, 7, 7, 7]),
    ("travel", "下个月适合远行吗？", [9, 8, 7, 8, 7, 8]),
    ("wealth", "这笔生意值得做吗？", [7, 8, 7, 7, 8, 9]),
    ("other", "眼下最该放下的是什么？", [8, 8, 7, 8, 8, 8]),
    ("career", "How should I handle the new project?", [7, 7, 7, 9, 7, 7]),
    ("career", "要不要接受外派的机会？", [8, 7, 7, 8, 6, 7]),
    ("love", "这段关系该怎样往前走？", [7, 9, 8, 8, 7, 7]),
    ("study", "该考研还是先工作？", [8, 8, 7, 7, 9, 8]),
    ("family", "怎样和父母谈搬家的事？", [7, 8, 6, 7, 8, 7]),
    ("wealth", "存款放在哪里更安心？", [8, 7, 8, 9, 7, 8]),
    ("health", "最近总是睡不好，该怎么调整？", [7, 7, 8, 8, 8, 6]),
    ("travel", "Is this autumn a good time to move abroad?", [8, 9, 7, 7, 8, 7]),
    ("love", "Should I write to her first?", [7, 8, 7, 6, 8, 8]),
    ("other", "What deserves my patience now?", [8, 8, 9, 7, 7, 8]),
    ("career", "团队里的矛盾怎么化解？", [9, 7, 8, 7, 7, 6]),
    ("wealth", "开一家小店，时机到了吗？", [7, 7, 7, 8, 8, 8]),
    ("family", "孩子转学的决定对吗？", [8, 6, 7, 8, 7, 7]),
];

/// Texts that moderation refuses; the last two wait in the review queue.
pub const REFUSED: [&str; 10] = [
    "日赚千元，加微信了解",
    "带你玩百家乐，稳赚不赔",
    "代开发票，先办后付",
    "网赌上岸，私聊我加",
    "内幕消息，躺赚不是梦",
    "Get rich quick with sports betting",
    "六合彩内部资料",
    "刷单兼职，日结",
    "有没有人一起博赌",
    "彩合六哪里看",
];

pub const FEEDBACK: [&str; 16] = [
    "付款以后金币过了十分钟才到账，希望快一点。",
    "夜间模式很好看，谢谢！",
    "The English texts of hexagram 36 have a typo in the third line.",
    "希望可以导出我的占卜记录。",
    "收不到验证码，换了手机号才登录上。",
    "解读很有启发，就是有时候字太多了。",
    "Could you add a widget for the daily hexagram?",
    "生日填错了改不了，应该可以改一次。",
    "昨天买了两次，只到账一次，订单号在截图里。",
    "建议增加梅花易数。",
    "The app crashed when I rotated the tablet.",
    "昵称被拒绝了，但是我没有写什么不好的词。",
    "想要一个分享到朋友圈的卡片。",
    "客服回复很快，点赞。",
    "老年人看着字有点小，能不能放大？",
    "Love the quiet design. No ads, please keep it like this.",
];

/// Title and body of the broadcasts.
pub const BROADCASTS: [(&str, &str); 6] = [
    ("欢迎来到易友社区", "新版本支持六爻起卦和历史记录同步。"),
    ("系统维护通知", "周三凌晨两点到三点进行维护，期间可能无法登录。"),
    ("中秋活动", "活动期间充值赠送百分之十的金币。"),
    ("隐私政策更新", "我们更新了隐私政策，请在设置中查看。"),
    ("新功能：每日一卦", "每天早上八点推送，可在偏好设置中关闭。"),
    ("支付延迟的说明", "昨晚部分订单到账延迟，现已全部补发。"),
];

/// Version, version code, platform, and notes of the releases.
pub const RELEASES: [(&str, i64, Option<&str>, &str); 6] = [
    ("2.0.0", 200, None, "全新界面，支持深色模式。"),
    ("2.0.1", 201, Some("android"), "修复部分机型启动缓慢的问题。"),
    ("2.1.0", 210, None, "历史记录同步，新增英文界面。"),
    ("2.1.1", 211, Some("ios"), "Fixes a crash on iPad."),
    ("2.2.0", 220, None, "每日一卦；支付流程更稳定。"),
    ("2.3.0", 230, None, "解读更快，支持多轮追问。"),
];

pub const NOTES: [&str; 5] =
    ["说得很准", "有点笼统", "语气很温和，喜欢", "Too long, but helpful", "和我的问题关系不大"];
pub const GRANT_REASONS: [&str; 4] = ["到账延迟补偿", "重复扣费补偿", "活动奖励补发", "Compensation for the outage"];
pub const REFUND_REASONS: [&str; 3] = ["用户误购", "家长申请退款", "Paid twice"];
pub const DEVICES: [&str; 6] = ["iPhone 15", "HUAWEI Mate 60", "Xiaomi 14", "iPad Air", "vivo X100", "Pixel 8"];
pub const SUSPENSION_REASONS: [&str; 3] = ["多次发布广告", "冒充客服", "Repeated insults"];
pub const STAFF_NOTES: [&str; 3] =
    ["已电话沟通，用户满意。", "老用户，优先处理。", "Asked twice about the same order."];
pub const ANSWERS: [&str; 4] = [
    "谢谢反馈，我们已经记下，下个版本会改进。",
    "已为您核对，金币已补发，请刷新查看。",
    "Thank you, the typo will be gone with the next release.",
    "抱歉带来不便，请更新到最新版本后再试。",
];
