//! The requests for codes of an address, with the delivery receipts of the SMS provider.
//!
//! Receipts are requested on demand. The number is stored only as an HMAC, so a request must name it.

use super::CodeSender;
use crate::{
    core::Core,
    domain::identity::{
        codes::{
            AddressHmac,
            messages::{self, CodeMessageRecord},
        },
        users::Address,
    },
    error::Result,
    providers::{Failure, sms::SentMessage},
    types::PhoneNumber,
};

/// Requests shown for each address.
const ROWS: u32 = 50;
/// Delivery receipts asked for at once. Each may take the provider's timeout.
const RECEIPTS: u32 = 5;

/// The last requests for codes, newest first.
#[derive(Clone, Debug)]
pub struct CodeMessages {
    pub items: Vec<CodeMessageRecord>,
    /// The reason why the provider told no deliveries.
    pub receipts_failure: Option<Failure>,
}

/// Lists the requests for codes of these addresses, with or without an account.
///
/// # Errors
/// Storage errors.
pub fn list_code_messages(core: &Core, addresses: &[Address]) -> Result<CodeMessages> {
    let mut items = Vec::new();
    for address in addresses {
        let recipient = AddressHmac::new(&core.keys, address.as_str());
        items.extend(core.store.read(|tx| messages::list_in(tx, &recipient, ROWS))?);
    }
    items.sort_by_key(|message| std::cmp::Reverse(message.asked_at));
    Ok(CodeMessages { items, receipts_failure: None })
}

/// As [`list_code_messages`], but first asks the SMS provider for the receipts of messages whose delivery is not known.
/// Blocks on the provider.
///
/// # Errors
/// Storage errors.
pub fn delivered_code_messages(sender: &CodeSender, addresses: &[Address]) -> Result<CodeMessages> {
    let mut receipts_failure = None;
    for address in addresses {
        if let Address::Phone(number) = address {
            let recipient = AddressHmac::new(&sender.core.keys, address.as_str());
            receipts_failure = ask_for_receipts(sender, number, &recipient)?;
        }
    }
    Ok(CodeMessages { receipts_failure, ..list_code_messages(&sender.core, addresses)? })
}

/// Asks for receipts and stores them. Stops at the first failure, because the others would fail too.
fn ask_for_receipts(sender: &CodeSender, number: &PhoneNumber, recipient: &AddressHmac) -> Result<Option<Failure>> {
    let core = &sender.core;
    let mut undelivered = Vec::new();
    for provider in sender.sms.names() {
        let list = core.store.read(|tx| messages::list_undelivered_in(tx, recipient, provider, RECEIPTS))?;
        undelivered.extend(list.into_iter().map(|message| (provider, message)));
    }
    for (provider, message) in undelivered.into_iter().take(RECEIPTS as usize) {
        let Some(provider_id) = message.receipt else { continue };
        let phone_number = number.e164(&core.phone_rules);
        let sent = SentMessage { phone_number, provider, provider_id, sent_at: message.asked_at.0 };
        // Not through the breaker: a missing permission for this question must not stop sending.
        match sender.sms.delivery(&sent) {
            Ok(Some(delivery)) => {
                core.store.write(move |tx| messages::store_delivery_in(tx, message.id, &delivery)).wait()?;
            }
            Ok(None) => {}
            Err(failure) => {
                tracing::warn!(%failure, "asking for the delivery of a verification code failed");
                return Ok(Some(failure));
            }
        }
    }
    Ok(None)
}
