//! A fake of the services at which users have identities: the keys of Apple and Google, WeChat, and Aliyun's number
//! authentication.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde_json::{Value, json};

use super::{
    Setup,
    fake_provider::{FakeProvider, Latch, ReceivedRequest, Reply},
};

pub const APPLE_APP: &str = "com.example.yarrow";
pub const GOOGLE_APP: &str = "1234-web.apps.googleusercontent.com";
const KEY_ID: &str = "TESTAccessKeyId000000001";
const KEY_SECRET: &str = "TESTAccessKeySecret0000000000001";
const WECHAT_SECRET: &str = "TESTWeChatSecret00000001";

/// Returns the recorded tokens, keys and answers.
pub fn recorded() -> Value {
    serde_json::from_str(include_str!("../../vectors/identity.json")).unwrap()
}

/// The running fake.
pub struct IdentityServices {
    provider: FakeProvider,
    state: Arc<Mutex<ServiceState>>,
}

#[derive(Default)]
struct ServiceState {
    is_down: bool,
    /// Every answer waits for it.
    hang: Option<Latch>,
    /// Codes of WeChat that were exchanged.
    used: Vec<String>,
    key_fetches: usize,
    has_union_ids: bool,
}

impl IdentityServices {
    pub fn start() -> Self {
        let state = Arc::new(Mutex::new(ServiceState::default()));
        let keeper = Arc::clone(&state);
        let provider = FakeProvider::with_handler(move |request| keeper.lock().unwrap().reply(request));
        Self { provider, state }
    }

    /// Returns the settings of a service that uses all of them.
    pub fn configure(&self, setup: Setup) -> Setup {
        let url = self.provider.url();
        setup
            .with("AUTH_APPLE_CLIENT_IDS", "com.example.yarrow,com.example.yarrow.web")
            .with("AUTH_APPLE_KEYS_URL", format!("{url}/apple/keys"))
            .with("AUTH_GOOGLE_CLIENT_IDS", GOOGLE_APP)
            .with("AUTH_GOOGLE_KEYS_URL", format!("{url}/google/certs"))
            .with("AUTH_WECHAT_APP_ID", "wx-test")
            .with("AUTH_WECHAT_APP_SECRET", WECHAT_SECRET)
            .with("AUTH_WECHAT_BASE_URL", &url)
            .with("AUTH_ONE_TAP_ACCESS_KEY_ID", KEY_ID)
            .with("AUTH_ONE_TAP_ACCESS_KEY_SECRET", KEY_SECRET)
            .with("AUTH_ONE_TAP_ENDPOINT", &url)
    }

    /// Makes every service fail, or no longer.
    pub fn set_down(&self, is_down: bool) {
        self.state.lock().unwrap().is_down = is_down;
    }

    /// Makes every service hang until the latch is opened.
    pub fn hang(&self) -> Latch {
        self.state.lock().unwrap().hang.get_or_insert_default().clone()
    }

    /// Makes WeChat name the id in all apps too.
    pub fn add_union_ids(&self) {
        self.state.lock().unwrap().has_union_ids = true;
    }

    pub fn key_fetches(&self) -> usize {
        self.state.lock().unwrap().key_fetches
    }
}

impl ServiceState {
    fn reply(&mut self, request: &ReceivedRequest) -> Reply {
        if let Some(latch) = &self.hang {
            latch.wait();
        }
        if self.is_down {
            return Reply::status(503);
        }
        let recorded = recorded();
        match (request.method.as_str(), request.path()) {
            ("GET", "/apple/keys") => self.keys(&recorded["apple_sign_in"]["jwks"]),
            ("GET", "/google/certs") => self.keys(&recorded["jwks"]),
            ("GET", "/sns/oauth2/access_token") => self.wechat(request),
            ("POST", "/") => mobile(request, &recorded["aliyun_one_tap"]["answers"]),
            other => panic!("unsupported call {other:?}"),
        }
    }

    fn keys(&mut self, keys: &Value) -> Reply {
        self.key_fetches += 1;
        Reply::json(keys.to_string()).header("cache-control", "public, max-age=22935")
    }

    /// WeChat answers with status 200 and plain text, also to errors.
    fn wechat(&mut self, request: &ReceivedRequest) -> Reply {
        let parameter = |name: &str| request.parameter(name).unwrap_or_default();
        let answer = |body: Value| Reply::status(200).header("content-type", "text/plain").body(body.to_string());
        let code = parameter("code");
        if parameter("appid") != "wx-test" || parameter("secret") != WECHAT_SECRET {
            return answer(json!({ "errcode": 40125, "errmsg": "invalid appsecret, rid: 1" }));
        }
        assert_eq!(parameter("grant_type"), "authorization_code");
        if self.used.contains(&code) {
            return answer(json!({ "errcode": 40163, "errmsg": "code been used, rid: 1" }));
        }
        let Some(person) = code.strip_prefix("code-of-").and_then(|rest| rest.split('-').next()) else {
            return answer(json!({ "errcode": 40029, "errmsg": "invalid code, rid: 1" }));
        };
        self.used.push(code.clone());
        let mut body = json!({
            "access_token": "ACCESS", "expires_in": 7200, "refresh_token": "REFRESH", "openid": format!("open-{person}"),
            "scope": "snsapi_userinfo",
        });
        if self.has_union_ids {
            body["unionid"] = format!("union-{person}").into();
        }
        answer(body)
    }
}

/// Answers `GetMobile`, which must be signed.
fn mobile(request: &ReceivedRequest, answers: &Value) -> Reply {
    if request.check_acs3(KEY_ID, KEY_SECRET).is_err() {
        return Reply::json(r#"{"Code":"SignatureDoesNotMatch","RequestId":"R"}"#).with_status(400);
    }
    assert_eq!(
        (request.header("x-acs-action"), request.header("x-acs-version")),
        (Some("GetMobile"), Some("2017-05-25"))
    );
    match request.parameter("AccessToken").as_deref() {
        Some("eyJvIjoiTCIsImEiOiJ0b2tlbiJ9+/=") => Reply::json(answers["ok"].to_string()),
        _ => Reply::json(answers["refused"].to_string()),
    }
}

pub fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// Returns a token of Apple for a person, issued now. `changes` replaces claims.
pub fn apple_token(subject: &str, changes: Value) -> String {
    let claims = json!({
        "iss": "https://appleid.apple.com", "aud": APPLE_APP, "iat": now(), "exp": now() + 3600, "sub": subject,
        "jti": unique(),
    });
    sign("apple_id_signer", "W6WcOKB", "RS256", with(claims, changes))
}

/// Returns a token of Google for a person, issued now. `changes` replaces claims.
pub fn google_token(subject: &str, changes: Value) -> String {
    let claims = json!({
        "iss": "https://accounts.google.com", "aud": GOOGLE_APP, "iat": now(), "exp": now() + 3600, "sub": subject,
        "jti": unique(),
    });
    sign("google_signer", "key-1", "RS256", with(claims, changes))
}

/// Returns a recorded token with its times moved to now. Its fault stays: another signer, header or claim.
pub fn moved_to_now(token: &str, recorded_at: i64, signer: &str) -> String {
    let decode = |part: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let (header, mut claims) = (decode(parts[0]), decode(parts[1]));
    for name in ["iat", "exp", "auth_time"] {
        if let Some(at) = claims[name].as_i64() {
            claims[name] = (at - recorded_at + now()).into();
        }
    }
    sign(signer, header["kid"].as_str().unwrap(), header["alg"].as_str().unwrap(), claims)
}

/// Returns a number that no other token has.
fn unique() -> usize {
    static TOKENS: AtomicUsize = AtomicUsize::new(0);
    TOKENS.fetch_add(1, Ordering::Relaxed)
}

fn with(mut claims: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

fn sign(signer: &str, key_id: &str, algorithm: &str, claims: Value) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({ "alg": algorithm, "kid": key_id, "typ": "JWT" });
    let text = format!("{}.{}", encode(&header), encode(&claims));
    let recorded = recorded();
    let pem = recorded["keys"][signer]["private_pkcs8_pem"].as_str().unwrap();
    let der = STANDARD.decode(pem.lines().filter(|line| !line.starts_with('-')).collect::<String>()).unwrap();
    let key = RsaKeyPair::from_pkcs8(&der).unwrap();
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}
