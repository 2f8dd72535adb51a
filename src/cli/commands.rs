//! All commands, grouped by the six areas of the service. `yarrow help` lists them in this order.

use std::fmt::Write;

use clap::{Command, Subcommand, builder::Styles};

use super::{
    admin, ai, alerts, backup, cleanup, coins, completions, config, database, demo, doctor,
    endpoint_commands::EndpointGroup, figures, healthcheck, import, ledger, man, notify, openapi, options::Common,
    payments, points, products, records, restore, serve, sync, users, version, words,
};
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub enum Commands {
    #[command(flatten)]
    Identity(IdentityCommand),
    #[command(flatten)]
    Divination(DivinationCommand),
    #[command(flatten)]
    Money(MoneyCommand),
    #[command(flatten)]
    Moderation(ModerationCommand),
    #[command(flatten)]
    Messaging(MessagingCommand),
    #[command(flatten)]
    Operations(OperationsCommand),
}

#[derive(Debug, Subcommand)]
pub enum IdentityCommand {
    Users(users::UsersArgs),
    Sync(sync::SyncArgs),
}

#[derive(Debug, Subcommand)]
pub enum DivinationCommand {
    Records(records::RecordsArgs),
    Ai(ai::AiArgs),
}

#[derive(Debug, Subcommand)]
pub enum MoneyCommand {
    Coins(coins::CoinsArgs),
    Points(points::PointsArgs),
    Ledger(ledger::LedgerArgs),
    Products(products::ProductsArgs),
    Payments(payments::PaymentsArgs),
    /// List purchases in app stores, and ask the stores about them
    ///
    /// PURCHASE is the purchase's id, Apple's transaction id, or Google's order number.
    Purchases(EndpointGroup),
}

#[derive(Debug, Subcommand)]
pub enum ModerationCommand {
    Words(words::WordsArgs),
    /// Show and select the moderation service: local word list or external moderator
    Moderation(EndpointGroup),
    /// List and count texts rejected by moderation; delete old records
    Violations(EndpointGroup),
}

#[derive(Debug, Subcommand)]
pub enum MessagingCommand {
    Notify(notify::NotifyArgs),
    /// List, assign, answer and close feedback of users
    Feedback(EndpointGroup),
    /// Publish and list versions of the app, for the clients' update check
    Release(EndpointGroup),
}

#[derive(Debug, Subcommand)]
pub enum OperationsCommand {
    Serve(serve::ServeArgs),
    Demo(demo::DemoArgs),
    Config(config::ConfigArgs),
    Admin(admin::AdminArgs),
    /// List what administrators and commands read and changed, newest first
    Audit(EndpointGroup),
    Figures(figures::FiguresArgs),
    /// Search the network log and the server's log, find suspicious addresses, delete old entries
    Logs(EndpointGroup),
    Cleanup(cleanup::CleanupArgs),
    Import(import::ImportArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    Database(database::DatabaseArgs),
    Doctor(doctor::DoctorArgs),
    Alerts(alerts::AlertsArgs),
    /// List the events of webhooks, send them again, or send a test event
    Webhooks(EndpointGroup),
    /// Show alerts, backups, ledger and background jobs
    Health(EndpointGroup),
    Healthcheck(healthcheck::HealthcheckArgs),
    Openapi(openapi::OpenapiArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    Version(version::VersionArgs),
}

/// Adds commands to a parser.
type AddCommands = fn(Command) -> Command;

/// Each area's name, and the function that adds its commands to a parser.
const AREAS: [(&str, AddCommands); 6] = [
    ("Identity", IdentityCommand::augment_subcommands),
    ("Divination", DivinationCommand::augment_subcommands),
    ("Money", MoneyCommand::augment_subcommands),
    ("Moderation", ModerationCommand::augment_subcommands),
    ("Messaging", MessagingCommand::augment_subcommands),
    ("Operations", OperationsCommand::augment_subcommands),
];

/// Width of the column of command names in `yarrow help`.
const NAME_WIDTH: usize = 12;

/// Returns the template of `yarrow help`. clap has no headings for commands, so the list is written here.
pub fn help_template() -> String {
    let styles = Styles::default();
    let (heading, name) = (styles.get_header(), styles.get_literal());
    let mut template = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (area, add_commands) in AREAS {
        // Writing into a String cannot fail.
        let _ = write!(template, "\n{heading}{area}:{heading:#}\n");
        for command in add_commands(Command::new(area)).get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(template, "  {name}{:<NAME_WIDTH$}{name:#} {about}", command.get_name());
        }
    }
    let _ = write!(template, "\n{heading}Options:{heading:#}\n{{options}}{{after-help}}");
    template
}

impl Commands {
    pub fn run(self, common: &Common) -> Result<()> {
        match self {
            Self::Identity(command) => command.run(common),
            Self::Divination(command) => command.run(common),
            Self::Money(command) => command.run(common),
            Self::Moderation(command) => command.run(common),
            Self::Messaging(command) => command.run(common),
            Self::Operations(command) => command.run(common),
        }
    }
}

impl IdentityCommand {
    fn run(self, common: &Common) -> Result<()> {
        match self {
            Self::Users(args) => users::run(common, args),
            Self::Sync(args) => sync::run(common, &args),
        }
    }
}

impl DivinationCommand {
    fn run(self, common: &Common) -> Result<()> {
        match self {
            Self::Records(args) => records::run(common, args),
            Self::Ai(args) => ai::run(common, &args),
        }
    }
}

impl MoneyCommand {
    fn run(self, common: &Common) -> Result<()> {
        match self {
            Self::Coins(args) => coins::run(common, args),
            Self::Points(args) => points::run(common, args),
            Self::Products(args) => products::run(common, args),
            Self::Ledger(args) => ledger::run(common, args),
            Self::Payments(args) => payments::run(common, args),
            Self::Purchases(group) => Err(group.without_command()),
        }
    }
}

impl ModerationCommand {
    fn run(self, common: &Common) -> Result<()> {
        match self {
            Self::Words(args) => words::run(common, args),
            Self::Moderation(group) | Self::Violations(group) => Err(group.without_command()),
        }
    }
}

impl MessagingCommand {
    fn run(self, common: &Common) -> Result<()> {
        match self {
            Self::Notify(args) => notify::run(common, args),
            Self::Feedback(group) | Self::Release(group) => Err(group.without_command()),
        }
    }
}

impl OperationsCommand {
    fn run(self, common: &Common) -> Result<()> {
        match self {
            Self::Audit(group) | Self::Logs(group) | Self::Health(group) | Self::Webhooks(group) => {
                Err(group.without_command())
            }
            Self::Serve(args) => serve::run(common, &args),
            Self::Demo(args) => demo::run(common, &args),
            Self::Config(args) => config::run(common, &args),
            Self::Admin(args) => admin::run(common, args),
            Self::Figures(args) => figures::run(common, &args),
            Self::Cleanup(args) => cleanup::run(common, &args),
            Self::Import(args) => import::run(common, args),
            Self::Backup(args) => backup::run(common, args),
            Self::Restore(args) => restore::run(common, &args),
            Self::Database(args) => database::run(common, &args),
            Self::Doctor(args) => doctor::run(common, &args),
            Self::Alerts(args) => alerts::run(common, &args),
            Self::Healthcheck(args) => healthcheck::run(common, &args),
            Self::Openapi(args) => openapi::run(common, &args),
            Self::Completions(args) => completions::run(common, &args),
            Self::Man(args) => man::run(common, &args),
            Self::Version(args) => version::run(common, &args),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn help_lists_each_command_once() {
        let listed: Vec<_> = AREAS
            .iter()
            .flat_map(|(area, add_commands)| {
                let command = add_commands(Command::new(*area));
                command.get_subcommands().map(|command| command.get_name().to_owned()).collect::<Vec<_>>()
            })
            .collect();
        let all: Vec<_> = Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
        assert_eq!(listed, all);
        assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), listed.len());
        assert!(listed.iter().all(|name| name.len() <= NAME_WIDTH));
    }
}
