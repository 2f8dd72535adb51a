//! Facts that are passed and stored as data, and worded for their reader only.
//!
//! `facts!` declares a table: names, typed values, and the words in English and Chinese. A sentence with a value that the
//! fact lacks does not compile, so that no reader has to take a sentence apart.

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::types::Timestamp;

/// Formats a text, or the arguments of a format in parentheses.
macro_rules! words {
    (($($arguments:tt)*)) => { format!($($arguments)*) };
    ($text:tt) => { format!($text) };
}

/// Declares an enum of facts: of each its values, and its words in English and Chinese. Texts name values in braces.
macro_rules! facts {
    ($(#[$about:meta])* $visibility:vis enum $facts:ident {
        $($(#[$doc:meta])* $fact:ident { $($value:ident: $type:ty),* } = $english:tt, $chinese:tt;)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "rule", content = "values", rename_all = "snake_case", rename_all_fields = "camelCase")]
        $visibility enum $facts { $($(#[$doc])* $fact { $($value: $type),* },)* }

        impl $facts {
            /// Returns the fact in words.
            #[allow(unused_variables, reason = "a value may belong to the name of a check")]
            pub fn sentence(&self) -> $crate::error::Sentence {
                use $crate::domain::operations::facts::words;
                match self {
                    $(Self::$fact { $($value),* } => (words!($english), words!($chinese)).into(),)*
                }
            }
        }
    };
}

pub(crate) use {facts, words};

/// Returns name and values of a fact, for a response.
pub fn rule_and_values(fact: &impl Serialize) -> (String, Value) {
    let mut fact = serde_json::to_value(fact).unwrap_or_default();
    (fact["rule"].as_str().unwrap_or_default().to_owned(), fact["values"].take())
}

/// Reads a stored fact, or nothing if this version of the program does not know it.
pub fn known<'de, D: Deserializer<'de>, F: DeserializeOwned>(deserializer: D) -> Result<Option<F>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// Returns the Chinese name of a provider or of one of its drivers, such as `sms` or `payment.alipay`.
pub fn chinese_provider(name: &str) -> String {
    let (kind, driver) =
        name.split_once(['.', ' ']).map_or((name, String::new()), |(kind, driver)| (kind, format!("（{driver}）")));
    let kind = match kind {
        "sms" => "短信",
        "email" => "邮件",
        "llm" => "语言模型",
        "payment" => "支付",
        "moderation" => "外部审核",
        "push" => "推送",
        _ => return name.to_owned(),
    };
    kind.to_owned() + &driver
}

/// Returns a time, or a word if there is none.
pub fn time_or(time: Option<Timestamp>, none: &str) -> String {
    time.map_or_else(|| none.to_owned(), |time| time.to_string())
}
