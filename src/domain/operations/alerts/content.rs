//! The content of alerts, in words of both languages.

use crate::{
    domain::operations::{
        facts::{chinese_provider, facts, time_or},
        health::Recovery,
    },
    types::{Locale, Timestamp, pluralize},
};

facts! {
    /// The content of an alert. Its sentences have no full stop, because a command may follow.
    pub enum AlertFact {
        PaymentsInReview { payments: i64 } = ("{} a decision", pluralize(*payments, "payment needs", "payments need")), "有 {payments} 笔付款需要人工处理";
        LedgerMismatch { discrepancies: u64, suspended: i64 } = ("The ledger has {}, and {}", pluralize(*discrepancies, "discrepancy", "discrepancies"), pluralize(*suspended, "account is suspended", "accounts are suspended")), "账本有 {discrepancies} 处不一致，{suspended} 个账户已暂停";
        LedgerRepaired { accounts: u64 } = ("The daily verification recomputed the balance of {} from the ledger", pluralize(*accounts, "account", "accounts")), "每日核对已按账目修复 {accounts} 个账户的余额";
        PaymentMismatch { differences: u64 } = ("Payments, ledger and bills have {}", pluralize(*differences, "difference", "differences")), "付款、账本与账单有 {differences} 处差异";
        DatabaseDamaged { fault: Option<String>, recovery: Option<Recovery> } = ("The database is damaged ({}){}", fault.as_deref().unwrap_or("found by a request"), advice(recovery.as_ref(), Locale::English)), ("数据库已损坏（{}）{}", fault.as_deref().unwrap_or("由请求发现"), advice(recovery.as_ref(), Locale::Chinese));
        ConditionUnknown { cause: String } = "The health of the installation cannot be read ({cause})", "无法读取健康状况（{cause}）";
        DiskLow { percent: u64, mebibytes: u64 } = "Only {percent} % ({mebibytes} MiB) of the disk of the data directory is free. Free some space", "数据目录所在磁盘只剩 {percent} %（{mebibytes} MiB），请清理空间";
        BackupFailed { code: String, last: Option<Timestamp> } = ("The last backup failed ({code}). The last successful backup: {}", time_or(*last, "never")), ("上次备份失败（{code}）。上次成功：{}", time_or(*last, "从未"));
        BackupOverdue { last: Option<Timestamp> } = ("Backups are overdue. The last one: {}", time_or(*last, "never")), ("备份已逾期。上次备份：{}", time_or(*last, "从未"));
        BackupUploadFailed { cause: String } = ("Backups cannot be uploaded: {}", without_stop(cause)), ("备份无法上传：{}", without_stop(cause));
        BackupBehind { seconds: u64, cause: Option<String> } = ("The continuous backup is {seconds} s behind{}", after(": ", cause.as_deref())), ("持续备份落后 {seconds} 秒{}", after("：", cause.as_deref()));
        BackupSuperseded { machine: String, since: Timestamp } = "Machine {machine} took over at {since}, and this one stores nothing. Run `yarrow backup take-over` here, or switch this one off", "机器 {machine} 已于 {since} 接管，本机不再保存数据。请在本机运行 `yarrow backup take-over`，或关闭本机";
        CertificateExpiring { until: Timestamp } = "The TLS certificate expires at {until}", "TLS 证书将于 {until} 到期";
        CodeBudget { sent: u64, budget: u64 } = "{sent} of at most {budget} verification codes were sent in the last 24 hours", "过去 24 小时已发送 {sent} 条验证码，上限 {budget} 条";
        ProviderRejects { provider: String, code: String } = "The {provider} provider rejects all calls ({code}). Check its account and its settings", ("{}服务拒绝所有调用（{code}）。请检查其账号与配置", chinese_provider(provider));
        ProviderPaused { provider: String } = "Calls to the {provider} provider are paused because several failed in a row", ("对{}服务的调用已暂停，因为连续多次失败", chinese_provider(provider));
        NoProblem {} = "There is no problem", "没有问题";
        RuleRemoved {} = "This rule no longer exists", "此规则已不存在";
        TestMessage {} = "This is a test: alerts of this installation arrive here", "这是一条测试：此安装的告警会发送到这里";
    }
}

impl AlertFact {
    /// Returns the whole English text, with the command that shows more.
    pub fn detail(&self) -> String {
        let command = match self {
            Self::PaymentsInReview { .. } => "; see `yarrow payments list --state review`",
            Self::LedgerMismatch { .. } => ". Run `yarrow ledger verify`",
            Self::LedgerRepaired { .. } => ". Run `yarrow users show` for the changes",
            Self::PaymentMismatch { .. } => ". Run `yarrow payments report` and `yarrow payments bill`",
            Self::ConditionUnknown { .. } | Self::CertificateExpiring { .. } => ". Run `yarrow doctor`",
            _ => "",
        };
        format!("{}{command}.", self.sentence())
    }

    /// Returns the text for a page, which has links in the place of commands.
    pub fn text(&self, locale: Locale) -> String {
        let stop = if locale == Locale::Chinese { '。' } else { '.' };
        format!("{}{stop}", self.sentence().in_locale(locale))
    }
}

fn advice(recovery: Option<&Recovery>, locale: Locale) -> String {
    let stop = if locale == Locale::Chinese { "。" } else { ". " };
    let advice = recovery.map(Recovery::sentence);
    after(stop, advice.as_ref().map(|advice| advice.in_locale(locale)))
}

fn after(mark: &str, text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!("{mark}{}", without_stop(text)))
}

fn without_stop(text: &str) -> &str {
    text.trim_end_matches('.')
}
