//! `yarrow healthcheck`: queries `/readyz` of the local server, for containers and monitors.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use serde_json::json;

use super::Common;
use crate::{
    config::{LoadedConfig, ServerConfig},
    error::{Code, Error, Result},
    providers::{Failure, client},
    store::lock,
};

/// Check that the local server is ready; exit 0 if it is, else 1
#[derive(Debug, Args)]
pub struct HealthcheckArgs {}

pub fn run(common: &Common, _: &HealthcheckArgs) -> Result<()> {
    let loaded = common.load()?;
    let address = running_server(&loaded).unwrap_or_else(|| configured_address(&loaded.config.server));
    match client::status_of(&format!("{address}/readyz")) {
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
        common.print(&json!({ "ready": false, "status": status, "error": detail }).to_string())?;
    }
    Err(Error::new(Code::ProviderUnavailable).english_detail(detail))
}

/// Returns the base URL of the server that runs on the data directory, unless a listen address is configured.
fn running_server(loaded: &LoadedConfig) -> Option<String> {
    let server = &loaded.config.server;
    let is_unknown = loaded.is_default("server.listen") || server.listen.port() == 0;
    let url = is_unknown.then(|| lock::running_server(loaded.config.data_dir()))??;
    let (scheme, address) = url.split_once("://")?;
    Some(format!("{scheme}://{}", local_address(address.parse().ok()?)))
}

fn configured_address(server: &ServerConfig) -> String {
    let scheme = if server.has_tls() { "https" } else { "http" };
    format!("{scheme}://{}", local_address(server.address()))
}

/// Returns the address at which the local server can be reached.
fn local_address(listen: SocketAddr) -> SocketAddr {
    // A server on the unspecified address also listens on IPv4 loopback.
    let ip = if listen.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { listen.ip() };
    SocketAddr::new(ip, listen.port())
}
