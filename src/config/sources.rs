//! The sources of settings, and their precedence.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use toml::Value;

use super::{
    Config, DECLARATIONS, Declaration, ResolvedSetting, SettingOrigin, configuration_error,
    values::{RawSetting, SettingValue},
};
use crate::{error::Result, types::without_byte_order_mark};

/// The environment variable with the path of the file, like `--config`.
const FILE_VARIABLE: &str = "YARROW_CONFIG";
const PREFIX: &str = "YARROW_";

/// The sources of settings.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Values of flags, by setting name.
    pub flags: BTreeMap<String, String>,
    pub environment: BTreeMap<String, String>,
    /// Our variables whose values are not UTF-8. Only the path of the config file may be one.
    pub unreadable: BTreeSet<String>,
    /// Our variables that Kubernetes made from Services. They are no settings.
    pub service_links: Vec<String>,
    pub file: Option<PathBuf>,
}

impl Sources {
    /// Creates the sources from flags, file and this process's environment.
    pub fn of_process(flags: BTreeMap<String, String>, file: Option<PathBuf>) -> Self {
        Self::of_variables(flags, file, std::env::vars_os())
    }

    /// Creates the sources from flags, file and environment variables.
    pub fn of_variables(
        flags: BTreeMap<String, String>,
        mut file: Option<PathBuf>,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Self {
        let (mut environment, mut unreadable) = (BTreeMap::new(), BTreeSet::new());
        for (name, value) in variables {
            if name == FILE_VARIABLE {
                file.get_or_insert_with(|| value.clone().into());
            }
            // No setting's name changes by this.
            let name = name.to_string_lossy().into_owned();
            match value.into_string() {
                _ if !name.starts_with(PREFIX) => {}
                Ok(value) => drop(environment.insert(name, value)),
                Err(_) => drop(unreadable.insert(name)),
            }
        }
        let service_links = take_service_links(&mut environment);
        Self { flags, environment, unreadable, service_links, file }
    }
}

/// Returns the variables of this process that name an outgoing proxy. Calls to providers do not use them.
pub fn proxy_variables() -> Vec<String> {
    const NAMES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    let spellings = NAMES.iter().flat_map(|name| [(*name).to_owned(), name.to_ascii_lowercase()]);
    spellings.filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())).collect()
}

/// Removes the variables that Kubernetes makes from the Services of a namespace, and returns their names. A Service named
/// `yarrow` makes `YARROW_PORT`, one named `yarrow-smtp` makes `YARROW_SMTP_PORT`, which is not the setting either.
fn take_service_links(environment: &mut BTreeMap<String, String>) -> Vec<String> {
    environment.extract_if(.., |name, value| is_service_link(name, value)).map(|(name, _)| name).collect()
}

/// Returns true for `…_SERVICE_HOST`, `…_SERVICE_PORT[_NAME]`, `…_PORT` and `…_PORT_n_TCP|UDP|SCTP[_PROTO|_PORT|_ADDR]`
/// with an address, a port or a URL of such a protocol.
fn is_service_link(name: &str, value: &str) -> bool {
    const PROTOCOLS: [&str; 3] = ["tcp", "udp", "sctp"];
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let is_url = |text: &str| {
        let address = text.split_once("://").filter(|(scheme, _)| PROTOCOLS.contains(scheme));
        address.is_some_and(|(_, address)| address.parse::<SocketAddr>().is_ok())
    };
    if name.ends_with("_SERVICE_HOST") {
        return is_address(value);
    }
    if name.ends_with("_SERVICE_PORT") || name.contains("_SERVICE_PORT_") {
        return is_port(value);
    }
    if name.ends_with("_PORT") && is_url(value) {
        return true;
    }
    let Some((_, rest)) = name.rsplit_once("_PORT_") else { return false };
    let mut parts = rest.trim_end_matches("_PORT").split('_');
    let is_of_protocol = |part: &str| PROTOCOLS.contains(&part.to_ascii_lowercase().as_str());
    let begins_right = parts.next().is_some_and(is_port) && parts.next().is_some_and(is_of_protocol);
    begins_right
        && match parts.next() {
            Some("PROTO") => PROTOCOLS.contains(&value),
            Some("ADDR") => is_address(value),
            Some(_) => false,
            None => is_url(value) || is_port(value),
        }
}

/// Returns the name of the program and the arguments with which this process was started.
pub fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// The configuration, and the origin of every value.
#[derive(Debug)]
pub struct LoadedConfig {
    pub config: Config,
    /// Variables that were ignored, because Kubernetes made them.
    pub service_links: Vec<String>,
    pub shown: Vec<ResolvedSetting>,
}

impl LoadedConfig {
    /// Returns true if the setting was not configured.
    pub fn is_default(&self, name: &str) -> bool {
        self.shown.iter().any(|setting| setting.name == name && setting.origin == SettingOrigin::Default)
    }
}

/// Reads and validates all settings.
///
/// # Errors
/// `configuration`, with each fault on its own line.
pub fn load(sources: Sources) -> Result<LoadedConfig> {
    load_with_checks(sources, |_| Vec::new())
}

/// Loads the settings and runs `examine` for faults that only their users can find: an invalid key, a missing file. Its
/// faults begin with the setting's name and are reported together with all others.
///
/// # Errors
/// `configuration`, with each fault on its own line.
pub fn load_with_checks(sources: Sources, examine: impl Fn(&Config) -> Vec<String>) -> Result<LoadedConfig> {
    let mut resolver = Resolver::new(sources);
    let config = Config::assemble(&mut resolver);
    resolver.refuse_unknown_names();
    let Some(config) = config else { return Err(configuration_error(&resolver.faults)) };
    resolver.note(config.validate());
    let about = resolver.faults.iter().map(|fault| subject(fault).to_owned()).collect::<BTreeSet<_>>();
    resolver.note(examine(&config).into_iter().filter(|fault| !about.contains(subject(fault))).collect());
    let Resolver { faults, shown, sources: Sources { service_links, .. }, .. } = resolver;
    if faults.is_empty() {
        Ok(LoadedConfig { config, service_links, shown })
    } else {
        Err(configuration_error(&faults))
    }
}

/// Returns the name of the setting that a fault is about.
fn subject(fault: &str) -> &str {
    fault.split(':').next().unwrap_or_default()
}

/// Describes a fault in a file by its position. The library's own text quotes the line, which may hold a secret.
fn located(text: &str, error: &toml::de::Error) -> String {
    let (before, at) =
        error.span().and_then(|span| Some((text.get(..span.start)?, text.get(span)?))).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let is_name = at.starts_with(|first: char| first.is_ascii_lowercase())
        && at.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    match error.message() {
        message @ "duplicate key" if is_name => format!("line {line}: {message} `{at}`"),
        message => format!("line {line}: {message}"),
    }
}

pub(super) struct Resolver {
    sources: Sources,
    /// The file as it is written, to find lines.
    text: String,
    file: toml::Table,
    faults: Vec<String>,
    shown: Vec<ResolvedSetting>,
    known_variables: BTreeSet<String>,
    /// Settings with invalid values. Their defaults are used, so that the others can be checked.
    misread: BTreeSet<String>,
}

impl Resolver {
    fn new(sources: Sources) -> Self {
        let (mut faults, mut written) = (Vec::new(), String::new());
        let file: Option<toml::Table> = sources.file.as_ref().and_then(|path| {
            let name = path.display();
            let text = std::fs::read_to_string(path).map_err(|error| faults.push(format!("{name}: {error}"))).ok()?;
            let text = without_byte_order_mark(&text);
            text.clone_into(&mut written);
            text.parse().map_err(|error| faults.push(format!("{name}: {}", located(text, &error)))).ok()
        });
        let known_variables = BTreeSet::from([FILE_VARIABLE.to_owned()]);
        // Settings in an unreadable file are unknown.
        let unknown = if faults.is_empty() { &[][..] } else { DECLARATIONS };
        let misread = unknown.iter().map(Declaration::name).collect();
        let file = file.unwrap_or_default();
        Self { sources, text: written, file, faults, shown: Vec::new(), known_variables, misread }
    }

    /// Returns the setting's effective value. If it is invalid, records the fault and returns the default.
    pub(super) fn take<T: SettingValue>(&mut self, declaration: &Declaration) -> Option<T> {
        self.take_valid(declaration, |_| true, "")
    }

    /// Like [`Self::take`], with a minimum, in the text of the value's type.
    pub(super) fn take_at_least<T: SettingValue + PartialOrd>(
        &mut self,
        declaration: &Declaration,
        least: &str,
    ) -> Option<T> {
        let minimum = parse::<T>(least)?;
        self.take_valid(declaration, |value| *value >= minimum, &format!("must be at least {least}"))
    }

    fn take_valid<T: SettingValue>(
        &mut self,
        declaration: &Declaration,
        is_valid: impl Fn(&T) -> bool,
        requirement: &str,
    ) -> Option<T> {
        self.read(declaration, is_valid, requirement).or_else(|| {
            self.misread.insert(declaration.name());
            parse(declaration.default)
        })
    }

    /// Records faults of combinations, except those that involve a setting with an invalid value.
    fn note(&mut self, faults: Vec<String>) {
        let is_name = |character: char| character.is_ascii_alphanumeric() || "._".contains(character);
        let is_known = |fault: &String| {
            let mut words = fault.split(|character| !is_name(character));
            !words.any(|word| self.misread.contains(word))
        };
        self.faults.extend(faults.into_iter().filter(is_known).collect::<Vec<_>>());
    }

    /// Returns the setting's effective value; `None` if it is invalid, after recording the fault.
    fn read<T: SettingValue>(
        &mut self,
        declaration: &Declaration,
        is_valid: impl Fn(&T) -> bool,
        requirement: &str,
    ) -> Option<T> {
        let (raw, origin) = self.find(declaration)?;
        match T::read(&raw).and_then(|value| if is_valid(&value) { Ok(value) } else { Err(requirement.to_owned()) }) {
            Ok(value) => {
                self.shown.push(ResolvedSetting { name: declaration.name(), value: value.show(), origin });
                Some(value)
            }
            Err(fault) => {
                self.faults.push(format!("{}: {fault} (from {origin})", declaration.name()));
                None
            }
        }
    }

    fn find(&mut self, declaration: &Declaration) -> Option<(RawSetting, SettingOrigin)> {
        let from_environment = self.in_environment(declaration)?;
        let name = declaration.name();
        if let (Some(text), Some(flag)) = (self.sources.flags.get(&name), declaration.flag) {
            return Some((RawSetting::Text(text.clone()), SettingOrigin::CommandLine(flag)));
        }
        if let Some(found) = from_environment {
            return Some(found);
        }
        if let Some(value) = self.in_file(declaration) {
            let path = self.sources.file.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
            return match raw_of(value) {
                Ok(raw) => Some((raw, SettingOrigin::File(path))),
                Err(fault) => {
                    self.faults.push(format!("{name}: {fault} (from {path})"));
                    None
                }
            };
        }
        Some((RawSetting::Text(declaration.default.to_owned()), SettingOrigin::Default))
    }

    /// Returns the value of the variable, or of the file that `…_FILE` names. The outer `None` means a fault.
    #[expect(clippy::option_option, reason = "the outer layer means that a fault was recorded")]
    fn in_environment(&mut self, declaration: &Declaration) -> Option<Option<(RawSetting, SettingOrigin)>> {
        let variable = declaration.variable();
        let file_variable = format!("{variable}_FILE");
        self.known_variables.extend([variable.clone(), file_variable.clone()]);
        let unreadable = [&variable, &file_variable].into_iter().find(|name| self.sources.unreadable.contains(*name));
        if let Some(name) = unreadable {
            self.faults.push(format!("{}: is not UTF-8 (from {name})", declaration.name()));
            return None;
        }
        let value = self.sources.environment.get(&variable).cloned();
        let file = self.sources.environment.get(&file_variable).cloned();
        // `docker run --env-file` and Kubernetes keep quotation marks that a shell would remove.
        let quoted = [(&variable, &value), (&file_variable, &file)]
            .into_iter()
            .find(|(_, text)| text.as_deref().is_some_and(is_quoted));
        if let Some((name, _)) = quoted {
            let setting = declaration.name();
            self.faults.push(format!("{setting}: remove the quotation marks around the value (from {name})"));
            return None;
        }
        match (value, file) {
            (Some(_), Some(_)) => {
                self.faults.push(format!("{}: both {variable} and {file_variable} are set", declaration.name()));
                None
            }
            (Some(value), None) => Some(Some((RawSetting::Text(value), SettingOrigin::Environment(variable)))),
            (None, Some(path)) => match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let text = without_byte_order_mark(&text).trim_end_matches(['\r', '\n']);
                    Some(Some((RawSetting::Text(text.to_owned()), SettingOrigin::Environment(file_variable))))
                }
                Err(error) => {
                    // Only what is certainly a path is quoted: it may be the secret itself.
                    let shown = if path.starts_with('/') { path } else { "the file".to_owned() };
                    self.faults.push(format!("{}: {shown}: {error} (from {file_variable})", declaration.name()));
                    None
                }
            },
            (None, None) => Some(None),
        }
    }

    fn in_file(&self, declaration: &Declaration) -> Option<&Value> {
        let sections = declaration.section.split('.').filter(|section| !section.is_empty());
        let mut table = &self.file;
        for section in sections {
            table = table.get(section)?.as_table()?;
        }
        table.get(declaration.key)
    }

    fn refuse_unknown_names(&mut self) {
        let variables = self.sources.environment.keys().chain(&self.sources.unreadable);
        let unknown_variables = variables.filter(|name| !self.known_variables.contains(name.as_str()));
        self.faults.extend(unknown_variables.map(|name| {
            let known = self.known_variables.iter().filter(|known| !known.ends_with("_FILE"));
            format!("{name}: unknown setting{}", nearest(name, known.map(String::as_str)))
        }));
        let mut unknown_keys = Vec::new();
        collect_unknown("", &self.file, &mut unknown_keys);
        let path = self.sources.file.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
        let names: Vec<_> = DECLARATIONS.iter().map(Declaration::name).collect();
        self.faults.extend(unknown_keys.into_iter().map(|name| {
            let line = line_of(&self.text, &name).map(|line| format!(", line {line}")).unwrap_or_default();
            let hint = nearest(&name, names.iter().map(String::as_str));
            format!("{name}: unknown setting{hint} (from {path}{line})")
        }));
    }
}

/// Returns true for a value in one pair of quotation marks.
fn is_quoted(text: &str) -> bool {
    let inside = |quote| text.strip_prefix(quote)?.strip_suffix(quote).map(|inside: &str| !inside.contains(quote));
    ['"', '\''].into_iter().any(|quote| inside(quote) == Some(true))
}

/// Returns a hint at the known name that is most like an unknown one, or nothing.
fn nearest<'name>(unknown: &str, known: impl Iterator<Item = &'name str>) -> String {
    let by_distance = known.map(|name| (strsim::damerau_levenshtein(unknown, name), name));
    match by_distance.min() {
        Some((distance, name)) if distance <= 3 => format!("; is `{name}` meant?"),
        _ => String::new(),
    }
}

/// Returns the line of a key or a section in a file.
fn line_of(text: &str, name: &str) -> Option<usize> {
    let mut section = String::new();
    text.lines()
        .position(|line| {
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                header.trim().clone_into(&mut section);
                return section == name;
            }
            let key = line.split('=').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
            if section.is_empty() { key == name } else { name.strip_prefix(&section) == Some(&format!(".{key}")) }
        })
        .map(|index| index + 1)
}

/// Parses a value of a declaration.
fn parse<T: SettingValue>(text: &str) -> Option<T> {
    T::read(&RawSetting::Text(text.to_owned())).ok()
}

fn collect_unknown(section: &str, table: &toml::Table, unknown: &mut Vec<String>) {
    for (key, value) in table {
        let name = if section.is_empty() { key.clone() } else { format!("{section}.{key}") };
        if DECLARATIONS.iter().any(|declaration| declaration.name() == name) {
            continue;
        }
        let is_section = DECLARATIONS
            .iter()
            .any(|declaration| declaration.section == name || declaration.section.starts_with(&format!("{name}.")));
        match value {
            Value::Table(inner) if is_section => collect_unknown(&name, inner, unknown),
            _ => unknown.push(name),
        }
    }
}

fn raw_of(value: &Value) -> Result<RawSetting, String> {
    let scalar = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(truth) => Ok(truth.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => Err("has a value of the wrong type".to_owned()),
    };
    match value {
        Value::Array(items) => items.iter().map(scalar).collect::<Result<_, _>>().map(RawSetting::List),
        Value::Table(pairs) => {
            let pair = |(name, value): (&String, &Value)| Ok((name.clone(), scalar(value)?));
            pairs.iter().map(pair).collect::<Result<_, _>>().map(RawSetting::Map)
        }
        single => scalar(single).map(RawSetting::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(flags: &[(&str, &str)], environment: &[(&str, &str)]) -> Sources {
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        Sources { flags: owned(flags), environment: owned(environment), ..Sources::default() }
    }

    #[test]
    fn the_defaults_are_right() {
        assert!(load(Sources::default()).is_ok(), "{:?}", load(Sources::default()).err());
    }

    #[test]
    fn variables_of_kubernetes_services_are_no_settings() {
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let links = [
            ("YARROW_SERVICE_HOST", "10.96.12.7"),
            ("YARROW_SERVICE_PORT", "8080"),
            ("YARROW_SERVICE_PORT_HTTP", "8080"),
            ("YARROW_PORT", "tcp://10.96.12.7:8080"),
            ("YARROW_PORT_8080_TCP", "tcp://10.96.12.7:8080"),
            ("YARROW_PORT_8080_TCP_PROTO", "tcp"),
            ("YARROW_PORT_8080_TCP_PORT", "8080"),
            ("YARROW_PORT_8080_TCP_ADDR", "10.96.12.7"),
            ("YARROW_PORT_53_UDP", "udp://[fd00::1]:53"),
            ("YARROW_EMAIL_PORT", "tcp://10.96.12.8:25"),
            ("YARROW_EMAIL_PORT_25_SCTP_PROTO", "sctp"),
            ("YARROW_POSTGRES_SERVICE_HOST", "fd00::2"),
        ];
        let settings = [
            ("YARROW_EMAIL_PORT", "2525"),
            ("YARROW_SERVICE_HOST", "example.org"),
            ("YARROW_PORT", "8080"),
            ("YARROW_PORT_8080_TCP_SPEED", "1"),
            ("YARROW_REPORT_1_TCP", "x"),
        ];
        for link in links {
            assert_eq!(take_service_links(&mut owned(&[link])), [link.0], "{link:?}");
        }
        for setting in settings {
            assert!(take_service_links(&mut owned(&[setting])).is_empty(), "{setting:?}");
        }
    }

    #[test]
    fn lines_of_keys_and_sections_are_found() {
        let text = "top = 1\n[server]\n# listne = 1\n listne = \"x\"\n[nowhere]\na = 1\n[a.b]\n\"c\" = 2\n";
        for (name, line) in
            [("top", Some(1)), ("server.listne", Some(4)), ("nowhere", Some(5)), ("a.b.c", Some(8)), ("x", None)]
        {
            assert_eq!(line_of(text, name), line, "{name}");
        }
        let known = ["server.listen", "llm.model"];
        assert_eq!(nearest("server.listne", known.into_iter()), "; is `server.listen` meant?");
        assert_eq!(nearest("nowhere", known.into_iter()), "");
    }

    #[test]
    fn quotation_marks_around_a_whole_value_are_refused() {
        for (value, is_refused) in
            [("\"https://a.example\"", true), ("'https://a.example'", true), ("https://a.example", false)]
        {
            let loaded = load(sources(&[], &[("YARROW_SERVER_PUBLIC_URL", value)]));
            let fault = loaded.err().map(|error| error.detail.to_string());
            let expected =
                "server.public_url: remove the quotation marks around the value (from YARROW_SERVER_PUBLIC_URL)";
            assert_eq!(fault.as_deref(), is_refused.then_some(expected));
        }
    }

    #[test]
    fn rejects_limits_that_forbid_all_requests() {
        let wrong =
            [("YARROW_LIMITS_BODY", "0 B"), ("YARROW_LIMITS_QUESTION", "0"), ("YARROW_LLM_IDLE_TIMEOUT", "0 s")];
        let faults = load(sources(&[], &wrong)).unwrap_err().detail.clone();
        for name in ["limits.body: must", "limits.question: must", "llm.idle_timeout: must"] {
            assert!(faults.contains(name), "{name} is not in:\n{faults}");
        }
    }
}
