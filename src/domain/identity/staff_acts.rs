//! Acts of the staff on accounts: reset of a nickname, sign-outs, move to a new phone number. The user is told.

use std::sync::Arc;

use super::{
    codes::{self, AddressHmac},
    tokens,
    users::{self, Address, ProfileChange},
};
use crate::{
    core::Core,
    domain::{
        messaging::user_notices::{self, UserNotice},
        money::{invites, ledger::Authority},
        operations::idempotency::{IdempotentOutcome, IdempotentRequest},
    },
    error::{Code, Error},
    store::Pending,
    types::{PhoneNumber, UserId},
};

/// Clears the nickname of a user. Does nothing if it is empty.
///
/// # Errors
/// `not_found`.
pub fn reset_nickname(core: &Core, user: UserId, by: Authority) -> Pending<()> {
    let config = Arc::clone(&core.config);
    core.store.write(move |tx| {
        if users::profile_in(tx, user)?.nickname.is_empty() {
            return Ok(());
        }
        let change = ProfileChange { nickname: Some(String::new()), ..ProfileChange::default() };
        users::change_profile_in(tx, user, &change)?;
        user_notices::send_in(tx, &config, user, &UserNotice::NicknameReset { reason: &by.reason })
    })
}

/// Signs out one device of a user, or all of them, and returns how many there were.
///
/// # Errors
/// `not_found` for an unknown user, and for a device that is not signed in.
pub fn sign_out(core: &Core, user: UserId, device: Option<String>) -> Pending<usize> {
    let config = Arc::clone(&core.config);
    core.store.write(move |tx| {
        users::find_in(tx, user)?;
        let devices = tokens::devices_in(tx, user)?;
        let notice = match &device {
            None => {
                tokens::revoke_all_in(tx, user)?;
                UserNotice::SignedOut { device: None }
            }
            Some(id) => {
                let found = devices.iter().find(|(_, device)| device.id == *id);
                let (family, device) = found.ok_or(Code::NotFound)?;
                tokens::delete_family_in(tx, user, *family)?;
                UserNotice::SignedOut { device: Some(&device.label) }
            }
        };
        if !devices.is_empty() {
            user_notices::send_in(tx, &config, user, &notice)?;
        }
        Ok(if device.is_some() { 1 } else { devices.len() })
    })
}

/// Moves an account to a phone number that no account has, after the staff has checked who asks, and signs out all
/// devices. The reason of `by` says how it was checked.
///
/// # Errors
/// `not_found`; `address_taken` if another account has the number, or the account has it already.
pub fn move_to_phone(
    core: &Core,
    user: UserId,
    phone_number: PhoneNumber,
    by: Authority,
    once: IdempotentRequest<UserId>,
) -> Pending<IdempotentOutcome<UserId>> {
    let (config, key) = (Arc::clone(&core.config), core.keys.clone());
    core.store.write(move |tx| {
        once.run_in(tx, |tx| {
            let before = users::find_in(tx, user)?.phone_number;
            if before.as_ref() == Some(&phone_number) {
                return Err(Error::new(Code::AddressTaken)
                    .detail(("The account has this phone number already.", "该账户已使用此手机号。")));
            }
            let invited = invites::InviteHistory::load_in(tx, &key, user)?;
            users::change_address_in(tx, user, &Address::Phone(phone_number.clone()))?;
            invited.carry_over_in(tx, &key, user)?;
            for address in [before.as_ref(), Some(&phone_number)].into_iter().flatten() {
                codes::erase_in(tx, &AddressHmac::new(&key, address.as_str()))?;
            }
            tokens::revoke_all_in(tx, user)?;
            let number = phone_number.as_str();
            let ending = number.get(number.len().saturating_sub(4)..).unwrap_or_default();
            user_notices::send_in(tx, &config, user, &UserNotice::PhoneMoved { ending })?;
            tracing::info!(user = user.0, actor = by.actor, "moved an account to a new phone number");
            Ok(user)
        })
    })
}
