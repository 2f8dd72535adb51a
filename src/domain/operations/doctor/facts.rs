//! The findings of checks, in words of both languages.

use std::net::{IpAddr, SocketAddr};

use super::Verdict;
use crate::{
    config::Config,
    domain::operations::{
        alerts::AlertContent,
        facts::{chinese_provider, facts, time_or, words},
        health::Recovery,
    },
    error::Sentence,
    types::{Locale, Timestamp, pluralize},
};

/// Declares facts below the group and the name of their check. All three have words in English and Chinese.
macro_rules! checks {
    ($($group:tt, $chinese_group:tt => {
        $([$name:tt, $chinese_name:tt]
            $($verdict:ident $fact:ident { $($value:ident: $type:ty),* } = $english:tt, $chinese:tt;)*
        )*
    })*) => {
        facts! {
            /// The finding of a check.
            pub enum CheckFact { $($($($fact { $($value: $type),* } = $english, $chinese;)*)*)* }
        }

        impl CheckFact {
            pub const fn verdict(&self) -> Verdict {
                match self { $($($(Self::$fact { .. } => Verdict::$verdict,)*)*)* }
            }

            /// Returns group and name of the check.
            #[allow(unused_variables, reason = "most names have no values")]
            pub fn check(&self) -> [Sentence; 2] {
                match self {
                    $($($(Self::$fact { $($value),* } => [
                        (words!($group), words!($chinese_group)).into(),
                        (words!($name), words!($chinese_name)).into(),
                    ],)*)*)*
                }
            }
        }
    };
}

checks! {
    "configuration", "配置" => {
        ["settings", "配置项"]
            Pass SettingsValid {} = "all are valid", "全部有效";
        ["public address", "公开地址"]
            Pass PublicAddress { url: String } = "{url}", "{url}";
            Warn PublicAddressMissing {} = "server.public_url is not set", "未设置 server.public_url";
        ["review accounts", "审核账号"]
            Pass NoReviewAccounts {} = "none", "无";
            Warn ReviewAccounts { accounts: usize } = ("{}", pluralize(*accounts, "signs in with a fixed code", "sign in with a fixed code")), "{accounts} 个账号使用固定验证码登录";
        ["alerts", "告警"]
            Pass OperatorsNotified {} = "operators are notified", "会通知运维人员";
            Warn NobodyNotified {} = "nobody is notified: set alerts.webhook_url, or alerts.mail_to and a mail server", "不通知任何人：请设置 alerts.webhook_url，或 alerts.mail_to 与邮件服务器";
        ["help numbers", "求助电话"]
            Pass HelpNumbersChecked {} = "are checked", "已核对";
            Warn HelpNumbersUnchecked {} = "nobody has checked the telephone numbers in the help texts: check those of your users' regions and set help.checked", "求助文本中的电话号码未经核对：请核对用户所在地区的号码，并设置 help.checked";
        ["metrics", "指标"]
            Pass MetricsPrivate {} = "not reachable from outside", "外部无法访问";
            Warn MetricsPublic {} = "metrics.listen is not a loopback address: make sure that a firewall protects it", "metrics.listen 不是本机回环地址：请确认有防火墙保护";
        ["{driver} driver", ("{}驱动", chinese_provider(driver))]
            Pass ProductionDriver { driver: String } = "for production", "可用于生产环境";
            Warn DevelopmentDriver { driver: String } = ("the driver for development: {}", Config::development_effect(driver)[0]), ("仅供开发的驱动：{}", Config::development_effect(driver)[1]);
        ["{templates}", ("{}", chinese_templates(templates))]
            Pass BuiltInTemplates { templates: String } = "built in", "内置";
            Pass OwnTemplates { templates: String, files: Vec<String> } = ("{}", files.join(", ")), ("{}", files.join("、"));
            Fail TemplatesFaulty { templates: String, faults: Vec<String> } = ("{}", faults.join("; ")), ("{}", faults.join("；"));
    }
    "permissions", "权限" => {
        ["{file}", "{file}"]
            Pass OwnerOnly { file: String } = "accessible by its owner only", "仅所有者可访问";
            Warn GroupAccess { file: String } = "accessible by its group: chmod g-rwx", "所属组可访问：chmod g-rwx";
            Fail EverybodyAccess { file: String } = "accessible by everybody: chmod go-rwx", "所有人可访问：chmod go-rwx";
            Fail FileUnreadable { file: String, error: String } = "{error}", "{error}";
        ["{directory}", ("{}", chinese_directory(directory))]
            Pass DirectoryWritable { directory: String } = "can be written to", "可写入";
            Fail DirectoryReadOnly { directory: String, error: String } = "cannot be written to: {error}", "无法写入：{error}";
    }
    "keys", "密钥" => {
        ["server key", "服务器密钥"]
            Pass KeyMatches {} = "the key of this database", "与数据库相符";
            Pass KeyUnrecorded {} = "will be recorded at the next start", "下次启动时登记";
            Fail KeyDiffers {} = "not the key of this database: parked points, spent bonuses and second factors are not recognised. Restore the former key, or accept this one with `yarrow doctor --accept-key`", "与数据库不符：无法识别保留的点数、用过的赠送和两步验证。请恢复原密钥，或用 `yarrow doctor --accept-key` 接受当前密钥";
    }
    "tls", "证书" => {
        ["files", "文件"]
            Pass CertificateUsable {} = "the key matches the certificate", "密钥与证书匹配";
        ["{setting}", "{setting}"]
            Fail CertificateUnusable { setting: String, fault: String } = "{fault}", "{fault}";
        ["validity", "有效期"]
            Pass CertificateValid { until: Timestamp } = "until {until}", "至 {until}";
            Warn CertificateEndsSoon { until: Timestamp } = "expires soon, at {until}: its renewal is late", "将于 {until} 到期，尚未更新";
            Fail CertificateExpired { until: Timestamp } = "expired at {until}: renew it", "已于 {until} 过期，请更新";
            Fail CertificateNotYetValid { from: Timestamp } = "not valid before {from}", "{from} 之前无效";
            Fail NoCertificateYet {} = "ACME has issued no certificate yet: see the log of the server", "ACME 尚未签发证书：请查看服务日志";
            Fail StoredCertificateUnusable { fault: String } = "{fault}", "{fault}";
    }
    "listeners", "监听" => {
        ["{setting}", "{setting}"]
            Pass AnyPort { setting: String, address: SocketAddr } = "{address}: a free port", "{address}：任一空闲端口";
            Pass AddressFree { setting: String, address: SocketAddr } = "{address} is free", "{address} 空闲";
            Pass ServerListens { setting: String, address: SocketAddr } = "{address}: the running server listens", "{address}：运行中的服务正在监听";
            Warn AddressInUse { setting: String, address: SocketAddr } = "{address} is in use, maybe by this service", "{address} 已被占用，可能是本服务";
            Warn AddressForbidden { setting: String, address: SocketAddr } = "{address}: this user may not listen there", "{address}：当前系统用户无权监听";
            Fail AddressTaken { setting: String, address: SocketAddr } = "{address} is in use by another program", "{address} 被其他程序占用";
            Fail AddressUnusable { setting: String, address: SocketAddr, error: String } = "cannot listen on {address}: {error}", "无法监听 {address}：{error}";
            Fail AddressShared { setting: String, address: SocketAddr, other: String, other_address: SocketAddr } = "{address} is taken by {other}, which is {other_address}", "{address} 已被 {other}（{other_address}）占用";
    }
    "disk", "磁盘" => {
        ["data directory", "数据目录"]
            Pass DiskFree { percent: u64, mebibytes: u64 } = "{percent} % free, {mebibytes} MiB", "剩余 {percent} %，{mebibytes} MiB";
            Warn DiskLow { percent: u64, mebibytes: u64 } = "{percent} % free, {mebibytes} MiB", "剩余 {percent} %，{mebibytes} MiB";
            Fail DiskFull { percent: u64, mebibytes: u64 } = "{percent} % free, {mebibytes} MiB", "剩余 {percent} %，{mebibytes} MiB";
        ["backup directory", "备份目录"]
            Pass BackupSpace { mebibytes: u64 } = "{mebibytes} MiB free", "剩余 {mebibytes} MiB";
            Fail NoBackupSpace { mebibytes: u64, needed: u64 } = "{mebibytes} MiB free; the next backup needs {needed}", "剩余 {mebibytes} MiB；下次备份需要 {needed}";
    }
    "clock", "时钟" => {
        ["time", "时间"]
            Pass ClockTime { now: Timestamp } = "{now}", "{now}";
            Fail ClockBehind { now: Timestamp } = "{now} is in the past: set the clock", "{now} 已过去：请校准时钟";
        ["direction", "方向"]
            Pass ClockForward {} = "goes forward", "没有倒退";
            Fail ClockSetBack {} = "the network log has later requests: the clock was set back", "网络日志中有更晚的请求：时钟被调回过";
    }
    "database", "数据库" => {
        ["opening", "打开"]
            Fail DatabaseClosed { error: String } = "{error}", "{error}";
        ["structure", "结构"]
            Pass StructureSound {} = "sound", "完好";
            Fail StructureDamaged { faults: Vec<String>, recovery: Recovery } = ("The database is damaged ({}). {}.", faults.join("; "), recovery.sentence().english), ("数据库已损坏（{}）。{}。", faults.join("；"), recovery.sentence().chinese);
        ["references", "引用"]
            Pass ReferencesSound {} = "all refer to existing rows", "均指向现有的行";
            Fail ReferencesDangling { rows: u64 } = ("{}", pluralize(*rows, "row refers to a missing row", "rows refer to a missing row")), "{rows} 行指向不存在的行";
        ["schema", "表结构"]
            Pass SchemaVersion { version: usize } = "version {version}", "版本 {version}";
            Fail SchemaIncomplete { faults: Vec<String> } = ("{}: restore a backup, or recreate it as in schema.sql", faults.join(", ")), ("{}：请恢复备份，或按 schema.sql 重建", faults.join("、"));
        ["write-ahead log", "预写日志"]
            Pass WalShort { mebibytes: u64 } = "{mebibytes} MiB", "{mebibytes} MiB";
            Warn WalLong { mebibytes: u64 } = "{mebibytes} MiB: a long read has kept it from being truncated", "{mebibytes} MiB：因长时间的读取未能截断";
        ["version", "版本"]
            Pass ServerVersion { version: String } = "PostgreSQL {version}", "PostgreSQL {version}";
            Fail ServerTooOld { version: String } = "PostgreSQL {version} is older than 15", "PostgreSQL {version} 早于 15";
        ["fsync", "fsync"]
            Pass FsyncOn {} = "commits are synced to disk before they are acknowledged", "提交落盘后才确认";
            Fail FsyncOff {} = "fsync or full_page_writes is off: a power cut loses payments and may damage the database", "fsync 或 full_page_writes 已关闭：断电会丢失付款，并可能损坏数据库";
        ["standbys", "备用服务器"]
            Pass NoStandbys {} = "none", "无";
            Pass Standbys { standbys: String } = "{standbys}", "{standbys}";
            Warn StandbysAsynchronous {} = "commits wait for no standby: a failover loses the last ones. Set synchronous_standby_names", "提交不等待备用服务器：切换时会丢失最后的提交。请设置 synchronous_standby_names";
        ["encoding", "编码"]
            Pass EncodingUtf8 {} = "UTF8", "UTF8";
            Fail EncodingOther { encoding: String } = "{encoding}: create the database with encoding UTF8", "{encoding}：请以 UTF8 编码创建数据库";
        ["clock", "时钟"]
            Pass ClocksAgree { milliseconds: i64 } = "{milliseconds} ms from this machine's", "与本机相差 {milliseconds} ms";
            Warn ClocksDiffer { milliseconds: i64 } = "{milliseconds} ms from this machine's: synchronise both clocks", "与本机相差 {milliseconds} ms：请同步两边的时钟";
        ["connections", "连接"]
            Pass ConnectionsLeft { used: u32, accepted: u32, needed: u32 } = "{used} of {accepted} are open; each copy opens up to {needed}", "{accepted} 个中已用 {used} 个；每个副本最多使用 {needed} 个";
            Warn ConnectionsShort { used: u32, accepted: u32, needed: u32 } = "{used} of {accepted} are open, and each copy opens up to {needed}", "{accepted} 个中已用 {used} 个，而每个副本最多使用 {needed} 个";
        ["dead rows", "失效的行"]
            Pass FewDeadRows { dead: i64 } = ("{}", pluralize(*dead, "dead row", "dead rows")), "{dead} 行";
            Warn ManyDeadRows { dead: i64, live: i64 } = "{dead} beside {live} live ones: autovacuum does not keep up", "{dead} 行，有效的 {live} 行：autovacuum 跟不上";
        ["role", "角色"]
            Pass RoleOrdinary {} = "no superuser", "不是超级用户";
            Warn RoleSuperuser {} = "a superuser: give the service a role that only owns this database", "超级用户：请给服务一个只拥有此数据库的角色";
        ["copies", "副本"]
            Pass Copies { copies: u32 } = ("{}", pluralize(*copies, "copy serves", "copies serve")), "{copies} 个副本在服务";
    }
    "ledger", "账本" => {
        ["entries", "记录"]
            Pass EntriesAgree { entries: i64 } = ("{} with every balance and the audit chain", pluralize(*entries, "entry agrees", "entries agree")), "{entries} 条记录与所有余额及审计链一致";
            Fail EntriesDisagree { discrepancies: u64 } = ("{}; run `yarrow ledger verify`", pluralize(*discrepancies, "discrepancy", "discrepancies")), "{discrepancies} 处不一致；请运行 `yarrow ledger verify`";
        ["accounts", "账户"]
            Pass NoAccountSuspended {} = "none is suspended", "没有暂停的账户";
            Fail AccountsSuspended { accounts: i64 } = "{accounts} suspended; run `yarrow sync users`", "{accounts} 个已暂停；请运行 `yarrow sync users`";
        ["daily verification", "每日核对"]
            Pass LedgerVerified { at: Timestamp } = "last: {at}", "上次：{at}";
            Pass LedgerUnverified {} = "last: not yet", "尚未核对";
        ["payments", "付款"]
            Pass PaymentsDecided {} = "none needs a decision", "没有待处理的付款";
            Warn PaymentsUndecided { payments: i64 } = "{payments} need a decision; see `yarrow payments list --state review`", "{payments} 笔待处理；见 `yarrow payments list --state review`";
    }
    "history", "历史卦例" => {
        ["sums", "合计"]
            Pass SumsRight {} = "those of the records", "与记录相符";
            Fail SumsWrong { users: usize, first: Vec<String> } = ("wrong for {}: {}; run `yarrow sync users`", pluralize(*users, "user", "users"), first.join(", ")), ("{users} 位用户的合计有误：{}；请运行 `yarrow sync users`", first.join("、"));
    }
    "erasure", "清除" => {
        ["deleted accounts", "已注销的账号"]
            Pass AccountsErased {} = "nothing is left to delete", "已全部删除";
            Pass AccountsLeft { accounts: i64, since: Timestamp } = ("{}", left(*accounts, *since, "account has rows", "accounts have rows")), "{accounts} 个账号自 {since} 起仍有数据待删除";
            Warn AccountsLate { accounts: i64, since: Timestamp } = ("{}: start the server, or see its log for the job `erasure`", left(*accounts, *since, "account has rows", "accounts have rows")), "{accounts} 个账号自 {since} 起仍有数据待删除：请启动服务，或查看日志中的任务 `erasure`";
        ["deleted history records", "已删除的卦例"]
            Pass RecordsErased {} = "nothing is left to delete", "已全部删除";
            Pass RecordsLeft { users: i64, since: Timestamp } = ("{}", left(*users, *since, "user has records", "users have records")), "{users} 位用户自 {since} 起仍有卦例待删除";
            Warn RecordsLate { users: i64, since: Timestamp } = ("{}: start the server, or see its log for the job `erasure`", left(*users, *since, "user has records", "users have records")), "{users} 位用户自 {since} 起仍有卦例待删除：请启动服务，或查看日志中的任务 `erasure`";
    }
    "network log", "网络日志" => {
        ["size", "大小"]
            Pass LogSize { oldest: Option<Timestamp>, mebibytes: u64, most: u64 } = ("{}, {mebibytes} of {most} MiB", log_start(*oldest)[0]), ("{}，{mebibytes} / {most} MiB", log_start(*oldest)[1]);
            Warn LogFull { oldest: Option<Timestamp>, mebibytes: u64, most: u64 } = ("{}, {mebibytes} of {most} MiB: the oldest entries are deleted before their retention ends", log_start(*oldest)[0]), ("{}，{mebibytes} / {most} MiB：最早的记录未到保留期限就会删除", log_start(*oldest)[1]);
        ["damaged file", "损坏的文件"]
            Warn LogDamaged { file: String } = "{file} was damaged and a new log begun: examine it, then delete it", "{file} 已损坏，另建了新日志：请检查后删除";
    }
    "providers", "外部服务" => {
        ["{provider}", ("{}", chinese_provider(provider))]
            Pass ProviderAnswers { provider: String, driver: String } = "{driver} answers", "{driver} 有应答";
            Fail ProviderFails { provider: String, failure: String } = "{failure}", "{failure}";
        ["moderation", "外部审核"]
            Pass WordListDecides {} = "the local word list decides", "由本地词库判定";
            Fail NoModerator {} = "an external moderator is to decide, but none is configured", "应由外部审核判定，但没有配置";
        ["app store", "App Store"]
            Warn TestNotificationLost { result: String } = "Apple could not deliver a test notification: {result}", "Apple 未能送达测试通知：{result}";
        ["{provider} calls", ("{}调用", chinese_provider(provider))]
            Fail ProviderDown { provider: String, since: Timestamp, alert: AlertContent } = ("the server reports since {since}: {}", alert.detail), ("服务自 {since} 起报告：{}", alert.text(Locale::Chinese));
        ["outgoing proxy", "出站代理"]
            Warn ProxyIgnored { variables: Vec<String> } = ("not used: calls to providers are direct and ignore {}", variables.join(" and ")), ("未使用：对外部服务的调用直接发出，忽略 {}", variables.join("、"));
    }
    "proxy", "代理" => {
        ["trusted proxies", "可信代理"]
            Pass TrustedProxies { networks: usize } = ("{}", pluralize(*networks, "network", "networks")), "{networks} 个网络";
            Fail EveryoneTrusted {} = "every client is trusted and can fake its address: list only the proxy", "所有客户端都被信任，可以伪造地址：请只列出代理";
        ["forwarding", "转发"]
            Pass NoProxyIgnored {} = "no proxy is ignored", "没有被忽略的代理";
            Fail ProxyUntrusted { peer: IpAddr, at: Timestamp } = "{peer} sent X-Forwarded-For at {at} and is not in server.trusted_proxies: its clients share one address and its limits. If it is your proxy or the bridge of its container, add it", "{peer} 于 {at} 发送了 X-Forwarded-For，但不在 server.trusted_proxies 中：其客户端共用一个地址及其限额。如果它是您的代理或其容器的网桥，请加入";
            Warn PeerUntrusted { peer: IpAddr, at: Timestamp } = "{peer} sent X-Forwarded-For at {at} and is not in server.trusted_proxies: a forged header, or a proxy whose clients share one address and its limits", "{peer} 于 {at} 发送了 X-Forwarded-For，但不在 server.trusted_proxies 中：伪造的请求头，或其客户端共用一个地址及其限额的代理";
            Fail HopUnreadable { peer: IpAddr, at: Timestamp } = "the last entry of X-Forwarded-For that {peer} sent at {at} is not an address: its clients share one address and its limits", "{peer} 于 {at} 发送的 X-Forwarded-For 的最后一项不是地址：其客户端共用一个地址及其限额";
        ["client addresses", "客户端地址"]
            Pass ClientAddresses { requests: usize } = "of the last {requests} requests", "最近 {requests} 个请求";
            Warn ProxyAddresses { from_proxy: usize, requests: usize } = "{from_proxy} of the last {requests} requests seem to come from the proxy itself: does it send X-Forwarded-For?", "最近 {requests} 个请求中有 {from_proxy} 个似乎来自代理自身：它是否发送 X-Forwarded-For？";
    }
    "backups", "备份" => {
        ["age", "时间"]
            Pass BackupRecent { last: Option<Timestamp> } = ("last: {}", time_or(*last, "never")), ("上次：{}", time_or(*last, "从未"));
            Warn BackupsOff { last: Option<Timestamp> } = ("backup.every is 0 s: there are no scheduled backups; last: {}", time_or(*last, "never")), ("backup.every 为 0 s：没有定时备份；上次：{}", time_or(*last, "从未"));
            Warn NoBackupYet {} = "none yet: the running server will make one", "尚无备份：服务运行时会制作";
            Fail BackupLate { last: Option<Timestamp> } = ("last: {}; is the server running?", time_or(*last, "never")), ("上次：{}；服务是否在运行？", time_or(*last, "从未"));
            Fail LastBackupFailed { cause: String, last: Option<Timestamp> } = ("the last one failed: {cause} Last successful one: {}", time_or(*last, "never")), ("上次备份失败：{cause} 上次成功：{}", time_or(*last, "从未"));
        ["newest", "最新备份"]
            Pass NewestSound { backup: String, count: usize } = "{backup}, sound; {count} in all", "{backup} 完好；共 {count} 个";
            Fail NewestInconsistent { backup: String } = "{backup} is inconsistent", "{backup} 内容不一致";
            Fail NewestUnreadable { backup: String } = "{backup} cannot be read", "{backup} 无法读取";
            Fail NewestMissing { backup: String, directory: String } = "{backup} is missing in {directory}, and there is no other", "{directory} 中没有 {backup}，也没有其他备份";
        ["size limit", "总大小上限"]
            Pass LimitFits { backups: u64 } = ("{}", limit_holds(*backups)), "backup.keep_size 可容纳 {backups} 个最新备份大小的备份";
            Warn LimitTight { backups: u64, wanted: u64 } = ("{}, and the rules would keep {wanted}: raise it, or lower backup.keep_hourly or backup.keep_daily", limit_holds(*backups)), "backup.keep_size 可容纳 {backups} 个最新备份大小的备份，而规则要保留 {wanted} 个：请调高它，或调低 backup.keep_hourly 或 backup.keep_daily";
        ["place", "位置"]
            Pass BackupsApart {} = "not only on the disk of the database", "不只在数据库所在的磁盘上";
            Warn BackupsOnSameDisk {} = "on the same disk as the database: set backup.directory or backup.s3_endpoint", "与数据库在同一磁盘上：请设置 backup.directory 或 backup.s3_endpoint";
        ["continuous", "持续备份"]
            Pass Shipped { term: u64, newest: Timestamp } = "term {term}, newest state of {newest}", "任期 {term}，最新状态为 {newest}";
            Warn ShippedUnfenced { term: u64, newest: Timestamp } = "term {term}, newest state of {newest}; the server does not know conditional requests: fencing has a gap of a second", "任期 {term}，最新状态为 {newest}；存储服务不支持条件请求：隔离有一秒的空隙";
            Warn BucketUnclaimed {} = "no server has claimed the bucket yet", "尚无服务登记此存储桶";
            Warn NothingShipped { term: u64 } = "term {term} has shipped nothing yet", "任期 {term} 尚未上传任何内容";
            Fail Superseded { machine: String, term: u64 } = "machine {machine} took over with term {term}; this one stores nothing: run `yarrow backup take-over`, or switch this machine off", "机器 {machine} 已以任期 {term} 接管，本机不再保存数据：请运行 `yarrow backup take-over`，或关闭本机";
            Fail BucketUnreadable { error: String } = "{error}", "{error}";
    }
    "{group}", "{group}" => {
        ["examination", "检查"]
            Fail ExaminationFailed { group: String, error: String } = "{error}", "{error}";
    }
}

fn left(number: i64, since: Timestamp, one: &str, many: &str) -> String {
    format!("{} left to delete since {since}", pluralize(number, one, many))
}

fn limit_holds(backups: u64) -> String {
    format!("backup.keep_size holds {} of the size of the newest", pluralize(backups, "backup", "backups"))
}

/// Returns the start of the network log in English and Chinese.
fn log_start(oldest: Option<Timestamp>) -> [String; 2] {
    match oldest {
        Some(oldest) => [format!("since {oldest}"), format!("始于 {oldest}")],
        None => ["empty", "空"].map(ToOwned::to_owned),
    }
}

fn chinese_templates(templates: &str) -> &str {
    match templates {
        "prompts" => "提示词",
        "messages" => "邮件模板",
        _ => "求助文本",
    }
}

fn chinese_directory(directory: &str) -> &str {
    if directory == "data directory" { "数据目录" } else { "备份目录" }
}
