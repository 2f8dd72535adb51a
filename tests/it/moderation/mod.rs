//! Content moderation: the word list, violations, both moderators and the switch between them.

mod concurrent_changes;
mod external_failures;
mod external_moderator;
mod judges;
mod provider_switch;
mod reviews;
mod suspension_rules;
mod violations;
mod word_list;

use serde_json::{Value, json};

use crate::support::{
    Caller, Response, Server, Setup,
    fake_provider::{FakeProvider, ReceivedRequest, Reply},
};

const OWN: &str = "13800138000";
/// On the default word list as gambling.
const LISTED: &str = "赌博";
const KEY_ID: &str = "TESTAccessKeyId000000001";
const SECRET: &str = "TESTAccessKeySecret0000000000001";

/// Returns a setup with an external moderator at this provider.
fn with_vendor(provider: &FakeProvider) -> Setup {
    with_service_at(&provider.url())
}

fn with_service_at(endpoint: &str) -> Setup {
    Setup::default()
        .with("MODERATION_PROVIDER", "aliyun")
        .with("MODERATION_ENDPOINT", endpoint)
        .with("MODERATION_ACCESS_KEY_ID", KEY_ID)
        .with("MODERATION_ACCESS_KEY_SECRET", SECRET)
        .with("MODERATION_TIMEOUT", "2 s")
}

/// Returns the verdict on a text: rejected as contact information if it contains `refused`.
fn judged(request: &ReceivedRequest, refused: &str) -> Reply {
    request.check_acs3(KEY_ID, SECRET).expect("the request is signed");
    let text = content_of(request);
    if text.contains(refused) {
        return verdict("high", &[("pt_to_contact", refused)]);
    }
    verdict("none", &[("nonLabel", "")])
}

fn verdict(risk: &str, labels: &[(&str, &str)]) -> Reply {
    let results: Vec<Value> =
        labels.iter().map(|(label, words)| json!({ "Label": label, "Confidence": 97.5, "RiskWords": words })).collect();
    let data = json!({ "RiskLevel": risk, "Result": results });
    Reply::json(json!({ "Code": 200, "Message": "OK", "RequestId": "R-1", "Data": data }).to_string())
}

fn field(request: &ReceivedRequest, name: &str) -> String {
    request.form().into_iter().find(|(known, _)| known == name).expect("the field was sent").1
}

fn content_of(request: &ReceivedRequest) -> String {
    let parameters: Value = serde_json::from_str(&field(request, "ServiceParameters")).expect("parameters are JSON");
    parameters["content"].as_str().expect("there is a text").to_owned()
}

fn switch(server: &Server, key: &str, external: bool) -> Response {
    let body = json!({ "useAliyun": external });
    server.post("/admin/sensitive-word-migration/switch").token(key).json(&body).send()
}

fn fallback(server: &Server, key: &str, on: bool) {
    let body = json!({ "enableFallback": on });
    server.post("/admin/sensitive-word-migration/fallback").token(key).json(&body).send().expect(200);
}

fn check(server: &Server, user: &Caller, question: &str) -> Response {
    server.post("/content-moderation/check-question").by(user).json(&json!({ "question": question })).send()
}

fn violations(server: &Server) -> i64 {
    server.value("select count(*) from violations")
}
