//! `yarrow admin networks`: from where administrators may call, and the way back in for who is locked out.

use clap::{Args, Subcommand};
use ipnet::IpNet;
use serde_json::json;

use crate::cli::{Common, authority, explained, record};
use yarrow::{
    app::App,
    domain::operations::admins::networks,
    error::{Code, Result},
};

/// Networks from which administrators may call; everywhere while there is none.
#[derive(Debug, Args)]
pub struct NetworksArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List them.
    List,
    /// Add one. A running server keeps to it at once.
    Allow {
        /// An address, or a network such as 203.0.113.0/24.
        #[arg(value_parser = network)]
        network: IpNet,
    },
    /// Take one off.
    Disallow {
        /// As `list` shows it.
        #[arg(value_parser = network)]
        network: IpNet,
    },
    /// Take all off: administrators may call from everywhere.
    Clear,
}

pub fn run(common: &Common, app: &App, args: &NetworksArgs) -> Result<()> {
    let (command, about, list) = match &args.action {
        Action::List => return show(common, &networks::list(app)?),
        Action::Allow { network } => ("allow", network.to_string(), networks::allow(app, *network).wait()?),
        Action::Disallow { network } => ("disallow", network.to_string(), disallow(app, *network)?),
        Action::Clear => ("clear", String::new(), clear(app)?),
    };
    record(app, &format!("admin networks {command}"), None, authority(Some(about)))?;
    show(common, &list)
}

fn clear(app: &App) -> Result<Vec<IpNet>> {
    networks::allow_all(app).wait()?;
    networks::list(app)
}

fn disallow(app: &App, network: IpNet) -> Result<Vec<IpNet>> {
    let unknown = explained(Code::NotFound, format!("{network} is not on the list."));
    networks::disallow(app, network).wait().map_err(unknown)
}

fn show(common: &Common, list: &[IpNet]) -> Result<()> {
    common.answer(&json!(list), || match list {
        [] => "administrators may call from everywhere".to_owned(),
        _ => list.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    })
}

/// A network, or a single address as the smallest of networks. What lies below the prefix is of no meaning.
fn network(text: &str) -> Result<IpNet, String> {
    let address = || text.parse().ok().map(|address: std::net::IpAddr| IpNet::from(address.to_canonical()));
    let network = text.parse().ok().or_else(address);
    network.map(|network: IpNet| network.trunc()).ok_or_else(|| "is neither an address nor a network".into())
}
