//! The macro that turns one declaration into a field, a key, a variable, a flag and help.

use std::fmt;

/// The declaration of a setting.
#[derive(Debug)]
pub struct Declaration {
    /// Section of the TOML file; empty for the top level.
    pub section: &'static str,
    pub key: &'static str,
    /// The default, as written in an environment variable.
    pub default: &'static str,
    /// Name of the flag without dashes, if there is one.
    pub flag: Option<&'static str>,
    pub help: &'static str,
    /// The format of a value, for the sample file.
    pub shape: &'static str,
    /// The default as written in the TOML file; empty if unset.
    pub sample: fn() -> String,
    pub section_help: &'static str,
}

impl Declaration {
    /// `section.key`, as messages name it.
    pub fn name(&self) -> String {
        if self.section.is_empty() { self.key.to_owned() } else { format!("{}.{}", self.section, self.key) }
    }

    pub fn variable(&self) -> String {
        format!("YARROW_{}", self.name().replace('.', "_").to_uppercase())
    }
}

/// The place that a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    Default,
    /// A demonstration replaces the value.
    Demo,
    /// The path of the configuration file.
    File(String),
    /// The name of the variable.
    Environment(String),
    CommandLine(&'static str),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::Demo => formatter.write_str("demo"),
            Self::File(name) | Self::Environment(name) => formatter.write_str(name),
            Self::CommandLine(flag) => write!(formatter, "--{flag}"),
        }
    }
}

/// The value of a setting and its origin, for `config show`. Secrets are masked.
#[derive(Clone, Debug)]
pub struct ResolvedSetting {
    pub name: String,
    /// As in the TOML file; empty if unset.
    pub value: String,
    pub origin: SettingOrigin,
}

impl ResolvedSetting {
    /// Returns the value as JSON; null if unset.
    pub fn to_json(&self) -> serde_json::Value {
        let table = toml::from_str::<toml::Table>(&format!("value = {}", self.value)).ok();
        let value = table.and_then(|mut table| table.remove("value"));
        value.and_then(|value| serde_json::to_value(value).ok()).unwrap_or_default()
    }
}

macro_rules! settings {
    ($(
        #[doc = $section_help:literal]
        $section:literal $field:ident : $type_name:ident {
            $($key:ident : $type:ty = $default:literal $(, at_least $least:literal)? $(, flag $flag_name:literal)?, $help:literal;)*
        }
    )*) => {
        $(
            #[doc = $section_help]
            #[derive(Clone, Debug)]
            pub struct $type_name { $(#[doc = $help] pub $key: $type,)* }
        )*

        /// All settings, validated. `Debug` masks the secrets.
        #[derive(Clone, Debug)]
        pub struct Config { $(#[doc = $section_help] pub $field: $type_name,)* }

        /// The declarations of all settings, in the order of the sample file.
        pub static DECLARATIONS: &[Declaration] = &[$($(
            Declaration {
                section: $section,
                key: stringify!($key),
                default: $default,
                flag: declare::flag_name!($($flag_name)?),
                help: $help,
                shape: <$type as values::SettingValue>::SHAPE,
                sample: || values::sample::<$type>($default),
                section_help: $section_help,
            },
        )*)*];

        impl Config {
            /// Takes every setting from the resolver, which collects the faults and substitutes defaults. Returns
            /// `None` if a default is invalid.
            pub(super) fn assemble(resolver: &mut sources::Resolver) -> Option<Self> {
                let mut declarations = DECLARATIONS.iter();
                $( $( let $key = declare::take!(resolver, declarations.next()?, $type $(, $least)?); )*
                   let $field = (|| Some($type_name { $($key: $key?,)* }))(); )*
                Some(Self { $($field: $field?,)* })
            }
        }
    };
}

macro_rules! take {
    ($resolver:ident, $declaration:expr, $type:ty) => {
        $resolver.take::<$type>($declaration)
    };
    ($resolver:ident, $declaration:expr, $type:ty, $least:literal) => {
        $resolver.take_at_least::<$type>($declaration, $least)
    };
}

macro_rules! flag_name {
    () => {
        None
    };
    ($name:literal) => {
        Some($name)
    };
}

pub(super) use {flag_name, settings, take};
