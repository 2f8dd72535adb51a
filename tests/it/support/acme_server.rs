//! An ACME server (RFC 8555) for one name at a time. It checks signatures, nonces, URLs, accounts, challenges and
//! certificate requests.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData,
    SignatureAlgorithm, date_time_ymd,
};
use ring::{digest, signature};
use serde_json::{Value, json};

use super::{
    client::Request,
    fake_provider::{FakeProvider, ReceivedRequest, Reply},
};

/// The challenge token.
pub const TOKEN: &str = "a-token-of-the-authority";

/// The faults to simulate, and how often.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelBehaviour {
    /// The number of orders that fail with 500.
    pub failing_orders: usize,
    /// The number of nonces that are rejected as stale.
    pub stale_nonces: usize,
    /// The number of certificates that are issued already expired.
    pub expired_certificates: usize,
}

/// A running ACME server.
pub struct AcmeServer {
    provider: FakeProvider,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    address_to_validate: Mutex<Option<SocketAddr>>,
    reported: Condvar,
    root: CertifiedIssuer<'static, KeyPair>,
}

#[derive(Default)]
struct State {
    base: String,
    behaviour: ModelBehaviour,
    nonces: HashSet<String>,
    nonces_given: usize,
    /// The account keys, in order of registration.
    accounts: Vec<Value>,
    contacts: Vec<String>,
    name: String,
    is_proved: bool,
    chain: Option<String>,
    issued: usize,
    complaints: Vec<String>,
}

/// A request whose signature was verified.
struct Signed {
    key: Value,
    /// `None` for POST-as-GET.
    payload: Option<Value>,
}

impl AcmeServer {
    pub fn new(behaviour: ModelBehaviour) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let state = Mutex::new(State { behaviour, ..State::default() });
        let shared = Arc::new(Shared { state, address_to_validate: Mutex::default(), reported: Condvar::new(), root });
        let at_work = Arc::clone(&shared);
        let provider = FakeProvider::with_handler(move |request| at_work.response(request));
        shared.state.lock().unwrap().base = provider.url();
        Self { provider, shared }
    }

    /// Returns the directory URL.
    pub fn directory(&self) -> String {
        format!("{}/directory", self.provider.url())
    }

    /// Returns the root certificate as PEM.
    pub fn root(&self) -> String {
        self.shared.root.pem()
    }

    /// Sets the address at which challenges are validated. Validation waits until it is set.
    pub fn set_address(&self, address: SocketAddr) {
        *self.shared.address_to_validate.lock().unwrap() = Some(address);
        self.shared.reported.notify_all();
    }

    /// Makes validation wait for the next `look_at`.
    pub fn forget_address(&self) {
        *self.shared.address_to_validate.lock().unwrap() = None;
    }

    pub fn issued(&self) -> usize {
        self.shared.state.lock().unwrap().issued
    }

    pub fn accounts(&self) -> usize {
        self.shared.state.lock().unwrap().accounts.len()
    }

    /// Forgets all accounts, as an authority does that is set up anew.
    pub fn forget_accounts(&self) {
        let mut state = self.shared.state.lock().unwrap();
        state.accounts.iter_mut().for_each(|key| *key = Value::Null);
    }

    pub fn contacts(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().contacts.clone()
    }

    /// Returns the reasons for which requests were rejected.
    pub fn complaints(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().complaints.clone()
    }
}

impl Shared {
    fn response(&self, request: &ReceivedRequest) -> Reply {
        let mut state = self.state.lock().unwrap();
        let reply = match self.reply(&mut state, request) {
            Ok(reply) => reply,
            Err(fault) => {
                state.complaints.push(format!("{} {}: {fault}", request.method, request.target));
                problem(400, "malformed", &fault)
            }
        };
        state.nonces_given += 1;
        let nonce = format!("nonce-{}", state.nonces_given);
        state.nonces.insert(nonce.clone());
        reply.header("replay-nonce", &nonce)
    }

    fn reply(&self, state: &mut State, request: &ReceivedRequest) -> Result<Reply, String> {
        let base = state.base.clone();
        match (request.method.as_str(), request.path()) {
            ("GET", "/directory") => {
                return Ok(Reply::json(
                    json!({
                        "newNonce": format!("{base}/nonce"), "newAccount": format!("{base}/account"),
                        "newOrder": format!("{base}/order"), "revokeCert": format!("{base}/revoke"),
                        "keyChange": format!("{base}/key"),
                    })
                    .to_string(),
                ));
            }
            ("HEAD", "/nonce") => return Ok(Reply::status(200)),
            ("POST", _) => {}
            _ => return Err("there is no such thing".into()),
        }
        if state.behaviour.stale_nonces > 0 {
            state.behaviour.stale_nonces -= 1;
            return Ok(problem(400, "badNonce", "stale"));
        }
        if state.is_forgotten(request) {
            return Ok(problem(400, "accountDoesNotExist", "No account exists with the provided key"));
        }
        let Signed { key, payload } = state.opened(request)?;
        match request.path() {
            "/account" => state.account(key, &payload.ok_or("no payload")?),
            "/order" => state.order(&payload.ok_or("no payload")?),
            "/order/1" => Ok(Reply::json(state.order_object().to_string())),
            "/authorization/1" => Ok(Reply::json(state.authorization_object().to_string())),
            "/challenge/1" => {
                let found = self.requested(&state.name)?;
                let expected = format!("{TOKEN}.{}", thumbprint(&key));
                state.is_proved = found == expected;
                if !state.is_proved {
                    return Err(format!("found {found:?} where {expected:?} should be"));
                }
                Ok(Reply::json(state.challenge_object().to_string()))
            }
            "/finalize/1" => self.finalize(state, &payload.ok_or("no payload")?),
            "/certificate/1" => {
                let chain = state.chain.clone().ok_or("there is no certificate")?;
                Ok(Reply::status(200).header("content-type", "application/pem-certificate-chain").body(chain))
            }
            _ => Err("there is no such thing".into()),
        }
    }

    /// Fetches the challenge response.
    fn requested(&self, name: &str) -> Result<String, String> {
        let address_to_validate = self.address_to_validate.lock().unwrap();
        let waited =
            self.reported.wait_timeout_while(address_to_validate, Duration::from_secs(20), |address_to_validate| {
                address_to_validate.is_none()
            });
        let address = waited.unwrap().0.ok_or("no address was set")?;
        let url = format!("http://{address}/.well-known/acme-challenge/{TOKEN}");
        let response = Request::new("GET", &url).header("host", name).try_send().map_err(|error| error.to_string())?;
        if response.status == 200 { Ok(response.text()) } else { Err(format!("status {}", response.status)) }
    }

    fn finalize(&self, state: &mut State, payload: &Value) -> Result<Reply, String> {
        if !state.is_proved {
            return Err("the name was not proved".into());
        }
        let request = SigningRequest::parse(&decoded(&payload["csr"])?)?;
        if !request.names(&state.name) {
            return Err(format!("the request is not for {}", state.name));
        }
        let mut params = CertificateParams::new([state.name.clone()]).map_err(|error| error.to_string())?;
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(if state.behaviour.expired_certificates > 0 { 2001 } else { 2090 }, 1, 1);
        state.behaviour.expired_certificates = state.behaviour.expired_certificates.saturating_sub(1);
        let certificate = params.signed_by(&request, &self.root).map_err(|error| error.to_string())?;
        state.chain = Some(format!("{}{}", certificate.pem(), self.root.pem()));
        state.issued += 1;
        Ok(Reply::json(state.order_object().to_string()))
    }
}

impl State {
    /// Verifies a request as RFC 8555, section 6, requires.
    fn opened(&mut self, request: &ReceivedRequest) -> Result<Signed, String> {
        if request.header("content-type") != Some("application/jose+json") {
            return Err("another content type".into());
        }
        let body = request.json();
        let protected: Value = serde_json::from_slice(&decoded(&body["protected"])?).map_err(|e| e.to_string())?;
        if protected["alg"] != "ES256" || protected["url"] != format!("{}{}", self.base, request.target) {
            return Err(format!("the protected header is {protected}"));
        }
        if !self.nonces.remove(protected["nonce"].as_str().unwrap_or_default()) {
            return Err(format!("the nonce {} was not given, or is used", protected["nonce"]));
        }
        let key = match (&protected["jwk"], protected["kid"].as_str()) {
            (key @ Value::Object(_), None) if request.path() == "/account" => key.clone(),
            (Value::Null, Some(account)) => {
                let number = account.strip_prefix(&format!("{}/account/", self.base)).ok_or("unknown account")?;
                let place: usize = number.parse().map_err(|_| "unknown account")?;
                self.accounts.get(place).cloned().ok_or("unknown account")?
            }
            _ => return Err("neither an account nor a new key, or both".into()),
        };
        let point = [vec![4], decoded(&key["x"])?, decoded(&key["y"])?].concat();
        let text = |name: &str| body[name].as_str().ok_or_else(|| format!("no {name}"));
        let signed = format!("{}.{}", text("protected")?, text("payload")?);
        signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
            .verify(signed.as_bytes(), &decoded(&body["signature"])?)
            .map_err(|_| "the signature is wrong")?;
        let payload = decoded(&body["payload"])?;
        let payload = (!payload.is_empty()).then(|| serde_json::from_slice(&payload).map_err(|e| e.to_string()));
        Ok(Signed { key, payload: payload.transpose()? })
    }

    /// Returns true if the request names an account that was forgotten.
    fn is_forgotten(&self, request: &ReceivedRequest) -> bool {
        let protected = decoded(&request.json()["protected"]).unwrap_or_default();
        let protected: Value = serde_json::from_slice(&protected).unwrap_or_default();
        let number = protected["kid"].as_str().and_then(|account| account.rsplit('/').next()?.parse::<usize>().ok());
        number.and_then(|number| self.accounts.get(number)) == Some(&Value::Null)
    }

    fn account(&mut self, key: Value, payload: &Value) -> Result<Reply, String> {
        if payload["termsOfServiceAgreed"] != true {
            return Err("the terms were not agreed to".into());
        }
        self.contacts =
            payload["contact"].as_array().into_iter().flatten().map(|c| c.as_str().unwrap().into()).collect();
        self.accounts.push(key);
        let address = format!("{}/account/{}", self.base, self.accounts.len() - 1);
        Ok(Reply::json(r#"{"status":"valid"}"#).with_status(201).header("location", &address))
    }

    fn order(&mut self, payload: &Value) -> Result<Reply, String> {
        if self.behaviour.failing_orders > 0 {
            self.behaviour.failing_orders -= 1;
            return Ok(problem(500, "serverInternal", "not today"));
        }
        let identifiers = payload["identifiers"].as_array().ok_or("no identifiers")?;
        let [identifier] = &identifiers[..] else { return Err("not one name".into()) };
        (self.is_proved, self.chain) = (false, None);
        identifier["value"].as_str().ok_or("no name")?.clone_into(&mut self.name);
        let address = format!("{}/order/1", self.base);
        Ok(Reply::json(self.order_object().to_string()).with_status(201).header("location", &address))
    }

    fn order_object(&self) -> Value {
        let status = match (self.is_proved, &self.chain) {
            (false, _) => "pending",
            (true, None) => "ready",
            (true, Some(_)) => "valid",
        };
        let base = &self.base;
        let mut order = json!({
            "status": status, "identifiers": [{ "type": "dns", "value": self.name }],
            "authorizations": [format!("{base}/authorization/1")], "finalize": format!("{base}/finalize/1"),
        });
        if self.chain.is_some() {
            order["certificate"] = format!("{base}/certificate/1").into();
        }
        order
    }

    fn authorization_object(&self) -> Value {
        let status = if self.is_proved { "valid" } else { "pending" };
        let other =
            json!({ "type": "dns-01", "url": format!("{}/challenge/2", self.base), "token": "x", "status": "pending" });
        json!({
            "status": status, "identifier": { "type": "dns", "value": self.name },
            "challenges": [other, self.challenge_object()],
        })
    }

    fn challenge_object(&self) -> Value {
        let status = if self.is_proved { "valid" } else { "pending" };
        json!({ "type": "http-01", "url": format!("{}/challenge/1", self.base), "token": TOKEN, "status": status })
    }
}

/// A certificate request (RFC 2986) whose own signature was verified. Only the needed parts are parsed.
struct SigningRequest {
    signed: Vec<u8>,
    /// An uncompressed point on the curve P-256.
    key: Vec<u8>,
}

impl SigningRequest {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (request, _) = element(bytes)?;
        let (content, rest) = element(request)?;
        let signed = request[..request.len() - rest.len()].to_vec();
        let (_, signature) = element(rest)?;
        let (signature, _) = element(signature)?;
        // Version and subject precede the key. The key is an algorithm and a bit string.
        let (_, content) = element(content)?;
        let (_, content) = element(content)?;
        let (key, _) = element(content)?;
        let (key, _) = element(element(key)?.1)?;
        let (key, signature) = (key[1..].to_vec(), &signature[1..]);
        signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_ASN1, &key)
            .verify(&signed, signature)
            .map_err(|_| "the signature of the request for a certificate is wrong")?;
        Ok(Self { signed, key })
    }

    /// Returns true if the request is for this name.
    fn names(&self, name: &str) -> bool {
        self.signed.windows(name.len()).any(|window| window == name.as_bytes())
    }
}

impl PublicKeyData for SigningRequest {
    fn der_bytes(&self) -> &[u8] {
        &self.key
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

/// Splits off the first DER element: its content and the rest.
fn element(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let cut = || "the request for a certificate is cut off".to_owned();
    let first = usize::from(*bytes.get(1).ok_or_else(cut)?);
    let digits = if first < 0x80 { 0 } else { first & 0x7f };
    let length =
        bytes.get(2..2 + digits).ok_or_else(cut)?.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
    let length = if first < 0x80 { first } else { length };
    bytes[2 + digits..].split_at_checked(length).ok_or_else(cut)
}

fn problem(status: u16, kind: &str, detail: &str) -> Reply {
    let body = json!({ "type": format!("urn:ietf:params:acme:error:{kind}"), "detail": detail, "status": status });
    Reply::status(status).header("content-type", "application/problem+json").body(body.to_string())
}

fn decoded(text: &Value) -> Result<Vec<u8>, String> {
    URL_SAFE_NO_PAD.decode(text.as_str().ok_or("no text")?).map_err(|error| error.to_string())
}

/// Returns the RFC 7638 thumbprint: a hash of the key's required members in lexical order.
fn thumbprint(key: &Value) -> String {
    let members = format!(r#"{{"crv":{},"kty":{},"x":{},"y":{}}}"#, key["crv"], key["kty"], key["x"], key["y"]);
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, members.as_bytes()))
}
