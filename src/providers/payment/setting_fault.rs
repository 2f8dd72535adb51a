//! Faults in the settings of a payment provider that can be detected before the first call.

use std::fmt;

use crate::providers::client::BaseUrl;

/// A fault of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingFault {
    /// The name of the field in the provider's settings.
    pub setting: &'static str,
    /// The fault, without the setting's value.
    pub fault: String,
}

impl fmt::Display for SettingFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.setting, self.fault)
    }
}

/// Returns true for an encrypted connection or one on this machine. Requests may carry keys, and responses decide
/// about money.
pub(super) fn is_safe_endpoint(provider: &'static str, url: &str) -> bool {
    let local = ["127.0.0.1", "localhost", "[::1]"];
    let endpoint = BaseUrl::parse(provider, url);
    endpoint.is_ok_and(|endpoint| endpoint.base().starts_with("https://") || local.contains(&endpoint.host()))
}

/// Adds a fault to the list if an address of the provider is not a safe endpoint.
pub(super) fn require_safe_endpoint(
    provider: &'static str,
    setting: &'static str,
    url: &str,
    faults: &mut Vec<SettingFault>,
) {
    if !is_safe_endpoint(provider, url) {
        faults.push(fault(setting, "must be an https address without a query"));
    }
}

/// Returns the parsed key, or adds its fault to the list.
pub(super) fn keep<T, E: fmt::Display>(
    parsed: Result<T, E>,
    setting: &'static str,
    faults: &mut Vec<SettingFault>,
) -> Option<T> {
    parsed.map_err(|error| faults.push(fault(setting, &error.to_string()))).ok()
}

pub(super) fn fault(setting: &'static str, fault: &str) -> SettingFault {
    SettingFault { setting, fault: fault.to_owned() }
}
