//! Aliyun content moderation: the operation `TextModerationPlus` of Green, version 2022-03-02.
//!
//! Owns the request, the length limit of a text, the single retry, and the meaning of labels and codes. A call is
//! idempotent, so it is retried once if that may help, at another region's endpoint if there is one.
//!
//! Ordinary questions to an oracle are labelled superstition or religion. Labels that the operator ignores are dropped
//! first, and a text without other labels is clean, whatever its risk level.

use std::time::{Duration, Instant};

use secrecy::SecretString;
use serde::Deserialize;

use super::{ModerationResult, RiskLabel, Scene, TextModerator};
use crate::providers::acs3::{self, Credentials, ErrorBody};
use crate::providers::client::{BaseUrl, Client, HttpResponse, Limits};
use crate::providers::nonce::random_hex;
use crate::providers::{Failure, FailureKind, WallClock, clean_code};

/// The driver's name in the configuration.
pub const NAME: &str = "aliyun";

const ACTION: &str = "TextModerationPlus";
const VERSION: &str = "2022-03-02";
const FORM: &str = "application/x-www-form-urlencoded";
/// Maximum characters per request.
const MAX_LENGTH: usize = 600;
/// The overlap of two neighbouring parts, so that no word is cut in two.
const OVERLAP: usize = 50;
/// Model output is checked by a service with another limit.
const MAX_OUTPUT_LENGTH: usize = 5_000;
/// With less time left a second attempt would only time out.
const MIN_ATTEMPT_TIME: Duration = Duration::from_millis(300);
const MAX_RESPONSE_BYTES: usize = 256 * 1024;
/// Replaces a label without readable characters.
const UNREADABLE: &str = "unreadable";
/// The provider's label for a clean text.
const NOTHING_FOUND: &str = "nonLabel";
/// Maximum number of labels stored per text.
const MAX_FINDINGS: usize = 32;
/// Maximum number of words stored per label.
const MAX_WORDS: usize = 32;

/// The account data from the provider's console. `Debug` masks the secret.
#[derive(Clone, Debug)]
pub struct AliyunModeratorSettings {
    /// `https://green-cip.cn-shanghai.aliyuncs.com`, or the address of another region.
    pub endpoint: String,
    /// Another region's address, called if the first one fails.
    pub backup_endpoint: Option<String>,
    pub access_key_id: String,
    pub access_key_secret: SecretString,
    /// The provider's service for each content type.
    pub nickname_service: String,
    pub prose_service: String,
    pub output_service: String,
    /// Labels that do not count.
    pub ignored_labels: Vec<String>,
    /// True to reject medium risk like high risk.
    pub refuses_medium: bool,
    pub connect: Duration,
    /// Timeout of one call, including the retry. A long text takes several calls.
    pub total: Duration,
}

/// Moderates texts with Aliyun.
pub struct AliyunModerator {
    settings: AliyunModeratorSettings,
    credentials: Credentials,
    client: Client,
    clock: WallClock,
}

#[derive(Deserialize)]
struct ModerationResponse {
    #[serde(rename = "Data")]
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "RiskLevel")]
    risk_level: Option<String>,
    #[serde(default, rename = "Result")]
    results: Option<Vec<LabelResult>>,
}

#[derive(Deserialize)]
struct LabelResult {
    #[serde(rename = "Label")]
    label: Option<String>,
    #[serde(rename = "Confidence")]
    confidence: Option<f64>,
    #[serde(rename = "RiskWords")]
    risk_words: Option<String>,
    #[serde(default, rename = "CustomizedHit")]
    customized_hits: Option<Vec<CustomizedHit>>,
}

#[derive(Deserialize)]
struct CustomizedHit {
    #[serde(rename = "KeyWords")]
    key_words: Option<String>,
}

impl AliyunModerator {
    /// Creates a driver for one account. With an invalid endpoint, every call fails as `Misconfigured`.
    pub fn new(settings: AliyunModeratorSettings, clock: WallClock) -> Self {
        let limits = Limits::for_whole_calls(settings.connect, settings.total, true);
        let credentials = Credentials {
            access_key_id: settings.access_key_id.clone(),
            access_key_secret: settings.access_key_secret.clone(),
        };
        Self { settings, credentials, client: Client::new(NAME, "moderation.endpoint", limits), clock }
    }

    fn moderate_part(&self, service: &str, part: &str, account: Option<&str>) -> Result<ModerationResult, Failure> {
        let parameters = match account {
            Some(account) => serde_json::json!({ "content": part, "accountId": account }),
            None => serde_json::json!({ "content": part }),
        };
        let body = acs3::canonical_query(&[("Service", service), ("ServiceParameters", &parameters.to_string())]);
        let started = Instant::now();
        let failure = match self.attempt(&self.settings.endpoint, &body, self.settings.total) {
            Err(failure) if is_retryable_now(&failure) => failure,
            outcome => return outcome,
        };
        let left = self.settings.total.saturating_sub(started.elapsed());
        if left < MIN_ATTEMPT_TIME {
            return Err(failure);
        }
        let endpoint = self.settings.backup_endpoint.as_ref().unwrap_or(&self.settings.endpoint);
        self.attempt(endpoint, &body, left)
    }

    fn attempt(&self, endpoint: &str, body: &str, total: Duration) -> Result<ModerationResult, Failure> {
        let endpoint = BaseUrl::parse(NAME, endpoint)?;
        let nonce = random_hex::<16>(NAME)?;
        let call = acs3::Acs3Request {
            host: endpoint.host_header(),
            action: ACTION,
            version: VERSION,
            now_millis: (self.clock)(),
            nonce: &nonce,
            query: &[],
            content_type: Some(FORM),
            body: body.as_bytes(),
        };
        self.parse_response(acs3::send(&self.client, &endpoint, &call, &self.credentials, Some(total))?)
    }

    fn parse_response(&self, answer: HttpResponse) -> Result<ModerationResult, Failure> {
        let retry_after = acs3::retry_after(answer.header("x-acs-retry-after"));
        if answer.status != 200 {
            let failure = rejection_of(answer.status, &answer.read_error());
            return Err(failure.with_retry_after(retry_after));
        }
        let body = answer.read_all(MAX_RESPONSE_BYTES)?;
        self.judgement(&body).map_err(|failure| failure.with_retry_after(retry_after))
    }

    /// Parses a response with status 200, whose `Code` tells success from failure.
    fn judgement(&self, body: &[u8]) -> Result<ModerationResult, Failure> {
        let outcome = ErrorBody::parse(body);
        let invalid = || {
            Failure::new(FailureKind::InvalidResponse, NAME, "answer_not_understood")
                .with_request_id(outcome.request_id.as_deref())
        };
        let code = outcome.clean_code().ok_or_else(invalid)?;
        if code != "200" {
            let failure = Failure::new(kind_of_code(&code), NAME, code);
            return Err(failure.with_request_id(outcome.request_id.as_deref()));
        }
        let data = serde_json::from_slice::<ModerationResponse>(body).ok().and_then(|answer| answer.data);
        let data = data.ok_or_else(invalid)?;
        // An unknown risk level must not count as none.
        let is_risky = match data.risk_level.as_deref() {
            Some("high") => true,
            Some("medium") => self.settings.refuses_medium,
            Some("low" | "none") => false,
            _ => return Err(invalid()),
        };
        let results = data.results.unwrap_or_default();
        let is_unexplained = results.is_empty();
        let counts = |label: &str| {
            label != NOTHING_FOUND && !self.settings.ignored_labels.iter().any(|ignored| ignored == label)
        };
        let findings: Vec<_> =
            results.into_iter().map(finding).filter(|found| counts(&found.label)).take(MAX_FINDINGS).collect();
        Ok(ModerationResult { is_refused: is_risky && (is_unexplained || !findings.is_empty()), findings })
    }
}

impl TextModerator for AliyunModerator {
    fn name(&self) -> &'static str {
        NAME
    }

    fn judge(&self, scene: Scene, text: &str, account: Option<&str>) -> Result<ModerationResult, Failure> {
        let (service, longest) = match scene {
            Scene::Nickname => (&self.settings.nickname_service, MAX_LENGTH),
            Scene::Prose => (&self.settings.prose_service, MAX_LENGTH),
            Scene::ModelOutput => (&self.settings.output_service, MAX_OUTPUT_LENGTH),
        };
        let mut whole = ModerationResult::default();
        for part in parts(text, longest, OVERLAP) {
            let judged = self.moderate_part(service, part, account)?;
            if judged.is_refused {
                return Ok(judged);
            }
            whole.findings.extend(judged.findings);
        }
        whole.findings.truncate(MAX_FINDINGS);
        Ok(whole)
    }
}

/// Splits the text into parts of at most `longest` characters. Each part begins with the last `overlap` characters of
/// the one before.
fn parts(text: &str, longest: usize, overlap: usize) -> Vec<&str> {
    let starts: Vec<usize> = text.char_indices().map(|(start, _)| start).collect();
    let mut parts = Vec::new();
    let mut first = 0;
    loop {
        let end = (first + longest).min(starts.len());
        let from = starts.get(first).copied().unwrap_or(text.len());
        let to = starts.get(end).copied().unwrap_or(text.len());
        parts.push(&text[from..to]);
        if end == starts.len() {
            return parts;
        }
        first = end - overlap;
    }
}

/// Converts a label. One without readable characters still counts.
fn finding(result: LabelResult) -> RiskLabel {
    let label = result.label.as_deref().and_then(clean_code).unwrap_or_else(|| UNREADABLE.to_owned());
    let listed = result.customized_hits.unwrap_or_default().into_iter().filter_map(|hit| hit.key_words);
    let words = result.risk_words.into_iter().chain(listed);
    let words = words.flat_map(|words| words.split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).take(MAX_WORDS + 1).collect();
    // With too many words the stored part would mislead, so none is kept.
    let words = if words.len() > MAX_WORDS { Vec::new() } else { words };
    RiskLabel { kind: kind_of_label(&label), confidence: result.confidence, words, label }
}

/// Maps the provider's label to our type. Unknown labels are `other`.
fn kind_of_label(label: &str) -> &'static str {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| label.starts_with(prefix));
    match label {
        "contraband_drug" => "drugs",
        "contraband_gambling" => "gambling",
        "pt_to_contact" => "contact",
        "ad" | "spam" => "ads",
        "profanity" | "cyberbullying" => "abuse",
        "violence" => "violence",
        _ if begins(&["porn", "sexual"]) => "porn",
        _ if begins(&["political"]) => "politics",
        _ if begins(&["violent"]) => "violence",
        _ if begins(&["inappropriate_discrimination", "inappropriate_profanity", "inappropriate_oral"]) => "abuse",
        _ if begins(&["pt_"]) => "ads",
        _ if begins(&["fraud"]) => "fraud",
        _ => "other",
    }
}

/// Maps a business code to a failure kind.
fn kind_of_code(code: &str) -> FailureKind {
    if let Some(kind) = acs3::kind_of_gateway_code(code) {
        return kind;
    }
    match code {
        "500" => FailureKind::OutcomeUnknown,
        "503" | "580" | "581" | "586" | "588" => FailureKind::Busy,
        "401" | "403" | "408" | "596" => FailureKind::Misconfigured,
        "400" => FailureKind::Refused,
        _ => FailureKind::InvalidResponse,
    }
}

/// Maps a response with another status than 200 to a failure.
fn rejection_of(status: u16, body: &[u8]) -> Failure {
    let outcome = ErrorBody::parse(body);
    let code = outcome.clean_code().unwrap_or_else(|| format!("http_{status}"));
    let kind = match (&outcome.code, status) {
        (Some(code), _) if acs3::kind_of_gateway_code(code).is_some() => kind_of_code(code),
        (_, 429) => FailureKind::Busy,
        (_, 500..) => FailureKind::OutcomeUnknown,
        (_, 300..=399 | 401 | 403 | 404) => FailureKind::Misconfigured,
        _ => FailureKind::Refused,
    };
    Failure::new(kind, NAME, code).with_request_id(outcome.request_id.as_deref())
}

/// Returns true if an immediate retry may help. A throttled call must not be retried at once.
fn is_retryable_now(failure: &Failure) -> bool {
    let is_throttled = failure.code == "588" || failure.code.starts_with("Throttling") || failure.code == "http_429";
    failure.is_retryable() && !is_throttled && failure.retry_after.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(ignored: &[&str], refuses_medium: bool) -> AliyunModerator {
        let settings = AliyunModeratorSettings {
            endpoint: "http://127.0.0.1:1".into(),
            backup_endpoint: None,
            access_key_id: "id".into(),
            access_key_secret: "secret".into(),
            nickname_service: "nickname_detection_pro".into(),
            prose_service: "comment_detection_pro".into(),
            output_service: "llm_response_moderation".into(),
            ignored_labels: ignored.iter().map(|&label| label.to_owned()).collect(),
            refuses_medium,
            connect: Duration::from_secs(1),
            total: Duration::from_secs(1),
        };
        AliyunModerator::new(settings, Box::new(|| 0))
    }

    fn answer(risk: &str, labels: &[&str]) -> String {
        let results: Vec<_> = labels
            .iter()
            .map(|label| serde_json::json!({ "Label": label, "Confidence": 92.5, "RiskWords": "a, b" }))
            .collect();
        serde_json::json!({ "Code": 200, "RequestId": "R", "Data": { "RiskLevel": risk, "Result": results } })
            .to_string()
    }

    #[test]
    fn risk_decides_and_ignored_labels_do_not_count() {
        let cases: [(&str, &[&str], bool, bool); 8] = [
            ("none", &["nonLabel"], true, false),
            ("low", &["pt_to_sites"], true, false),
            ("medium", &["pt_to_sites"], true, true),
            ("medium", &["pt_to_sites"], false, false),
            ("high", &["contraband_gambling"], false, true),
            ("high", &["inappropriate_superstition", "religion_t"], true, false),
            ("high", &["inappropriate_superstition", "political_n"], true, true),
            ("high", &[], true, true),
        ];
        for (risk, labels, refuses_medium, is_refused) in cases {
            let driver = driver(&["inappropriate_superstition", "religion_t"], refuses_medium);
            let judged = driver.judgement(answer(risk, labels).as_bytes()).unwrap();
            assert_eq!(judged.is_refused, is_refused, "{risk} {labels:?}");
            assert!(judged.findings.iter().all(|found| found.words == ["a", "b"]), "{judged:?}");
        }
    }

    #[test]
    fn stores_all_words_of_a_label_or_none() {
        for (count, kept) in [(MAX_WORDS, MAX_WORDS), (MAX_WORDS + 1, 0)] {
            let risk_words = Some((0..count).map(|number| number.to_string()).collect::<Vec<_>>().join(","));
            let named = LabelResult { label: None, confidence: None, risk_words, customized_hits: None };
            assert_eq!(finding(named).words.len(), kept);
        }
    }

    #[test]
    fn counts_a_risk_with_an_unreadable_label() {
        for label in ["null", "\"\"", "\"涉政\""] {
            let result = format!(r#"{{"Label":{label},"RiskWords":"x"}}"#);
            let body = format!(r#"{{"Code":200,"RequestId":"R","Data":{{"RiskLevel":"high","Result":[{result}]}}}}"#);
            let judged = driver(&[], true).judgement(body.as_bytes()).unwrap();
            assert!(judged.is_refused, "{label}");
            assert_eq!((judged.findings[0].label.as_str(), judged.findings[0].kind), (UNREADABLE, "other"));
        }
    }

    #[test]
    fn rejects_responses_without_a_verdict() {
        let driver = driver(&[], true);
        for body in [
            "",
            "<html>",
            "{}",
            "[]",
            r#"{"Code":200}"#,
            r#"{"Code":200,"Data":{}}"#,
            r#"{"Code":200,"Data":{"RiskLevel":"unheard"}}"#,
            r#"{"Code":200,"Data":{"RiskLevel":null}}"#,
            r#"{"Code":200,"Data":{"RiskLevel":"none","Result":"x"}}"#,
        ] {
            assert_eq!(driver.judgement(body.as_bytes()).unwrap_err().kind, FailureKind::InvalidResponse, "{body}");
        }
    }

    #[test]
    fn maps_error_codes() {
        let driver = driver(&[], true);
        for (code, kind) in [
            ("400", FailureKind::Refused),
            ("401", FailureKind::Misconfigured),
            ("408", FailureKind::Misconfigured),
            ("596", FailureKind::Misconfigured),
            ("500", FailureKind::OutcomeUnknown),
            ("503", FailureKind::Busy),
            ("586", FailureKind::Busy),
            ("588", FailureKind::Busy),
            ("777", FailureKind::InvalidResponse),
        ] {
            let failure = driver.judgement(format!(r#"{{"Code":{code},"RequestId":"R"}}"#).as_bytes()).unwrap_err();
            assert_eq!((failure.kind, failure.request_id.as_deref()), (kind, Some("R")), "{code}");
            assert_eq!(is_retryable_now(&failure), ["500", "503", "586"].contains(&code), "{code}");
        }
    }

    #[test]
    fn maps_labels_to_types() {
        for (label, kind) in [
            ("pornographic_adult", "porn"),
            ("sexual_suggestive", "porn"),
            ("political_figure", "politics"),
            ("violent_weapons", "violence"),
            ("contraband_drug", "drugs"),
            ("contraband_gambling", "gambling"),
            ("contraband_act", "other"),
            ("inappropriate_profanity", "abuse"),
            ("inappropriate_nonsense", "other"),
            ("pt_to_contact", "contact"),
            ("pt_by_recruitment", "ads"),
            ("never_seen", "other"),
        ] {
            assert_eq!(kind_of_label(label), kind, "{label}");
        }
    }

    #[test]
    fn splits_long_texts_with_an_overlap() {
        assert_eq!(parts("", 4, 2), [""]);
        assert_eq!(parts("乾坤屯蒙", 4, 2), ["乾坤屯蒙"]);
        assert_eq!(parts("乾坤屯蒙需讼师", 4, 2), ["乾坤屯蒙", "屯蒙需讼", "需讼师"]);
        let text = "卦".repeat(MAX_LENGTH * 3);
        assert!(parts(&text, MAX_LENGTH, OVERLAP).iter().all(|part| part.chars().count() <= MAX_LENGTH));
    }
}
