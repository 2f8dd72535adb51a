//! Platform certificates of WeChat Pay, stored so that a restart needs no fetch.

use std::time::Duration;

use super::Payments;
use crate::{
    error::Result,
    providers::payment::wechat::PlatformCertificate,
    store::{Read, Write},
};

/// The provider introduces a new certificate a day before it signs with it.
pub const REFRESH_INTERVAL: Duration = Duration::from_hours(12);

/// Fetches the platform certificates and stores them. Does nothing without WeChat Pay. Blocks on the provider.
///
/// # Errors
/// Those of the provider.
pub fn refresh(payments: &Payments) -> Result<()> {
    let Some(wechat) = &payments.special.wechat else { return Ok(()) };
    let fetched = wechat.refresh_certificates()?;
    if fetched.is_empty() {
        return Ok(());
    }
    payments.core.store.write(move |tx| store_in(tx, &fetched)).wait()
}

/// Returns the stored certificates as PEM.
pub(super) fn stored_in(tx: &Read<'_>) -> Result<String> {
    let pems: Vec<String> =
        tx.all("select pem from wechat_certificates where expires_at > ?1 order by serial", [tx.now.0], |row| {
            row.get(0)
        })?;
    Ok(pems.join("\n"))
}

fn store_in(tx: &Write<'_>, fetched: &[PlatformCertificate]) -> Result<()> {
    tx.execute("delete from wechat_certificates where expires_at <= ?1", [tx.now.0])?;
    for certificate in fetched {
        tx.execute(
            "insert into wechat_certificates (serial, pem, expires_at) values (?1, ?2, ?3) on conflict (serial) \
             do update set pem = excluded.pem, expires_at = excluded.expires_at",
            (&certificate.serial, &certificate.pem, certificate.expires_at),
        )?;
    }
    Ok(())
}
