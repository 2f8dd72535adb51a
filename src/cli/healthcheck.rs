//! `yarrow healthcheck`: asks the server on this machine whether it is ready, for containers and monitors.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use serde_json::json;

use super::{Common, print};
use yarrow::{
    error::{Code, Error, Result},
    providers::{Failure, client},
};

/// Ask the running server whether it is ready; exit 0 if it is, else 1.
#[derive(Debug, Args)]
pub struct HealthcheckArgs {}

pub fn run(common: &Common, _: &HealthcheckArgs) -> Result<()> {
    let server = common.load()?.config.server;
    let address = reachable(server.address());
    let scheme = if server.has_tls() { "https" } else { "http" };
    match client::status_of(&format!("{scheme}://{address}/readyz")) {
        Ok(200) => common.answer(&json!({ "ready": true }), || "ready".to_owned()),
        Ok(status) => {
            fail(common, Some(status), format!("The server at {address} is not ready: it answered {status}."))
        }
        Err(Failure { kind, code, .. }) => {
            fail(common, None, format!("The server at {address} does not answer: {kind} ({code})."))
        }
    }
}

/// Says why, on standard output only to programs: for people the complaint is enough.
fn fail(common: &Common, status: Option<u16>, why: String) -> Result<()> {
    if common.json {
        print(&json!({ "ready": false, "status": status, "error": why }).to_string())?;
    }
    Err(Error::new(Code::ProviderUnavailable).detail(why))
}

/// The address at which a server that listens everywhere is reached from here.
fn reachable(listen: SocketAddr) -> SocketAddr {
    // A server that listens everywhere is reached by IPv4 even where there is no IPv6.
    let ip = if listen.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { listen.ip() };
    SocketAddr::new(ip, listen.port())
}
