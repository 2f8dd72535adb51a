//! The error type, with stable codes.
//!
//! An [`Error`] has a [`Code`] that clients branch on, a sentence for people, and all invalid fields. It knows no HTTP
//! status and no exit code: those are in one match each, in `http/reply.rs` and `main.rs`. The cause of an internal
//! fault is in `source`, is logged once at the boundary and never leaves the server.

use std::{
    borrow::Cow,
    fmt, iter,
    ops::{Deref, DerefMut},
    time::Duration,
};

use crate::types::{Locale, Secret, Timestamp, named_enum};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The message about a request that a sound app does not send.
const APP_FAULT: [&str; 2] =
    ["The app sent an invalid request. Please try again, or update the app.", "应用发出的请求有误，请重试或更新应用。"];

/// Declares the registry once: each code's name, and its meaning in English and Chinese. A sentence for users follows the
/// arrow where the meaning is for developers.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $meaning:literal $(=> $english_message:expr)?,
        $chinese:literal $(=> $chinese_message:expr)?;)*) => {
        /// The registry of error codes. Clients branch on the name; titles and details may change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* #[doc = $meaning] $variant,)* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            /// Returns the stable name in responses, in snake case.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name),* }
            }

            /// Returns the meaning of the code, as one sentence for the documentation.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning),* }
            }

            /// Returns the meaning of the code in Chinese.
            pub const fn chinese(self) -> &'static str {
                match self { $(Code::$variant => $chinese),* }
            }

            /// Returns the sentence for a person who uses an app.
            pub const fn message(self, locale: Locale) -> &'static str {
                match (self, locale) {
                    $((Code::$variant, Locale::English) => [$($english_message,)? $meaning][0],
                    (Code::$variant, Locale::Chinese) => [$($chinese_message,)? $chinese][0],)*
                }
            }
        }
    };
}

codes! {
    InvalidRequest = "invalid_request",
        "The request could not be read." => APP_FAULT[0],
        "无法读取请求。" => APP_FAULT[1];
    InvalidJson = "invalid_json",
        "The body is not valid JSON, or is nested too deeply." => APP_FAULT[0],
        "请求体不是有效的 JSON，或嵌套过深。" => APP_FAULT[1];
    ConflictingParameter = "conflicting_parameter",
        "A parameter was sent twice with different values." => APP_FAULT[0],
        "同一参数出现了两个不同的值。" => APP_FAULT[1];
    Unauthenticated = "unauthenticated",
        "No valid token was sent. Sign in and send it in the `Authorization` header."
            => "Please sign in.",
        "请先登录。";
    InvalidCode = "invalid_code",
        "The verification code is wrong, expired or already used. Request a new code.",
        "验证码错误、已过期或已使用，请重新获取。";
    InvalidIdentity = "invalid_identity",
        "The proof of identity is invalid, expired or already used. Sign in at the provider again."
            => "This sign-in is invalid, expired or already used. Please sign in again.",
        "身份凭证无效、已过期或已使用，请重新授权登录。";
    IdentityTaken = "identity_taken",
        "Another account has this identity, or the account has another identity of this provider."
            => "Another account signs in this way, or this account already has a sign-in of this kind.",
        "此身份已绑定其他账户，或该账户已绑定同一平台的其他身份。";
    EmailCodeRequired = "email_code_required",
        "An account has this email address, and the provider cannot prove who owns it. Sign in with a code sent to it, then link the identity."
            => "This email address has an account already. Sign in with a code sent to it, then add this sign-in to the account.",
        "此邮箱已有账户，请用邮箱验证码登录，再绑定此身份。";
    LastIdentity = "last_identity",
        "This is the only way to sign in to the account. Add an address or another identity first.",
        "这是该账户唯一的登录方式，请先添加手机号、邮箱或其他身份。";
    NotYours = "not_yours",
        "The request names another user. Use the id of the signed-in user."
            => "This belongs to another account. Please sign in again.",
        "请求中的用户不是当前登录用户。" => "此内容属于其他账户，请重新登录。";
    Forbidden = "forbidden",
        "You are not allowed to do this.",
        "没有权限执行此操作。";
    UserSuspended = "user_suspended",
        "The account is suspended. Send feedback to appeal.",
        "账号已停用。如有异议，请提交意见反馈。";
    NicknameSuspended = "nickname_suspended",
        "Changes of the nickname are suspended. Send feedback to appeal.",
        "昵称修改已停用。如有异议，请提交意见反馈。";
    NotFound = "not_found",
        "Not found.",
        "未找到。";
    CursorExpired = "cursor_expired",
        "The cursor is too old. Ask for the changes without `since` and replace what the app has stored."
            => "Please load your data again.",
        "同步位置已过期，请重新加载全部数据。";
    UnknownEndpoint = "unknown_endpoint",
        "There is no endpoint with this path." => APP_FAULT[0],
        "没有此接口。" => APP_FAULT[1];
    NoRelease = "no_release",
        "No version of the app has been published.",
        "尚未发布任何版本。";
    MethodNotAllowed = "method_not_allowed",
        "The path does not support this method." => APP_FAULT[0],
        "此路径不支持该请求方法。" => APP_FAULT[1];
    StepUpRequired = "step_up_required",
        "This requires a recent sign-in. Sign in again with a verification code.",
        "此操作需要近期的登录验证，请用验证码重新登录。";
    InvalidCredentials = "invalid_credentials",
        "The name, the password or the one-time code is wrong.",
        "用户名、密码或动态码错误。";
    TotpRequired = "totp_required",
        "The password is right. Send the current code of the authenticator app in `totp` too."
            => "Please enter the current code of your authenticator app.",
        "密码正确，请在 `totp` 中填写验证器的当前动态码。" => "请输入验证器的当前动态码。";
    AddressNotAllowed = "address_not_allowed",
        "Administrators may not call from this address.",
        "管理员不能从此网络地址访问。";
    InsufficientCoins = "insufficient_coins",
        "The user does not have enough coins."
            => "You do not have enough coins.",
        "金币不足。";
    InsufficientPoints = "insufficient_points",
        "The user does not have enough points."
            => "You do not have enough points.",
        "积分不足。";
    AlreadyPosted = "already_posted",
        "This event is already posted to the ledger."
            => "This has been credited already.",
        "此事项已经入账。";
    BalanceTooLarge = "balance_too_large",
        "The balance would exceed the largest possible balance.",
        "余额将超过上限。";
    AccountInconsistent = "account_inconsistent",
        "The account disagrees with its ledger and is suspended until an administrator repairs it."
            => "Your account is locked until we have checked its balance.",
        "账户与账目不符，已锁定，请等待管理员修复。";
    UnknownPackage = "unknown_package",
        "Unknown package. Send an amount and coins that are a pair of the price list."
            => "This package is not for sale. Please choose one from the list.",
        "没有此套餐，金额与数量须与价目表一致。" => "没有此套餐，请从列表中选择。";
    UnknownProduct = "unknown_product",
        "Unknown product, or one that is not for sale. Read the list of products."
            => "This product is not for sale.",
        "没有此商品，或已停售。";
    OrderState = "order_state",
        "The order's state does not allow this.",
        "订单当前状态不允许此操作。";
    PurchaseRefused = "purchase_refused",
        "The purchase cannot be credited. `detail` says why."
            => "This purchase cannot be credited. Send feedback if you have paid for it.",
        "此次购买无法入账，原因见 `detail`。" => "此次购买无法入账。如已付款，请提交意见反馈。";
    PurchaseRevoked = "purchase_revoked",
        "The store refunded this purchase, so nothing is credited. Finish the transaction in the app."
            => "The store has refunded this purchase, so it is not credited.",
        "该笔购买已被商店撤销，不会入账。";
    IdempotencyKeyReused = "idempotency_key_reused",
        "The Idempotency-Key was already used for a different request. Send a new key." => APP_FAULT[0],
        "此 Idempotency-Key 已用于另一个请求，请换一个。" => APP_FAULT[1];
    UnknownInvite = "unknown_invite",
        "Unknown invite code.",
        "邀请码不存在。";
    OwnInvite = "own_invite",
        "You cannot redeem your own invite code.",
        "不能使用自己的邀请码。";
    InviteExpired = "invite_expired",
        "You registered too long ago to redeem an invite code.",
        "注册时间过久，已不能使用邀请码。";
    AlreadyInvited = "already_invited",
        "You have already redeemed an invite code, with this account or an earlier one.",
        "您已使用过邀请码。";
    ConfirmationRequired = "confirmation_required",
        "This cannot be undone. Repeat the request with `confirm` set to the returned token."
            => "This cannot be undone. Please confirm it.",
        "此操作无法撤销，请带上返回的 `confirm` 再次提交。" => "此操作无法撤销，请确认。";
    AlreadyRunning = "already_running",
        "This operation is already running. Try again when it has finished.",
        "此操作正在进行，请稍后再试。";
    InterpretationLimit = "interpretation_limit",
        "The session has the maximum number of interpretations. Cast again for another one.",
        "此卦的解读次数已达上限，可重新起卦。";
    AlreadyExists = "already_exists",
        "The name is already in use.",
        "名称已被使用。";
    LastOwner = "last_owner",
        "One administrator must keep the role `owner`.",
        "至少须保留一名 `owner` 管理员。";
    AddressTaken = "address_taken",
        "The address belongs to another account."
            => "This number or email address belongs to another account.",
        "此号码或邮箱属于另一个账户。";
    HistoryFull = "history_full",
        "The user has the maximum number of history records. Delete some first."
            => "Your history is full. Please delete some records first.",
        "历史记录已达上限，请先删除一部分。";
    HistoryTooLarge = "history_too_large",
        "The user's history records have the maximum size. Delete some first."
            => "Your history takes up too much space. Please delete some records first.",
        "历史记录的总大小已达上限，请先删除一部分。";
    VersionConflict = "version_conflict",
        "The record was changed or deleted since `baseVersion`. `record` is its newer state, if it still exists."
            => "This record was changed or deleted on another device.",
        "此记录已在别处修改或删除，请先合并后再保存。" => "此记录已在别处修改或删除。";
    BodyTooLarge = "body_too_large",
        "The body is too large for this endpoint."
            => "This is too large to be sent.",
        "请求内容过大。";
    UnsupportedMediaType = "unsupported_media_type",
        "The body is neither JSON nor a form." => APP_FAULT[0],
        "请求体既不是 JSON 也不是表单。" => APP_FAULT[1];
    InvalidParameters = "invalid_parameters",
        "Some parameters are invalid; `errors` lists all of them."
            => "Please check what you entered.",
        "部分参数有误，详见 `errors`。" => "部分内容有误，请检查。";
    ContentRejected = "content_rejected",
        "Content moderation rejected the text. Change it and try again."
            => "The text was not accepted. Please change it and try again.",
        "内容未通过审核，请修改后重试。";
    ModerationUnavailable = "moderation_unavailable",
        "Content moderation is unavailable, so no text can be accepted. Try again later."
            => "Your text cannot be checked at the moment. Please try again later.",
        "内容审核暂不可用，请稍后再试。";
    NotConfigured = "not_configured",
        "The operator has not configured this feature."
            => "This feature is not available.",
        "此功能尚未配置。" => "此功能暂未开放。";
    TooManyRequests = "too_many_requests",
        "Rate limit reached. Try again after `Retry-After`."
            => "Too many attempts. Please try again later.",
        "操作过于频繁，请稍后再试。";
    TooManyCalls = "too_many_calls",
        "The user has the maximum number of running model calls. Wait until one finishes."
            => "Please wait until your other request has finished.",
        "同时进行的请求已达上限，请等待其中一个完成。";
    BudgetSpent = "budget_spent",
        "Today's budget for the language model is spent. Try again after `Retry-After`."
            => "Today's readings are used up. Please try again later.",
        "今日的解读额度已用完，请稍后再试。";
    RequestTimeout = "request_timeout",
        "The request did not arrive in time."
            => "The connection was too slow. Please try again.",
        "请求未能及时到达。";
    ProviderFailed = "provider_failed",
        "The provider returned an error or an invalid response."
            => "A service that we use failed. Please try again later.",
        "外部服务返回了错误，请稍后再试。";
    ProviderUnavailable = "provider_unavailable",
        "The provider is not available. Try again later."
            => "A service that we use is not available. Please try again later.",
        "外部服务暂不可用，请稍后再试。";
    ProviderTimeout = "provider_timeout",
        "The provider did not respond in time. Try again later."
            => "A service that we use did not answer in time. Please try again later.",
        "外部服务响应超时，请稍后再试。";
    Overloaded = "overloaded",
        "The service is overloaded. Try again after `Retry-After`."
            => "The service is busy. Please try again soon.",
        "服务繁忙，请稍后再试。";
    Superseded = "superseded",
        "Another machine has taken over, so this one accepts no writes. Reads still work."
            => "Changes are not possible at the moment. Please try again later.",
        "服务已由另一台机器接管，本机目前只能读取。" => "目前只能查看，请稍后再试。";
    StorageFull = "storage_full",
        "The disk is full. Reading still works."
            => "Nothing can be saved at the moment. Please try again later.",
        "存储空间已满，目前只能读取。";
    StorageFailed = "storage_failed",
        "The disk failed. Nothing was stored."
            => "Nothing was saved. Please try again later.",
        "存储失败，没有保存任何内容。";
    OutcomeUnknown = "outcome_unknown",
        "The database connection was lost during the write, so its outcome is unknown. Retry with the same Idempotency-Key, or check whether it took effect."
            => "It is unknown whether this was saved. Please check before you try again.",
        "保存时与数据库的连接中断，结果未知。请用相同的 Idempotency-Key 重试，或先查询是否已生效。" => "保存结果未知。请先查看是否已生效，再重试。";
    UnsupportedByDatabase = "unsupported_by_database",
        "The database of this installation does not support this. Use the tools of the database instead.",
        "此安装所用的数据库不支持此操作，请使用数据库自带的工具。";
    Internal = "internal",
        "Internal error."
            => "Something went wrong on our side. Please try again later.",
        "服务器内部错误。" => "服务器出错了，请稍后再试。";
    /// Never sent to a client.
    ChecksFailed = "checks_failed",
        "The check found problems.",
        "检查发现问题。";
    /// Never sent to a client.
    BackupUnusable = "backup_unusable",
        "The file is not a backup, or is damaged.",
        "文件不是备份，或已损坏。";
    /// Never sent to a client.
    AddressUnavailable = "address_unavailable",
        "Cannot listen on the address.",
        "无法监听此地址。";
    /// Never sent to a client.
    Configuration = "configuration",
        "The configuration is invalid.",
        "配置有误。";
    /// Never sent to a client.
    DataDirectoryUnusable = "data_directory_unusable",
        "The data directory is in use, or its schema is newer or older than this program.",
        "数据目录正在使用，或其版本与本程序不符。";
}

named_enum! {
    /// The fault of one field.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FieldCode {
        Required = "required",
        InvalidType = "invalid_type",
        InvalidFormat = "invalid_format",
        InvalidCharacter = "invalid_character",
        TooLong = "too_long",
        TooShort = "too_short",
        TooMany = "too_many",
        OutOfRange = "out_of_range",
        UnknownValue = "unknown_value",
        NotMobile = "not_mobile",
        RegionNotAllowed = "region_not_allowed",
        NotAllowed = "not_allowed",
        Rejected = "rejected",
    }
}

/// A sentence in the languages of clients. It is made from a pair, English first, so that a missing language does not
/// compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    pub english: Cow<'static, str>,
    pub chinese: Cow<'static, str>,
}

impl Sentence {
    /// Returns the sentence for a reader whose language is known where it is written, such as a page of the console.
    pub fn for_reader(text: impl Into<Cow<'static, str>>) -> Self {
        let text = text.into();
        Self { english: text.clone(), chinese: text }
    }

    pub fn in_locale(&self, locale: Locale) -> &str {
        match locale {
            Locale::English => &self.english,
            Locale::Chinese => &self.chinese,
        }
    }
}

impl<E: Into<Cow<'static, str>>, C: Into<Cow<'static, str>>> From<(E, C)> for Sentence {
    fn from((english, chinese): (E, C)) -> Self {
        Self { english: english.into(), chinese: chinese.into() }
    }
}

/// The English text, for commands and logs.
impl fmt::Display for Sentence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.english)
    }
}

/// An invalid field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    pub code: FieldCode,
    pub message: Sentence,
}

/// The fault of a value, before its field name is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub code: FieldCode,
    pub message: Sentence,
}

impl Fault {
    pub fn new(code: FieldCode, message: impl Into<Sentence>) -> Self {
        Self { code, message: message.into() }
    }

    pub fn in_field(self, field: &str) -> FieldError {
        FieldError { field: field.to_owned(), code: self.code, message: self.message }
    }
}

/// The consequences of an action, and the token that confirms it.
#[derive(Clone, Debug)]
pub struct Confirmation {
    pub token: Secret,
    pub expires_at: Timestamp,
    /// The rows that would be deleted, by kind.
    pub would_delete: Vec<(String, i64)>,
    /// The rows of the same kinds that would remain.
    pub would_keep: Vec<(String, i64)>,
}

/// A number of requests allowed in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The stable name in responses.
    pub name: &'static str,
    pub quota: u32,
    pub window: Duration,
}

type Source = Box<dyn std::error::Error + Send + Sync>;

/// An error with a code. It is one pointer in size, because nearly every function can return one and few do.
#[derive(Debug)]
pub struct Error(Box<ErrorDetails>);

/// The content of an [`Error`], which dereferences to it.
#[derive(Debug)]
pub struct ErrorDetails {
    pub code: Code,
    /// A sentence for people; it may be shown to the client.
    pub detail: Cow<'static, str>,
    /// The same in Chinese. `None` for errors that only commands and logs show in full.
    pub chinese_detail: Option<Cow<'static, str>>,
    /// The invalid fields of [`Code::InvalidParameters`] and [`Code::ContentRejected`].
    pub fields: Vec<FieldError>,
    pub retry_after: Option<Duration>,
    /// The limit that the request exceeds.
    pub rate_limit: Option<RateLimit>,
    /// The trace id of the interpretation that failed, so that the caller can find its record.
    pub trace_id: Option<String>,
    /// The newer state of a record that was edited in an older one.
    pub record: Option<serde_json::Value>,
    /// The consequences, for an action that must be confirmed.
    pub confirmation: Option<Confirmation>,
    /// True if the transaction is committed although the operation failed: it counted an attempt or recorded a violation.
    pub keeps_changes: bool,
    pub source: Option<Source>,
}

impl Error {
    #[cold]
    pub fn new(code: Code) -> Self {
        Self(Box::new(ErrorDetails {
            code,
            detail: Cow::Borrowed(code.meaning()),
            chinese_detail: None,
            fields: Vec::new(),
            retry_after: None,
            rate_limit: None,
            trace_id: None,
            record: None,
            confirmation: None,
            keeps_changes: false,
            source: None,
        }))
    }

    /// Builds an error for a fault of the service itself. The cause is logged and not sent to the client.
    pub fn internal(source: impl Into<Source>) -> Self {
        Self::new(Code::Internal).caused_by(source)
    }

    /// Builds an error about the configuration.
    pub fn misconfigured(fault: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Configuration).english_detail(fault)
    }

    /// Builds an error about one invalid field.
    pub fn field(field: &str, fault: Fault) -> Self {
        Self::fields(vec![fault.in_field(field)])
    }

    pub fn fields(fields: Vec<FieldError>) -> Self {
        Self::new(Code::InvalidParameters).in_fields(fields)
    }

    /// Adds the invalid fields.
    pub fn in_fields(mut self, fields: Vec<FieldError>) -> Self {
        self.fields = fields;
        self
    }

    /// Adds the trace id of the interpretation that failed.
    pub fn with_trace_id(mut self, trace_id: &str) -> Self {
        self.trace_id = Some(trace_id.to_owned());
        self
    }

    /// Adds the newer state of a record that was edited in an older one.
    pub fn with_record(mut self, record: Option<serde_json::Value>) -> Self {
        self.record = record;
        self
    }

    pub fn detail(mut self, detail: impl Into<Sentence>) -> Self {
        let Sentence { english, chinese } = detail.into();
        (self.detail, self.chinese_detail) = (english, Some(chinese));
        self
    }

    /// Sets a sentence for operators, who read English. Clients that prefer Chinese get the meaning of the code.
    pub fn english_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        (self.detail, self.chinese_detail) = (detail.into(), None);
        self
    }

    /// Returns the sentence in this language.
    pub fn detail_in(&self, locale: Locale) -> &str {
        match (locale, &self.chinese_detail) {
            (Locale::English, _) => &self.detail,
            (Locale::Chinese, Some(detail)) => detail,
            (Locale::Chinese, None) => self.code.chinese(),
        }
    }

    pub fn retry_after(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.retry_after = wait.into();
        self
    }

    /// Adds the limit that the request exceeds.
    pub fn exceeding(mut self, limit: RateLimit) -> Self {
        self.rate_limit = Some(limit);
        self
    }

    pub fn caused_by(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Copies the error for another caller, without its cause.
    pub fn without_source(&self) -> Self {
        let mut copy = Self::new(self.code).retry_after(self.retry_after);
        (copy.detail, copy.chinese_detail) = (self.detail.clone(), self.chinese_detail.clone());
        copy.rate_limit = self.rate_limit;
        copy
    }

    /// Returns the sentence, and its cause if that says more.
    pub fn describe(&self) -> String {
        let mut causes = iter::successors(std::error::Error::source(self), |cause| cause.source());
        match &self.source {
            Some(source) if !causes.any(|cause| self.detail.contains(&cause.to_string())) => {
                format!("{} ({source})", self.detail)
            }
            _ => self.detail.to_string(),
        }
    }

    /// Lets the transaction commit although the operation fails for its caller.
    pub fn keeping_changes(mut self) -> Self {
        self.keeps_changes = true;
        self
    }
}

impl Deref for Error {
    type Target = ErrorDetails;

    fn deref(&self) -> &ErrorDetails {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut ErrorDetails {
        &mut self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code.name(), self.detail)?;
        for FieldError { field, code, message } in &self.fields {
            write!(formatter, "; {field}: {} ({message})", code.name())?;
        }
        if let Some(source) = &self.source {
            write!(formatter, "; cause: {source}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<Code> for Error {
    fn from(code: Code) -> Self {
        Self::new(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_no_parts_of_requests() {
        for (code, locale) in Code::ALL.iter().flat_map(|code| Locale::ALL.map(|locale| (code, locale))) {
            let message = code.message(locale);
            let is_plain =
                !message.contains('`') && !["JSON", "Idempotency", "header"].iter().any(|word| message.contains(word));
            // Only owners of the service see these.
            assert!(is_plain || *code == Code::LastOwner, "{code:?}: {message}");
            assert!(message.ends_with(['.', '。']), "{code:?}: {message}");
        }
    }
}
