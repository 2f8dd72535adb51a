//! Devices: a user's view of their token families.

use serde_json::json;

use super::{delete_family_in, find_in};
use crate::{
    core::Core,
    domain::Each,
    error::{Code, Result},
    store::{Pending, Read, Write},
    types::{Secret, Timestamp, UserId, hex},
};

/// Bytes of a family's hash in a device id.
const ID_BYTES: usize = 8;

/// A device that is signed in.
#[derive(Clone, Debug)]
pub struct Device {
    pub id: String,
    /// The name that the client sent.
    pub label: String,
    pub signed_in_at: Timestamp,
    /// Accurate to the hour.
    pub last_used_at: Timestamp,
    pub expires_at: Timestamp,
    /// True for the device that sent the request.
    pub is_current: bool,
}

/// Lists the user's devices, newest sign-in first. `token` identifies the current one.
pub fn list_devices(core: &Core, user: UserId, token: Option<&Secret>) -> Result<Vec<Device>> {
    core.store.read(|tx| {
        let current = token.map(|token| find_in(tx, token.reveal())).transpose()?.flatten();
        let current = current.map(|row| row.family);
        let devices = devices_in(tx, user)?.into_iter();
        Ok(devices.map(|(family, device)| Device { is_current: Some(family) == current, ..device }).collect())
    })
}

/// Revokes the user's device with this id.
///
/// # Errors
/// `not_found` for an ended device and for one of another user.
pub fn revoke_device(core: &Core, user: UserId, id: String) -> Pending<()> {
    core.store.write(move |tx| {
        let found = devices_in(tx, user)?.into_iter().find(|(_, device)| device.id == id);
        let (family, _) = found.ok_or(Code::NotFound)?;
        delete_family_in(tx, user, family)
    })
}

/// Exports the user's devices.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    devices_in(tx, user)?.into_iter().try_for_each(|(_, device)| {
        each(json!({
            "id": device.id,
            "label": device.label,
            "createdAt": device.signed_in_at,
            "lastUsedAt": device.last_used_at,
            "expiresAt": device.expires_at,
        }))
    })
}

/// Revokes the user's oldest devices above `limit`. Counts all token rows first, because most sign-ins are below the
/// limit. Orders by row id, because times are unreliable after the clock was set back.
pub(super) fn revoke_oldest_in(tx: &Write<'_>, user: UserId, limit: u32) -> Result<()> {
    tx.execute_later(
        "delete from tokens where user_id = ?1 and (select count(*) from tokens where user_id = ?1) > ?2 \
         and family in (select family from tokens \
         where user_id = ?1 and replaced_at is null order by id desc limit 9223372036854775807 offset ?2)",
        (user.0, limit),
    )
}

/// Returns the user's unexpired devices by family, newest sign-in first.
pub fn devices_in(tx: &Read<'_>, user: UserId) -> Result<Vec<([u8; 32], Device)>> {
    tx.all(
        "select family, label, signed_in_at, last_used_at, expires_at from tokens \
         where user_id = ?1 and replaced_at is null and expires_at > ?2 order by created_at desc, signed_in_at desc",
        (user.0, tx.now.0),
        |row| {
            let family: [u8; 32] = row.get(0)?;
            let device = Device {
                id: hex(&family[..ID_BYTES]),
                label: row.get(1)?,
                signed_in_at: Timestamp(row.get(2)?),
                last_used_at: Timestamp(row.get(3)?),
                expires_at: Timestamp(row.get(4)?),
                is_current: false,
            };
            Ok((family, device))
        },
    )
}
