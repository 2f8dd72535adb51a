//! The words of enums, in Chinese and English, with their weight. A value without words does not compile.

use super::texts::{self, Language, Tone};
use crate::{
    domain::{
        divination::model_calls::CallStatus,
        identity::{directory::UserState, identities::IdentityProvider, preferences::NotificationKind, users::Gender},
        messaging::feedback::FeedbackState,
        moderation::{
            engine::{ContentType, MatchWay, Severity},
            policy::Service,
            reviews::ReviewState,
        },
        money::{
            ledger::{Asset, EntryKind},
            payments::{bills::BillDifferenceCode, order_states::SettlementEffect, refunds::RefundState},
            purchases::purchase::{PurchaseState, PurchaseStore},
        },
        operations::{
            admins::roles::Role,
            backups::summary::{BackupContents, OffsiteState},
            doctor::Verdict,
            health::{BackupState, LedgerState},
            health_report::ProviderState,
            job_runs::{JobName, JobState},
            server_log::LogLevel,
        },
    },
    http::params::CallChoice,
    providers::payment::{OrderState, TradeStatus},
    types::SuspensionScope,
};

/// A value with words.
pub trait Worded {
    /// Returns the stable name.
    fn code(&self) -> &str;

    /// Returns weight and text.
    fn in_words(&self, language: Language) -> (Tone, &str);
}

/// A code of the store. One without words is shown as it is.
impl Worded for str {
    fn code(&self) -> &str {
        self
    }

    fn in_words(&self, language: Language) -> (Tone, &str) {
        texts::state(language, self)
    }
}

impl Worded for &'static str {
    fn code(&self) -> &str {
        self
    }

    fn in_words(&self, language: Language) -> (Tone, &str) {
        texts::state(language, self)
    }
}

impl Worded for String {
    fn code(&self) -> &str {
        self
    }

    fn in_words(&self, language: Language) -> (Tone, &str) {
        texts::state(language, self)
    }
}

macro_rules! words {
    ($($enum:ty { $($value:ident $($tone:ident)? = $chinese:literal, $english:literal;)* })*) => {$(
        impl Worded for $enum {
            fn code(&self) -> &str {
                self.name()
            }

            fn in_words(&self, language: Language) -> (Tone, &str) {
                match (self, language) {
                    $(
                        (Self::$value, Language::Chinese) => ([$(Tone::$tone,)? Tone::Neutral][0], $chinese),
                        (Self::$value, Language::English) => ([$(Tone::$tone,)? Tone::Neutral][0], $english),
                    )*
                }
            }
        }
    )*};
}

words! {
    // Identity.
    UserState {
        Active Good = "正常", "active";
        Suspended Bad = "停用", "suspended";
    }
    SuspensionScope {
        Account = "账号", "The account";
        Nickname = "修改昵称", "Changes of the nickname";
        Review = "审核所有文字", "Review of every text";
    }
    Gender {
        Unknown = "未知", "unknown";
        Male = "男", "male";
        Female = "女", "female";
        Other = "其他", "other";
    }
    IdentityProvider {
        Apple = "Apple", "Apple";
        Google = "Google", "Google";
        Wechat = "微信", "WeChat";
    }
    // Divination.
    CallStatus {
        Running Notice = "运行中", "running";
        Succeeded Good = "成功", "succeeded";
        Failed Bad = "失败", "failed";
        Cancelled = "已取消", "cancelled";
        Interrupted Bad = "被中断", "interrupted";
    }
    CallChoice {
        Failed = "失败", "failed";
        Slow = "慢", "slow";
    }
    // Money.
    Asset {
        Coin = "金币", "Coins";
        Point = "点数", "Points";
    }
    EntryKind {
        Topup = "充值", "top-up";
        Consume = "使用", "use";
        Reset = "清零", "reset";
        Adjust = "人工调整", "manual change";
        SignupBonus = "注册赠送", "sign-up bonus";
        Cast = "起卦", "casting";
        InviteBonus = "邀请奖励", "invite bonus";
        InviteeBonus = "受邀奖励", "invitee bonus";
        Parked = "保留", "parked";
        Restored = "恢复", "restored";
        Refund = "退款收回", "claw-back";
        Interpretation = "解卦", "interpretation";
        InterpretationRefund = "解卦退还", "refund of an interpretation";
        PurchaseBonus = "购买赠送", "purchase bonus";
        PurchaseBonusRefund = "收回购买赠送", "claw-back of a bonus";
        Exchange = "兑换", "exchange";
        RefundReversal = "退款撤销返还", "reversed refund";
        TestPurchase = "沙盒购买", "test purchase";
        Import = "迁入余额", "imported balance";
    }
    OrderState {
        Created = "待付款", "created";
        Paid Notice = "已付款", "paid";
        Credited Good = "已入账", "credited";
        Closed = "已关闭", "closed";
        Refunded = "已退款", "refunded";
        Review Notice = "待处理", "in review";
    }
    RefundState {
        Requested Notice = "处理中", "requested";
        Succeeded Good = "成功", "succeeded";
        Refused Bad = "拒绝", "refused";
        Processing Notice = "支付平台处理中", "processing";
        Abnormal Bad = "异常", "abnormal";
    }
    SettlementEffect {
        Credited Good = "已入账", "credited";
        Paid Notice = "已付款", "paid";
        Closed = "已关闭", "closed";
        Refunded = "已退款", "refunded";
        Unchanged = "无变化", "no change";
        Review Notice = "待处理", "in review";
        Rejected Bad = "被拒绝", "rejected";
    }
    TradeStatus {
        WaitBuyerPay Notice = "等待付款", "waiting for payment";
        Success Good = "付款成功", "paid";
        Finished Good = "交易完成", "finished";
        Closed = "交易关闭", "closed";
    }
    BillDifferenceCode {
        OrderMissing = "本地没有该订单", "no such order here";
        PaymentMissing = "漏记的收款", "missed payment";
        AmountDiffers = "金额不同", "amounts differ";
        NotInBill = "账单上没有", "not on the bill";
        RefundMissing = "漏记的退款", "missed refund";
        RefundDiffers = "退款金额不同", "refunds differ";
    }
    PurchaseStore {
        Apple = "App Store", "App Store";
        Google = "Google Play", "Google Play";
    }
    PurchaseState {
        Pending = "等待付款", "pending";
        Credited Good = "已入账", "credited";
        Revoked Bad = "已撤销", "revoked";
        Refused Bad = "拒绝", "refused";
    }
    // Moderation.
    Service {
        External = "外部审核", "external moderator";
        Local = "本地词库", "word list";
    }
    ContentType {
        Nickname = "昵称", "nickname";
        Signature = "签名", "signature";
        Question = "提问", "question";
        Answer = "回答", "answer";
    }
    Severity {
        Low = "低", "Low";
        Medium = "中", "Medium";
        High = "高", "High";
    }
    MatchWay {
        Exact = "原样", "as listed";
        Gap = "间隔", "gaps";
        Letters = "变形字母", "letters";
        Split = "拆字", "split";
        Emoji = "表情", "emoji";
        Sound = "同音", "sound";
        Fuzzy = "近音", "similar sound";
        Initial = "首字母", "initial";
        Shape = "形近", "shape";
        Reversed = "倒序", "reversed";
    }
    ReviewState {
        Waiting = "等待", "waiting";
        Upheld Bad = "认定违规", "upheld";
        Acquitted Good = "没有问题", "acquitted";
    }
    // Messaging.
    NotificationKind {
        System = "系统", "system";
        Account = "账户", "account";
        Activity = "活动", "activity";
        Promotion = "推广", "promotion";
    }
    FeedbackState {
        Open Notice = "待处理", "open";
        InProgress Notice = "处理中", "in progress";
        Closed = "已关闭", "closed";
    }
    // Operations.
    Role {
        ReadOnly = "只读", "Read-only";
        Support = "客服", "Support";
        Moderator = "审核员", "Moderator";
        Owner = "所有者", "Owner";
    }
    LedgerState {
        Consistent Good = "一致", "consistent";
        Inconsistent Bad = "不一致", "inconsistent";
        Unverified Notice = "未核对", "not verified";
    }
    BackupState {
        Current Good = "正常", "current";
        Old Notice = "过旧", "old";
        Failed Bad = "失败", "failed";
        None = "无", "none";
        Off = "关闭", "off";
    }
    BackupContents {
        Sound Good = "完好", "sound";
        Inconsistent Bad = "不一致", "inconsistent";
        Unknown Notice = "未知", "unknown";
    }
    OffsiteState {
        Uploaded Good = "已上传", "uploaded";
        Waiting = "等待", "waiting";
        Failed Bad = "失败", "failed";
        Off = "关闭", "off";
    }
    ProviderState {
        Working Good = "正常", "works";
        Paused Bad = "中断", "down";
        Probing Notice = "试探中", "probing";
        Misconfigured Bad = "中断", "down";
    }
    Verdict {
        Pass Good = "通过", "passed";
        Warn Notice = "警告", "warning";
        Fail Bad = "未通过", "failed";
    }
    JobState {
        Running Notice = "运行中", "running";
        Waiting = "等待", "waiting";
        Failed Bad = "失败", "failed";
        Off = "关闭", "off";
    }
    JobName {
        Backup = "备份", "backup";
        BackupUpload = "备份上传", "backup upload";
        BackupVerification = "持续备份恢复演练", "test of continuous backup";
        IntegrityCheck = "完整性检查", "integrity check";
        LedgerVerification = "账本核对", "ledger verification";
        Doctor = "诊断", "doctor";
        Reconciler = "支付对账", "reconciler";
        Purchases = "应用商店购买", "purchases in app stores";
        Bills = "核对账单", "bills of the payment providers";
        PaymentKeys = "更新支付验签密钥", "verification keys of payments";
        Retention = "保留期清理", "retention";
        Erasure = "账号数据清除", "erasure of accounts";
        NotificationExpiry = "消息过期", "expiry of notifications";
        Push = "推送", "pushes";
        Webhooks = "Webhook", "webhooks";
        Figures = "数据统计", "figures";
        Alerts = "告警检查", "alerts";
        FreeSpaceScrub = "空闲空间擦除", "free-space scrub";
        WordList = "词库编译", "word list";
        ShadowMode = "影子审核", "shadow mode";
        NetworkLog = "网络日志", "network log";
    }
    LogLevel {
        Error Bad = "错误", "error";
        Warn Notice = "警告", "warning";
        Info = "信息", "info";
        Debug = "调试", "debug";
        Trace = "跟踪", "trace";
    }
}
