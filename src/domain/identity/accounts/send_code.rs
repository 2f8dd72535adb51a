//! Sends verification codes.
//!
//! The budgets are reserved before the message is sent. They are released only if the provider certainly did not accept
//! it and serves nobody: a message that it refuses costs a call, so it costs budget too. Requests for review accounts
//! send nothing and are otherwise treated like all others, so that nobody tells them.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use secrecy::{ExposeSecret, SecretString};

use crate::{
    concurrency::semaphore::{WaitingPermit, WaitingSemaphore},
    core::Core,
    domain::{
        identity::{
            codes::{self, AddressHmac, ClientNetworks, NewCode, Purpose},
            users::Address,
        },
        messaging::mailer::{MESSAGE_LIMITS, Mailer},
    },
    error::{Code, Error, Result},
    providers::{
        Failure, FailureKind,
        breaker::CircuitBreaker,
        email::letter,
        sms::{CodeMessage, SmsSender},
    },
    types::{Locale, PhoneNumber, Secret, random_digits},
};

pub const SMS_CODE_DIGITS: usize = 6;
pub const EMAIL_CODE_DIGITS: usize = 8;

/// The longest time that a request for a review account takes.
const LONGEST_IMITATION: Duration = Duration::from_secs(5);

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
    sms_delivery_time: DeliveryTime,
    email_delivery_time: DeliveryTime,
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
            sms_delivery_time: DeliveryTime::default(),
            email_delivery_time: DeliveryTime::default(),
        }
    }
}

/// The duration of the last successful delivery, in microseconds. Requests for review accounts take as long, so that
/// nobody tells them by their time.
#[derive(Debug, Default)]
struct DeliveryTime(AtomicU64);

impl DeliveryTime {
    fn measure<E>(&self, deliver: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let started = Instant::now();
        deliver()?;
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.0.store(micros, Ordering::Relaxed);
        Ok(())
    }

    fn imitate(&self) {
        std::thread::sleep(Duration::from_micros(self.0.load(Ordering::Relaxed)).min(LONGEST_IMITATION));
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
    let sent = CodeTerms { expires_in: lifetime(core, &request.address), resend_after: config.auth.resend_after };
    let fixed = config.auth.review_accounts.get(request.address.as_str());
    let code = match fixed {
        Some(fixed) => Secret::from_text(fixed.expose_secret()),
        None => random_digits(code_digits(&request.address))?,
    };
    let is_fixed = fixed.is_some();
    let new_code = new_code(core, request, code.reveal());
    // Checks the budgets before it acquires a permit, so that a flood does not occupy the permits.
    core.store.read(|tx| codes::require_budget_in(tx, &config.auth, &new_code.recipient, &new_code.client))?;
    let _permit = acquire_permit(sender, &request.address, new_code.client.own.clone())?;
    let reserved = new_code.clone();
    let reservation = core
        .store
        .write(move |tx| {
            let reservation = codes::reserve_in(tx, &config.auth, &reserved.recipient, &reserved.client)?;
            if is_fixed {
                codes::store_fixed_in(tx, &config.auth, &reserved)?;
            } else {
                codes::store_in(tx, &config.auth, &reserved)?;
            }
            Ok(reservation)
        })
        .wait()?;
    let delivery_time = match request.address {
        Address::Phone(_) => &sender.sms_delivery_time,
        Address::Email(_) => &sender.email_delivery_time,
    };
    if is_fixed {
        delivery_time.imitate();
        return Ok(sent);
    }
    let Err(failure) = delivery_time.measure(|| deliver(sender, request, &code)) else {
        sender.metrics.sent.add(1);
        return Ok(sent);
    };
    tracing::warn!(%failure, "sending a verification code failed");
    if !failure.is_certainly_not_accepted() {
        return Err(Error::new(Code::ProviderTimeout).caused_by(failure));
    }
    let is_outage = failure.is_outage();
    core.store
        .write(move |tx| {
            codes::delete_if_current_in(tx, &new_code.recipient, new_code.purpose, new_code.hmac)?;
            if is_outage { codes::release_in(tx, reservation) } else { Ok(()) }
        })
        .wait()?;
    let code = match failure.kind {
        FailureKind::RecipientLimited => Code::TooManyRequests,
        _ => Code::ProviderUnavailable,
    };
    let error = Error::new(code).detail("The message could not be sent. Try again later.");
    Err(error.retry_after(failure.retry_after).caused_by(failure))
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

fn deliver(sender: &CodeSender, request: &CodeRequest, code: &Secret) -> Result<(), Failure> {
    let core = &sender.core;
    let minutes = lifetime(core, &request.address).as_secs().div_ceil(60);
    let now = || core.clock.now().0;
    match &request.address {
        Address::Phone(number) => {
            let message = text_message(core, number, code, minutes);
            sender.sms_breaker.run(now, || sender.sms.send_code(&message)).map(drop)
        }
        Address::Email(email) => {
            let template = match request.purpose {
                Purpose::SignIn => letter::SIGN_IN,
                Purpose::Address => letter::ADDRESS,
                Purpose::Cancellation => letter::CANCELLATION,
            };
            let values = [("code", code.reveal()), ("minutes", &minutes.to_string())];
            let message = template.filled(email.clone(), request.locale, &values);
            sender.mailer.breaker.run(now, || sender.mailer.sender.send(&message))
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
