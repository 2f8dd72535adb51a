//! The words by which the topic of a question is recognised.
//!
//! A row lists words of one meaning. Longer words win over the shorter ones that they contain, so `学法律` is a study
//! although `法律` is legal. Words of a row with weight 0 only hide shorter ones.

use super::topic::{Person, Sought, Topic};

/// Words with one meaning.
pub(super) struct Entry {
    pub topic: Topic,
    /// The line that such a question asks for.
    pub sought: Sought,
    /// The force with which a word decides the topic: 3 for the subject itself, 1 for a word that often stands beside it.
    pub weight: u8,
    /// Separated by spaces.
    pub chinese: &'static str,
    /// Separated by `|`. A word with `*` at its end matches all words that begin so.
    pub english: &'static str,
}

/// Words for somebody other than the asker.
pub(super) struct PersonEntry {
    pub person: Person,
    pub chinese: &'static str,
    pub english: &'static str,
}

const fn row(topic: Topic, sought: Sought, weight: u8, chinese: &'static str, english: &'static str) -> Entry {
    Entry { topic, sought, weight, chinese, english }
}

const OFFICIALS: Sought = Sought::Kin("官鬼");
const WEALTH: Sought = Sought::Kin("妻财");
const PARENTS: Sought = Sought::Kin("父母");
const CHILDREN: Sought = Sought::Kin("子孙");
const SIBLINGS: Sought = Sought::Kin("兄弟");

/// The topics in the order in which they win a tie.
pub(super) static VOCABULARY: &[Entry] = &[
    row(Topic::Other, Sought::Subject, 1, "综合 其他 运势 整体 年运 本命", "other|general|overall|daily"),
    row(
        Topic::Other,
        Sought::Subject,
        0,
        "可爱 爱好 爱心 爱吃 喜爱 热爱 恋旧 毛病 发财树 工作日 生活 人生 血缘 心血 马上 牛奶 题目之外 大家庭 \
         会员 判断 账户名 货比 屋顶 回去 出去 过去 失去 下去 上去 进去 去年 去世 离去 首脑 电脑 头脑 赔笑 \
         爱学 爱玩 爱喝 爱说 爱哭 爱运动 爱干净",
        "raise my hand|raise awareness|homework|home page|in love with my job|sick of|tired of|love to|\
         would love|dead end|work out|works out|worked out|working out|sick and tired|health insurance|\
         play a part|by the way|find my true calling|find my purpose|find my way|find my path|find myself|\
         find my passion|find my calling|make a move on",
    ),
    row(
        Topic::Lost,
        WEALTH,
        4,
        "失物 丢了 弄丢 丢失 遗失 找不到 找不着 不见了 找得回 找回来 找回 寻物 被偷 失窃 被盗 落在 忘在哪 \
         丢在 掉了 掉在 在哪里能找到 能找到吗 还能找到 偷走 放哪 找着 走丢 走失 不知道放 忘拿 掉哪 遗落 顺走 \
         拿走了 失踪 跑丢 不知去向 翻遍 哪儿去了 去哪儿了 哪去了 忘在 被人拿 丢哪 丢东西 遗忘在 不翼而飞 \
         找到它 找得到吗 找东西 寻回 失物招领 被顺 落哪",
        "lost my|lost our|i lost|i have lost|i've lost|misplaced|missing|stolen|where is my|where are my|\
         where did i leave|where did i put|get it back|can't find|cannot find|could not find|left my|\
         lost ring|lost item*|find my|recover my|thief|stole|can't seem to find|gone missing|went missing|\
         disappeared|vanished|left behind|turn up|ran away|whereabouts|brooch|mislaid|lost and found|burgl*|\
         pickpocket*|robbed|been taken|someone took|cannot locate|can't locate|find it again|lose my|\
         lost wallet|lost phone|lost keys|lost cat|lost dog|misplace|stolen car|stolen bike|retrieve|\
         lost luggage|missing ring",
    ),
    row(
        Topic::Lost,
        WEALTH,
        1,
        "手机 钱包 戒指 项链 耳环 手表 背包 首饰 耳机 丢 找到 寻找",
        "wallet|ring|necklace|earring*|purse|watch|lost|find|found",
    ),
    row(
        Topic::Lost,
        PARENTS,
        2,
        "丢了身份证 身份证丢 护照丢 证件丢 钥匙 文件丢 驾照丢 丢了护照 户口本丢",
        "keys|lost passport|lost my passport|lost documents|house key*|car key*",
    ),
    row(
        Topic::Pets,
        CHILDREN,
        5,
        "宠物 猫咪 小猫 猫 狗狗 小狗 狗 仓鼠 兔子 鹦鹉 乌龟 毛孩子 金毛 布偶 柯基 泰迪 橘猫 猫粮 绝育 龙猫 \
         小鸟 宠物医院 兽医 猫砂 狗粮 驱虫 金鱼 小鱼 养的鱼 养的鸟 小鸡 小羊 小猪 牛 羊 马驹 布偶猫 二哈 \
         拉布拉多 泰迪犬 柴犬 爱犬 爱猫 喵 汪 毛孩 龟 鸽 鸭 鹅",
        "pet|pets|cat|cats|kitten*|dog|dogs|puppy|puppies|hamster|rabbit|parrot|horse|vet|tortoise|budgie|\
         guinea pig|kitty|hen|hens|goat|goats|cow|cows|mare|foal|pony|ferret|parakeet|aquarium|fish|leash|\
         put down|put to sleep|retriever|labrador|terrier|bird|lamb|sheep|stable|animal shelter|chickens|\
         my beagle|my poodle|my husky|my corgi|my parrot|gerbil|snake|lizard|gecko|iguana|chinchilla|llama|\
         alpaca|donkey|canary|spayed|neutered|veterinar*",
    ),
    row(Topic::Pets, CHILDREN, 1, "喂 遛", "animal*|breed"),
    row(
        Topic::Legal,
        Sought::Subject,
        4,
        "官司 诉讼 起诉 打官司 律师 法院 法庭 开庭 仲裁 纠纷 告他 告我 被告 原告 判决 上诉 胜诉 败诉 判刑 \
         坐牢 维权 劳动仲裁 立案 报警 赔偿 索赔 抚养权 财产分割 合同纠纷 取保 缓刑 调解 监护权 遗产 告上 \
         要不要告 告不告 去告 赔 赔付 车祸 事故 交警 违章 扣分 举报 投诉 冤 强制执行 老赖 讨薪 工伤 继承 私了 \
         证据 证人 打架 侵权 保释 监狱 判 派出所 拘留 诽谤 造谣 公道 评理 欠条 起诉离婚 协议离婚 上法 调解员 \
         违约 合同诈骗 律师函 胜算 官非 立案侦查 刑事 民事 仲裁结果 二审 一审 再审 保全 查封 行政复议 赔多少 \
         赔钱给 讨说法 证词 诉状 被起诉",
        "legal|lawsuit*|lawyer*|attorney*|court|litigation|sue|sued|suing|dispute|custody|judge|trial|verdict|\
         settlement|arbitration|appeal|charges|prosecut*|probation|compensation|inheritance|small claims|\
         tribunal|solicitor*|will contest|parking fine|fined|speeding|ticket|insurance claim|liability|liable|\
         restraining order|evict*|estate|probate|executor|alimony|child support|jury|bail|parole|breach|\
         complaint|arrested|accus*|defamation|hearing|mediat*|ombudsman|damages|negligence|perjury|witness|\
         convict*|acquit*|sentence|plead*|deposition|subpoena|audited|audit|irs|contest the|legal action|\
         legal case|court date|court case|legal battle|lawsuits|class action|patent dispute|landlord dispute|\
         tried in court|on trial|juror|case against|police report|sentenced|fraud case|inheritance dispute|\
         contested",
    ),
    row(Topic::Legal, Sought::Subject, 2, "法律 违法 警察 犯法", "law|laws|police|illegal"),
    row(Topic::Legal, Sought::Subject, 1, "告 罚款", "claim|fine|evidence|guilty"),
    row(
        Topic::Children,
        CHILDREN,
        4,
        "怀孕 怀上 备孕 怀不上 试管 二胎 三胎 生孩子 要孩子 生男 生女 男孩还是女孩 胎儿 保胎 顺产 剖腹产 \
         预产期 求子 生育 宝宝健康 怀了 有喜 孕 生二胎 生个 好孕 移植 着床 流产 早孕 生娃 要娃 添丁 二宝 三宝 \
         头胎 生下来 顺利生 坐月子 胎 双胞胎 龙凤胎 冻卵 领养 收养 不孕 不育 验孕 排卵 促排 取卵 早产 羊水 \
         唐筛 孕检 月子 生产顺利 待产 临盆 催产 喜得 当妈 当爸 升级当 抱孙子 抱上孙 添丁进口 生小孩 想要孩子 \
         要二胎 胚胎 受孕 胎心 双胎 孕期 孕妇 孕反 见红 产后 难产 引产 无痛 宝妈 两条杠 测孕",
        "pregnan*|conceive|conceiving|ivf|have a baby|having a baby|have a child|have children|\
         having children|have kids|have another baby|fertility|miscarriage|due date|expecting|give birth|\
         childbirth|trying for a baby|second child|start a family|starting a family|embryo|second baby|\
         another baby|first baby|baby boy|baby girl|boy or a girl|boy or girl|adopt a child|adoption|\
         egg freezing|freeze my eggs|surroga*|labor|labour|c-section|ovulat*|infertil*|midwife|\
         kids of our own|become a mother|become a father|be a mother|be a father|motherhood|parenthood|twins|\
         baby come|newborn|trimester|conception|iui|have a son|have a daughter|become parents|become pregnant|\
         expecting a baby|another child|first child|third child|fertile|egg retrieval|embryo transfer|donor|\
         preeclampsia|breech|childless|foster",
    ),
    row(Topic::Children, CHILDREN, 1, "产检 奶粉", "baby|babies|birth"),
    row(
        Topic::Health,
        Sought::Subject,
        4,
        "健康 身体 疾病 生病 病情 病 病好 手术 看医生 医院 住院 复查 体检 抑郁 焦虑 养生 疼 头痛 腹痛 牙痛 \
         胃痛 痛经 失眠 睡不着 睡眠 发烧 感冒 咳嗽 肿瘤 结节 癌 康复 痊愈 治疗 治好 吃药 用药 中药 过敏 头晕 \
         胃 腰 颈椎 血压 血糖 心脏 化疗 骨折 伤势 出院 确诊 减肥 瘦下来 养病 中医 湿疹 脱发 更年期 复发 \
         偏头痛 不舒服 病危 膝盖 视力 近视手术 牙 挺过去 痛 胀 肿 痒 喘 吐 发抖 吃不下 后遗症 激光 近视 心慌 \
         心悸 胸闷 气短 乏力 麻木 抽筋 耳鸣 便秘 拉肚子 腹泻 呕吐 恶心 眩晕 炎 囊肿 息肉 增生 结石 痔疮 \
         甲状腺 乳腺 子宫 卵巢 前列腺 肝 肾 肺 眼睛 耳朵 嗓子 皮肤 疹 长痘 发痒 白头发 掉头发 记忆力 痴呆 \
         中风 瘫 抢救 昏迷 寿命 大碍 恶性 良性 活检 化验 指标 偏高 打针 疫苗 针灸 理疗 月经 例假 姨妈 戒烟 \
         戒酒 暴食 厌食 健身 精神状态 情绪 崩溃 心理 噩梦 做梦 惊恐 强迫症 自闭 多动 绝症 瘤 摔伤 扭伤 关节 \
         腿脚 走路 开刀 病房 药效 换药 停药 大夫 名医 吃什么药 体质 虚弱 没精神 伤口 拆线 后背 肩膀 手麻 腿疼 \
         胳膊 血 脑 撑过 熬过 缓过来 卧床 调理 内耗 心神不宁 心烦 疲倦 压力大 亚健康 毛病好 检查结果 复诊 \
         病灶 炎症 康健 长寿 住进 保健 营养 失声 打呼噜 打鼾 免疫 血糖高 结石病 心梗 脑梗 糖尿病 高血压 痛风 \
         风湿 湿气 上火 贫血 痊 病愈 医治 求医 诊所 疗程 疗养 康复期 抑郁症 焦虑症 精神病",
        "health|healthy|illness|ill|sick|sickness|disease|doctor|surgery|operation|medicine|medication|cancer|\
         depress*|anxiety|anxious|pain|insomnia|sleep|sleeping|sleepless|headache*|migraine*|recover|recovery|\
         treatment|therapy|diagnos*|symptom*|hospital|tumor|tumour|biopsy|test results|blood pressure|heal|\
         healing|injury|injured|allerg*|back hurts|lose weight|weight loss|cure|cured|exhausted|fatigue|\
         burnout|chemo*|scan|quit smoking|eczema|dizzy|dental|tooth|knee|drinking too much|stop drinking|rash|\
         hip|shoulder|neck|ear|ears|eye|eyes|vision|eyesight|stomach|heart attack|palpitation*|nausea|cough|\
         fever|flu|covid|virus|asthma|diabet*|thyroid|arthritis|lump|mole|cyst|mri|ultrasound|stroke|dementia|\
         alzheimer*|hospice|physio*|rehab*|sober|sobriety|alcohol|panic attack*|stress|stressed|overwhelmed|\
         mental|grief|grieving|nightmares|hormon*|menopause|skin|acne|hair loss|teeth|root canal|braces|\
         acupuncture|supplements|fasting|immune|chronic|remission|malignant|benign|transplant|wheelchair|\
         walk again|pills|dose|prescri*|antidepressant*|wound|broken leg|broken arm|fracture*|ankle|wrist|\
         lungs|liver|kidney*|bowel|gut|addict*|relapse|run down|serious condition|pull through|\
         out of the woods|infection|illnesses|ailing|ailment*|medical|clinic|checkup|check-up|specialist|\
         second opinion|side effects|diagnosis|inflammation|hernia|stomach ache|toothache|sore|swollen|\
         bleeding|cramps|pneumonia|bronchitis|sinus|migraines|epilepsy|seizure*|autis*|adhd|ocd|bipolar|ptsd|\
         wellbeing|well-being|healthy again|longevity|how long will i live|sleep better",
    ),
    row(Topic::Health, Sought::Subject, 2, "好转", "get better|feel better|feeling better"),
    row(Topic::Health, Sought::Subject, 1, "医 药 熬夜 累 疲惫 恢复 能量", "tired|rest|diet|body|energy"),
    row(
        Topic::Papers,
        PARENTS,
        4,
        "签证 护照 绿卡 移民 落户 户口 永居 批文 审批 许可证 执照 资质 申请下来 手续 办证 证件 驾照 驾驶证 \
         合同能签 签合同 签约 合同 公证 拒签 续签 工作签证 学生签证 递交 备案 审核 摇号 车牌 积分落户 居留 \
         过签 出签 投稿 发表 专利 商标 版权 资格证 公示 名额 公积金 社保 退税 报税 档案 户籍 通行证 出入境 \
         入籍 国籍 枫叶卡 邀请函 签字 协议 遗嘱 出版 面签 补件 获批 批准 审核通过 公示期 领证时间 报批 年检 \
         过审 上牌 提交 回执 签下来 下签 批下来 领证件 补办 落户口 资格 合约 条款 公文 函 申报 申请书 \
         红头文件 备案号 营业证 执业证 准生证 签名 公证书 通过审批",
        "visa|visas|passport|green card|residency|permit|permits|license|licence|citizenship|immigration|\
         paperwork|application be approved|contract|work visa|student visa|work permit|papers|driving licence|\
         driver's license|sponsorship|manuscript|get published|publish*|naturali*|asylum|embassy|consulate|\
         patent|trademark|copyright|publisher|literary agent|book deal|notary|planning permission|\
         background check|clearance|petition|work authorization|renew my license|registration|credential*|\
         certificate|birth certificate|form accepted|grant application|sign the|signing the|power of attorney|\
         the will|my will|permanent resident|immigrate|immigrating|ceremony|application go through|paper work|\
         notarized|entry permit|travel document|residence card|naturalized|renewal|licensing|accreditation|\
         legal documents|agreement",
    ),
    row(Topic::Papers, PARENTS, 3, "文书", "documents"),
    row(Topic::Papers, PARENTS, 2, "证书", "approved|get approved|approval|application approved"),
    row(Topic::Papers, PARENTS, 1, "申请 材料 盖章", "application|apply|document*|sign"),
    row(
        Topic::Study,
        PARENTS,
        4,
        "学业 学习 考试 考研 高考 中考 升学 读书 学校 留学 论文 答辩 毕业 读研 读博 考博 保研 调剂 复试 雅思 \
         托福 四级 六级 成绩 挂科 补考 录取 上岸 专业 转专业 学医 学法律 学法 学金融 学什么 报考 志愿 期末 \
         考证 考过 考上 考得 司法考试 法考 教资 注会 考级 考会计 驾考 科目二 科目三 申请学校 名校 复读 学区 \
         导师 开学 学位 国考 笔试 重修 课程 双学位 学画画 学钢琴 培训班 报班 功课 作业 幼儿园 上学 大学 高中 \
         初中 小学 辍学 休学",
        "driving test|study|studies|studying|exam|exams|school|university|college|degree|learning|learn|\
         thesis|dissertation|grad school|graduate|graduation|phd|master's|masters|mba|gre|gmat|sat|ielts|\
         toefl|bar exam|admission*|admitted|scholarship|professor|course|courses|semester|grades|tutor*|\
         finals|homework help|student loan exam|med school|law school|medical school|pass the test|\
         pass my test|boards|residency match|major in|my major|curriculum|classes|transcript|get into|\
         study abroad|retake|apprenticeship|study medicine|study law|study art|study music|study nursing|\
         study history|study psychology|studying medicine|studying law|medicine or law|law or medicine|\
         major in law|major in medicine|law degree|medicine degree|premed",
    ),
    row(
        Topic::Study,
        PARENTS,
        3,
        "及格 一本 二本 重点高中 期刊 录取通知 申博 博士 硕士 研究生 本科 专升本 自考 考驾照 普通话 日语 英语 \
         数学 奥数 竞赛 夏令营 交换生 公费 奖学金 课题 开题 盲审 查重 延毕 补课 网课 班主任 择校 转学 小升初 \
         幼升小 国际学校 考个 考师 证书考试 职业资格 一建 二建 司考 教师证 法硕 艺考 体考 联考 模考 一模 二模 \
         排名 年级 分数线 过线 调档 滑档 复试线 题 学渣 学霸 文科 理科 选科 选专业 跨专业 辅导班 学车 路考 \
         复习 备考 学习效率 爱学习 不爱学 学不进去 上课 学业运 学历 进修 深造 培训 升级考试 期中 月考 统考 \
         会考 小测 口试 面试考 保送 特招 录用分 招生 考场 准考证 复读班 小学生 中学生 大学生 高三 初三 高一 \
         大一 大四 研一 考托 考这个 考个证 考级证",
        "repeat the year|quiz|essay|coursework|midterm*|a-levels|gcse*|lsat|mcat|cpa|certification|certified|\
         credits|lecture*|homeschool*|kindergarten|preschool|boarding school|gap year|postdoc|fellowship|\
         research|advisor|academic|academically|theology|philosophy degree|language school|learn spanish|\
         learn french|learn japanese|learn mandarin|qualif*|first-year|freshman|sophomore|dropout|drop out|\
         expelled|valedictorian|orchestra audition|conservatory|sit the|resit|entrance|revision|term paper|\
         presentation|viva|oral exam|tuition|campus|scholar|pupil|student|students|teacher training|bootcamp|\
         diploma|certification exam|entrance exam|acceptance letter|waitlist*|deferred|olympiad|spelling bee|\
         music exam|piano exam|ballet",
    ),
    row(Topic::Study, PARENTS, 1, "学 考 老师 分数 书", "test|pass|score|teacher|read"),
    row(
        Topic::Study,
        OFFICIALS,
        5,
        "考公 公务员 考编 编制 事业编 省考 选调 体制内考试 考教师编 遴选",
        "civil service exam*|civil service|police academy exam",
    ),
    row(
        Topic::Business,
        WEALTH,
        4,
        "创业 生意 开店 开公司 店铺 合伙 加盟 客户 订单 融资 投标 中标 招标 签单 门店 网店 直播带货 摆摊 副业 \
         开餐馆 公司上市 代理 进货 货款 开个 咖啡店 奶茶店 餐厅 民宿 倒闭 经营 营业 项目能成 转让店 做电商 \
         自媒体 做主播 厂子 接单 甲方 供应商 夜市 烧烤 小吃 早餐店 卖早餐 汽修 修理厂 作坊 合开 开厂 货 出手 \
         盘下 铺面 铺子 门面 商铺 摊位 本钱 招商 工厂 库存 批发 零售 销量 流量 粉丝 账号 公众号 品牌 股东 \
         拆伙 散伙 工程款 尾款 回款 结款 工程 养殖 种植 收成 大棚 果园 农家乐 茶馆 饭馆 火锅 理发店 超市 \
         便利店 药店 健身房 工作室 加盟商 连锁 分店 新店 老店 关门 转型 上市 外贸 跨境 带货 直播 接活 包工 \
         承包 谈成 合同能谈 大单 单子 竞标 标书 对手公司 做生意",
        "startup|start-up|start a business|starting a business|start my own|business|entrepreneur*|client|\
         clients|customer*|investor*|funding|franchise|shop|store|cafe|café|bakery|restaurant|freelanc*|\
         side hustle|side business|partnership|business partner|launch*|sales|supplier*|tender|food truck|\
         etsy|my own company|own practice|venture|my prices|our prices|raise prices|bookshop|bookstore|stall|\
         orders|inventory|wholesale|salon|gym|studio|podcast|channel|youtube|my app|brand|merger|acquisition|\
         pitch|crowdfund*|kickstarter|farm|harvest|crop|crops|vineyard|expansion|second location|\
         bed and breakfast|b&b|consultancy|consulting|quarter|subscribers|followers|premises|takeaway|\
         hairdress*|yoga studio|online shop|coffee shop|pop-up|trade show|sole trader|break even|revenue|\
         client sign|sign the deal|close the deal",
    ),
    row(Topic::Business, WEALTH, 2, "竞争 对手 谈判 签下", "competitor*|competition|competing"),
    row(
        Topic::Business,
        WEALTH,
        1,
        "店 店面 市场 产品 合同谈",
        "deal|negotiat*|market|product|company of my own|profitable|agency|expand",
    ),
    row(Topic::Business, Sought::Object, 4, "合伙人 合作 合作方", "co-founder|cofounder|collaborat*|cooperat*"),
    row(
        Topic::Career,
        OFFICIALS,
        3,
        "事业 工作 职 上班 跳槽 面试 升迁 升职 晋升 提拔 转正 入职 离职 辞职 裸辞 裁员 被裁 被辞 失业 找工作 \
         offer 老板 领导 上司 仕途 求职 简历 调岗 换岗 职位 岗位 公司 同事排挤 试用期 竞聘 竞选 评职称 职称 \
         年终考核 背调 转行 打工 复工 内推 校招 社招 实习 单位 考核 述职 绩效 外派 调动 事业运 职场 大厂 国企 \
         下岗 优化 升官 任命 退休 加班 主管 经理 组长 穿小鞋 考评 就业 秋招 春招 录用 聘用 上级 下属 团队里 \
         背锅 甩锅 体制内 转岗 借调 行业 外企 私企 央企 合同到期 开除 炒鱿鱼 职业 职业规划 人事 总监 降薪 \
         换公司 新公司 老东家 猎头 编外 兼职 工位 部门 调回 调走 提干 评优 竞岗 干部 换个环境 值班 辞掉 上岗 \
         停薪留职 晋级 带团队 坐冷板凳 接班 当官 主任 科长 处长 局长 校长 教师岗 护士 医生编 当兵 参军 入伍 \
         提副 升职加薪 出任 kpi 业绩 指标完成 末位 考勤 上进 出路 谋生 就职 上位 升迁运 事业心 天花板 瓶颈 \
         转型期 打工人 五险一金 面谈 终面 二面 初面 录用通知 入编 工龄 上级领导 老总 董事长 换岗位 工作环境",
        "career|job|jobs|work|working|promotion|promoted|employment|employer|interview*|boss|manager|resign|\
         resigning|quit my job|quit|laid off|layoff*|redundan*|fired|offer|offers|job offer|hire|hired|hiring|\
         recruiter|position|internship|intern|company|office|coworker*|colleague*|workplace|retire|retirement|\
         unemployed|role|resume|apply for|transfer|new team|profession|vocation|salary negotiation|\
         probation period|shift|extend my contract|contract extended|my contract|their contract offer|\
         law enforcement|right path for me|assignment*|role in|sabbatical|reorg*|performance review|overtime|\
         renew my contract|contract renewed|cv|headhunter*|switch careers|career change|night shift|tenure|\
         tenured|supervisor|ceo|director|department|notice period|hand in my notice|give notice|\
         two weeks notice|onboarding|corporate|nursing job|teaching job|part-time|full-time|remote|hybrid|\
         demoted|demotion|reference*|shortlist*|second round|final round|hear back from|enlist|army|military|\
         navy|run for office|election|elected|audition|auditions|casting|the part|careers|workspace|job at|\
         stuck in my job|dead-end job|workload|overworked|underpaid|side job|work from home|work environment|\
         toxic boss|leadership role|raise at work|quit medicine|practice law|practise law",
    ),
    row(Topic::Career, OFFICIALS, 2, "创作 事情 官运 项目", "calling|leadership|project"),
    row(Topic::Career, OFFICIALS, 1, "努力 前途 发展 机会 平台 考察 奔头", "opportunity|prospects|team|deadline"),
    row(
        Topic::Career,
        WEALTH,
        4,
        "加薪 涨薪 涨工资 工资 年终奖 奖金 薪水 薪资 提成 拖欠工资 欠薪 待遇 调薪",
        "raise|pay rise|pay raise|salary|bonus|wage*|paycheck|commission|pay increase",
    ),
    row(
        Topic::Wealth,
        WEALTH,
        3,
        "财 财运 投资 股票 基金 理财 金钱 赚钱 挣钱 借钱 还钱 要回钱 欠我 欠钱 贷款 债 收入 钱 炒股 股市 大盘 \
         比特币 币圈 加密货币 黄金 期货 彩票 中奖 抄底 加仓 清仓 涨停 解套 回本 亏 破财 存款 保险 外汇 网贷 \
         信用卡 发财 讨债 资金 退款 报销 买币 周转 赔钱 偏财 正财 财务 借给 分红 拍卖 债券 万块 块钱 借走 \
         还我 借出 账 割肉 套牢 套了 定投 港股 美股 牛市 熊市 行情 大跌 暴跌 暴涨 期权 白银 利息 车贷 花呗 \
         担保 打水漂 被骗 诈骗 集资 理赔 存钱 攒钱 花销 开支 破产 翻身 翻本 赌 打牌 麻将 刮刮乐 双色球 大乐透 \
         中彩 银行 手头紧 经济压力 外债 房租收入 高利贷 横财 漏财 守财 钱包鼓 跌破 反弹 满仓 梭哈 入市 止损 \
         消费 花钱 大额 贬值 储蓄 支出 回报 收益 亏损 财富 发达 暴富 穷 还清 贷 首富 财神 存下钱 收款 打款 \
         到账 报酬 工程钱 私房钱 份子钱 生活费 房租钱",
        "wealth|money|finance|finances|financial|invest|invests|invested|investing|investment*|stock|stocks|\
         shares|crypto|bitcoin|ethereum|loan|loans|debt*|fortune|income|mortgage|lottery|gold|savings|\
         pay me back|pay back|owe|owes|owed|repay*|fund|funds|broke|bankrupt*|gamble|gambling|trading|trade|\
         dividend*|refund|bet|market crash|portfolio|tax|taxes|pension|afford|lend|cash|financially|\
         credit card|in the red|out of the red|in the black|tesla|apple stock|bank|refinanc*|interest rate*|\
         money back|401k|ira|budget|wager|casino|scratch card*|windfall|silver|bond|bonds|scam|scammed|\
         bull market|bear market|etf|index fund|options|futures|forex|nft*|token*|overdraft|payday|paycheque|\
         bills|make ends meet|broke even|allowance|alimony money|insurance payout|bankruptcy|financial year|\
         prosper*|abundance|rich|cash out|hold or sell|dip|rally|buy back|subscription fees|grant money|\
         inherit*|purchase|expense*|spend|spending|returns on|save or|saving|profit from|retirement fund|\
         retirement savings|windfalls|get rich|in debt|pay rent|financial freedom|financially free|\
         money problems|interest|mortgage rates|cash flow|net worth|millionaire|stipend",
    ),
    row(Topic::Wealth, WEALTH, 1, "赚 卖 买 涨 跌 价格 成本 便宜", "buy|sell|price|profit|earn|worth it"),
    row(
        Topic::Family,
        PARENTS,
        3,
        "婆婆 公公 岳母 岳父 丈母娘 代沟 家风 祖坟风水 祖坟 亲情 继母 继父 长辈的期望 家教 家族 祖孙 独生 \
         传宗接代 家长会 家务 家事 家丑 两代人 一家人 家中 隔代",
        "nursing home|care home|take care of my|mother-in-law|father-in-law|in-laws|live at home|\
         family business feud|my folks|upbringing|heritage|generation gap",
    ),
    row(
        Topic::Family,
        PARENTS,
        2,
        "家庭 家人 家运 婆媳 原生家庭 养老 赡养 家和 全家 家宅平安 回家过年 老爷子 老太太 分家 老人 公婆 \
         小姑子 大姑 舅舅 叔叔 姑姑 姨妈家 家里人 跟家里 和家里 出柜 养老院 亲家 团圆 兄妹 姐弟 母女 母子 \
         父子 父女 家长 请保姆 保姆 月嫂 家里",
        "family|families|haven't spoken|family reunion|caregiver|caring for|care for my|ancestors|ancestral|\
         stepmom|stepdad|brother-in-law|sister-in-law|nanny|empty nest|heal with my|generational",
    ),
    row(
        Topic::Family,
        PARENTS,
        1,
        "父母 爸妈 母亲 父亲 妈妈 爸爸 我妈 我爸 老妈 老爸 爷爷 奶奶 外公 外婆 姥姥 姥爷 亲人 长辈 亲戚 我家 \
         老家 过年 祭祖",
        "parent|parents|mother|father|mom|mum|dad|grandmother|grandfather|grandma|grandpa|relatives|at home|\
         stepmother|stepfather|elderly|aging|aunt|uncle|estranged|household|reunion|thanksgiving|christmas",
    ),
    row(
        Topic::Family,
        CHILDREN,
        2,
        "叛逆 青春期 亲子 教育孩子 打游戏 不听话 顶嘴 早恋 离家出走 沉迷 网瘾 贪玩 懂事 厌学 管教 带孩子 老大 \
         老二 小儿子 大儿子 小女儿 大女儿 亲子关系 后代 有出息 成器 倔 子女 孩子 儿子 女儿 宝贝 孙子 孙女 \
         小孩 娃 宝宝 闺女",
        "parenting|teen|teens|screen time|curfew|tantrum*|discipline|youngest|eldest|oldest son|\
         oldest daughter|runaway|child|children|son|daughter|kid|kids|teenager|teenage|grandchild*|stepson|\
         stepdaughter|toddler",
    ),
    row(
        Topic::Family,
        SIBLINGS,
        1,
        "哥哥 弟弟 姐姐 妹妹 兄弟姐妹 我哥 我弟 我姐 我妹 表哥 表弟 表姐 表妹 堂哥 堂弟",
        "brother|sister|siblings|sibling|cousin|twin",
    ),
    row(
        Topic::Love,
        Sought::Partner,
        3,
        "感情 爱情 姻缘 婚 恋 桃花 情感 复合 前任 前男友 前女友 相亲 对象 分手 脱单 爱 爱我 喜欢我 喜欢他 \
         喜欢她 暗恋 表白 追她 追他 在一起 缘分 正缘 出轨 小三 第三者 冷战 挽回 求婚 领证 结婚 离婚 异地恋 \
         网恋 暧昧 约会 旧情 情人 拉黑 脱单 另一半 想我 回头 心里有我 真心 伴侣 嫁 娶 彩礼 有好感 单身 单相思 \
         断联 主动联系 联系我 渣男 渣女 变心 背叛 相处 心动 意中人 白月光 牵手 破镜 将就 适合我 合适吗这个人 \
         回我消息 回我信息 好感 亲密 他会回来 她会回来 是认真的 对我好 没有以后 有没有以后 有未来 有没有未来 \
         有结果 有人了 外遇 回心转意 嫁出去 娶到 成家 媒人 红娘 处对象 谈朋友 追我 忘了我 我身边 冷淡 不回我 \
         已读不回 删了我 见家长 订婚 婚期 婚礼 同居 孩子他爸 孩子他妈 异国恋 恋人 心上人 初恋 备胎 二婚 复婚 \
         再婚 合得来 走到最后 白头 红杏 出墙 我男人 我女人 那口子 相好 脚踏两条船 喜欢的人 我们俩 对我有意思 \
         对我有感觉 还有可能吗 三角恋 夫妻 两口子 喜糖 追到 追不追 谈恋爱 倒追 破冰 告白 情侣 桃花运 红线 \
         旺夫 和他 和她 跟他 跟她 我们两个 合不合适 这段关系 段关系 我们的关系 配偶 恋情 分居 变淡 不和谐 \
         感情平淡 走散 舍不得 放不下 忘不掉 余情 旧爱 新欢 多情 花心 专一 忠诚 忠贞 婚外 婚前 婚后 洞房 \
         求婚成功 蜜月期 热恋 七夕 情人节 相守 相爱 相思 单恋 单身狗 剩女 光棍 介绍的女孩 介绍的男孩 女孩子 \
         男孩子 喜欢一个人 恋爱脑 前夫 前妻 初恋情人",
        "love|loves|loved|relationship*|romance|romantic|marriage|marry|married|marrying|dating|date|divorce*|\
         ex|break up|breakup|broke up|breaking up|soulmate|soul mate|crush|propose|proposal|engaged|\
         engagement|wedding|affair|cheat*|reconcile|get back together|back together|text me|texted me|\
         text him|text her|call me back|ghost*|feelings for|feel about me|into me|likes me|like me|miss me|\
         misses me|single|find someone|meet someone|the one|partner|together with|first date|tinder|\
         settle down|come back to me|commit|commitment|heartbreak|move on from|long distance|long-distance|\
         move in with him|move in with her|move in with my boyfriend|move in with my girlfriend|right person|\
         ask her out|ask him out|separat*|moving in together|move in together|confess|alone forever|\
         end up alone|leave him|leave her|leaving him|leaving her|left him|left her|hope for us|between us|\
         me and him|me and her|him and me|her and me|feelings|serious about me|moved out|unavailable|\
         attracted to|lover|lovers|valentine*|bumble|hinge|dating app*|compatible|chemistry|spark|\
         forever alone|someone new|is it over|over between us|likes someone|still thinking about me|\
         thinking of me|thinking about me|coming back|come back|came back|wait for him|wait for her|\
         waiting for him|waiting for her|man of my|woman of my|men|women|couple|couples|intimacy|intimate|\
         passion|flirt*|monogam*|unfaithful|infidelity|honest with me|take me back|blocked me|see him again|\
         see her again|hear from him|hear from her|ring on my finger|elope|prenup|anniversary|in love|\
         romantically|mr right|meet her parents|meet his parents|go out with|seeing someone|asked me out|\
         significant other|other half|cheated|this relationship|likes|someone likes|my type|ideal partner|\
         soulmates|first move|we fight|we argue|fighting a lot|move on|get over|moving on|true feelings|loyal|\
         faithful|fidelity|heartbroken|broken heart|rebound|exclusive|label|situationship|\
         friends with benefits|marriage counselling|couples therapy|fall in love|falling for|love life|\
         love triangle|twin flame|meant to be|end up with|end up together|stay together|stay married|\
         leave my husband|leave my wife|dump*|reject*|interested in me|asked out|second date|long term with|\
         living together|text them|text me back|love them",
    ),
    row(
        Topic::Love,
        Sought::Partner,
        2,
        "老公 丈夫 老婆 妻子 媳妇 男友 女友 男朋友 女朋友 未婚夫 未婚妻 爱人 太太 先生 男神 女神 女生 男生 \
         那个男 那个女 追求 两人 疏远",
        "boyfriend|girlfriend|husband|wife|fiance|fiancé|fiancee|fiancée|spouse|this man|this woman|this guy|\
         that guy|this girl|that girl",
    ),
    row(
        Topic::Love,
        Sought::Partner,
        1,
        "他 她 吵架 两个人 我和他 我和她 对方 喜欢 联系 想念 等他 等她",
        "me and|and me|and i|for us|he|she|him|her|fight|heart|attract*|kiss",
    ),
    row(
        Topic::Friends,
        SIBLINGS,
        3,
        "朋友 闺蜜 好友 同学 室友 舍友 人际 人际关系 人缘 小人 邻居 友谊 绝交 哥们 兄弟们 同事 背后说 社交 \
         孤立 排挤 圈子 得罪 朋友圈 被孤立 贵人 和好 误会 楼上 同桌 队友 网友 姐妹 聚会 人品 信得过 利用我 \
         交心 深交 流言 群里 帮我说话 帮我 站在我这边 对我有意见 得罪人 合群 冷落 摊牌 翻脸 挑拨 眼红 嫉妒 \
         老同学 老乡 口舌 是非 议论 说闲话 说坏话 信任 真心朋友 好朋友 和解 人脉 死党 发小",
        "friend|friends|friendship*|best friend|roommate*|flatmate*|housemate*|neighbor*|neighbour*|\
         social life|classmate*|gossip*|fell out|falling out|make up with|trust him|trust her|betray*|\
         loneliness|lonely|bully|bullying|bullied|jealous|clique|mentor|apology|party|parties|class reunion|\
         invite|acquaintance*|fit in|left out|excluded|behind my back|trust this person|ally|allies|enemy|\
         enemies|rival|stranger|drama|make friends|making friends|new friends|popular|social circle|community|\
         teammate*|bandmate*|friend conflict*|better friends",
    ),
    row(
        Topic::Friends,
        SIBLINGS,
        2,
        "矛盾 冲突 隔阂 心结 疏离 人情 交往 结交",
        "conflict with|argument with|tension|misunderstanding|rumor*|rumour*|grudge",
    ),
    row(Topic::Friends, SIBLINGS, 1, "同伴 道歉 借出去 关系", "apolog*|forgive|argument|trust"),
    row(
        Topic::Friends,
        OFFICIALS,
        3,
        "跟领导的关系 和领导的关系 和老板的关系 跟老板的关系 小人作祟 犯小人",
        "get along with my boss|relationship with my boss|relationship with my manager",
    ),
    row(
        Topic::Home,
        PARENTS,
        4,
        "房子 买房 卖房 租房 房价 房东 搬家 装修 新房 二手房 房产 房屋 学区房 家宅 风水 住宅 搬到 搬去 换房 \
         房租 租客 拆迁 楼盘 首付 过户 乔迁 入宅 动土 房贷 公寓 宅 住房 公租房 验房 交房 烂尾 别墅 退租 续租 \
         合租 漏水 买车 卖车 换车 车子 二手车 提车 宅基地 翻建 盖房 建房 自建房 老房 院子 物业 车位 中介 押金 \
         征收 安置 朝向 楼层 甲醛 入住 新家 灶 大门 祖屋 商品房 期房 楼房 户型 屋 邻居装修 搬进 搬出 搬离 \
         挪床 床位 换个地方住 换个城市 定居 落脚 供房 房本 房产证 租出去 租约 扎根 不干净的东西 家里有 房间 \
         床 摆设 布局 家具 新城市 换城市 地皮 地基 土地 宅子 搬迁 迁居 置业 房贷能 住址 门窗 厨房 卫生间 阳台 \
         装潢 翻新 翻修 电梯 物业费 拎包入住 出租 转租 房客",
        "house|home|apartment|flat|condo|rent|renting|rental|landlord|tenant*|lease|move house|moving house|\
         move to a new|moving to a new|move out|moving out|renovat*|remodel*|buy a house|buying a house|\
         sell my house|selling our house|sell our house|property|real estate|housing|new place|feng shui|\
         mortgage application|realtor|car|cars|move into|moving day|downsize|basement|roof|garden|kitchen|\
         cottage|on the market|listing|bid on|closing date|contractor|builder|builders|plumb*|leak|leaks|\
         leaking|mold|mould|damp|upstairs|hoa|extension|loft|garage|shed|land|acreage|plot of land|farmhouse|\
         mobile home|caravan|van|truck|motorhome|settle in|cabin|fixer-upper|mortgage approved|tiny house|\
         subletting|sublet|downtown|suburb*|countryside|city or|relocate to|move to|moving to|motorbike|\
         vehicle|bungalow|estate agent|studio flat|studio apartment|bed|bedroom|layout|negative energy in|\
         my home|room|furniture|colors|new city|another city|dream home|first home|new house|old house|\
         new apartment|house hunting|homeowner|realty|bathroom|neighbors noise|renters|roommate lease|heating|\
         boiler|septic|backyard|fence|remodeling|homes|houses|apartments|offer on the house|offer on the flat|\
         offer on a house",
    ),
    row(Topic::Home, PARENTS, 1, "搬 住 租 隔壁 邻里", "move|moving|rooms|neighborhood|neighbourhood"),
    row(
        Topic::Travel,
        Sought::Subject,
        4,
        "出行 旅行 旅游 旅途 远行 出差 出国 行程 自驾 航班 飞机 高铁 度假 自由行 去日本 去泰国 去西藏 蜜月 \
         路上 开车去 出门 回国 出海 登山 爬山 徒步 远门 跟团 路途 平安到达 去北京 去上海 去欧洲 去美国 去云南 \
         去新疆 航程 转机 露营 赴约 春运",
        "travel|travelling|traveling|trip|trips|journey|flight|flights|fly|flying|vacation|holiday|road trip|\
         abroad|overseas|cruise|backpack*|hike|hiking|itinerary|honeymoon|airport|tour|pilgrimage|visit japan|\
         drive to|driving to|camping|sailing|relocat*|moving abroad|move abroad|moving to another country|\
         move to another country|emigrate|trek|safari",
    ),
    row(
        Topic::Travel,
        Sought::Subject,
        3,
        "游轮 拼车 川西 高原 坐船 邮轮 列车 晚点 误机 取消航班 延误 口岸 过境 境外 景区 返程 回程 抵达 远足 \
         骑行 自助游 抢票 台风 出事 平安回来 动身 启程 出差顺 去一趟 跑一趟 外出 上路 出游 周边游 海边 海岛 \
         签到 雪山 草原 骑车 坐车 坐火车 开长途 行程安排 旅居 环游 报团 出国玩 出国旅游 坐飞机 赶路 \
         赶不赶得上 路程 途中 目的地 高速 堵车 航海 探险 跨年去 度蜜月 过关 旅程 游玩 出城 进城 回家路 赶飞机",
        "border|crossing|ferry|layover|delay|delayed|luggage|suitcase|route|cycling|storm|weather|hotel|\
         island|mountains|camino|beach|ski|skiing|tickets|go to italy|japan|italy|france|spain|mexico|canada|\
         india|thailand|portugal|greece|iceland|bali|paris|london|new york|tokyo|europe|asia|africa|peru|\
         ireland|scotland|australia|new zealand|vietnam|morocco|egypt|turkey|go away|getaway|weekend away|\
         return safely|arrive safely|get there|jet lag|gap trip|safe journey|sail|voyage|expedition|\
         flight home|trip to|travel to|holiday in|vacation in|overseas trip|traveler|traveller|go abroad|\
         study trip|business trip|visa-free|pack|backpacking|road conditions|turbulence|sail to|commute|\
         commuting|traffic|train ride|bus ride|hitchhik*|festival",
    ),
    row(Topic::Travel, Sought::Subject, 2, "回老家 去哪里玩 去玩 出去玩 外地 异地 国外", "visit|sightseeing|explore"),
    row(Topic::Travel, Sought::Subject, 1, "去 到达 车票 机票", "road|train|arrive"),
];

/// The persons for whom somebody asks.
pub(super) static PERSONS: &[PersonEntry] = &[
    PersonEntry {
        person: Person::Parent,
        chinese: "父母 爸妈 母亲 父亲 妈妈 爸爸 我妈 我爸 老妈 老爸 爷爷 奶奶 外公 外婆 姥姥 姥爷 婆婆 公公 岳母 岳父 丈母娘 长辈 \
                  妈 爸",
        english: "parent|parents|mother|father|mom|mum|dad|grandmother|grandfather|grandma|grandpa|mother-in-law|\
                  father-in-law|aunt|uncle",
    },
    PersonEntry {
        person: Person::Child,
        chinese: "孩子 儿子 女儿 宝贝 孙子 孙女 小孩 娃 宝宝 闺女 侄子 外甥",
        english: "child|son|daughter|kid|kids|children|teenager|grandson|granddaughter|nephew|niece|toddler|baby",
    },
    PersonEntry {
        person: Person::Sibling,
        chinese: "哥哥 弟弟 姐姐 妹妹 我哥 我弟 我姐 我妹 表哥 表弟 表姐 表妹 朋友 闺蜜 同学",
        english: "brother|sister|cousin|friend|sibling",
    },
    PersonEntry {
        person: Person::Animal,
        chinese: "宠物 猫咪 小猫 猫 狗狗 小狗 狗 兔子 仓鼠",
        english: "pet|cat|dog|kitten|puppy|rabbit|hamster|horse",
    },
    PersonEntry {
        person: Person::Man,
        chinese: "老公 丈夫 男朋友 男友 前男友 未婚夫 男生 那个男 先生 男神 前夫 他",
        english: "husband|boyfriend|fiance|fiancé|ex-husband|ex-boyfriend|this man|this guy|that guy|he|him|his",
    },
    PersonEntry {
        person: Person::Woman,
        chinese: "老婆 妻子 媳妇 女朋友 女友 前女友 未婚妻 女生 那个女 太太 女神 前妻 她",
        english: "wife|girlfriend|fiancee|fiancée|ex-wife|ex-girlfriend|this woman|this girl|that girl|she|her|hers",
    },
];
