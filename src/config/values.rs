//! The value types of settings: how each is parsed from text, file and environment, and how it is formatted.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use ipnet::IpNet;
use jiff::{Span, SpanRelativeTo};
use secrecy::{ExposeSecret, SecretString};

use super::masking::mask_url_secrets;
use crate::types::{
    Currency, Date, EmailAddress, Fen, HostPattern, MicroAmount, OriginPattern, Region, TimeZone, named_enum,
    parse_network, pluralize, without_byte_order_mark,
};

/// An untyped value. The environment has only texts; a file also has lists and tables.
#[derive(Clone, Debug)]
pub enum RawSetting {
    Text(String),
    List(Vec<String>),
    Map(BTreeMap<String, String>),
}

pub trait SettingValue: Sized {
    /// The format of a value, for messages.
    const SHAPE: &'static str;

    fn read(raw: &RawSetting) -> Result<Self, String>;

    /// Formats the value for the TOML file, secrets masked; empty if unset.
    fn show(&self) -> String;
}

pub fn sample<T: SettingValue>(default: &str) -> String {
    T::read(&RawSetting::Text(default.to_owned())).map(|value| value.show()).unwrap_or_default()
}

pub(super) fn text(raw: &RawSetting) -> Result<&str, String> {
    match raw {
        RawSetting::Text(text) => Ok(without_byte_order_mark(text.trim()).trim()),
        RawSetting::List(_) | RawSetting::Map(_) => Err("must be a single value".into()),
    }
}

pub(super) fn quoted(text: impl std::fmt::Display) -> String {
    format!("\"{}\"", text.to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

/// Settings parsed and formatted by their type's own text.
macro_rules! plain {
    ($($type:ty, $shape:literal, $fault:literal, $show:expr;)*) => {$(
        impl SettingValue for $type {
            const SHAPE: &'static str = $shape;

            fn read(raw: &RawSetting) -> Result<Self, String> {
                let text = text(raw)?;
                text.parse().map_err(|_| format!("`{text}` {}", $fault))
            }

            fn show(&self) -> String {
                $show(self)
            }
        }
    )*};
}

plain! {
    u16, "number", "is not a whole number from 0 to 65535", ToString::to_string;
    u32, "number", "is not a whole number from 0 to 4294967295", ToString::to_string;
    u64, "number", "is not a whole number from 0 to 18446744073709551615", ToString::to_string;
    MicroAmount, "amount", "is not an amount with at most six decimals, such as 12.50", quoted;
    f64, "number", "is not a number", ToString::to_string;
    bool, "true or false", "is neither true nor false", ToString::to_string;
    SocketAddr, "address:port", "is not an address with a port, such as 127.0.0.1:8080", quoted;
    Region, "region", "is not a two-letter region code", quoted;
    HostPattern, "host name", "is not a host name, such as example.com or *.example.com", quoted;
    Date, "day", "is not a day, such as 2027-12-31", quoted;
    OriginPattern, "origin", "is not the origin of a page, such as https://app.example.com or https://*.example.com", quoted;
    EmailAddress, "email address", "is not an email address", quoted;
    Currency, "currency", "is not a currency code of three letters, such as CNY", quoted;
    TimeZone, "time zone", "is not a time zone, such as Asia/Shanghai", quoted;
}

impl SettingValue for IpNet {
    const SHAPE: &'static str = "network";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        let text = text(raw)?;
        parse_network(text).ok_or_else(|| format!("`{text}` is not a network, such as 10.0.0.0/8"))
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

impl SettingValue for String {
    const SHAPE: &'static str = "text";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        text(raw).map(ToOwned::to_owned)
    }

    fn show(&self) -> String {
        quoted(mask_url_secrets(self))
    }
}

impl SettingValue for SecretString {
    const SHAPE: &'static str = "secret text";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        text(raw).map(SecretString::from)
    }

    fn show(&self) -> String {
        if self.expose_secret().is_empty() { String::new() } else { quoted("****") }
    }
}

impl<T: SettingValue> SettingValue for Option<T> {
    const SHAPE: &'static str = T::SHAPE;

    fn read(raw: &RawSetting) -> Result<Self, String> {
        match raw {
            RawSetting::Text(text) if text.trim().is_empty() => Ok(None),
            _ => T::read(raw).map(Some),
        }
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(String::new, SettingValue::show)
    }
}

/// Collects the values, or else joins all faults.
fn all_or_every_fault<T>(values: impl Iterator<Item = Result<T, String>>) -> Result<Vec<T>, String> {
    let (mut read, mut faults) = (Vec::new(), Vec::new());
    for value in values {
        match value {
            Ok(value) => read.push(value),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(read) } else { Err(faults.join("; ")) }
}

impl<T: SettingValue> SettingValue for Vec<T> {
    const SHAPE: &'static str = "list";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        let items: Vec<String> = match raw {
            RawSetting::Text(text) => text.split(',').map(|item| item.trim().to_owned()).collect(),
            RawSetting::List(items) => items.clone(),
            RawSetting::Map(_) => return Err("must be a list".into()),
        };
        let items = items.into_iter().filter(|item| !item.is_empty());
        all_or_every_fault(items.map(|item| T::read(&RawSetting::Text(item))))
    }

    fn show(&self) -> String {
        format!("[{}]", self.iter().map(SettingValue::show).collect::<Vec<_>>().join(", "))
    }
}

impl<T: SettingValue> SettingValue for BTreeMap<String, T> {
    const SHAPE: &'static str = "table";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        let pairs: Vec<(String, String)> = match raw {
            RawSetting::Text(text) => {
                let pairs = text.split(',').filter(|pair| !pair.trim().is_empty()).enumerate();
                all_or_every_fault(pairs.map(|(index, pair)| match pair.split_once('=') {
                    Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
                    // The pair is not quoted, because it may be a secret.
                    None => Err(format!("pair {} is not `name=value`", index + 1)),
                }))?
            }
            RawSetting::Map(map) => map.clone().into_iter().collect(),
            RawSetting::List(_) => return Err("must be a table".into()),
        };
        let read = |(name, value)| Ok((name, T::read(&RawSetting::Text(value))?));
        Ok(all_or_every_fault(pairs.into_iter().map(read))?.into_iter().collect())
    }

    fn show(&self) -> String {
        let pairs: Vec<_> = self.iter().map(|(name, value)| format!("{} = {}", quoted(name), value.show())).collect();
        if pairs.is_empty() { "{}".into() } else { format!("{{ {} }}", pairs.join(", ")) }
    }
}

impl SettingValue for Duration {
    const SHAPE: &'static str = "duration";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        let text = text(raw)?;
        let read = || {
            let span: Span = text.parse().ok()?;
            Self::try_from(span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?).ok()
        };
        read().ok_or_else(|| format!("`{text}` is not a duration, such as `30 days`, `5 minutes` or `30 s`"))
    }

    fn show(&self) -> String {
        const UNITS: [(u64, &str, &str); 4] =
            [(86_400, "day", "days"), (3_600, "hour", "hours"), (60, "minute", "minutes"), (1, "second", "seconds")];
        let seconds = self.as_secs();
        if seconds == 0 || self.subsec_millis() > 0 {
            return quoted(format!("{} ms", self.as_millis()));
        }
        let unit = UNITS.iter().find(|(size, ..)| seconds.is_multiple_of(*size));
        unit.map_or_else(String::new, |(size, one, many)| quoted(pluralize(seconds / size, one, many)))
    }
}

/// A number of bytes, such as `64 KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Bytes {
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

const SIZES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl SettingValue for Bytes {
    const SHAPE: &'static str = "size";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        let text = text(raw)?;
        let (number, size) = SIZES
            .iter()
            .find_map(|(unit, size)| text.strip_suffix(unit).map(|number| (number.trim_end(), *size)))
            .unwrap_or((text, 1));
        let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(size));
        bytes.map(Self).ok_or_else(|| format!("`{text}` is not a size, such as `64 KiB`"))
    }

    fn show(&self) -> String {
        let fits = |(_, size): &&(&str, u64)| self.0.is_multiple_of(*size) && (self.0 > 0 || *size == 1);
        SIZES.iter().find(fits).map_or_else(String::new, |(unit, size)| quoted(format!("{} {unit}", self.0 / size)))
    }
}

/// A directory of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory(pub PathBuf);

impl SettingValue for Directory {
    const SHAPE: &'static str = "directory";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        match text(raw)? {
            "" => Err("must not be empty".into()),
            path => Ok(Self(path.into())),
        }
    }

    fn show(&self) -> String {
        quoted(self.0.display())
    }
}

/// Sorts the rows of a table. An amount may occur only once.
fn sorted_by_amount<T: Ord>(mut rows: Vec<(Fen, T)>) -> Result<Vec<(Fen, T)>, String> {
    rows.sort_unstable();
    match rows.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(format!("`{}` occurs twice", pair[0].0)),
        None => Ok(rows),
    }
}

/// A package: an amount of money, and the coins that it buys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packages(pub Vec<(Fen, u32)>);

impl SettingValue for Packages {
    const SHAPE: &'static str = "table of yuan and coins";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        let package = |(amount, coin_count): (String, u32)| match amount.parse::<Fen>() {
            Ok(fen) if fen > Fen::ZERO && coin_count > 0 => Ok((fen, coin_count)),
            Ok(_) => Err(format!("`{amount} = {coin_count}`: neither yuan nor coins may be 0")),
            Err(fault) => Err(format!("`{amount}`: {fault}")),
        };
        let packages = all_or_every_fault(BTreeMap::<String, u32>::read(raw)?.into_iter().map(package))?;
        sorted_by_amount(packages).map(Self)
    }

    fn show(&self) -> String {
        let packages: Vec<_> = self.0.iter().map(|(amount, count)| format!("{} = {count}", quoted(amount))).collect();
        format!("{{ {} }}", packages.join(", "))
    }
}

/// Prices in another currency, by the price in yuan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices(pub Vec<(Fen, Fen)>);

impl SettingValue for Prices {
    const SHAPE: &'static str = "table of yuan and prices";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        let price = |(yuan, price): (String, String)| match (yuan.parse::<Fen>(), price.parse::<Fen>()) {
            (Ok(yuan), Ok(price)) if yuan > Fen::ZERO && price > Fen::ZERO => Ok((yuan, price)),
            (Ok(_), Ok(_)) => Err(format!("`{yuan} = {price}`: neither price may be 0")),
            (Err(fault), _) | (_, Err(fault)) => Err(format!("`{yuan} = {price}`: {fault}")),
        };
        let prices = all_or_every_fault(BTreeMap::<String, String>::read(raw)?.into_iter().map(price))?;
        sorted_by_amount(prices).map(Self)
    }

    fn show(&self) -> String {
        let prices: Vec<_> =
            self.0.iter().map(|(yuan, price)| format!("{} = {}", quoted(yuan), quoted(price))).collect();
        format!("{{ {} }}", prices.join(", "))
    }
}

/// The price of a model's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenPrice {
    /// For a million prompt tokens.
    pub prompt: MicroAmount,
    /// For a million completion tokens.
    pub completion: MicroAmount,
}

impl SettingValue for TokenPrice {
    const SHAPE: &'static str = "amount/amount";

    fn read(raw: &RawSetting) -> Result<Self, String> {
        let text = text(raw)?;
        let price = || {
            let (prompt, completion) = text.split_once('/')?;
            Some(Self { prompt: prompt.trim().parse().ok()?, completion: completion.trim().parse().ok()? })
        };
        price().ok_or_else(|| format!("`{text}` is not a price for a million tokens in and out, such as `2.00/8.00`"))
    }

    fn show(&self) -> String {
        quoted(format!("{}/{}", self.prompt, self.completion))
    }
}

/// Settings with a fixed set of values.
macro_rules! choice {
    ($($(#[$doc:meta])* $name:ident { $variant:ident = $word:literal $(, $other:ident = $other_word:literal)* })*) => {$(
        named_enum! {
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
            pub enum $name { $variant = $word, $($other = $other_word,)* }
        }

        impl SettingValue for $name {
            const SHAPE: &'static str = concat!($word $(, ", ", $other_word)*);

            fn read(raw: &RawSetting) -> Result<Self, String> {
                let text = text(raw)?;
                Self::from_name(text).ok_or_else(|| format!("`{text}` is not one of: {}", Self::SHAPE))
            }

            fn show(&self) -> String {
                quoted(self.name())
            }
        }
    )*};
}

choice! {
    /// The SMS driver.
    SmsProvider { Console = "console", Aliyun = "aliyun", Tencent = "tencent", Http = "http" }
    /// The status of the response to a wrong verification code.
    WrongCodeStatus { Unauthorized = "401", UnprocessableContent = "422" }
    /// The email driver.
    EmailProvider { Console = "console", Smtp = "smtp", Http = "http" }
    /// The encryption of the connection to the mail server.
    EmailTls { None = "none", Starttls = "starttls", Tls = "tls" }
    /// The treatment of a text with a listed word, the mildest first.
    MatchAction { Review = "review", Mask = "mask", Block = "block" }
    /// The external moderation service.
    ModerationProvider { None = "none", Aliyun = "aliyun", Http = "http", Llm = "llm" }
    /// The language model provider.
    LlmProvider { Builtin = "builtin", Openai = "openai" }
    /// The payment gateway.
    PaymentProvider { Sandbox = "sandbox", Alipay = "alipay", Wechat = "wechat", Stripe = "stripe" }
    /// The position of the bucket's name in URLs.
    S3Addressing { Path = "path", Host = "host" }
    /// The format of log lines.
    LogFormat { Text = "text", Json = "json" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<T: SettingValue>(text: &str) -> Result<String, String> {
        T::read(&RawSetting::Text(text.into())).map(|value| value.show())
    }

    #[test]
    fn parses_durations_and_sizes() {
        assert_eq!(shown::<Duration>("30 days").as_deref(), Ok("\"30 days\""));
        assert_eq!(shown::<Duration>("5 min").as_deref(), Ok("\"5 minutes\""));
        assert_eq!(shown::<Duration>("1000 ms").as_deref(), Ok("\"1 second\""));
        assert_eq!(shown::<Duration>("90s").as_deref(), Ok("\"90 seconds\""));
        assert_eq!(shown::<Duration>("1h 30m").as_deref(), Ok("\"90 minutes\""));
        assert!(shown::<Duration>("soon").is_err() && shown::<Duration>("-5 s").is_err());
        assert_eq!(shown::<Bytes>("64 KiB").as_deref(), Ok("\"64 KiB\""));
        assert_eq!(shown::<Bytes>("1024").as_deref(), Ok("\"1 KiB\""));
        assert_eq!(shown::<Bytes>("0 B").as_deref(), Ok("\"0 B\""));
        assert!(shown::<Bytes>("many").is_err() && shown::<Bytes>("99999999999 GiB").is_err());
    }

    #[test]
    fn parses_lists_and_tables_on_one_line() {
        assert_eq!(shown::<Vec<Region>>("CN, GB").as_deref(), Ok("[\"CN\", \"GB\"]"));
        assert_eq!(shown::<Vec<IpNet>>("").as_deref(), Ok("[]"));
        assert_eq!(shown::<BTreeMap<String, String>>("a=1,b=2").as_deref(), Ok("{ \"a\" = \"1\", \"b\" = \"2\" }"));
        assert!(shown::<BTreeMap<String, String>>("a").is_err());
        let faults = shown::<Vec<IpNet>>("10.0.0.0/8,x,y").unwrap_err();
        assert!(faults.contains("`x`") && faults.contains("`y`"), "{faults}");
        let faults = shown::<BTreeMap<String, u32>>("a=x,b=2,c=y").unwrap_err();
        assert!(faults.contains("`x`") && faults.contains("`y`"), "{faults}");
    }

    #[test]
    fn parses_packages() {
        let shown = |text| shown::<Packages>(text);
        assert_eq!(shown("30=330, 6.5=60").as_deref(), Ok("{ \"6.50\" = 60, \"30.00\" = 330 }"));
        for text in ["6", "0=1", "6.00=0", "6.001=1", "-1=1", "6=many", "6=60,6.0=61"] {
            assert!(shown(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prices_in_another_currency_have_two_amounts() {
        assert_eq!(shown::<Prices>("30=4.99, 6=0.99").as_deref(), Ok("{ \"6.00\" = \"0.99\", \"30.00\" = \"4.99\" }"));
        for text in ["6", "0=1", "6=0", "6=0.999", "6=1,6.0=2"] {
            assert!(shown::<Prices>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prices_are_two_amounts() {
        assert_eq!(shown::<TokenPrice>("2/8.5").as_deref(), Ok("\"2.00/8.50\""));
        for text in ["", "2", "2/", "/8", "2/8/1", "a/b", "-2/8"] {
            assert!(shown::<TokenPrice>(text).is_err(), "{text}");
        }
        assert!(shown::<bool>("yes").is_err() && shown::<bool>("true").is_ok());
    }

    #[test]
    fn secrets_are_masked() {
        assert_eq!(shown::<Option<SecretString>>("hunter2").as_deref(), Ok("\"****\""));
        assert_eq!(shown::<Option<SecretString>>("").as_deref(), Ok(""));
    }
}
