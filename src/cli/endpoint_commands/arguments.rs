//! Arguments of a command, from the parameters of its endpoint.

use std::sync::LazyLock;

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::{NonEmptyStringValueParser, PossibleValuesParser},
};
use serde_json::{Map, Value, json};

use super::{EndpointCommand, endpoint};
use crate::{
    app::App,
    cli::{find_user_id, json_text},
    config::{Config, LimitsConfig},
    error::Result,
    http::{
        endpoint::Endpoint,
        openapi::enums::enumerations,
        params::{Location, ParameterDescription},
    },
};

/// The option that skips a question.
pub(super) const YES: &str = "yes";
/// The token of a second request, in whose place the command line asks.
const CONFIRM: &str = "confirm";
/// Options that are named alike for all commands.
const OPTIONS: [(&str, &str); 3] = [("startTime", "from"), ("endTime", "to"), (USER, "user")];
/// A parameter that is given as a user's id, phone number or email address.
const USER: &str = "userId";
const USER_HELP: &str = "User: id, phone number or email address";

/// The default limits. The help shows only types and names of a schema, which no setting changes.
static LIMITS: LazyLock<Result<LimitsConfig>> = LazyLock::new(|| Config::defaults().map(|config| config.limits));
/// The components of all enumerations, by name.
static ENUMERATIONS: LazyLock<Vec<(String, Value)>> = LazyLock::new(enumerations);

impl EndpointCommand {
    fn takes(&self, parameter: &ParameterDescription) -> bool {
        parameter.name != CONFIRM && !self.without.contains(&parameter.name)
    }

    pub(super) fn is_positional(&self, parameter: &ParameterDescription) -> bool {
        parameter.location == Location::Path || self.positional.contains(&parameter.name)
    }

    pub(super) fn option_of(&self, parameter: &str) -> String {
        let named = self.options.iter().chain(&OPTIONS).find(|(name, _)| *name == parameter);
        named.map_or_else(|| json_text::words(parameter, '-'), |(_, option)| (*option).to_owned())
    }
}

/// Adds the help and the arguments of a command.
pub(super) fn declare(command: &EndpointCommand, declared: Command) -> Command {
    let long = command.details.map(|details| format!("{}\n\n{details}", command.about));
    let declared = declared.about(command.about);
    let mut declared = if let Some(long) = long { declared.long_about(long) } else { declared };
    // Without an endpoint the command fails when it runs, and a test fails.
    let (Ok(called), Ok(limits)) = (endpoint(command.operation), &*LIMITS) else { return declared };
    let taken = || called.parameters.iter().filter(|parameter| command.takes(parameter));
    // In the order of the path and of the declaration.
    let in_path = taken().filter(|parameter| parameter.location == Location::Path);
    let others = command.positional.iter().filter_map(|name| taken().find(|parameter| parameter.name == *name));
    let options = taken().filter(|parameter| !command.is_positional(parameter));
    for parameter in in_path.chain(others).chain(options) {
        let argument = argument(command, parameter, limits);
        let is_positional = command.is_positional(parameter);
        declared =
            declared.arg(if is_positional { argument } else { argument.long(command.option_of(parameter.name)) });
    }
    if let Some((option, parameter)) = command.other.map(|(option, _)| (option, other_parameter(command, option))) {
        let flag = || Arg::new(option).action(ArgAction::SetTrue).help("Undo it");
        declared = declared
            .arg(parameter.map_or_else(flag, |one| argument(command, one, limits).required(false)).long(option));
    }
    if command.question.is_some() {
        declared = declared.arg(Arg::new(YES).long(YES).action(ArgAction::SetTrue).help("Skip the confirmation"));
    }
    declared
}

fn argument(command: &EndpointCommand, parameter: &ParameterDescription, limits: &LimitsConfig) -> Arg {
    let schema = (parameter.schema)(limits);
    let (option, is_user) = (command.option_of(parameter.name), parameter.name == USER);
    let help = if is_user { USER_HELP } else { parameter.description.trim_end_matches('.') };
    let argument = Arg::new(parameter.name).help(help).allow_hyphen_values(schema["type"] == "integer");
    let default = command.defaults.iter().find(|(name, _)| *name == parameter.name).map(|(_, value)| *value);
    let argument = match (parameter.is_required, default, command.other) {
        (_, Some(default), _) => argument.default_value(default),
        (true, _, Some((option, _))) if parameter.location != Location::Path => {
            argument.required_unless_present(option)
        }
        (is_required, ..) => argument.required(is_required),
    };
    let value_name = if is_user { "WHO".to_owned() } else { option.replace('-', "_").to_uppercase() };
    let argument = match schema["type"].as_str() {
        // An option that is set, or set to `=false`.
        Some("boolean") if !command.is_positional(parameter) => {
            argument.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("BOOLEAN")
        }
        Some("array") => {
            let most = if command.is_positional(parameter) { usize::MAX } else { 1 };
            argument
                .action(ArgAction::Append)
                .num_args(1..=most)
                .value_name(value_name)
                .value_parser(NonEmptyStringValueParser::new())
        }
        _ => argument.value_name(value_name),
    };
    let words = command.words.filter(|(name, _)| *name == parameter.name);
    match words.map(|(_, words)| words.iter().map(|(word, _)| (*word).to_owned()).collect()).or_else(|| names(&schema))
    {
        Some(names) => argument.value_parser(PossibleValuesParser::new(names)),
        None => argument,
    }
}

/// Returns the parameter of the other endpoint that an option gives.
fn other_parameter(command: &EndpointCommand, option: &str) -> Option<&'static ParameterDescription> {
    let other = endpoint(command.other?.1).ok()?;
    other.parameters.iter().find(|parameter| command.option_of(parameter.name) == option)
}

/// Returns true if the option that selects the other endpoint is given.
pub(super) fn is_given(command: &EndpointCommand, matches: &ArgMatches, option: &str) -> bool {
    match other_parameter(command, option) {
        Some(parameter) => matches.contains_id(parameter.name),
        None => matches.get_flag(option),
    }
}

/// Returns the names of an enumeration, or of the items of a list.
fn names(schema: &Value) -> Option<Vec<String>> {
    let schema = if schema["type"] == "array" { &schema["items"] } else { schema };
    let component = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    let found = component.and_then(|name| ENUMERATIONS.iter().find(|(other, _)| other == name));
    let schema = found.map_or(schema, |(_, schema)| schema);
    let names = schema["enum"].as_array()?;
    Some(names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect())
}

/// Returns the given parameters by their names in the API.
pub(super) fn values(
    command: &EndpointCommand,
    app: &App,
    called: &Endpoint,
    matches: &ArgMatches,
) -> Result<Map<String, Value>> {
    let mut values = Map::new();
    for parameter in called.parameters.iter().filter(|parameter| command.takes(parameter)) {
        let name = parameter.name;
        let Ok(Some(given)) = matches.try_get_many::<String>(name) else { continue };
        let mut given: Vec<_> = given.cloned().collect();
        if name == USER {
            given = given.iter().map(|who| Ok(find_user_id(app, who)?.to_string())).collect::<Result<_>>()?;
        }
        if let Some((_, words)) = command.words.filter(|(of, _)| *of == name) {
            let value =
                |given: &String| words.iter().find(|(word, _)| word == given).map(|(_, value)| (*value).to_owned());
            given = given.iter().filter_map(value).collect();
        }
        let is_list = (parameter.schema)(&app.core.config.limits)["type"] == "array";
        values.insert(name.to_owned(), if is_list { json!(given) } else { json!(given.swap_remove(0)) });
    }
    Ok(values)
}
