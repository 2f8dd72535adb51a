//! `yarrow healthcheck`: queries `/readyz` of the local server, for containers and monitors.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use serde_json::json;

use super::{Common, print};
use yarrow::{
    error::{Code, Error, Result},
    providers::{Failure, client},
};

/// Check that the local server is ready; exit 0 if it is, else 1
#[derive(Debug, Args)]
pub struct HealthcheckArgs {}

pub fn run(common: &Common, _: &HealthcheckArgs) -> Result<()> {
    let server = common.load()?.config.server;
    let address = local_address(server.address());
    let scheme = if server.has_tls() { "https" } else { "http" };
    match client::status_of(&format!("{scheme}://{address}/readyz")) {
        Ok(200) => common.output(&json!({ "ready": true }), || "ready".to_owned()),
        Ok(status) => fail(common, Some(status), format!("The server at {address} is not ready: status {status}.")),
        Err(Failure { kind, code, .. }) => {
            fail(common, None, format!("The server at {address} does not respond: {kind} ({code})."))
        }
    }
}

/// Fails with this detail, and with `--json` also prints the result.
fn fail(common: &Common, status: Option<u16>, detail: String) -> Result<()> {
    if common.json {
        print(&json!({ "ready": false, "status": status, "error": detail }).to_string())?;
    }
    Err(Error::new(Code::ProviderUnavailable).detail(detail))
}

/// Returns the address at which the local server can be reached.
fn local_address(listen: SocketAddr) -> SocketAddr {
    // A server on the unspecified address also listens on IPv4 loopback.
    let ip = if listen.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { listen.ip() };
    SocketAddr::new(ip, listen.port())
}
