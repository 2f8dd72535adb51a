//! Commands that call an endpoint of administrators: same parameters, rules, reply and audit. [`table::commands`] has a row for
//! each; the other modules are the same for all.

mod arguments;
mod table;

use std::sync::{Arc, LazyLock};

use clap::{ArgMatches, Command};
use serde_json::{Map, Value};

use super::{Common, audit_trail, check, list_of, name_missing};
use crate::{
    error::{Error, Result},
    http::{
        admin::lists::StaffList,
        endpoint::Endpoint,
        endpoint_service::ErasedHandler,
        in_process::{EndpointCall, text_of_list},
        params::{Location, ParameterDescription},
        routes::endpoints,
    },
    types::{Paginated, UserId, pluralize},
};

/// A group of commands, all of which call endpoints.
#[derive(Debug, clap::Args)]
pub struct EndpointGroup {}

impl EndpointGroup {
    /// Returns the error of a group without a command, which the parser rules out.
    pub fn without_command(&self) -> Error {
        Error::internal(format!("{self:?} without a command"))
    }
}

/// A command that calls an endpoint.
pub struct EndpointCommand {
    /// The words after `yarrow`.
    path: &'static str,
    /// The name of the endpoint in the API document.
    operation: &'static str,
    about: &'static str,
    details: Option<&'static str>,
    /// Names of options that differ from the API's: pairs of both.
    options: Vec<(&'static str, &'static str)>,
    /// Values of required parameters whose option is absent.
    defaults: Vec<(&'static str, &'static str)>,
    /// Words for the values of a parameter: its name, and pairs of both.
    words: Option<(&'static str, &'static [(&'static str, &'static str)])>,
    /// Parameters that are arguments without an option, beside those of the path.
    positional: &'static [&'static str],
    /// Parameters that have no option.
    without: &'static [&'static str],
    /// An option with which another endpoint is called: one of its parameters, or a flag.
    other: Option<(&'static str, &'static str)>,
    /// Counts the problems in a reply, for a command that fails if there are any.
    problems: Option<fn(&Value) -> usize>,
    /// Asked before the call.
    question: Option<&'static str>,
    /// Replies with the text that is printed without `--json`.
    as_text: Option<Arc<dyn ErasedHandler>>,
}

/// Declares a command that calls an endpoint, by the words after `yarrow` and the name of the endpoint in the API document.
fn command(path: &'static str, operation: &'static str, about: &'static str) -> EndpointCommand {
    EndpointCommand {
        path,
        operation,
        about,
        details: None,
        options: Vec::new(),
        defaults: Vec::new(),
        words: None,
        positional: &[],
        without: &[],
        other: None,
        problems: None,
        question: None,
        as_text: None,
    }
}

impl EndpointCommand {
    fn details(self, details: &'static str) -> Self {
        Self { details: Some(details), ..self }
    }

    fn option(mut self, parameter: &'static str, option: &'static str) -> Self {
        self.options.push((parameter, option));
        self
    }

    /// Takes words of the command line instead of the values of a parameter.
    fn words(self, parameter: &'static str, words: &'static [(&'static str, &'static str)]) -> Self {
        Self { words: Some((parameter, words)), ..self }
    }

    fn positional(self, positional: &'static [&'static str]) -> Self {
        Self { positional, ..self }
    }

    fn without(self, without: &'static [&'static str]) -> Self {
        Self { without, ..self }
    }

    /// Calls another endpoint if an option is given.
    fn or(self, option: &'static str, operation: &'static str) -> Self {
        Self { other: Some((option, operation)), ..self }
    }

    /// Fails with exit code 5 if the reply has problems.
    fn check(self, problems: fn(&Value) -> usize) -> Self {
        Self { problems: Some(problems), ..self }
    }

    /// Asks before the call, unless `--yes` is given. `{}` stands for the item that the command names.
    fn confirmed(self, question: &'static str) -> Self {
        Self { question: Some(question), ..self }
    }

    /// Prints a table with the columns that the console shows.
    fn rows<L: StaffList>(self) -> Self {
        Self { as_text: Some(text_of_list::<L>(rows::<L>)), ..self }
    }

    /// Gives a required parameter a value if its option is absent.
    fn default(mut self, parameter: &'static str, value: &'static str) -> Self {
        self.defaults.push((parameter, value));
        self
    }

    fn run(&self, common: &Common, matches: &ArgMatches) -> Result<()> {
        let app = Arc::new(common.open()?);
        let other = self.other.filter(|(option, _)| arguments::is_given(self, matches, option));
        let endpoint = endpoint(other.map_or(self.operation, |(_, operation)| operation))?;
        let values = arguments::values(self, &app, endpoint, matches)?;
        let is_given = |one: &&ParameterDescription| self.is_positional(one) && values.contains_key(one.name);
        let in_path = endpoint.parameters.iter().rfind(|one| one.location == Location::Path);
        let named = in_path.or_else(|| endpoint.parameters.iter().find(is_given));
        let item = named.and_then(|one| values.get(one.name)?.as_str()).map(str::to_owned);
        if let Some(question) = self.question {
            let question = question.replace("{}", item.as_deref().unwrap_or_default());
            common.confirm(matches.get_flag(arguments::YES), &question)?;
        }
        let is_in_path =
            |name: &str| endpoint.parameters.iter().any(|one| one.name == name && one.location == Location::Path);
        let (path, fields): (Map<_, _>, Map<_, _>) = values.into_iter().partition(|(name, _)| is_in_path(name));
        let path: Vec<_> =
            path.into_iter().map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned())).collect();
        let as_text = self.as_text.as_deref().filter(|_| !common.json);
        let handler = as_text.unwrap_or(&*endpoint.handler);
        let by = audit_trail::cli_authority(None);
        let call = EndpointCall { app: &app, endpoint, handler, request_id: by.request_id, path, fields };
        let path = self.path;
        let describe = move |user: Option<UserId>, reason: Option<String>, outcome| {
            audit_trail::event(path, user, audit_trail::cli_authority(reason), outcome)
        };
        let reply = call.run(describe).map_err(|error| self.explained(error, endpoint, item.as_deref()))?;
        if as_text.is_some() {
            return common.print(&String::from_utf8_lossy(&reply));
        }
        let json = if reply.is_empty() { "null" } else { std::str::from_utf8(&reply).map_err(Error::internal)? };
        common.show_json(json)?;
        let reply: Value = serde_json::from_str(json).map_err(Error::internal)?;
        let problems = self.problems.map_or(0, |count| count(&reply));
        check(problems == 0, format!("{} found.", pluralize(problems, "problem", "problems")))
    }

    /// Names options instead of parameters, and what was not found.
    fn explained(&self, mut error: Error, endpoint: &Endpoint, item: Option<&str>) -> Error {
        let is_parameter = |name: &str| endpoint.parameters.iter().any(|parameter| parameter.name == name);
        let shown = |name: &str| if is_parameter(name) { self.option_of(name) } else { name.to_owned() };
        for fault in &mut error.fields {
            fault.field = shown(&fault.field);
            let names = fault.message.english.split('`').enumerate();
            let named = names.map(|(at, part)| if at % 2 == 1 { shown(part) } else { part.to_owned() });
            fault.message.english = named.collect::<Vec<_>>().join("`").into();
        }
        let noun = table::NOUNS.iter().find(|(path, _)| self.path.starts_with(path)).map(|(_, noun)| noun);
        match noun.zip(item) {
            // Other texts say more.
            Some((noun, item)) if error.detail == Error::new(error.code).detail => name_missing(noun, item)(error),
            _ => error,
        }
    }
}

/// Finds an endpoint by its name in the API document.
fn endpoint(operation: &str) -> Result<&'static Endpoint> {
    static ENDPOINTS: LazyLock<Vec<Endpoint>> = LazyLock::new(endpoints);
    let found = ENDPOINTS.iter().find(|endpoint| endpoint.operation == operation);
    found.ok_or_else(|| Error::internal(format!("no endpoint is named {operation}")))
}

/// Formats a page of a list with the columns that the console shows.
fn rows<L: StaffList>(found: &Paginated<L::Row>) -> String {
    format!("{}\n{} of {}", list_of(L::COLUMNS, &found.items), found.items.len(), found.total)
}

/// Adds the commands to those that are written by hand, each group when it is needed.
pub fn add_to(program: Command) -> Command {
    let commands = table::commands();
    let has_commands = |group: &str| commands.iter().any(|command| words(command.path).0 == group);
    program.mut_subcommands(|group| if has_commands(group.get_name()) { group.defer(add_to_group) } else { group })
}

fn words(path: &'static str) -> (&'static str, &'static str) {
    path.split_once(' ').unwrap_or((path, ""))
}

fn add_to_group(mut group: Command) -> Command {
    let name = group.get_name().to_owned();
    for command in table::commands().iter().filter(|command| words(command.path).0 == name) {
        group = match words(command.path).1 {
            "" => arguments::declare(command, group),
            rest => add_below(group, rest, command),
        };
    }
    group
}

/// Adds a command at the end of a path below a group.
fn add_below(group: Command, path: &'static str, command: &EndpointCommand) -> Command {
    let group = group.subcommand_required(true).arg_required_else_help(true);
    match path.split_once(' ') {
        None => group.subcommand(arguments::declare(command, Command::new(path))),
        Some((inner, rest)) => {
            let is_known = group.get_subcommands().any(|one| one.get_name() == inner);
            let about = table::INNER_GROUPS.iter().find(|(name, _)| *name == inner).map(|(_, about)| *about);
            let group =
                if is_known { group } else { group.subcommand(Command::new(inner).about(about.unwrap_or_default())) };
            group.mut_subcommand(inner, |inner| add_below(inner, rest, command))
        }
    }
}

/// Runs the command of a command line if it calls an endpoint.
pub fn run(common: &Common, matches: &ArgMatches) -> Option<Result<()>> {
    let (mut path, mut innermost) = (Vec::new(), matches);
    while let Some((name, inner)) = innermost.subcommand() {
        path.push(name);
        innermost = inner;
    }
    let path = path.join(" ");
    let commands = table::commands();
    let command = commands.iter().find(|command| command.path == path)?;
    Some(command.run(common, innermost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::program, http::guard::Access};

    /// Endpoints of administrators whose command is written by hand, because it does more or asks for more.
    const BY_HAND: &[(&str, &str)] = &[
        ("getProfile", "users show"),
        ("adminListCodeMessages", "users code-messages"),
        ("adminFixUserData", "users repair"),
        ("adminModelAttachment", "users attachment"),
        ("adminValidateUsers", "users validate"),
        ("adminValidateUserByPhone", "users validate"),
        ("adminSyncUserData", "sync users"),
        ("adminSyncCoins", "coins repair"),
        ("coinBalance", "coins balance"),
        ("coinBalanceByPhone", "coins balance"),
        ("adminGrantCoins", "coins grant"),
        ("resetCoins", "coins reset"),
        ("resetCoinsByPhone", "coins reset"),
        ("listInterpretations", "records user"),
        ("listInterpretationsBetween", "records user"),
        ("listInterpretationsByPhone", "records user"),
        ("countInterpretations", "records count"),
        ("adminCountInterpretations", "records count"),
        ("adminPutProduct", "products set"),
        ("confirmPayment", "payments settle"),
        ("adminPaymentReport", "payments report"),
        ("adminPayInSandbox", "payments sandbox-pay"),
        ("checkQuestion", "words test"),
        ("adminTestNickname", "words test"),
        ("adminTestSignature", "words test"),
        ("adminTestQuestion", "words test"),
        ("adminTestAnswer", "words test"),
        ("adminImportWords", "words import"),
        ("adminCompareModerationBatch", "moderation compare"),
        ("adminSendNotification", "notify send"),
        ("adminCountCastings", "figures castings"),
        // Over HTTP the work goes on in the background.
        ("adminBackUp", "backup create"),
        ("adminVerifyLedger", "ledger verify"),
        ("adminRunDoctor", "doctor"),
        ("adminClearAllData", "cleanup all"),
        ("adminClearCodes", "cleanup verification-codes"),
        ("adminClearPayments", "cleanup payment-records"),
        ("adminClearFeedback", "cleanup feedback"),
        ("adminCreateAdministrator", "admin create"),
        ("adminCreateApiKey", "admin key create"),
        // There is no sign-in on the command line: its user can read the file. Sessions are ended there.
        ("adminSignOut", "admin sessions end"),
    ];

    #[test]
    fn every_endpoint_of_administrators_has_a_command() {
        let mut program = program();
        program.build();
        let is_command = |path: &str| {
            let find = |command: Option<Command>, word: &str| command?.find_subcommand(word).cloned();
            path.split(' ').fold(Some(program.clone()), find).is_some()
        };
        let commands = table::commands();
        let declared = commands.iter().flat_map(|command| {
            let other = command.other.map(|(_, operation)| operation);
            std::iter::once(command.operation).chain(other).map(|operation| (operation, command.path))
        });
        let known: Vec<_> = declared.chain(BY_HAND.iter().copied()).collect();
        for (operation, path) in &known {
            assert!(endpoint(operation).is_ok(), "no endpoint is named {operation}");
            assert!(is_command(path), "{path} is no command");
        }
        for endpoint in endpoints() {
            let is_for_administrators = matches!(endpoint.access, Access::Admin(_) | Access::OwnUserOrAdmin(_));
            let operation = endpoint.operation;
            assert!(!is_for_administrators || known.iter().any(|(name, _)| *name == operation), "{operation}");
        }
    }
}
