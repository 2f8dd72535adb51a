//! The reasons for which messages of payment providers are rejected. All providers share them, because the codes are
//! stored with the message and shown to operators.

use std::fmt;

/// A rejected callback, with the order and trade that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub reason: RejectionReason,
    /// The provider signed it, so the fields below are proven and not mere claims.
    pub is_genuine: bool,
    /// At most 64 characters.
    pub order_no: Option<String>,
    /// At most 64 characters.
    pub trade_no: Option<String>,
    /// At most 128 characters.
    pub notify_id: Option<String>,
}

/// The reason why a message is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectionReason {
    TooLarge,
    Malformed,
    WrongCharset,
    NotUtf8,
    DuplicateParameter,
    /// A value contains the text of another field.
    AmbiguousValue,
    WrongSignType,
    SignatureMissing,
    SignatureInvalid,
    /// A header that belongs to the signature is missing, empty or too long.
    HeaderMissing(&'static str),
    /// Signed more than five minutes before or after it was received.
    StaleTimestamp,
    /// Signed by a key that is not configured.
    UnknownKey,
    /// The certificates do not lead to the configured root, or are not valid for this use.
    UntrustedCertificate,
    /// The provider tests that invalid signatures are rejected. No fault of either side.
    ProbeTraffic,
    /// Genuine, but encrypted with another key: ours is out of date.
    Undecryptable,
    /// Genuine, but not about a trade.
    WrongType,
    WrongApp,
    WrongSeller,
    WrongCurrency,
    /// Genuine, but from the provider's test environment, or from the real one where tests are expected.
    WrongEnvironment,
    /// A token for another receiver, issuer or sender.
    WrongAudience,
    /// A token outside its time of validity.
    Expired,
    /// Genuine, but the trade that it reports as paid has another state.
    NotPaid,
    /// A field that every trade callback has is missing, empty or too long.
    FieldMissing(&'static str),
    InvalidAmount(&'static str),
    UnknownStatus,
}

impl RejectionReason {
    /// Returns false if the message is rejected with whatever keys.
    pub const fn depends_on_keys(self) -> bool {
        !matches!(self, Self::TooLarge | Self::Malformed | Self::WrongSignType | Self::HeaderMissing(_))
    }

    /// Returns the stable code that is stored and shown to operators.
    pub fn code(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Malformed => "malformed",
            Self::WrongCharset => "wrong_charset",
            Self::NotUtf8 => "not_utf8",
            Self::DuplicateParameter => "duplicate_parameter",
            Self::AmbiguousValue => "ambiguous_value",
            Self::WrongSignType => "wrong_sign_type",
            Self::SignatureMissing => "signature_missing",
            Self::SignatureInvalid => "signature_invalid",
            Self::HeaderMissing(_) => "header_missing",
            Self::StaleTimestamp => "stale_timestamp",
            Self::UnknownKey => "unknown_key",
            Self::UntrustedCertificate => "untrusted_certificate",
            Self::ProbeTraffic => "probe_traffic",
            Self::Undecryptable => "undecryptable",
            Self::WrongType => "wrong_type",
            Self::WrongApp => "wrong_app",
            Self::WrongSeller => "wrong_seller",
            Self::WrongCurrency => "wrong_currency",
            Self::WrongEnvironment => "wrong_environment",
            Self::WrongAudience => "wrong_audience",
            Self::Expired => "expired",
            Self::NotPaid => "not_paid",
            Self::FieldMissing(_) => "field_missing",
            Self::InvalidAmount(_) => "invalid_amount",
            Self::UnknownStatus => "unknown_status",
        }
    }
}

/// Writes the code and the field concerned.
impl fmt::Display for RejectionReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FieldMissing(field) | Self::InvalidAmount(field) | Self::HeaderMissing(field) => {
                write!(formatter, "{}: {field}", self.code())
            }
            _ => formatter.write_str(self.code()),
        }
    }
}

impl Rejection {
    /// Returns a rejection of a message that names nothing.
    pub(super) fn anonymous(reason: RejectionReason, is_genuine: bool) -> Self {
        Self { reason, is_genuine, order_no: None, trade_no: None, notify_id: None }
    }
}
