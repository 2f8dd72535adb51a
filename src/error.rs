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
    InvalidJson = "invalid_json", "The body is not JSON, or it is nested too deeply.";
    ConflictingParameter = "conflicting_parameter", "One name was given twice with different values.";
    Unauthenticated = "unauthenticated", "No valid token was sent.";
    InvalidCode = "invalid_code", "The verification code is wrong, expired, used or used up.";
    NotYours = "not_yours", "The request names another user.";
    Forbidden = "forbidden", "This caller may not do this.";
    NotFound = "not_found", "There is nothing here, or nothing that this caller may know of.";
    NoRelease = "no_release", "No version of the app has been published.";
    MethodNotAllowed = "method_not_allowed", "The path exists, but not with this method.";
    StepUpRequired = "step_up_required", "This needs a verification code that was proved a few minutes ago: sign in again.";
    InvalidCredentials = "invalid_credentials", "The name or the password is wrong.";
    TotpRequired = "totp_required", "The password is right; this administrator's `totp`, a code of the authenticator app, is needed too.";
    AddressNotAllowed = "address_not_allowed", "Administrators may not call from this address.";
    InsufficientCoins = "insufficient_coins", "The user has not enough coins.";
    InsufficientPoints = "insufficient_points", "The user has not enough points.";
    AlreadyPosted = "already_posted", "This event has been posted to the ledger before.";
    BalanceTooLarge = "balance_too_large", "The balance would be larger than a balance can be.";
    AccountInconsistent = "account_inconsistent", "The account disagrees with its ledger and is closed until that is repaired.";
    UnknownPackage = "unknown_package", "There is no such package: amount and coins must be a pair of the price list.";
    OrderState = "order_state", "The order is not in a state in which this can be done.";
    IdempotencyKeyReused = "idempotency_key_reused", "The Idempotency-Key was used before for another request.";
    UnknownInvite = "unknown_invite", "There is no such invite code.";
    OwnInvite = "own_invite", "The invite code is the caller's own.";
    InviteExpired = "invite_expired", "The caller registered too long ago to redeem an invite code.";
    AlreadyInvited = "already_invited", "The caller has redeemed an invite code before, under this account or an earlier one.";
    ConfirmationRequired = "confirmation_required", "This cannot be taken back: ask again with the token in `confirm` to have it done.";
    AlreadyRunning = "already_running", "This is being done already; one run at a time.";
    AlreadyExists = "already_exists", "There is one by this name already.";
    AddressTaken = "address_taken", "The address belongs to another account.";
    HistoryFull = "history_full", "The user has reached the number of history records that are kept.";
    BodyTooLarge = "body_too_large", "The body is larger than this endpoint takes.";
    UnsupportedMediaType = "unsupported_media_type", "The body is neither JSON nor a form.";
    InvalidParameters = "invalid_parameters", "One or more parameters are wrong; `errors` lists all of them.";
    ContentRejected = "content_rejected", "The text was refused by content moderation.";
    ModerationUnavailable = "moderation_unavailable", "The service that judges texts cannot be asked now, so nothing may pass.";
    NotConfigured = "not_configured", "The operator has not set this up.";
    TooManyRequests = "too_many_requests", "A limit was reached; `Retry-After` says when to come back.";
    TooManyCalls = "too_many_calls", "The user has as many running model calls as are allowed.";
    BudgetSpent = "budget_spent", "What may be spent on the language model today is spent; `Retry-After` says when the next day begins.";
    RequestTimeout = "request_timeout", "The request did not arrive in time.";
    ProviderFailed = "provider_failed", "An outside service refused or answered nonsense.";
    ProviderUnavailable = "provider_unavailable", "An outside service cannot be reached or is overloaded.";
    ProviderTimeout = "provider_timeout", "An outside service did not answer in time.";
    Overloaded = "overloaded", "The service has more work than it can take on.";
    StorageFull = "storage_full", "The disk is full; reading still works.";
    StorageFailed = "storage_failed", "The disk failed; nothing was stored.";
    Internal = "internal", "A fault in the service.";
    /// Never sent to a client.
    ChecksFailed = "checks_failed", "The check found problems.";
    /// Never sent to a client.
    BackupUnusable = "backup_unusable", "The file is no backup, or a damaged one.";
    /// Never sent to a client.
    AddressUnavailable = "address_unavailable", "An address cannot be listened on now.";
    /// Never sent to a client.
    Configuration = "configuration", "The configuration is wrong.";
    /// Never sent to a client.
    DataDirectoryUnusable = "data_directory_unusable",
        "The data directory is in use, was made by a newer version, or has yet to be migrated from an older one.";
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
