//! `yarrow admin networks`: the networks from which administrators may call.
//!
//! Also the recovery for administrators who have locked themselves out.

use clap::{Args, Subcommand};
use ipnet::IpNet;
use serde_json::json;

use crate::cli::{Common, cli_authority, record_audit, with_detail};
use crate::{
    app::App,
    domain::operations::admins::networks,
    error::{Code, Result},
};

/// Restrict administrators to networks; an empty list allows every address
#[derive(Debug, Args)]
pub struct NetworksArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the allowed networks
    List,
    /// Allow a network; takes effect immediately
    ///
    /// Example: yarrow admin networks allow 203.0.113.0/24
    Allow {
        /// Address, or network such as 203.0.113.0/24
        #[arg(value_parser = network)]
        network: IpNet,
    },
    /// Remove a network from the list
    Disallow {
        /// Network, from `yarrow admin networks list`
        #[arg(value_parser = network)]
        network: IpNet,
    },
    /// Empty the list, which allows every address
    Clear,
}

pub fn run(common: &Common, app: &App, args: &NetworksArgs) -> Result<()> {
    let (command, subject, list) = match &args.action {
        Action::List => return show(common, &networks::list(&app.core)?),
        Action::Allow { network } => ("allow", network.to_string(), networks::allow(&app.core, *network, None).wait()?),
        Action::Disallow { network } => ("disallow", network.to_string(), disallow(app, *network)?),
        Action::Clear => ("clear", String::new(), clear(app)?),
    };
    record_audit(app, &format!("admin networks {command}"), None, cli_authority(Some(subject)))?;
    show(common, &list)
}

fn clear(app: &App) -> Result<Vec<IpNet>> {
    networks::allow_all(&app.core).wait()?;
    networks::list(&app.core)
}

fn disallow(app: &App, network: IpNet) -> Result<Vec<IpNet>> {
    let not_listed = with_detail(Code::NotFound, format!("{network} is not on the list."));
    networks::disallow(&app.core, network, None).wait().map_err(not_listed)
}

fn show(common: &Common, list: &[IpNet]) -> Result<()> {
    common.output(&json!(list), || match list {
        [] => "every address is allowed".to_owned(),
        _ => list.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    })
}

fn network(text: &str) -> Result<IpNet, String> {
    networks::parse(text).ok_or_else(|| "is neither an address nor a network".into())
}
