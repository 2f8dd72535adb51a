//! `yarrow users reset-nickname`, `devices`, `sign-out` and `move-phone`.

use clap::Args;

use crate::cli::{Common, cli_authority, find_user, name_missing, record_audit, row, table};
use crate::{
    app::App,
    domain::{
        identity::{staff_acts, tokens},
        operations::idempotency::IdempotentRequest,
    },
    error::{Error, Result},
    http::responses::{DevicesSignedOut, NicknameCleared, PhoneMoved},
    types::{PhoneNumber, UserId, pluralize},
};
use serde_json::json;

/// A user, the new number, and how the person was checked.
#[derive(Debug, Args)]
pub struct MovePhoneArgs {
    /// User: id, phone number or email address
    who: String,
    /// New phone number
    phone_number: String,
    /// Way in which the person was checked, for the audit
    #[arg(long, value_parser = crate::cli::parse_reason)]
    reason: String,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
}

pub fn reset_nickname(common: &Common, app: &App, user: UserId, reason: String) -> Result<()> {
    let by = cli_authority(Some(reason));
    staff_acts::reset_nickname(&app.core, user, by.clone()).wait()?;
    record_audit(app, "users reset-nickname", Some(user), by)?;
    common.output(&NicknameCleared::of(user), || format!("cleared the nickname of user {user}"))
}

pub fn list_devices(common: &Common, app: &App, user: UserId) -> Result<()> {
    let devices = tokens::list_devices(&app.core, user, None)?;
    record_audit(app, "users devices", Some(user), cli_authority(None))?;
    let shown = devices.iter().map(|device| {
        json!({
            "id": device.id, "label": device.label, "createdAt": device.signed_in_at,
            "lastUsedAt": device.last_used_at, "expiresAt": device.expires_at,
        })
    });
    common.output(&json!({ "items": shown.collect::<Vec<_>>() }), || {
        let rows = devices.iter().map(|device| row![device.id, device.label, device.signed_in_at, device.last_used_at]);
        table(["id", "device", "signed in", "last used"], rows)
    })
}

pub fn sign_out(
    common: &Common,
    app: &App,
    user_id: UserId,
    device: Option<String>,
    reason: Option<String>,
) -> Result<()> {
    let by = cli_authority(reason);
    let id = device.clone().unwrap_or_default();
    let signed_out = staff_acts::sign_out(&app.core, user_id, device).wait().map_err(name_missing("Device", id))?;
    record_audit(app, "users sign-out", Some(user_id), by)?;
    common.output(&DevicesSignedOut { user_id, signed_out }, || {
        format!("{} signed out", pluralize(signed_out, "device", "devices"))
    })
}

pub fn move_phone(common: &Common, app: &App, args: MovePhoneArgs) -> Result<()> {
    let (user, by) = (find_user(app, &args.who)?.id, cli_authority(Some(args.reason)));
    let number = PhoneNumber::parse(&args.phone_number, &app.core.phone_rules);
    let phone_number = number.map_err(|fault| Error::field("phoneNumber", fault))?;
    common.confirm(args.yes, &format!("Move user {user} to {} and sign out all devices?", phone_number.as_str()))?;
    let once = IdempotentRequest::without_key(None);
    staff_acts::move_to_phone(&app.core, user, phone_number.clone(), by.clone(), once).wait()?.fresh()?;
    record_audit(app, "users move-phone", Some(user), by)?;
    common.output(&PhoneMoved { user_id: user, phone_number }, || format!("moved user {user}"))
}
