//! Sign-in with WeChat: the app's code is exchanged for the ids of the person.
//!
//! Errors come with status 200 and an `errcode`. The app secret is part of the URL, so no URL may be logged.

use std::{fmt, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{ProofFault, rejected};
use crate::providers::json;
use crate::providers::{
    Failure, FailureKind,
    client::{BaseUrl, Client, Limits},
    percent,
};

const NAME: &str = "wechat";
const CONNECT: Duration = Duration::from_secs(3);
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
const MAX_ID: usize = 128;

/// The app on WeChat's open platform. `Debug` hides the secret.
#[derive(Clone, Debug)]
pub struct WeChatSignInSettings {
    pub app_id: String,
    pub app_secret: SecretString,
    pub base_url: String,
    pub timeout: Duration,
}

/// Exchanges the codes of one app.
pub struct WeChatSignIn {
    settings: WeChatSignInSettings,
    client: Client,
}

/// The ids of a person in WeChat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeChatPerson {
    /// The id in this app.
    pub open_id: String,
    /// The id in all apps of the operator, if they are bound to one account.
    pub union_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenResponse {
    errcode: i64,
    openid: String,
    unionid: String,
}

impl WeChatSignIn {
    pub fn new(settings: WeChatSignInSettings) -> Self {
        // A code can be exchanged once, so a lost connection must not look like a used code.
        let client =
            Client::new(NAME, "auth.wechat.base_url", Limits::for_whole_calls(CONNECT, settings.timeout, false));
        Self { settings, client }
    }

    /// Exchanges a code. Blocks.
    ///
    /// # Errors
    /// The code is rejected, or WeChat did not answer or refused this service.
    pub fn exchange(&self, code: &str) -> Result<WeChatPerson, ProofFault> {
        let base = BaseUrl::parse(NAME, &self.settings.base_url)?;
        let url = format!(
            "{}/sns/oauth2/access_token?appid={}&secret={}&code={}&grant_type=authorization_code",
            base.base(),
            percent::encode(&self.settings.app_id),
            percent::encode(self.settings.app_secret.expose_secret()),
            percent::encode(code),
        );
        let response = self.client.send("GET", &url, &[], b"")?;
        if response.status != 200 {
            return Err(Failure::new(
                FailureKind::of_status(response.status),
                NAME,
                format!("http_{}", response.status),
            )
            .into());
        }
        person_of(&response.read_all(MAX_RESPONSE_BYTES)?)
    }
}

fn person_of(body: &[u8]) -> Result<WeChatPerson, ProofFault> {
    let unreadable = || Failure::new(FailureKind::InvalidResponse, NAME, "answer_not_understood");
    let response: TokenResponse = json::from_slice(body).map_err(|_| unreadable())?;
    let failed = |kind| Err(Failure::new(kind, NAME, response.errcode.to_string()).into());
    match response.errcode {
        0 => {}
        // Invalid, expired, used, or of another app.
        40029 | 40163 | 41008 | 42003 => return Err(rejected(format!("errcode {}", response.errcode))),
        -1 | 45011 => return failed(FailureKind::Busy),
        _ => return failed(FailureKind::Misconfigured),
    }
    let is_id = |id: &str| !id.is_empty() && id.len() <= MAX_ID;
    if !is_id(&response.openid) {
        return Err(unreadable().into());
    }
    let union_id = Some(response.unionid).filter(|id| is_id(id));
    Ok(WeChatPerson { open_id: response.openid, union_id })
}

impl fmt::Debug for WeChatSignIn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WeChatSignIn").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ids_and_errors() {
        let person = person_of(
            br#"{"access_token":"T","expires_in":7200,"refresh_token":"R","openid":"o1","scope":"snsapi_userinfo","unionid":"u1"}"#,
        );
        assert_eq!(person, Ok(WeChatPerson { open_id: "o1".into(), union_id: Some("u1".into()) }));
        assert_eq!(person_of(br#"{"openid":"o1"}"#).unwrap().union_id, None);
        for code in ["40029", "40163"] {
            let body = format!(r#"{{"errcode":{code},"errmsg":"invalid code, rid: 1"}}"#);
            assert!(matches!(person_of(body.as_bytes()), Err(ProofFault::Rejected(_))), "{code}");
        }
        for (code, kind) in
            [("-1", FailureKind::Busy), ("45011", FailureKind::Busy), ("40125", FailureKind::Misconfigured)]
        {
            let fault = person_of(format!(r#"{{"errcode":{code}}}"#).as_bytes()).unwrap_err();
            assert!(matches!(fault, ProofFault::Failed(failure) if failure.kind == kind), "{code}");
        }
        for body in ["", "<html>", "{}", r#"{"openid":""}"#] {
            assert!(matches!(person_of(body.as_bytes()), Err(ProofFault::Failed(_))), "{body}");
        }
    }
}
