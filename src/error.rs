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

use crate::types::{Secret, Timestamp, named_enum};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Declares the registry once: the name clients see, and what it means to them.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $meaning:literal;)*) => {
        /// The registry of error codes. Clients branch on the name; titles and details may change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* #[doc = $meaning] $variant,)* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            /// The stable name in answers, snake case.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name),* }
            }

            /// Returns the meaning of the code, as one sentence for the documentation.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning),* }
            }
        }
    };
}

codes! {
    InvalidRequest = "invalid_request", "The request could not be read.";
    InvalidJson = "invalid_json", "The body is not valid JSON, or is nested too deeply.";
    ConflictingParameter = "conflicting_parameter", "A parameter was sent twice with different values.";
    Unauthenticated = "unauthenticated", "No valid token was sent. Sign in and send it as a Bearer token.";
    InvalidCode = "invalid_code", "The verification code is wrong, expired or already used. Request a new code.";
    NotYours = "not_yours", "The request names another user. Use the id of the signed-in user.";
    Forbidden = "forbidden", "You are not allowed to do this.";
    NotFound = "not_found", "Not found.";
    NoRelease = "no_release", "No version of the app has been published.";
    MethodNotAllowed = "method_not_allowed", "The path does not support this method.";
    StepUpRequired = "step_up_required", "This requires a recent sign-in. Sign in again with a verification code.";
    InvalidCredentials = "invalid_credentials", "The name or the password is wrong.";
    TotpRequired = "totp_required", "The password is right. Send the current code of the authenticator app in `totp` too.";
    AddressNotAllowed = "address_not_allowed", "Administrators may not call from this address.";
    InsufficientCoins = "insufficient_coins", "The user does not have enough coins.";
    InsufficientPoints = "insufficient_points", "The user does not have enough points.";
    AlreadyPosted = "already_posted", "This event is already posted to the ledger.";
    BalanceTooLarge = "balance_too_large", "The balance would exceed the largest possible balance.";
    AccountInconsistent = "account_inconsistent", "The account disagrees with its ledger and is locked until an administrator repairs it.";
    UnknownPackage = "unknown_package", "Unknown package. Send an amount and coins that are a pair of the price list.";
    OrderState = "order_state", "The order's state does not allow this.";
    IdempotencyKeyReused = "idempotency_key_reused", "The Idempotency-Key was already used for a different request. Send a new key.";
    UnknownInvite = "unknown_invite", "Unknown invite code.";
    OwnInvite = "own_invite", "You cannot redeem your own invite code.";
    InviteExpired = "invite_expired", "You registered too long ago to redeem an invite code.";
    AlreadyInvited = "already_invited", "You have already redeemed an invite code, with this account or an earlier one.";
    ConfirmationRequired = "confirmation_required", "This cannot be undone. Repeat the request with `confirm` set to the returned token.";
    AlreadyRunning = "already_running", "This operation is already running. Try again when it has finished.";
    AlreadyExists = "already_exists", "The name is already in use.";
    AddressTaken = "address_taken", "The address belongs to another account.";
    HistoryFull = "history_full", "The user has the maximum number of history records. Delete some first.";
    BodyTooLarge = "body_too_large", "The body is too large for this endpoint.";
    UnsupportedMediaType = "unsupported_media_type", "The body is neither JSON nor a form.";
    InvalidParameters = "invalid_parameters", "Some parameters are invalid; `errors` lists all of them.";
    ContentRejected = "content_rejected", "Content moderation rejected the text. Change it and try again.";
    ModerationUnavailable = "moderation_unavailable", "Content moderation is unavailable, so no text can be accepted. Try again later.";
    NotConfigured = "not_configured", "The operator has not configured this feature.";
    TooManyRequests = "too_many_requests", "Rate limit reached. Try again after `Retry-After`.";
    TooManyCalls = "too_many_calls", "The user has the maximum number of running model calls. Wait until one finishes.";
    BudgetSpent = "budget_spent", "Today's budget for the language model is spent. Try again after `Retry-After`.";
    RequestTimeout = "request_timeout", "The request did not arrive in time.";
    ProviderFailed = "provider_failed", "The provider returned an error or an invalid response.";
    ProviderUnavailable = "provider_unavailable", "The provider is not available. Try again later.";
    ProviderTimeout = "provider_timeout", "The provider did not respond in time. Try again later.";
    Overloaded = "overloaded", "The service is overloaded. Try again after `Retry-After`.";
    StorageFull = "storage_full", "The disk is full. Reading still works.";
    StorageFailed = "storage_failed", "The disk failed. Nothing was stored.";
    Internal = "internal", "Internal error.";
    /// Never sent to a client.
    ChecksFailed = "checks_failed", "The check found problems.";
    /// Never sent to a client.
    BackupUnusable = "backup_unusable", "The file is not a backup, or is damaged.";
    /// Never sent to a client.
    AddressUnavailable = "address_unavailable", "Cannot listen on the address.";
    /// Never sent to a client.
    Configuration = "configuration", "The configuration is invalid.";
    /// Never sent to a client.
    DataDirectoryUnusable = "data_directory_unusable",
        "The data directory is in use, or its schema is newer or older than this program.";
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

/// One bad field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    pub code: FieldCode,
    pub message: String,
}

/// The fault of a value, before its field name is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub code: FieldCode,
    pub message: String,
}

impl Fault {
    pub fn new(code: FieldCode, message: impl Into<String>) -> Self {
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

type Source = Box<dyn std::error::Error + Send + Sync>;

/// An error of one pointer's size: nearly every function may return one, and nearly none does.
#[derive(Debug)]
pub struct Error(Box<ErrorDetails>);

/// The content of an [`Error`], which dereferences to it.
#[derive(Debug)]
pub struct ErrorDetails {
    pub code: Code,
    /// A sentence for people; it may be shown to the client.
    pub detail: Cow<'static, str>,
    /// The bad fields of [`Code::InvalidParameters`] and [`Code::ContentRejected`].
    pub fields: Vec<FieldError>,
    pub retry_after: Option<Duration>,
    /// The trace id of the interpretation that failed, so that the caller can find its record.
    pub trace_id: Option<String>,
    /// The consequences, for an action that must be confirmed.
    pub confirmation: Option<Confirmation>,
    /// The operation failed for its caller, and what it changed is to stay: a used try, a violation record.
    pub keeps_changes: bool,
    pub source: Option<Source>,
}

impl Error {
    #[cold]
    pub fn new(code: Code) -> Self {
        Self(Box::new(ErrorDetails {
            code,
            detail: Cow::Borrowed(code.meaning()),
            fields: Vec::new(),
            retry_after: None,
            trace_id: None,
            confirmation: None,
            keeps_changes: false,
            source: None,
        }))
    }

    /// A fault of the service itself: the cause is for the log, the client learns nothing of it.
    pub fn internal(source: impl Into<Source>) -> Self {
        Self::new(Code::Internal).caused_by(source)
    }

    /// The configuration is wrong, in words.
    pub fn misconfigured(fault: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Configuration).detail(fault)
    }

    /// One bad field.
    pub fn field(field: &str, fault: Fault) -> Self {
        Self::fields(vec![fault.in_field(field)])
    }

    pub fn fields(fields: Vec<FieldError>) -> Self {
        Self::new(Code::InvalidParameters).in_fields(fields)
    }

    /// With the fields that it is about.
    pub fn in_fields(mut self, fields: Vec<FieldError>) -> Self {
        self.fields = fields;
        self
    }

    /// With the interpretation that failed.
    pub fn with_trace_id(mut self, trace_id: &str) -> Self {
        self.trace_id = Some(trace_id.to_owned());
        self
    }

    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = detail.into();
        self
    }

    pub fn retry_after(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.retry_after = wait.into();
        self
    }

    pub fn caused_by(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Copies the failure for another caller. The cause stays with the first.
    pub fn without_source(&self) -> Self {
        Self::new(self.code).detail(self.detail.clone()).retry_after(self.retry_after)
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

    /// Commits what the operation changed although it fails for its caller.
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
