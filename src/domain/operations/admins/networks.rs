//! The networks from which administrators may call. Empty means everywhere, as long as nobody says otherwise.
//!
//! The list is kept in the database and not in the configuration, so that it can be changed while the service runs,
//! and so that whoever has locked themselves out gets back in from the server's own command line.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{
    app::App,
    domain::operations::settings,
    error::{Code, Error, Result},
    store::{Pending, Read},
};

const SETTING: &str = "admin.networks";

/// The list as it is.
pub fn list(app: &App) -> Result<Vec<IpNet>> {
    app.store.read(list_in)
}

/// Adds a network. Nothing changes if it is there.
pub fn allow(app: &App, network: IpNet) -> Pending<Vec<IpNet>> {
    change(app, move |networks| {
        if !networks.contains(&network) {
            networks.push(network);
        }
        Ok(())
    })
}

/// Takes a network off the list. Without the last one, administrators may call from everywhere.
///
/// # Errors
/// `not_found` when it is not on the list.
pub fn disallow(app: &App, network: IpNet) -> Pending<Vec<IpNet>> {
    change(app, move |networks| match networks.iter().position(|known| *known == network) {
        Some(place) => {
            networks.remove(place);
            Ok(())
        }
        None => Err(Code::NotFound.into()),
    })
}

/// Empties the list, whatever is in it: administrators may call from everywhere.
pub fn allow_all(app: &App) -> Pending<()> {
    app.store.write(|tx| settings::put_in(tx, SETTING, ""))
}

/// Lets a client through that is on the list, or everybody while there is none.
///
/// # Errors
/// `address_not_allowed`.
pub fn admit_in(tx: &Read<'_>, client: IpAddr) -> Result<()> {
    let networks = list_in(tx)?;
    if networks.is_empty() || networks.iter().any(|network| network.contains(&client)) {
        return Ok(());
    }
    Err(Code::AddressNotAllowed.into())
}

fn change(app: &App, edit: impl FnOnce(&mut Vec<IpNet>) -> Result<()> + Send + 'static) -> Pending<Vec<IpNet>> {
    app.store.write(move |tx| {
        let mut networks = list_in(tx)?;
        edit(&mut networks)?;
        let text: Vec<_> = networks.iter().map(ToString::to_string).collect();
        settings::put_in(tx, SETTING, &text.join(","))?;
        Ok(networks)
    })
}

fn list_in(tx: &Read<'_>) -> Result<Vec<IpNet>> {
    let kept = settings::find_in(tx, SETTING)?.unwrap_or_default();
    let networks = kept.split(',').filter(|text| !text.is_empty());
    // A list that cannot be read must not open the door.
    networks.map(|text| text.parse().map_err(Error::internal)).collect()
}
