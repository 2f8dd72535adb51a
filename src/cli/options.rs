//! Options and arguments that several commands share, and how they are parsed.

use std::{collections::BTreeMap, path::PathBuf};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::Streams;
use crate::{
    app::{App, OpenMode},
    config::{Config, DECLARATIONS, LoadedConfig, Sources, load, load_with_checks},
    domain::{
        identity::users::{self, Address, User},
        money::ledger::LARGEST_ADJUSTMENT,
        operations::audit::MAX_REASON,
    },
    error::{Code, Error, Result},
    types::{self, EmailAddress, PageRequest, PhoneNumber, TimeInput, Timestamp, UserId},
};

/// The heading of the options that every command accepts.
const GLOBAL_OPTIONS: &str = "Global options";

const CONFIG_HELP: &str = "TOML file with settings; `yarrow config sample` prints one [env: YARROW_CONFIG]";

/// Options that every command accepts, before or after its own.
#[derive(Debug, Args)]
pub struct Common {
    #[arg(long, global = true, value_name = "FILE", help = CONFIG_HELP, help_heading = GLOBAL_OPTIONS)]
    pub config: Option<PathBuf>,
    /// Print results and errors as JSON
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS)]
    pub json: bool,
    #[command(flatten)]
    pub flags: SettingFlags,
    #[arg(skip)]
    pub streams: Streams,
}

impl Common {
    pub fn load(&self) -> Result<LoadedConfig> {
        load(self.sources())
    }

    /// Loads the configuration for a service that is about to run, and examines the files that it names.
    pub fn load_for_service(&self, examine: impl Fn(&Config) -> Vec<String>) -> Result<LoadedConfig> {
        load_with_checks(self.sources(), examine)
    }

    pub fn sources(&self) -> Sources {
        let (flags, file) = (self.flags.0.clone(), self.config.clone());
        match &self.streams {
            Streams::OfProcess => Sources::of_process(flags, file),
            Streams::Given(given) => Sources::of_variables(flags, file, given.variables.iter().cloned()),
        }
    }

    /// Opens the data directory for a command, whether or not a server is running on it.
    pub fn open(&self) -> Result<App> {
        self.open_as(OpenMode::Attach)
    }

    pub fn open_as(&self, mode: OpenMode) -> Result<App> {
        let config = self.load()?.config;
        self.start_logging(&config.log)?;
        App::open(config, mode, &self.announce())
    }
}

/// The values of settings that were given as flags, by setting name.
#[derive(Debug, Default)]
pub struct SettingFlags(BTreeMap<String, String>);

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        DECLARATIONS.iter().fold(command, |command, declaration| match declaration.flag {
            Some(flag) => {
                let help = format!("{} [env: {}]", declaration.help, declaration.variable());
                let argument = Arg::new(flag).long(flag).global(true).value_name(declaration.shape).help(help);
                command.arg(argument.help_heading(GLOBAL_OPTIONS))
            }
            None => command,
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let values = DECLARATIONS.iter().filter_map(|declaration| {
            let value = matches.get_one::<String>(declaration.flag?)?;
            Some((declaration.name(), value.clone()))
        });
        Ok(Self(values.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The page of a list.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// Page number, from 1
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub page: u32,
    /// Rows per page, 1 to 10000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub size: u32,
}

impl PageArgs {
    pub fn page(&self) -> PageRequest {
        PageRequest { first: 1, number: self.page, size: self.size }
    }
}

/// A half-open time range.
#[derive(Debug, Args)]
pub struct RangeArgs {
    /// Start of the time range, inclusive: 2026-01-31 or 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End of the time range, exclusive; a whole day is included
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

impl RangeArgs {
    pub fn bounds(&self, app: &App) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
        time_range(app, ("from", self.from.as_deref()), ("to", self.to.as_deref()))
    }
}

/// Parses the bounds of a time range, given with the names of their options. The result is half-open.
pub fn time_range(
    app: &App,
    from: (&str, Option<&str>),
    to: (&str, Option<&str>),
) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    let parse = |(option, text): (&str, Option<&str>)| {
        text.map(TimeInput::parse).transpose().map_err(|fault| Error::field(option, fault))
    };
    types::time_range((from.0, parse(from)?), (to.0, parse(to)?), &app.core.config.limits.time_zone)
}

/// Parses a phone number or an email address.
pub fn find_address(app: &App, who: &str) -> Option<Address> {
    let phone_number = PhoneNumber::parse(who, &app.core.phone_rules).ok().map(Address::Phone);
    phone_number.or_else(|| EmailAddress::parse(who).ok().map(Address::Email))
}

/// Finds a user by id, phone number or email address.
pub fn find_user(app: &App, who: &str) -> Result<User> {
    let not_found = || Error::new(Code::NotFound).english_detail(format!("User `{who}` not found."));
    let user = if let Some(address) = find_address(app, who) {
        app.core.store.read(|tx| users::find_by_address_in(tx, &address)?.ok_or_else(not_found))
    } else {
        let id = who.trim().parse().map(UserId).map_err(|_| not_found())?;
        app.core.store.read(|tx| users::find_in(tx, id))
    };
    user.map_err(|error| if error.code == Code::NotFound { not_found() } else { error })
}

/// Like [`find_user`], but accepts ids of deleted users, whose rows remain. A phone number is never read as an id.
pub fn find_user_id(app: &App, who: &str) -> Result<UserId> {
    let is_phone_number = PhoneNumber::parse(who, &app.core.phone_rules).is_ok();
    match find_user(app, who) {
        Err(error) if error.code == Code::NotFound && !is_phone_number => {
            who.trim().parse().map(UserId).map_err(|_| error)
        }
        user => user.map(|user| user.id),
    }
}

/// Parses the time that was given for an option.
pub fn parse_time(app: &App, option: &str, text: &str) -> Result<Timestamp> {
    Timestamp::parse(text, &app.core.config.limits.time_zone).map_err(|fault| Error::field(option, fault))
}

/// Parses the reason for a change, which is stored in the audit.
pub fn parse_reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err("must not be empty".into()),
        1..=MAX_REASON => Ok(text.to_owned()),
        _ => Err(format!("must be at most {MAX_REASON} characters")),
    }
}

/// Parses an adjustment of a balance, up or down.
pub fn parse_adjustment(text: &str) -> Result<i64, String> {
    let range = -LARGEST_ADJUSTMENT..=LARGEST_ADJUSTMENT;
    let amount = text.parse().ok().filter(|amount| *amount != 0 && range.contains(amount));
    amount.ok_or_else(|| format!("must be a whole number from -{LARGEST_ADJUSTMENT} to {LARGEST_ADJUSTMENT}, not 0"))
}
