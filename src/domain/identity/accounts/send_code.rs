//! Sends verification codes.
//!
//! The budgets are reserved before the message is sent. They are released only if the provider certainly did not accept
//! it and is down for everybody: a message that it refuses costs a call, so it costs budget too. Requests for review
//! accounts send nothing and otherwise look like all others, also during an outage, so that nobody can distinguish them.
//!
//! Each request leaves a row with its outcome for support.

use std::{net::IpAddr, sync::Arc, time::Duration};

use secrecy::{ExposeSecret, SecretString};

use super::last_delivery::LastDelivery;
use crate::{
    concurrency::semaphore::{WaitingPermit, WaitingSemaphore},
    core::Core,
    domain::{
        identity::{
            codes::{
                self, AddressHmac, ClientNetworks, NewCode, Purpose, masking,
                messages::{self, Channel, Finished, MessageId, MessageOutcome},
            },
            users::Address,
        },
        messaging::mailer::{MESSAGE_LIMITS, Mailer},
    },
    error::{Code, Error, Result},
    providers::{
        Failure, FailureKind, MessageReceipt, ProviderWords,
        breaker::CircuitBreaker,
        email::letter::Letter,
        sms::{CodeMessage, SmsSender},
    },
    store::{Write, sliding_window::WindowUse},
    types::{Locale, PhoneNumber, Secret, random_digits},
};

pub const SMS_CODE_DIGITS: usize = 6;
pub const EMAIL_CODE_DIGITS: usize = 8;

/// The service that sends verification codes by SMS and email.
pub struct CodeSender {
    pub core: Core,
    pub sms: Box<dyn SmsSender>,
    pub sms_breaker: Arc<CircuitBreaker>,
    /// Limits concurrent messages, also of each client network.
    pub sms_permits: WaitingSemaphore<String>,
    pub mailer: Arc<Mailer>,
    /// Counts of codes sent, accepted and refused.
    pub metrics: Arc<codes::CodeMetrics>,
    last_sms: LastDelivery,
    last_email: LastDelivery,
}

impl CodeSender {
    pub fn new(core: Core, sms: Box<dyn SmsSender>, mailer: Arc<Mailer>) -> Self {
        Self {
            core,
            sms,
            sms_breaker: Arc::new(CircuitBreaker::with_defaults("sms")),
            sms_permits: WaitingSemaphore::new(MESSAGE_LIMITS),
            mailer,
            metrics: Arc::default(),
            last_sms: LastDelivery::default(),
            last_email: LastDelivery::default(),
        }
    }
}

/// A request for a verification code.
#[derive(Clone, Debug)]
pub struct CodeRequest {
    pub address: Address,
    pub purpose: Purpose,
    /// The language of the message.
    pub locale: Locale,
    /// The client address, for the budgets.
    pub client: IpAddr,
}

/// The lifetime of a sent code, and the delay before the next one.
#[derive(Clone, Copy, Debug)]
pub struct CodeTerms {
    pub expires_in: Duration,
    pub resend_after: Duration,
    /// The codes that the client has left in its hour.
    pub client_use: WindowUse,
}

/// Sends a code. Blocks on the provider. Treats known and unknown addresses alike.
///
/// # Errors
/// `too_many_requests` if a budget is spent. `provider_unavailable` if the provider did not accept the message: the code
/// is deleted, and the budgets are released if the provider serves nobody. `provider_timeout` if the outcome is unknown:
/// the code stays valid and the budgets stay used, because the message may still arrive.
pub fn send_code(sender: &CodeSender, request: &CodeRequest) -> Result<CodeTerms> {
    let core = &sender.core;
    let config = Arc::clone(&core.config);
    let fixed = config.auth.review_accounts.get(request.address.as_str());
    let code = match fixed {
        Some(fixed) => Secret::from_text(fixed.expose_secret()),
        None => random_digits(code_digits(&request.address))?,
    };
    let is_fixed = fixed.is_some();
    let new_code = new_code(core, request, code.reveal());
    let channel = channel(&request.address);
    let record_refusal = |error: &Error| record_refusal(core, &new_code, channel, error);
    let _permit = admit(sender, request, &new_code).inspect_err(record_refusal)?;
    let reserved = new_code.clone();
    let (reservation, message) = core
        .store
        .write_without_savepoint(move |tx| {
            // Fails before its first change only.
            let reservation = codes::reserve_in(tx, &config.auth, &reserved.recipient, &reserved.client)?;
            if is_fixed {
                codes::store_fixed_in(tx, &config.auth, &reserved)?;
            } else {
                codes::store_in(tx, &config.auth, &reserved)?;
            }
            Ok((reservation, messages::insert_in(tx, &reserved.recipient, channel, reserved.purpose)?))
        })
        .wait()
        .inspect_err(record_refusal)?;
    sender.metrics.asked.add(1);
    let sent = CodeTerms {
        expires_in: lifetime(core, &request.address),
        resend_after: core.config.auth.resend_after,
        client_use: reservation.client_use,
    };
    let failure = match deliver(sender, request, &code, is_fixed) {
        Ok(Some(receipt)) => {
            sender.metrics.sent.add(1);
            record_outcome(core, message, accepted(sender, request, &code, receipt));
            return Ok(sent);
        }
        Ok(None) => {
            record_outcome(core, message, finished(MessageOutcome::ReviewAccount));
            return Ok(sent);
        }
        Err(failure) => failure,
    };
    tracing::warn!(%failure, "sending a verification code failed");
    let outcome = failed(request, &code, &failure);
    if !failure.is_certainly_not_accepted() {
        record_outcome(core, message, outcome);
        return Err(Error::new(Code::ProviderTimeout).caused_by(failure));
    }
    let is_outage = failure.is_outage();
    core.store
        .write(move |tx| {
            codes::delete_if_current_in(tx, &new_code.recipient, new_code.purpose, new_code.hmac)?;
            messages::finish_in(tx, message, &outcome)?;
            if is_outage { codes::release_in(tx, &reservation) } else { Ok(()) }
        })
        .wait()?;
    let code = match failure.kind {
        FailureKind::RecipientLimited => Code::TooManyRequests,
        _ => Code::ProviderUnavailable,
    };
    let error =
        Error::new(code).detail(("The message could not be sent. Try again later.", "消息发送失败，请稍后再试。"));
    Err(error.retry_after(failure.retry_after).caused_by(failure))
}

/// Checks the budgets, then acquires a permit, so that a flood does not occupy the permits.
fn admit<'sender>(
    sender: &'sender CodeSender,
    request: &CodeRequest,
    code: &NewCode,
) -> Result<WaitingPermit<'sender, String>> {
    let core = &sender.core;
    core.store.read(|tx| codes::require_budget_in(tx, &core.config.auth, &code.recipient, &code.client))?;
    acquire_permit(sender, &request.address, code.client.own.clone())
}

const fn channel(address: &Address) -> Channel {
    match address {
        Address::Phone(_) => Channel::Sms,
        Address::Email(_) => Channel::Email,
    }
}

/// Records that a limit or overload refused the request. Other errors are not the requester's.
fn record_refusal(core: &Core, code: &NewCode, channel: Channel, error: &Error) {
    let reason = error.code;
    if !matches!(reason, Code::TooManyRequests | Code::Overloaded) {
        return;
    }
    let (recipient, purpose) = (code.recipient.clone(), code.purpose);
    // A flood of refused requests costs reads and no writes.
    let recorded = core.store.read(|tx| messages::is_refusal_due_in(tx, &recipient)).and_then(|is_due| {
        if !is_due {
            return Ok(());
        }
        let record = move |tx: &Write<'_>| messages::record_refusal_in(tx, &recipient, channel, purpose, reason.name());
        core.store.write(record).wait()
    });
    warn_unrecorded(recorded);
}

/// Records an outcome. The request does not fail if it cannot be recorded, because the message may be on its way.
fn record_outcome(core: &Core, message: MessageId, finished: Finished) {
    warn_unrecorded(core.store.write_without_savepoint(move |tx| messages::finish_in(tx, message, &finished)).wait());
}

fn warn_unrecorded(recorded: Result<()>) {
    if let Err(error) = recorded {
        tracing::warn!(%error, "the outcome of a request for a verification code could not be recorded");
    }
}

/// Returns an outcome without a provider.
const fn finished(outcome: MessageOutcome) -> Finished {
    Finished { outcome, provider: None, code: None, receipt: None, words: None }
}

fn accepted(sender: &CodeSender, request: &CodeRequest, code: &Secret, receipt: MessageReceipt) -> Finished {
    let provider = match &request.address {
        Address::Phone(_) => sender.sms.name(),
        Address::Email(_) => sender.mailer.sender.name(),
    };
    let MessageReceipt { provider: chosen, provider_id, words } = receipt;
    Finished {
        provider: Some(chosen.unwrap_or(provider)),
        ..with_words(request, code, MessageOutcome::Sent, provider_id, words.as_ref())
    }
}

fn failed(request: &CodeRequest, code: &Secret, failure: &Failure) -> Finished {
    let outcome = if failure.is_certainly_not_accepted() { MessageOutcome::NotSent } else { MessageOutcome::Unknown };
    Finished {
        provider: Some(failure.provider),
        code: Some(failure.code.clone()),
        ..with_words(request, code, outcome, failure.request_id.clone(), failure.words.as_ref())
    }
}

/// Returns an outcome with the provider's identifier and words, as far as they reveal neither the recipient nor the code.
fn with_words(
    request: &CodeRequest,
    code: &Secret,
    outcome: MessageOutcome,
    identifier: Option<String>,
    words: Option<&ProviderWords>,
) -> Finished {
    let address = request.address.as_str();
    Finished {
        receipt: identifier.filter(|identifier| masking::is_harmless(identifier, address, code.reveal())),
        words: words.map(|words| masking::mask(words.reveal(), address)),
        ..finished(outcome)
    }
}

/// Returns the lifetime of a code for this address.
fn lifetime(core: &Core, address: &Address) -> Duration {
    match address {
        Address::Phone(_) => core.config.auth.code_lifetime,
        Address::Email(_) => core.config.auth.email_code_lifetime,
    }
}

/// Returns the number of digits of a code for this address.
pub const fn code_digits(address: &Address) -> usize {
    match address {
        Address::Phone(_) => SMS_CODE_DIGITS,
        Address::Email(_) => EMAIL_CODE_DIGITS,
    }
}

fn acquire_permit<'sender>(
    sender: &'sender CodeSender,
    address: &Address,
    client_network: String,
) -> Result<WaitingPermit<'sender, String>> {
    let permits = match address {
        Address::Phone(_) => &sender.sms_permits,
        Address::Email(_) => &sender.mailer.permits,
    };
    Ok(permits.acquire(client_network)?)
}

fn new_code(core: &Core, request: &CodeRequest, code: &str) -> NewCode {
    let (address, purpose) = (request.address.as_str(), request.purpose);
    NewCode {
        recipient: AddressHmac::new(&core.keys, address),
        client: ClientNetworks::of(request.client),
        purpose,
        hmac: codes::compute_hmac(&core.keys, address, purpose, code),
        lifetime: lifetime(core, &request.address),
    }
}

/// Sends the code, or for a review account only imitates the provider and returns no receipt.
fn deliver(
    sender: &CodeSender,
    request: &CodeRequest,
    code: &Secret,
    is_fixed: bool,
) -> Result<Option<MessageReceipt>, Failure> {
    let clock = &sender.core.clock;
    let (last, breaker) = match &request.address {
        Address::Phone(_) => (&sender.last_sms, &*sender.sms_breaker),
        Address::Email(_) => (&sender.last_email, &*sender.mailer.breaker),
    };
    if is_fixed {
        return last.imitate(clock, breaker).map(|()| None);
    }
    last.record(clock, || breaker.run(|| clock.now().0, || send_message(sender, request, code))).map(Some)
}

fn send_message(sender: &CodeSender, request: &CodeRequest, code: &Secret) -> Result<MessageReceipt, Failure> {
    let core = &sender.core;
    let minutes = lifetime(core, &request.address).as_secs().div_ceil(60);
    match &request.address {
        Address::Phone(number) => sender.sms.send_code(&text_message(core, number, code, minutes)),
        Address::Email(email) => {
            let letter = match request.purpose {
                Purpose::SignIn => Letter::SignIn,
                Purpose::Address => Letter::Address,
                Purpose::Cancellation => Letter::Cancellation,
            };
            let letters = &sender.mailer.letters;
            let message = letters.code(letter, email.clone(), request.locale, (code.reveal(), minutes));
            sender.mailer.sender.send(&message)
        }
    }
}

fn text_message(core: &Core, phone_number: &PhoneNumber, code: &Secret, minutes: u64) -> CodeMessage {
    CodeMessage {
        phone_number: phone_number.e164(&core.phone_rules),
        code: SecretString::from(code.reveal()),
        expires_in_minutes: u32::try_from(minutes).unwrap_or(u32::MAX),
    }
}
