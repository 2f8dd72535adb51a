//! The networks from which administrators may call. An empty list allows every network.
//!
//! The list is in the database and not in the configuration, so that it can change while the service runs. An
//! administrator who is locked out can change it with the command line.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{
    core::Core,
    domain::operations::settings,
    error::{Code, Error, Result},
    store::{Pending, Read},
    types::parse_network,
};

const SETTING: &str = "admin.networks";

/// Returns the list.
pub fn list(core: &Core) -> Result<Vec<IpNet>> {
    core.store.read(list_in)
}

/// Parses a network, or an address as a network of its own. Bits below the prefix are cleared.
pub fn parse(text: &str) -> Option<IpNet> {
    parse_network(text).map(|network| network.trunc())
}

/// Adds a network if it is not on the list.
///
/// # Errors
/// `address_not_allowed` if the list would shut out `client`.
pub fn allow(core: &Core, network: IpNet, client: Option<IpAddr>) -> Pending<Vec<IpNet>> {
    change(core, client, move |networks| {
        if !networks.contains(&network) {
            networks.push(network);
        }
        Ok(())
    })
}

/// Removes a network. Removing the last one allows every network.
///
/// # Errors
/// `not_found` when it is not on the list, `address_not_allowed` if the list would shut out `client`.
pub fn disallow(core: &Core, network: IpNet, client: Option<IpAddr>) -> Pending<Vec<IpNet>> {
    change(core, client, move |networks| match networks.iter().position(|listed| *listed == network) {
        Some(index) => {
            networks.remove(index);
            Ok(())
        }
        None => Err(Code::NotFound.into()),
    })
}

/// Empties the list even if it is unreadable, which allows every network.
pub fn allow_all(core: &Core) -> Pending<()> {
    core.store.write(|tx| settings::put_in(tx, SETTING, ""))
}

/// Accepts a client in a listed network, or any client if the list is empty.
///
/// # Errors
/// `address_not_allowed`.
pub fn admit_in(tx: &Read<'_>, client: IpAddr) -> Result<()> {
    require(&list_in(tx)?, client)
}

fn require(networks: &[IpNet], client: IpAddr) -> Result<()> {
    if networks.is_empty() || networks.iter().any(|network| network.contains(&client)) {
        return Ok(());
    }
    Err(Code::AddressNotAllowed.into())
}

/// Changes the list, but not so that it shuts out `client`, the address of the administrator who changes it.
fn change(
    core: &Core,
    client: Option<IpAddr>,
    edit: impl FnOnce(&mut Vec<IpNet>) -> Result<()> + Send + 'static,
) -> Pending<Vec<IpNet>> {
    core.store.write(move |tx| {
        let mut networks = list_in(tx)?;
        edit(&mut networks)?;
        client.map_or(Ok(()), |client| require(&networks, client))?;
        let text: Vec<_> = networks.iter().map(ToString::to_string).collect();
        settings::put_in(tx, SETTING, &text.join(","))?;
        Ok(networks)
    })
}

fn list_in(tx: &Read<'_>) -> Result<Vec<IpNet>> {
    let stored = settings::find_in(tx, SETTING)?.unwrap_or_default();
    let networks = stored.split(',').filter(|text| !text.is_empty());
    // An unreadable list allows nobody.
    networks.map(|text| text.parse().map_err(Error::internal)).collect()
}
