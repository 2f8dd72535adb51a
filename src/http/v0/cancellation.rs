//! The code that authorises an account cancellation. Several endpoints accept it.

use crate::{
    domain::identity::{
        accounts::{EMAIL_CODE_DIGITS, SMS_CODE_DIGITS},
        step_up::CancellationCode,
    },
    http::{params::VerificationCode, request_context::RequestContext},
};

/// Returns the code with the length of an SMS code and of an email code.
pub fn cancellation_code(context: &RequestContext, code: VerificationCode) -> CancellationCode {
    CancellationCode {
        by_sms: code.clone().of_digits(SMS_CODE_DIGITS),
        by_email: code.of_digits(EMAIL_CODE_DIGITS),
        client: context.meta.client,
    }
}
