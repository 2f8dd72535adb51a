//! All text of the console, in Chinese and English. A text without one of them does not compile.

use crate::{
    http::admin::sensitive_words::ShownAdvice,
    types::{Locale, pluralize},
};

/// The weight of a message or a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Neutral,
    Good,
    Notice,
    Bad,
}

impl Tone {
    pub const fn class(self) -> &'static str {
        match self {
            Self::Neutral => "neutral",
            Self::Good => "good",
            Self::Notice => "notice",
            Self::Bad => "bad",
        }
    }
}

/// A language of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Chinese,
    English,
}

impl Language {
    pub const ALL: [Self; 2] = [Self::Chinese, Self::English];

    pub const fn locale(self) -> Locale {
        match self {
            Self::Chinese => Locale::Chinese,
            Self::English => Locale::English,
        }
    }

    /// Returns the language tag of BCP 47.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Chinese => "zh-CN",
            Self::English => "en",
        }
    }

    /// Returns the language's name in the language itself.
    pub const fn own_name(self) -> &'static str {
        match self {
            Self::Chinese => "中文",
            Self::English => "English",
        }
    }

    /// Reads a cookie or an `Accept-Language` header. Anything that does not prefer Chinese is English.
    pub fn of(preferred: &str) -> Self {
        if preferred.trim_start().to_ascii_lowercase().starts_with("zh") { Self::Chinese } else { Self::English }
    }
}

macro_rules! texts {
    ($($name:ident: $chinese:literal, $english:literal;)*) => {
        /// A text without variable parts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Text { $($name),* }

        impl Text {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            pub const fn in_language(self, language: Language) -> &'static str {
                match (self, language) {
                    $((Self::$name, Language::Chinese) => $chinese, (Self::$name, Language::English) => $english,)*
                }
            }
        }
    };
}

texts! {
    ProductName: "Yarrow", "Yarrow";
    // Messages after an action.
    PasswordsDiffer: "两次输入的密码不一致", "The passwords differ.";
    NotAChoice: "没有这个选项，请重新选择", "There is no such choice. Pick another one.";
    FilterRejected: "筛选条件有误，未列出任何内容。", "The filter has a fault, so nothing is listed.";
    ActionDone: "操作已完成。", "Done.";
    // Navigation.
    AreaIdentity: "用户", "Identity";
    AreaDivination: "占卜", "Divination";
    AreaMoney: "资金", "Money";
    AreaModeration: "内容审核", "Moderation";
    AreaMessaging: "消息", "Messaging";
    AreaOperations: "运维", "Operations";
    Areas: "栏目", "Areas";
    Overview: "总览", "Overview";
    Users: "用户", "Users";
    Growth: "增长", "Growth";
    Models: "模型与费用", "Models and cost";
    Orders: "订单", "Orders";
    Purchases: "商店购买", "Store purchases";
    Revenue: "收入", "Revenue";
    Violations: "违规记录", "Violations";
    ReviewQueue: "复核队列", "Review queue";
    WordList: "词库", "Word list";
    Services: "审核服务", "Services";
    Feedback: "用户反馈", "Feedback";
    Messages: "通知", "Messages";
    Releases: "应用版本", "Releases";
    Health: "健康状况", "Health";
    NetworkLog: "网络日志", "Network log";
    ServerLog: "服务日志", "Server log";
    Audit: "审计", "Audit";
    Administrators: "管理员", "Administrators";
    ApiKeys: "API 密钥", "API keys";
    Settings: "配置", "Settings";
    DataCleanup: "数据清理", "Data cleanup";
    // Shell.
    SkipToContent: "跳到正文", "Skip to content";
    Menu: "菜单", "Menu";
    Close: "关闭", "Close";
    Search: "搜索", "Search";
    SearchLabel: "搜索用户、订单或请求", "Search users, orders or requests";
    SearchPlaceholder: "手机号、邮箱、用户编号、订单号、追踪号…", "Phone, email, user id, order, trace…";
    Account: "账户", "Account";
    LanguageLabel: "语言", "Language";
    ThemeLabel: "外观", "Appearance";
    ThemeSystem: "跟随系统", "System";
    ThemeLight: "浅色", "Light";
    ThemeDark: "深色", "Dark";
    SignIn: "登录", "Sign in";
    SignOut: "退出登录", "Sign out";
    SessionEnded: "会话已结束，请重新登录。", "Your session has ended. Sign in again.";
    SendAgain: "再次发送", "Send again";
    SendAgainLead: "发送时会话已结束，操作没有执行。请核对以下内容后再次发送；密码需重新填写。", "The session had ended when this was sent, so nothing was done. Check it, and send it again. Passwords are not kept.";
    BackToPage: "返回原页面", "Back to the page";
    TypedTextIsKept: "已填写的内容会保留。", "What you typed is kept.";
    TypedTextRestored: "已恢复您之前填写的内容。", "What you typed before was restored.";
    RefreshFailed: "刷新失败，显示的是较早的数据。", "Refresh failed; older data is shown.";
    LiveOn: "自动刷新：开", "Live refresh: on";
    LiveOff: "自动刷新：关", "Live refresh: off";
    WaitingSuffix: "项待处理", "waiting";
    RequestId: "请求编号", "Request id";
    RoleLabel: "角色", "Role";
    // Words for everywhere.
    All: "全部", "All";
    None: "无", "None";
    Nothing: "没有", "Nothing";
    ActOnUser: "处理用户", "Act on user";
    AccountState: "账号", "Account";
    NeverSuspended: "没有停用记录", "No suspensions";
    NoValues: "所选时间内没有数据", "No values in this period";
    NothingYet: "暂无记录", "Nothing yet";
    NothingFound: "没有找到", "Nothing found";
    Yes: "是", "Yes";
    No: "否", "No";
    On: "开", "On";
    Off: "关", "Off";
    Cancel: "取消", "Cancel";
    Confirm: "确认", "Confirm";
    Continue: "继续", "Continue";
    Save: "保存", "Save";
    Edit: "修改", "Edit";
    Remove: "移除", "Remove";
    Check: "核对", "Check";
    Copy: "复制", "Copy";
    Copied: "已复制", "Copied";
    Detail: "说明", "Detail";
    Optional: "选填", "optional";
    Now: "现在", "now";
    Since: "起始于", "since";
    AsOf: "数据时间", "As of";
    From: "从", "From";
    To: "到", "To";
    Time: "时间", "Time";
    Created: "创建时间", "Created";
    Expires: "到期时间", "Expires";
    Last: "最近一次", "Last";
    LastUsed: "最近使用", "Last used";
    State: "状态", "State";
    Status: "状态码", "Status";
    Action: "操作", "Action";
    Actions: "操作", "Actions";
    RecordedAction: "操作", "Action";
    Palette: "查找用户、订单、页面和操作", "Find people, orders, pages and acts";
    KeyChoose: "选择一项并打开", "Choose an entry and open it";
    KeyHelp: "键盘快捷键", "Keyboard shortcuts";
    SignIns: "登录", "Sign-ins";
    Activity: "活动", "Activity";
    Sections: "分栏", "Sections";
    Figures: "统计", "Figures";
    Logs: "日志", "Logs";
    Actor: "操作者", "Actor";
    ActorHint: "例如 admin:alice、key:shop 或 cli", "For example admin:alice, key:shop or cli";
    Reason: "原因", "Reason";
    ReasonHint: "写入审计记录", "Kept in the audit";
    Outcome: "结果", "Outcome";
    Results: "处理结果", "Results";
    Cause: "缘由", "Cause";
    Failure: "失败原因", "Failure";
    Amount: "金额", "Amount";
    Name: "名称", "Name";
    Label: "标签", "Label";
    Id: "编号", "Id";
    Title: "标题", "Title";
    Body: "正文", "Text";
    Value: "值", "Value";
    Source: "来源", "Source";
    Size: "大小", "Size";
    Duration: "耗时", "Duration";
    Version: "版本", "Version";
    Published: "发布时间", "Published";
    Preview: "预览", "Preview";
    Withdraw: "撤回", "Withdraw";
    NotDone: "未执行。", "Not done.";
    ErrorCode: "错误码", "Error code";
    QuoteRequestId: "联系技术人员时，请附上请求编号。", "Quote the request id when you ask for help.";
    TryAgain: "重试", "Try again";
    ShowTable: "以表格查看", "Show as table";
    NoComparison: "无可比数据", "no comparison";
    ThanBefore: "较上期", "vs before";
    Yesterday: "昨天", "yesterday";
    Reveal: "显示", "Reveal";
    RevealIsAudited: "每次显示都会写入审计。", "Each reveal is recorded in the audit.";
    // Lists.
    Filter: "筛选", "Filter";
    Presets: "常用筛选", "Presets";
    Apply: "应用筛选", "Apply";
    ClearFilter: "清除", "Clear";
    Pages: "分页", "Pages";
    FirstPage: "回到第一页", "First page";
    NextPage: "下一页", "Next page";
    ExportCsv: "导出 CSV", "Export CSV";
    AnyType: "任意类型", "Any type";
    // Sign-in.
    Password: "密码", "Password";
    NewPassword: "新密码", "New password";
    RepeatPassword: "再次输入密码", "Repeat the password";
    PasswordHint: "至少 12 个字符", "At least 12 characters";
    AuthenticatorCode: "验证器动态码", "Authenticator code";
    TotpHint: "如已启用两步验证，请输入 6 位动态码", "Six digits, if a second factor is set up";
    StepUpHint: "此操作需要再次确认您的身份（10 分钟内有效）", "This action needs a fresh proof of identity, valid for ten minutes";
    CannotSignIn: "无法登录？", "Cannot sign in?";
    CannotSignInHelp: "在服务器上可以重设密码、移除验证器或清除网络限制：", "On the server, reset the password, remove the authenticator or clear the networks:";
    FirstOwner: "创建第一位所有者", "Create the first owner";
    FirstOwnerLead: "此链接仅可使用一次。所有者拥有全部权限，之后可以添加其他管理员。", "This link works once. The owner has every right and can add other administrators later.";
    CreateOwner: "创建并登录", "Create and sign in";
    // Overview.
    NewServer: "服务器已就绪。", "The server is ready.";
    NewServerLead: "还没有用户。应用连接后，这里会显示数据。", "There are no users yet. Figures appear once the app connects.";
    OrdersInReview: "待处理订单", "Orders in review";
    NothingWaits: "没有待处理的事项", "Nothing waits";
    NewUsers: "新用户", "New users";
    ActiveUsers: "活跃用户", "Active users";
    CastingsToday: "起卦次数", "Castings";
    RevenueToday: "收入", "Revenue";
    Errors: "错误", "Errors";
    Requests24Hours: "24 小时请求", "Requests in 24 hours";
    Latency24Hours: "24 小时响应时间", "Response times in 24 hours";
    Median: "中位数", "Median";
    Percentile95: "95% 请求", "95 %";
    Percentile99: "99% 请求", "99 %";
    RefundsToday: "退款金额", "Refunds";
    Day: "日期", "Day";
    Month: "月", "Month";
    // Search.
    SearchHelp: "请输入完整的用户编号、手机号、邮箱、订单号、交易号、追踪号或请求编号，或昵称的开头。", "Enter a whole user id, phone number, email address, order number, trade number, trace id or request id, or the beginning of a nickname.";
    MoreHits: "还有更多结果，请输入更多内容。", "There are more results. Type more.";
    // Users.
    User: "用户", "User";
    UserId: "用户编号", "User id";
    UserQuery: "编号、地址、昵称开头", "Id, address, nickname";
    Nickname: "昵称", "Nickname";
    PhoneNumber: "手机号", "Phone number";
    NewPhoneNumber: "新手机号", "New phone number";
    Email: "邮箱", "Email";
    Registered: "注册时间", "Registered";
    RegisteredFrom: "注册自", "Registered from";
    RegisteredTo: "注册至", "Registered to";
    LastSeen: "最近活动", "Last seen";
    NoUsers: "没有符合条件的用户", "No users match";
    Identity: "身份", "Identity";
    Gender: "性别", "Gender";
    Birthday: "生日", "Birthday";
    Signature: "签名", "Signature";
    Castings: "历史卦例", "History records";
    UserSuspended: "该用户已被停用。", "This user is suspended.";
    MoveAccount: "更换手机号", "Move to a new phone";
    MoveAccountHint: "请先核实对方身份，并在原因中写明如何核实。该账号的所有设备会退出登录。", "Check the person's identity first, and say in the reason how. All devices of the account are signed out.";
    ResetNickname: "重置昵称", "Reset nickname";
    Balances: "余额", "Balances";
    Balance: "余额", "Balance";
    BalanceAfter: "变动后余额", "Balance after";
    BalanceNow: "当前余额", "Balance now";
    AccountSuspended: "账户已暂停", "Account suspended";
    Coins: "金币", "Coins";
    CoinsOrPoints: "金币或点数", "Coins or points";
    Points: "点数", "Points";
    Asset: "币种", "Asset";
    GrantCoins: "调整金币", "Grant coins";
    AmountOfChange: "变动数量", "Change";
    AmountHint: "扣减请填负数", "A negative number takes away";
    NotACoinChange: "请填写不为 0 的整数，例如 10 或 -10", "Type a whole number other than 0, such as 10 or -10";
    CheckFields: "请更正标出的内容。", "Correct the marked fields.";
    EntryKind: "类型", "Kind";
    Change: "变动", "Change";
    Reference: "关联", "Reference";
    Ledger: "账本", "Ledger";
    LedgerEntries: "账本记录", "Ledger entries";
    ManualChanges: "人工调整与修复", "Manual changes and repairs";
    BackToUser: "返回用户", "Back to the user";
    Issues: "数据问题", "Issues";
    Issue: "问题", "Issue";
    Repairable: "可自动修复", "Repairable";
    NeedsDecision: "需要人工决定", "Needs a decision";
    RepairAccount: "修复数据", "Repair";
    Notes: "客服备注", "Staff notes";
    NoNotes: "还没有备注", "No notes yet";
    NewNote: "新备注", "New note";
    NoteHint: "仅工作人员可见，用户导出数据时会包含", "Seen by staff only; part of the user's data export";
    AddNote: "添加备注", "Add note";
    EndAllDevices: "退出所有设备", "Sign out all devices";
    EndDevice: "退出此设备", "Sign out";
    SuspendUser: "停用用户", "Suspend user";
    SuspendHint: "用户会看到原因。账号停用期间不能登录或使用，但可以阅读通知和提交反馈。", "The user is told the reason. While the account is suspended they cannot sign in or use the app, but read notifications and send feedback.";
    SuspendUntil: "停用至", "Suspended until";
    SuspendUntilHint: "留空则直至手动恢复", "Empty: until somebody lifts it";
    SkipWarned: "跳过会误伤正常文字的词", "Leave out words that would reject innocent texts";
    WouldRejectInnocent: "可能误伤正常文字", "Would reject innocent texts";
    Scope: "范围", "Scope";
    ResumeUser: "恢复用户", "Lift suspension";
    ResetNicknameHint: "昵称会被清空，用户会看到原因。", "The nickname becomes empty. The user is told the reason.";
    Suspensions: "停用记录", "Suspensions";
    StartedAt: "开始", "Since";
    Until: "截止", "Until";
    Lifted: "解除", "Lifted";
    RemoveNote: "删除备注", "Remove note";
    EraseConsequence: "将删除该账号及全部个人数据，无法撤销。已有备份保留其副本。", "Deletes the account and all personal data. This cannot be undone. Existing backups keep their copy.";
    NotTheTarget: "与用户编号不符", "This is not the id of the user";
    NoLongerExists: "该账号已不存在。", "The account no longer exists.";
    UsersSearchHint: "编号、手机号、邮箱，或昵称开头", "Id, phone number, email address, or the beginning of a nickname";
    ExportData: "导出数据", "Export data";
    ExportHint: "包含该用户的全部个人数据", "Contains all personal data of the user";
    EraseUser: "注销并删除", "Erase";
    Identities: "第三方登录", "Identities";
    IdentityService: "服务", "Service";
    Linked: "关联时间", "Linked";
    Devices: "设备", "Devices";
    Device: "设备", "Device";
    SignedIn: "登录时间", "Signed in";
    CodeMessages: "验证码记录", "Code messages";
    NoCodeMessages: "最近七天没有请求验证码", "No codes were asked for in the last seven days";
    NoReceipts: "未取得送达回执：", "No delivery receipts:";
    Asked: "请求时间", "Asked";
    Purpose: "用途", "Purpose";
    Channel: "渠道", "Channel";
    Delivery: "送达", "Delivery";
    ProviderAnswer: "服务商答复", "Provider's answer";
    Receipt: "回执号", "Receipt";
    Notifications: "收到的通知", "Notifications";
    ReadAt: "阅读时间", "Read";
    Requests: "请求", "Requests";
    Request: "请求", "Request";
    // Missing coins.
    MissingCoins: "“我的金币不见了”", "“My coins are missing”";
    CauseSuspended: "账户已暂停，需要修复", "Account suspended: repair it";
    CauseSuspendedDetail: "余额与账本不一致，账户暂停入账。修复会按账本重新计算余额。", "The balance disagrees with the ledger, so the account takes no entries. A repair recomputes the balance.";
    CauseOrderOpen: "有未完成的订单", "An order is not finished";
    CauseOrderOpenDetail: "向支付平台查询后，已付款的订单会立即入账。", "Ask the provider: a paid order is credited at once.";
    CauseOtherAccount: "付款记在另一个账号", "Paid under another account";
    CauseOtherAccountDetail: "这笔交易属于另一个账号的订单，金币已发放到那里。", "This payment belongs to an order of another account, which received the coins.";
    CauseUsed: "金币已到账，之后被使用", "Credited, and used since";
    CauseDeducted: "由工作人员扣减", "Taken by the staff";
    CauseDeductedDetail: "工作人员手动减少了余额，原因见账本与审计。", "The staff lowered the balance by hand; the ledger and the audit have the reason.";
    SinceLastPurchase: "自上次充值以来", "Since the last purchase";
    BalanceBefore: "此前余额", "Balance before";
    ReplyDeducted: "您好，您的金币余额由客服做过调整，我们正在核对原因，会尽快回复您。", "Hello, our staff adjusted your coin balance. We are checking the reason and will write to you soon.";
    CauseRefunded: "因退款收回", "Taken back by a refund";
    CauseRefundedDetail: "订单已退款，相应的金币已收回。", "The order was refunded and its coins were taken back.";
    CauseNothing: "未发现缺失", "Nothing is missing";
    CauseNothingDetail: "没有未完成的订单，余额与账本一致。若用户有付款凭证，请用交易号核对。", "No order is open and the balance agrees with the ledger. If the user has a receipt, check its trade number.";
    AskProvider: "向支付平台查询", "Ask the provider";
    AskForDeliveries: "查询送达情况", "Ask for deliveries";
    OpenOtherAccount: "打开另一个账号", "Open the other account";
    OpenOrder: "打开订单", "Open the order";
    ShowLedger: "查看账本", "Show the ledger";
    GrantInstead: "前往其他操作", "Go to other actions";
    ReplyToCopy: "给用户的回复", "Reply to the user";
    HasTradeNumber: "用户提供了交易号？", "The user has a trade number?";
    TradeNumber: "交易号", "Trade number";
    TradeNumberHint: "支付宝账单中的订单号", "From the payment app's receipt";
    ReplySuspended: "您好，您的账户余额出现异常，我们已经修复，请重新打开应用查看。给您带来不便，非常抱歉。", "Hello, your balance had an error which we have repaired. Please reopen the app. We are sorry for the trouble.";
    ReplyNothing: "您好，我们核对了您的订单与余额，没有发现缺失。如果您有付款凭证，请把账单中的交易号发给我们，我们会继续核查。", "Hello, we checked your orders and balance and found nothing missing. If you have a receipt, please send us its trade number and we will look further.";
    CausePurchaseOpen: "有未入账的商店购买", "A store purchase is not credited";
    CausePurchaseOpenDetail: "向应用商店查询后，已付款的购买会立即入账。状态为被拒绝时，请看原因。", "Ask the store: a paid purchase is credited at once. If it is refused, see its cause.";
    OpenPurchase: "打开购买记录", "Open the purchase";
    ReplyPurchaseOpen: "您好，我们已找到您在应用商店的购买，正在向商店核实，核实后会自动入账。", "Hello, we found your purchase in the app store and are checking it there. It is credited as soon as the store confirms it.";
    ReplyPurchaseRefunded: "您好，您在应用商店的这笔购买已退款，相应的金币或点数已收回。", "Hello, your purchase in the app store was refunded, so its coins or points were taken back.";
    // Bills of the payment providers.
    Bills: "渠道账单", "Bills";
    BillsHint: "每天上午十点后自动核对前一天的账单；有差异的订单转入待处理。", "Yesterday's bills are checked every morning after ten; orders that differ go to review.";
    NoBills: "还没有核对过账单", "No bill was checked yet";
    CheckBill: "核对某天的账单", "Check the bills of a day";
    BillDay: "日期（北京时间）", "Day in Shanghai";
    BillPayments: "收款", "Payments";
    BillRefunds: "退款", "Refunds";
    BillDifferences: "差异", "Differences";
    Fees: "手续费", "Fees";
    CheckedAt: "核对时间", "Checked";
    EachChannel: "全部渠道", "All channels";
    BillAgrees: "账单与记录一致。", "Bills and records agree.";
    // Purchases in app stores.
    Purchase: "商店购买", "Store purchase";
    PurchaseDetails: "购买信息", "Purchase details";
    NoPurchases: "没有符合条件的购买", "No purchases match";
    Store: "应用商店", "Store";
    StoreNumber: "商店单号", "Number at the store";
    StoreProduct: "商店商品", "Product at the store";
    Quantity: "数量", "Quantity";
    Country: "国家或地区", "Country";
    CoinsAndBonus: "金币或点数（含赠送）", "Coins or points with bonus";
    StoreNotifications: "商店通知", "Store notifications";
    AskBuyerHistory: "查询该买家的全部购买", "Ask about all purchases of the buyer";
    AskStore: "向应用商店查询", "Ask the store";
    NextStoreCall: "下次通知商店：", "next call to the store";
    EventPurchased: "购买", "Bought";
    // Orders.
    Order: "订单", "Order";
    OrderDetails: "订单信息", "Order details";
    Price: "价格", "Price";
    Paid: "实付", "Paid";
    Refunded: "已退款", "Refunded";
    Received: "收到时间", "Received";
    CoinsReturned: "已收回", "Taken back";
    CoinsWrittenOff: "已核销", "Written off";
    NoOrders: "没有符合条件的订单", "No orders match";
    Timeline: "经过", "Timeline";
    EventCreated: "创建", "Created";
    EventPaid: "付款", "Paid";
    EventCredited: "入账", "Credited";
    EventClosed: "关闭", "Closed";
    EventRefunded: "退款", "Refunded";
    EventSettled: "人工处理", "Settled";
    EventExpires: "付款截止", "Payable until";
    NextCheck: "下次查询", "next check";
    ProviderAnswered: "支付平台的答复", "The provider's answer";
    NeverOpened: "用户从未打开支付页面。", "The buyer never opened the payment screen.";
    Effect: "处理结果", "Effect";
    Refund: "退款", "Refund";
    Refunds: "退款记录", "Refunds";
    RefundNumber: "退款单号", "Refund number";
    RefundAmount: "退款金额（元）", "Amount to refund (¥)";
    RefundHint: "相应的金币会被收回", "The coins bought with it are taken back";
    NoRefunds: "没有退款", "No refunds";
    Decide: "作出决定", "Decide";
    Decision: "决定", "Decision";
    DecisionCredit: "入账", "Credit";
    DecisionCreditHint: "给用户发放金币", "Gives the user the coins";
    DecisionWriteOff: "核销", "Write off";
    DecisionWriteOffHint: "订单保持原状，核销用户欠的金币", "Leaves the order as it is and waives the coins that are owed";
    DecisionClawBack: "收回", "Claw back";
    DecisionClawBackHint: "在余额允许的范围内收回金币", "Takes back the coins that are owed, as far as the balance allows";
    DecisionExternal: "已在外部退款", "Refunded externally";
    DecisionExternalHint: "记录款项已在本服务之外全额退回", "Records that all money was returned outside of this service";
    OwnerDecides: "退款与人工处理需要所有者权限。", "Refunds and decisions need the role of owner.";
    Callbacks: "支付回调", "Callbacks";
    NoCallbacks: "没有回调", "No callbacks";
    SignatureValid: "签名有效", "Signature valid";
    ReplayCallback: "重放", "Replay";
    // Figures.
    Last7Days: "最近 7 天", "7 days";
    Last30Days: "最近 30 天", "30 days";
    Last90Days: "最近 90 天", "90 days";
    LastYear: "最近一年", "1 year";
    Retention: "留存", "Retention";
    RetentionHint: "按注册周统计，之后每周仍活跃的用户比例", "Share of users active in later weeks, by week of registration";
    Week: "周", "Week";
    FunnelAsked: "请求验证码", "Asked";
    FunnelSent: "已发送", "Sent";
    FunnelVerified: "已验证", "Verified";
    RefundedMoney: "退款", "Refunds";
    CoinsSold: "售出", "Sold";
    CoinsUsed: "使用", "Used";
    CodesFunnel: "从验证码到新用户", "From code to new user";
    CoinsSoldAndUsed: "金币售出与使用", "Coins sold and used";
    MoneyByChannel: "各渠道的收入与退款", "Revenue and refunds by channel";
    Currency: "币种", "Currency";
    ByDay: "（按日）", " by day";
    ByWeek: "（按周）", " by week";
    ByMonth: "（按月）", " by month";
    // Models.
    Model: "模型", "Model";
    ModelCall: "模型调用", "Model call";
    Interpretations: "解卦记录", "Interpretations";
    NewestLines: "最新日志", "Newest lines";
    OlderLines: "更早的日志", "Older lines";
    TraceId: "追踪号", "Trace id";
    Rating: "评分", "Rating";
    Ratings: "用户评分", "Ratings";
    Helpful: "有帮助", "Helpful";
    NotHelpful: "没有帮助", "Not helpful";
    PromptVersion: "提示词版本", "Prompt version";
    Rated: "评分数", "Rated";
    NoRatings: "没有评分", "No ratings";
    AvailableModels: "可用性", "Availability";
    BudgetsToday: "今日预算", "Budgets today";
    BudgetCost: "费用", "Cost";
    BudgetTokens: "词元", "Tokens";
    Unlimited: "不限", "unlimited";
    UsageByModel: "各模型用量", "Usage by model";
    Calls: "调用", "Calls";
    FailedCalls: "失败", "Failed";
    SlowCalls: "较慢", "Slow";
    PromptTokens: "输入词元", "Tokens in";
    CompletionTokens: "输出词元", "Tokens out";
    Cost: "费用", "Cost";
    MeanDuration: "平均耗时", "Mean duration";
    Others: "其他", "Others";
    NoCalls: "没有调用", "No calls";
    // Moderation.
    MaskedText: "文本（已遮盖）", "Masked text";
    ViolationType: "违规类型", "Type";
    ContentType: "内容", "Content";
    DetectedBy: "判定者", "Detected by";
    Reviewed: "复核", "Review";
    NoViolations: "没有违规记录", "No violations";
    ByType: "按类型", "By type";
    FrequentViolators: "频繁违规用户", "Frequent violators";
    ReviewLead: "这些文字已放行，但有疑点。认定违规会记录违规并清空仍在使用的昵称；一天内可以撤销。", "These texts passed, but are suspect. Upholding the suspicion records a violation and clears a nickname in use. Decisions can be undone for a day.";
    AcquitTexts: "没有问题", "Acquit";
    UpholdTexts: "认定违规", "Uphold";
    ReviewPhraseHint: "可选：今后放行此短语，仅用于放行的决定", "Optional: allow this phrase from now on; only if the text is innocent";
    LastDecisions: "最近的决定", "Last decisions";
    TheText: "文字", "Text";
    Undo: "撤销", "Undo";
    QueueEmpty: "队列已清空", "The queue is empty";
    BulkAction: "批量处理", "Bulk action";
    SelectAll: "全选", "Select all";
    Pick: "选择", "Pick";
    Unchanged: "不变", "Unchanged";
    Replies: "回复数", "Replies";
    PickSome: "请选择 1 至 100 行。", "Pick 1 to 100 rows.";
    UnknownAct: "未知操作。", "Unknown act.";
    MinAmount: "最低金额", "Amount from";
    MaxAmount: "最高金额", "Amount up to";
    RouteHint: "接口模板，如 /coin/consume", "The template, such as /coin/consume";
    WronglyRefused: "误拒", "Wrongly refused";
    AllowPhrase: "放行短语", "Allow a phrase";
    ReadsAs: "原文读作", "the text reads";
    AllowedPhrases: "放行短语", "Allowed phrases";
    Phrase: "短语", "Phrase";
    PhraseHint: "包含被禁词、但应当放行的短语", "A phrase with a listed word that is accepted";
    Word: "词", "Word";
    WordsListed: "词库词数", "Listed words";
    NoWords: "没有符合条件的词", "No words match";
    BySound: "按读音", "By sound";
    Severity: "严重程度", "Severity";
    SeverityHint: "低：文本放行并进入复核队列", "Low: the text passes and is put in the review queue";
    Tag: "标签", "Tag";
    Tags: "标签", "Tags";
    TagsHint: "更多类型，以逗号分隔", "Further types, separated by commas";
    AppliesTo: "适用内容", "Applies to";
    AppliesToHint: "不选则适用于所有文本", "Select none for all texts";
    AllTexts: "所有文本", "All texts";
    BySoundLong: "同时匹配同音写法", "Also match by pronunciation";
    Added: "加入时间", "Added";
    AddWord: "加入词", "Add word";
    TestText: "测试文本", "Test text";
    TextToTest: "待测文本", "Text";
    Allowed: "放行", "Allowed";
    Refused: "拒绝", "Refused";
    PhraseIsWord: "已放行。注意：此短语就是词表中的词，该词不再生效；请改为删除该词，或放行更长的短语。", "Allowed. Warning: this is a listed word, which is not found any more. Remove the word instead, or allow a longer phrase.";
    PhraseWithoutWord: "已放行。注意：此短语中没有词表中的词，目前没有作用。", "Allowed. Warning: the phrase contains no listed word, so it has no effect.";
    PhraseAcquitsNot: "已放行。注意：此短语未覆盖该文本中的全部命中，该文本仍会被发现；请按文本原样放行短语。", "Allowed. Warning: the phrase does not cover every match in the text, so the text would be flagged again. Allow the phrase exactly as it appears in the text.";
    ToReview: "待复核", "For review";
    Masked: "遮盖", "Masked";
    ImportWords: "导入词表", "Import words";
    ImportLines: "词表的行", "Lines of the list";
    WordIsListed: "已在词表中", "is listed already";
    NoValidLine: "没有有效的行", "No line is a valid word";
    PreviewImport: "预览", "Preview";
    Violation: "违规记录", "Violation";
    TextErased: "文本已随账号删除", "The text was deleted with the account";
    MatchedWords: "命中的词", "Matched words";
    WordTypeHint: "如 politics、porn、abuse、gambling、ads；留空为 other", "Such as politics, porn, abuse, gambling, ads; empty is other";
    CsvFileHint: "每行：词，其后可有类型、按读音、严重程度、标签、适用内容，以逗号分隔", "Lines of a word, optionally followed by type, bySound, severity, tags and contentTypes, separated by commas";
    WhoDecides: "当前判定者", "Decides now";
    LocalService: "本地词库", "Word list";
    ExternalService: "外部审核", "External moderator";
    Fallback: "失败时改用词库", "Fallback to the word list";
    FallbackOn: "开启后备", "Switch fallback on";
    FallbackOff: "关闭后备", "Switch fallback off";
    LastFailure: "最近失败", "Last failure";
    CompareServices: "对比两种服务", "Compare both services";
    Compare: "对比", "Compare";
    Disagreements: "判定不一致", "Disagreements";
    NoDisagreements: "没有不一致的文本", "No disagreements";
    // Feedback.
    StateOpen: "待处理", "Open";
    StateInProgress: "处理中", "In progress";
    StateClosed: "已关闭", "Closed";
    Mine: "分配给我", "Mine";
    Assignee: "负责人", "Assignee";
    Nobody: "无人", "Nobody";
    WithoutAccount: "无账号", "Without account";
    Verified: "已验证", "verified";
    NotVerified: "未验证", "not verified";
    NoFeedback: "没有反馈", "No feedback";
    Reply: "回复", "Reply";
    ReplyText: "回复内容", "Reply";
    ReplyHint: "以应用内通知发送给用户", "Sent to the user as a notification in the app";
    SendReply: "发送回复", "Send reply";
    ReplyAndClose: "回复并关闭", "Reply and close";
    ChangeState: "更改状态", "Change state";
    // Messages and releases.
    NewMessage: "新通知", "New message";
    NoMessages: "还没有发送过通知", "No messages yet";
    MessageKind: "类别", "Kind";
    Audience: "对象", "Audience";
    ToAll: "所有用户", "All users";
    ToSome: "指定用户", "Some users";
    Recipients: "接收者", "Recipients";
    MessageSent: "消息已发送。", "The message was sent.";
    SentToAll: "将发送给所有用户。", "It goes to all users.";
    ReleasePublished: "版本已发布。", "The release was published.";
    AllPlatforms: "所有平台", "All platforms";
    RecipientsHint: "用户编号、手机号或邮箱，以逗号分隔", "Ids, phone numbers or email addresses, separated by commas";
    Payload: "附加数据（JSON）", "Payload (JSON)";
    PayloadHint: "例如 {\"type\":\"open_route\",\"route\":\"points\"}", "For example {\"type\":\"open_route\",\"route\":\"points\"}";
    Read: "已读", "Read";
    Sent: "发送时间", "Sent";
    SendMessage: "发送", "Send";
    InTheApp: "应用中的样子", "As the app shows it";
    NewRelease: "新版本", "New release";
    NoReleases: "还没有发布版本", "No releases yet";
    BuildNumber: "构建号", "Build";
    Platform: "平台", "Platform";
    DownloadAddress: "下载地址", "Download address";
    ReleaseNotes: "更新说明", "Notes";
    ForcesUpdate: "强制更新", "Force older versions to update";
    ForcesUpdateWarning: "旧版本用户在更新之前无法使用应用。", "Users of older versions cannot use the app until they update.";
    Publish: "发布", "Publish";
    // Network log.
    NetworkLogLead: "每个请求一行，不含路径参数和查询。", "One row per request, without path parameters and query.";
    NotInLog: "磁盘过慢、未能记录的请求（按十分钟计）", "Requests that could not be stored, because the disk was too slow (by ten minutes)";
    ClientAddress: "客户端地址", "Client address";
    Route: "接口", "Route";
    NoRequests: "没有符合条件的请求", "No requests match";
    // Health.
    NoAlerts: "一切正常，没有告警。", "All is well: no alert is firing.";
    Alert: "告警", "Alert";
    PastAlerts: "告警历史", "History of alerts";
    TestAlerts: "测试告警", "Test alerts";
    RunDoctor: "运行诊断", "Run the doctor";
    Doctor: "诊断", "Doctor";
    DoctorNotRun: "还没有运行过诊断", "The doctor has not run yet";
    CheckName: "检查项", "Check";
    Verdict: "结论", "Verdict";
    Server: "服务器", "Server";
    Started: "启动时间", "Started";
    Database: "数据库", "Database";
    DiskFree: "磁盘剩余", "Disk free";
    DiskUsed: "磁盘已用", "Disk used";
    VerifiedAt: "上次核对", "Verified";
    Accounts: "账户数", "Accounts";
    Discrepancies: "不一致", "Discrepancies";
    AccountsSuspended: "暂停的账户", "Suspended accounts";
    PaymentDifferences: "付款与账本差异", "Payment differences";
    VerifyNow: "立即核对", "Verify now";
    Jobs: "后台任务", "Jobs";
    Job: "任务", "Job";
    LastRun: "上次运行", "Last run";
    NextRun: "下次运行", "Next run";
    Backups: "备份", "Backups";
    NoBackups: "还没有备份", "No backups yet";
    ContinuousBackup: "持续备份", "Continuous backup";
    NewestInBucket: "存储桶中的最新状态", "Newest state in the bucket";
    BackupLag: "滞后", "Lag";
    ObjectsShipped: "已上传对象", "Objects shipped";
    BackUpNow: "立即备份", "Back up now";
    Sound: "完好", "Sound";
    JobStarted: "已开始，进度见下方的后台任务。", "Started. The jobs below show its progress.";
    Offsite: "异地副本", "Off-site copy";
    NoRestoreHere: "下载与恢复备份只能在服务器上进行。", "Backups are downloaded and restored on the server only.";
    Providers: "外部服务", "Providers";
    NoProviders: "没有配置外部服务", "No providers are configured";
    // Cleanup.
    CleanupLead: "按类别删除数据。执行之前会显示删除与保留的数量。", "Deletes data by category. You see first what would go and what stays.";
    BackupFirst: "执行前会先做一次备份，只删除备份中已有的数据。", "A backup is made first, and only what it contains is deleted.";
    ShowWhatGoes: "查看将删除的内容", "Show what would go";
    WouldDelete: "将删除", "Would delete";
    WouldKeep: "将保留", "Would keep";
    WordsDiffer: "与要求输入的文字不符", "These are not the words to type";
    CannotBeUndone: "无法撤销。", "This cannot be undone.";
    ConfirmationSpent: "上一次确认已使用或已过期。请核对数量后再次确认。", "The last confirmation was used or has expired. Check the counts and confirm again.";
    ConfirmTitle: "确认执行", "Confirm";
    CleanCodes: "验证码", "Verification codes";
    CleanCodesDetail: "所有仍有效的验证码。用户需要重新获取。", "All active codes. Users have to ask for new ones.";
    CleanPayments: "支付记录", "Payment records";
    CleanPaymentsDetail: "超过保存期限的已完成订单。", "Finished orders older than the minimum retention.";
    CleanFeedback: "用户反馈", "Feedback";
    CleanFeedbackDetail: "所有反馈文本与回复。", "All texts of feedback with their replies.";
    CleanAll: "全部数据", "All data";
    CleanAllDetail: "用户、账本及其他一切数据。管理员、审计、词库、版本和设置会保留。", "Users, ledger and everything else. Administrators, audit, words, releases and settings stay.";
    // Administrators and keys.
    Roles: "角色", "Roles";
    RoleOwnerDetail: "全部权限，包括退款、删除与管理员", "Everything, including refunds, erasure and administrators";
    RoleSupportDetail: "用户页面、修复、查询支付、反馈、限额内调整金币", "User pages, repairs, payment queries, feedback, grants within a cap";
    RoleModeratorDetail: "文本、词库、重置昵称、停用用户", "Texts, words, reset of nicknames, suspension";
    RoleReadOnlyDetail: "数据与健康状况，不含个人数据", "Figures and health, without personal data";
    SecondFactor: "两步验证", "Second factor";
    ChangeRole: "更改角色", "Change role";
    SetUpTotp: "设置两步验证", "Set up second factor";
    RemoveTotp: "移除两步验证", "Remove second factor";
    RemoveAdministrator: "移除管理员", "Remove administrator";
    NewAdministrator: "添加管理员", "Add administrator";
    Sessions: "会话", "Sessions";
    ThisSession: "当前会话", "this session";
    EndSession: "结束会话", "End session";
    Networks: "允许的网络", "Networks";
    NetworksLead: "只有来自这些网络的管理员和 API 密钥可以访问。", "Administrators and API keys may call from these networks only.";
    FromEverywhere: "未限制，任何地址都可访问", "No restriction: from everywhere";
    Network: "网络", "Network";
    NetworkHint: "例如 203.0.113.0/24", "For example 203.0.113.0/24";
    NetworkLocksOut: "这样会把您自己拒之门外：请先允许您当前地址所在的网络", "This would shut you out: first allow a network with your own address";
    NetworkRescue: "如被拒之门外，可在服务器上运行", "If you are shut out, run on the server";
    AllowNetwork: "允许此网络", "Allow network";
    ScanCode: "用验证器应用扫描二维码。", "Scan the code with an authenticator app.";
    QrCode: "验证器二维码", "QR code for the authenticator";
    OrTypeSecret: "或手动输入密钥：", "Or type the secret:";
    TypeCode: "输入应用显示的 6 位动态码。", "Type the six digits that the app shows.";
    TotpEndsSessions: "确认后，该管理员的所有会话会结束，需用动态码重新登录。", "All sessions of the administrator end when you confirm. Sign in again with a code.";
    KeysLead: "供程序调用管理接口，以 Bearer 令牌发送。", "Credentials of programs, sent as Bearer tokens.";
    KeyShownOnce: "的密钥只显示这一次，请立即保存。", "is shown only once. Store it now.";
    NoKeys: "没有 API 密钥", "No API keys";
    NewKey: "新建密钥", "New key";
    SuspendKey: "停用", "Suspend";
    ResumeKey: "恢复", "Resume";
    RevokeKey: "吊销", "Revoke";
    // Audit, settings, log.
    AuditLead: "管理员与命令读取个人数据或作出更改的记录，永久保存。", "Every access to personal data and every change by administrators and commands. Kept forever.";
    AuditOwnLead: "您自己的操作记录。", "Your own actions.";
    NoAudit: "没有符合条件的记录", "No events match";
    SettingsLead: "当前生效的配置，只读。密钥已遮盖。", "The settings in effect, read-only. Secrets are masked.";
    Setting: "配置项", "Setting";
    OriginDefault: "默认", "default";
    OriginDemo: "演示", "demonstration";
    OriginFile: "配置文件", "file";
    OriginEnvironment: "环境变量", "environment";
    OriginCommandLine: "命令行", "command line";
    ChangedOnly: "只看非默认值", "Only changed settings";
    LogLevel: "最低级别", "Least level";
    LogTarget: "来源模块", "Target";
    Contains: "包含", "Contains";
    NoLines: "没有符合条件的日志", "No lines match";
}

/// Declares a function that returns the words of a name, or the name if it is unknown.
macro_rules! names {
    ($(#[$about:meta])* $function:ident: $($code:literal: $chinese:literal, $english:literal;)*) => {
        $(#[$about])*
        pub fn $function(language: Language, code: &str) -> &str {
            match (code, language) {
                $(($code, Language::Chinese) => $chinese, ($code, Language::English) => $english,)*
                _ => code,
            }
        }
    };
}

names! {
    /// Translates a stored code.
    code:
    "store_purchases": "应用商店购买", "app store purchases";
    "refund": "退款收回", "claw-back";
    "apple": "App Store", "App Store";
    "google": "Google Play", "Google Play";
    "unknown_product": "商品未定义", "undefined product";
    "known_order": "订单已登记", "order is known already";
    "noted": "已记录", "noted";
    "unbound": "未绑定账号", "no account";
    "pending": "等待付款", "pending";
    "duplicate": "重复", "repeated";
    "ignored": "无需处理", "ignored";
    "paid": "已付款", "paid";
    "credited": "已入账", "credited";
    "refunded": "已退款", "refunded";
    "review": "待处理", "in review";
    "rejected": "被拒绝", "rejected";
    "reset": "清零", "reset";
    "adjust": "人工调整", "manual change";
    "unknown": "未知", "unknown";
    "unchanged": "无变化", "no change";
    "refund_total_unknown": "退款总额未知", "refunded total unknown";
    "interrupted": "被中断", "interrupted";
    "address": "更换地址", "change of address";
    "cancellation": "注销账号", "cancellation";
    "second_trade": "重复付款", "second payment";
    "wrong_amount": "金额不符", "wrong amount";
    "wrong_channel": "渠道不符", "wrong channel";
    "unknown_order": "订单不存在", "unknown order";
    "closed_after_payment": "付款后被关闭", "closed after payment";
    "refund_before_credit": "入账前已退款", "refunded before credit";
    "refund_failed": "退款失败", "refund failed";
    "refund_exceeds_amount": "退款超过金额", "refund exceeds amount";
    "coins_spent": "金币已被使用", "coins already spent";
    "disputed": "买家银行争议", "disputed by the buyer's bank";
    "dispute_lost": "争议败诉，款项已被扣回", "dispute lost, money taken back";
    "user_gone": "用户已注销", "user is deleted";
    "trade_of_another_order": "交易号属于其他订单", "trade number of another order";
    "account_inconsistent": "账户不一致", "inconsistent account";
    "balance_too_large": "余额过大", "balance too large";
    "already_posted": "已入账过", "credited before";
    "malformed": "格式错误", "malformed";
    "wrong_app": "应用不符", "wrong app";
    "wrong_seller": "收款方不符", "wrong seller";
    "wrong_currency": "币种不符", "wrong currency";
    "wrong_charset": "字符集不符", "wrong character set";
    "wrong_type": "类型不符", "wrong type";
    "wrong_sign_type": "签名算法不符", "wrong signature scheme";
    "signature_missing": "没有签名", "no signature";
    "signature_invalid": "签名无效", "invalid signature";
    "field_missing": "缺少字段", "missing field";
    "invalid_amount": "金额无效", "invalid amount";
    "unknown_status": "状态未知", "unknown state";
    "increase": "增加", "added";
    "decrease": "减少", "taken";
    "refund_payment": "退款收回", "claw-back of a refund";
    "settle_payment": "处理订单", "decision about an order";
    "order_under_review": "订单处理中", "order in review";
    "not_configured": "未配置", "not configured";
    "bill_differs": "与账单不符", "differs from the bill";
    "alipay": "支付宝", "Alipay";
    "wechat": "微信支付", "WeChat Pay";
    "stripe": "Stripe", "Stripe";
    "sandbox": "沙盒", "sandbox";
    "active": "正常", "active";
    "suspended": "停用", "suspended";
    "account_suspended": "账户暂停", "account suspended";
    "expired": "已过期", "expired";
    "revoked": "已吊销", "revoked";
    "done": "已完成", "done";
    "failed": "失败", "failed";
    "ok": "正常", "ok";
    "current": "正常", "current";
    "behind": "滞后", "behind";
    "superseded": "已被接管", "superseded";
    "sound": "完好", "sound";
    "damaged": "损坏", "damaged";
    "closed": "已关闭", "closed";
    "sent": "已发送", "sent";
    "not_sent": "未发送", "not sent";
    "asked": "已请求", "asked";
    "review_account": "审核账号", "review account";
    "refused": "拒绝", "refused";
    "allowed": "放行", "allowed";
    "delivered": "已送达", "delivered";
    "sign_in": "登录", "sign-in";
    "sms": "短信", "SMS";
    "email": "邮件", "email";
    "confirmed": "拒绝正确", "rightly refused";
    "wrongly_refused": "误拒", "wrongly refused";
    "upheld": "认定违规", "upheld";
    "acquitted": "没有问题", "acquitted";
    "does_not_acquit": "没有问题；但放行短语未覆盖全部命中", "acquitted; the phrase does not cover every match";
    "not_found": "未找到", "not found";
    "already_undone": "没有可撤销的决定", "no decision to undo";
    "too_late": "已超过一天，不能撤销", "decided more than a day ago, too late to undo";
    "already_exists": "已有决定", "decided already";
    "watched": "逐条审核", "every text";
    "withdrawn": "已撤回", "withdrawn";
    "required": "强制更新", "required";
    "published": "已发布", "published";
    "gambling": "赌博", "gambling";
    "ads": "广告", "ads";
    "fraud": "诈骗", "fraud";
    "porn": "色情", "porn";
    "drugs": "毒品", "drugs";
    "politics": "政治", "politics";
    "abuse": "辱骂", "abuse";
    "contact": "联系方式", "contact number";
    "nickname": "昵称", "nickname";
    "signature": "签名", "signature";
    "question": "提问", "question";
    "answer": "回答", "answer";
    "local": "本地词库", "word list";
    "external": "外部审核", "external moderator";
    "aliyun": "阿里云", "Aliyun";
    "other": "其他", "other";
    "all": "所有用户", "all users";
    "users": "指定用户", "some users";
    "android": "安卓", "Android";
    "ios": "iOS", "iOS";
    "failed_sign_ins": "登录失败", "failed sign-ins";
    "failure_share": "失败比例", "share of failures";
    "distinct_users": "不同用户数", "distinct users";
    "request_rate": "请求频率", "request rate";
    "push": "推送", "pushes";
    "webhook": "回调地址", "webhook";
    "mail": "邮件", "mail";
    "configuration": "配置", "configuration";
    "llm": "语言模型", "language model";
    "payment": "支付", "payment";
    "moderation": "外部审核", "external moderator";
    "object_storage": "对象存储", "object storage";
    "repair": "修复", "repair";
    "grant": "调整", "grant";
    "builtin": "内置", "built-in";
    "unreachable": "无法连接", "unreachable";
    "timed out": "超时", "timed out";
    "outcome unknown": "结果未知", "outcome unknown";
    "busy": "服务繁忙", "busy";
    "content refused": "内容被拒", "content refused";
    "misconfigured": "配置有误", "misconfigured";
    "invalid response": "响应无效", "invalid response";
    "unusable": "不可用", "unusable";
    "panicked": "内部错误", "internal failure";
    "answer withheld": "回答未通过审核", "answer withheld";
    "": "", "";
}

names! {
    /// Translates the name of a table in a deletion preview.
    table:
    "users": "用户", "users";
    "identities": "第三方身份", "identities";
    "used_identity_tokens": "已用的身份令牌", "used identity tokens";
    "history_sums": "占卜记录合计", "sums of history records";
    "codes": "有效验证码", "active codes";
    "code_sends": "验证码发送记录", "sent codes";
    "code_counts": "验证码计数", "counts of codes";
    "code_messages": "验证码请求", "code messages";
    "tokens": "登录令牌", "tokens";
    "words": "词库", "words";
    "allowed_phrases": "放行短语", "allowed phrases";
    "word_changes": "词库变更", "changes of words";
    "violations": "违规记录", "violations";
    "disagreements": "判定不一致", "disagreements";
    "history": "历史卦例", "history records";
    "history_hidings": "历史隐藏次数", "hidings of history";
    "history_restorings": "历史恢复次数", "restorations of history";
    "account_erasures": "清除中的账号", "accounts being erased";
    "interpretations": "解卦记录", "interpretations";
    "chats": "对话", "chat turns";
    "model_calls": "模型调用", "model calls";
    "running_calls": "运行中的模型调用", "running model calls";
    "model_usage": "模型用量", "model usage";
    "figures": "统计", "figures";
    "figure_marks": "统计进度", "marks of figures";
    "active_users": "活跃用户", "active users";
    "request_hours": "请求统计", "requests by hour";
    "model_spending": "模型支出", "model spending";
    "sessions": "起卦会话", "sessions";
    "session_calls": "会话调用", "calls of sessions";
    "session_snapshots": "会话快照", "snapshots of sessions";
    "invite_codes": "邀请码", "invite codes";
    "invites": "邀请", "invites";
    "invite_addresses": "邀请地址", "invited addresses";
    "balances": "余额", "balances";
    "coins": "金币", "coins";
    "points": "积分", "points";
    "ledger_entries": "账本记录", "ledger entries";
    "ledger_audit": "账本审计", "audit of the ledger";
    "email_rewards": "邮箱奖励", "email rewards";
    "idempotency_keys": "幂等键", "idempotency keys";
    "admins": "管理员", "administrators";
    "api_keys": "API密钥", "API keys";
    "audit": "审计记录", "audit events";
    "confirmations": "确认记录", "confirmations";
    "payment_orders": "订单", "orders";
    "payment_callbacks": "支付回调", "callbacks";
    "payment_refunds": "退款", "refunds";
    "sandbox_trades": "沙盒交易", "sandbox trades";
    "preferences": "偏好", "preferences";
    "notifications": "通知", "notifications";
    "notification_blocks": "通知分块", "notification blocks";
    "notification_readers": "通知阅读数", "notification readers";
    "notification_recipients": "通知接收者", "notification recipients";
    "notification_reads": "通知已读", "read notifications";
    "notification_read_blocks": "通知已读分块", "read blocks";
    "notification_marks": "通知标记", "notification marks";
    "feedback": "反馈", "feedback";
    "feedback_replies": "反馈回复", "replies to feedback";
    "suspensions": "停用记录", "suspensions";
    "staff_notes": "客服备注", "staff notes";
    "releases": "应用版本", "releases";
    "settings": "设置", "settings";
    "network_log": "网络日志", "network log";
    "access_log": "网络日志", "network log";
    "access_log_erasures": "网络日志删除", "erasures of the network log";
    "token_changes": "令牌变更", "changes of tokens";
    "admin_tokens": "管理员会话", "sessions of administrators";
}

/// Returns the title of an alert. A colon and a provider may follow the rule.
pub fn alert(language: Language, rule: &str) -> &str {
    rule_title(language, rule.split(':').next().unwrap_or(rule))
}

names! {
    /// Returns the title of a rule of alerts.
    rule_title:
    "payments_in_review": "有订单待处理", "Orders need a decision";
    "ledger_mismatch": "账本不一致", "The ledger disagrees";
    "ledger_repaired": "账本已自动修复", "The ledger was repaired";
    "payment_mismatch": "付款与账本有差异", "Payments and ledger differ";
    "disk_low": "磁盘空间不足", "The disk is almost full";
    "backup_old": "备份过旧", "The last backup is old";
    "backup_upload_failed": "备份上传失败", "Backups cannot be uploaded";
    "backup_behind": "持续备份滞后", "Continuous backup is behind";
    "backup_superseded": "已被另一台机器接管", "Another machine has taken over";
    "certificate_expiring": "证书即将到期", "The certificate expires soon";
    "code_budget": "验证码用量偏高", "Many codes were sent";
    "database_damaged": "数据库损坏", "The database is damaged";
    "condition_unknown": "无法取得健康状况", "Health is unknown";
    "provider_down": "外部服务中断", "A provider is down";
}

/// Returns tone and text of a state.
pub fn state(language: Language, state: &str) -> (Tone, &str) {
    let tone = match state {
        "credited" | "active" | "ok" | "current" | "sound" | "delivered" | "done" | "allowed" | "published"
        | "sent" | "confirmed" | "acquitted" => Tone::Good,
        "review" | "paid" | "behind" | "unknown" | "required" | "not_configured" | "wrongly_refused" | "asked"
        | "not_found" | "already_exists" | "already_undone" | "too_late" | "does_not_acquit" => Tone::Notice,
        "suspended" | "account_suspended" | "failed" | "damaged" | "superseded" | "rejected" | "refused"
        | "not_sent" | "revoked" | "expired" | "upheld" => Tone::Bad,
        _ => Tone::Neutral,
    };
    (tone, code(language, state))
}

/// Returns the title of an error page.
pub fn status(language: Language, status: u16) -> &'static str {
    let (chinese, english) = match status {
        401 => ("请先登录", "Sign in first"),
        403 => ("没有权限", "Not allowed"),
        404 => ("没有找到", "Not found"),
        409 => ("与现状冲突", "Conflicts with the present state"),
        429 => ("请求过多，请稍后再试", "Too many requests. Try again later."),
        503 => ("暂时不可用", "Not available for the moment"),
        _ if status >= 500 => ("服务器出错了", "The server failed"),
        _ => ("请求无法处理", "The request cannot be served"),
    };
    match language {
        Language::Chinese => chinese,
        Language::English => english,
    }
}

macro_rules! phrases {
    ($($(#[$meta:meta])* $name:ident($($argument:ident: $kind:ty),*) = $chinese:literal, $english:literal;)*) => {
        $($(#[$meta])* pub fn $name(language: Language $(, $argument: $kind)*) -> String {
            match language {
                Language::Chinese => format!($chinese),
                Language::English => format!($english),
            }
        })*
    };
}

phrases! {
    copy_label(value: &str) = "复制 {value}", "Copy {value}";
    remove_label(value: &str) = "移除 {value}", "Remove {value}";
    type_to_confirm(target: &str) = "输入“{target}”以确认", "Type “{target}” to confirm";
    results_for(query: &str) = "“{query}”的搜索结果", "Results for “{query}”";
    order_title(order: &str) = "订单 {order}", "Order {order}";
    replay_of(id: &str) = "{id} 的重放", "replay of {id}";
    rows(count: &str) = "共 {count} 条", "Rows: {count}";
    waiting(count: &str) = "{count} 条待复核", "{count} waiting";
    recipients(count: &str) = "将发送给 {count} 位用户。", "Recipients: {count}.";
    entries(count: i64) = "{count} 条账本记录", "ledger entries: {count}";
    earlier(count: i64) = "此前违规 {count} 次", "earlier violations: {count}";
    unread(count: u64) = "{count} 条未读", "{count} unread";
    checks(count: u32) = "已自动查询 {count} 次", "Automatic checks: {count}";
    grant_cap(cap: i64) = "您的角色每次最多 {cap}", "Your role may grant up to {cap} at a time";
    credited_and_used(total: i64) = "金币已到账，之后使用了 {total} 枚。", "The coins arrived. Used since: {total}.";
    list_version(stored: i64, in_force: i64) = "词库版本 {stored}，生效版本 {in_force}", "List version {stored}, in force {in_force}";
    new_version(version: &str) = "新版本 {version}", "New version {version}";
    your_address(address: &str) = "您当前的地址是 {address}。", "Your address is {address}.";
    times_in(zone: &str, label: &str) = "时间均为 {zone}（{label}）", "Times are in {zone} ({label})";
    figures_through(day: &str, zone: &str) = "统计至 {day}（{zone}）", "Figures through {day} ({zone})";
    log_lead(lines: u32) = "服务最近 {lines} 行日志，内容与标准错误输出相同。", "The newest {lines} lines of the server's log, as on its standard error.";
    dropped_lines(count: u64) = "有 {count} 行因速度过快未能显示。", "{count} lines came too fast and are not shown.";
    reply_open(order: &str) = "您好，您的订单 {order} 尚未完成，我们已向支付平台查询。如已付款，金币会在几分钟内到账。", "Hello, your order {order} was not finished, so we asked the payment provider. If you paid, the coins arrive within minutes.";
    reply_other_account(trade: &str) = "您好，交易 {trade} 是用另一个账号购买的，金币在那个账号里。请用购买时的手机号或邮箱登录。", "Hello, payment {trade} was made with another account, which has the coins. Please sign in with the phone number or email address that you used then.";
    reply_used(order: &str, when: &str, total: i64) = "您好，订单 {order} 的金币已于 {when} 到账，之后使用了 {total} 枚。您可以在应用的账单中查看明细。", "Hello, the coins of order {order} arrived at {when}, and {total} were used since. The app's statement lists each use.";
    reply_refunded(order: &str, when: &str, amount: &str) = "您好，订单 {order} 已于 {when} 退款 {amount}，相应的金币已收回。", "Hello, order {order} was refunded at {when} ({amount}), and its coins were taken back.";
}

/// Returns the text of a number of firing alerts.
pub fn alerts(language: Language, count: usize) -> String {
    match (language, count) {
        (Language::Chinese, 0) => "没有告警".to_owned(),
        (Language::Chinese, _) => format!("{count} 项告警"),
        (Language::English, 0) => "No alerts".to_owned(),
        (Language::English, _) => pluralize(count, "alert", "alerts"),
    }
}

/// Returns the text of the switch to a moderation service.
pub fn switch_to(language: Language, service: &str) -> String {
    match language {
        Language::Chinese => format!("切换到{service}"),
        Language::English => format!("Switch to the {service}"),
    }
}

/// Returns the title of a purge of a category.
pub fn purge_title(language: Language, category: &str) -> String {
    match language {
        Language::Chinese => format!("删除：{category}"),
        Language::English => format!("Delete: {category}"),
    }
}

/// Reports a purge.
pub fn purged(language: Language, rows: i64, backup: &str) -> String {
    match language {
        Language::Chinese => format!("已删除 {rows} 行。备份：{backup}"),
        Language::English => format!("Rows deleted: {rows}. Backup: {backup}"),
    }
}

/// Returns the summary of an import that was not done yet.
pub fn import_preview(language: Language, new: usize, existing: usize, skipped: usize) -> String {
    match language {
        Language::Chinese => format!("将加入 {new} 个词；{existing} 个已在词表中；跳过 {skipped} 行"),
        Language::English => format!("New words: {new}; listed already: {existing}; skipped lines: {skipped}"),
    }
}

/// Returns the warning about a word: ordinary itself, part of longer words, or found in so many of the sentences.
pub fn word_warning(language: Language, advice: &ShownAdvice) -> String {
    let ShownAdvice { word, longer_words, rejected_count: rejected, sample_size: sentences, .. } = advice;
    let (opening, ordinary) = match language {
        Language::Chinese => (format!("“{word}”可能误伤正常文字："), "是常用词"),
        Language::English => (format!("“{word}” would probably reject innocent texts: "), "an ordinary word"),
    };
    let longer = longer_words.join(", ");
    let part = match language {
        Language::Chinese => format!("包含于 {longer}"),
        Language::English => format!("part of {longer}"),
    };
    let found = match language {
        Language::Chinese => format!("{sentences} 个普通句子中命中 {rejected} 个"),
        Language::English => format!("rejects {rejected} of {sentences} ordinary sentences"),
    };
    let parts = [(advice.is_ordinary, ordinary.to_owned()), (!longer_words.is_empty(), part), (*rejected > 0, found)];
    let parts: Vec<_> = parts.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text).collect();
    opening + &parts.join("; ")
}

/// Returns the time that is left.
pub fn time_left(language: Language, milliseconds: i64) -> String {
    let seconds = (milliseconds / 1000).max(0);
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    match language {
        Language::Chinese => format!("剩余 {minutes}:{seconds:02}"),
        Language::English => format!("{minutes}:{seconds:02} left"),
    }
}

/// Returns the distance of a time from now, in milliseconds.
pub fn distance(language: Language, milliseconds: i64) -> String {
    let seconds = milliseconds.abs() / 1000;
    let (count, chinese, english) = match seconds {
        ..60 => return language_pair(language, "刚刚", "just now").to_owned(),
        60..3600 => (seconds / 60, "分钟", "min"),
        3600..172_800 => (seconds / 3600, "小时", "h"),
        _ => (seconds / 86_400, "天", "d"),
    };
    match (language, milliseconds > 0) {
        (Language::Chinese, true) => format!("{count} {chinese}后"),
        (Language::Chinese, false) => format!("{count} {chinese}前"),
        (Language::English, true) => format!("in {count} {english}"),
        (Language::English, false) => format!("{count} {english} ago"),
    }
}

/// Says how many purchases of a buyer the App Store has, and how many of them are known here.
pub fn buyer_history(language: Language, all: usize, known: usize) -> String {
    match language {
        Language::Chinese => format!("App Store 有该买家的 {all} 笔购买，其中 {known} 笔已在此登记。"),
        Language::English => {
            format!("The App Store has {all} purchases of the buyer; {known} of them are recorded here.")
        }
    }
}

/// Says how many differences the check of a bill found.
pub fn bill_differences(language: Language, count: usize) -> String {
    match language {
        Language::Chinese => format!("发现 {count} 处差异，见下表。"),
        Language::English if count == 1 => "One difference was found. The list shows it.".to_owned(),
        Language::English => format!("{count} differences were found. The list shows them."),
    }
}

const fn language_pair(language: Language, chinese: &'static str, english: &'static str) -> &'static str {
    match language {
        Language::Chinese => chinese,
        Language::English => english,
    }
}
