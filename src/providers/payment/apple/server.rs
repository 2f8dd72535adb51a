//! The App Store's server API: lookups, histories and consumption information.
//!
//! Answers contain signed messages, which are verified like those of the app. Only the environment differs by address.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    AppStore, PROVIDER,
    notification::AppleNotification,
    transaction::{AppleEnvironment, AppleTransaction},
};
use crate::providers::json;
use crate::{
    providers::{Failure, FailureKind, clean_code, client::HttpResponse, payment::Rejection, percent},
    types::named_enum,
};

/// The lifetime of a bearer token in seconds. Apple accepts up to an hour.
const TOKEN_LIFETIME: i64 = 300;
/// A page of a history holds 20 messages of up to 10 KB.
const MAX_RESPONSE_BYTES: usize = 2 * 1024 * 1024;

/// A page of a history of transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppleHistoryPage {
    pub transactions: Vec<AppleTransaction>,
    /// The position after this page; pass it to the next call.
    pub revision: Option<String>,
    pub has_more: bool,
}

/// A page of the history of notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppleNotificationPage {
    /// Verified one by one, so that one bad message hides no other.
    pub notifications: Vec<Result<AppleNotification, Rejection>>,
    /// Set if there are more; pass it to the next call.
    pub next: Option<String>,
}

/// The notifications to list. Times are epoch milliseconds and go back 180 days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppleNotificationQuery {
    pub start_date: i64,
    pub end_date: i64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_failures: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<String>,
}

named_enum! {
    /// Our wish about a refund.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AppleRefundPreference {
        Decline = "DECLINE",
        GrantFull = "GRANT_FULL",
        /// Needs a consumption above zero.
        GrantProrated = "GRANT_PRORATED",
    }
}

/// The facts that Apple may ask about a purchase. Only for users who agreed that they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppleConsumption {
    pub is_delivered: bool,
    /// True if users can try the content before they buy it.
    pub has_sample: bool,
    /// The used part in thousandths of a percent, up to 100,000.
    pub used: u32,
    pub preference: Option<AppleRefundPreference>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConsumptionContent {
    customer_consented: bool,
    sample_content_provided: bool,
    delivery_status: &'static str,
    consumption_percentage: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    refund_preference: Option<&'static str>,
}

#[derive(Serialize)]
struct TokenHeader<'a> {
    alg: &'static str,
    kid: &'a str,
    typ: &'static str,
}

#[derive(Serialize)]
struct TokenClaims<'a> {
    iss: &'a str,
    iat: i64,
    exp: i64,
    aud: &'static str,
    bid: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransactionAnswer {
    signed_transaction_info: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HistoryAnswer {
    #[serde(default)]
    signed_transactions: Vec<String>,
    revision: Option<String>,
    #[serde(default)]
    has_more: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotificationsAnswer {
    #[serde(default)]
    notification_history: Vec<SentNotification>,
    pagination_token: Option<String>,
    #[serde(default)]
    has_more: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentNotification {
    signed_payload: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TestAnswer {
    test_notification_token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TestStatus {
    #[serde(default)]
    send_attempts: Vec<SendAttempt>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendAttempt {
    send_attempt_result: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AppleError {
    error_code: i64,
}

/// The error code of an unknown transaction.
const TRANSACTION_NOT_FOUND: i64 = 4_040_010;

impl AppStore {
    /// Looks up one transaction; `None` if this environment does not know it.
    pub fn find_transaction(
        &self,
        environment: AppleEnvironment,
        id: &str,
    ) -> Result<Option<AppleTransaction>, Failure> {
        let path = format!("/inApps/v1/transactions/{}", percent::encode(id));
        let answer: Option<TransactionAnswer> = self.ask(environment, "GET", &path, None)?;
        answer.map(|answer| self.verified(&answer.signed_transaction_info)).transpose()
    }

    /// Returns the transactions of an order number, which the buyer finds in the mail from Apple.
    pub fn find_order(&self, environment: AppleEnvironment, order_id: &str) -> Result<Vec<AppleTransaction>, Failure> {
        let path = format!("/inApps/v1/lookup/{}", percent::encode(order_id));
        let answer: Option<HistoryAnswer> = self.ask(environment, "GET", &path, None)?;
        let signed = answer.map(|answer| answer.signed_transactions).unwrap_or_default();
        signed.iter().map(|jws| self.verified(jws)).collect()
    }

    /// Returns a page of all purchases of the buyer of a transaction, oldest first.
    pub fn history(
        &self,
        environment: AppleEnvironment,
        id: &str,
        revision: Option<&str>,
    ) -> Result<AppleHistoryPage, Failure> {
        let query = revision.map(|revision| format!("?revision={}", percent::encode(revision))).unwrap_or_default();
        let path = format!("/inApps/v2/history/{}{query}", percent::encode(id));
        let answer: Option<HistoryAnswer> = self.ask(environment, "GET", &path, None)?;
        let Some(answer) = answer else {
            return Ok(AppleHistoryPage { transactions: Vec::new(), revision: None, has_more: false });
        };
        let transactions = answer.signed_transactions.iter().map(|jws| self.verified(jws));
        Ok(AppleHistoryPage {
            transactions: transactions.collect::<Result<_, _>>()?,
            has_more: answer.has_more && answer.revision.is_some(),
            revision: answer.revision,
        })
    }

    /// Returns a page of the notifications that were sent, whether or not they arrived.
    pub fn notification_history(
        &self,
        environment: AppleEnvironment,
        query: &AppleNotificationQuery,
        page: Option<&str>,
    ) -> Result<AppleNotificationPage, Failure> {
        let page = page.map(|token| format!("?paginationToken={}", percent::encode(token))).unwrap_or_default();
        let path = format!("/inApps/v1/notifications/history{page}");
        let answer = self.ask(environment, "POST", &path, Some(&json(query)?))?;
        let answer: NotificationsAnswer = answer.ok_or_else(|| invalid_response("not_found"))?;
        let now = (self.clock)();
        let verify = |sent: &SentNotification| self.verifier.notification(&sent.signed_payload, now);
        Ok(AppleNotificationPage {
            notifications: answer.notification_history.iter().map(verify).collect(),
            next: answer.pagination_token.filter(|_| answer.has_more),
        })
    }

    /// Answers a consumption request. Call it only for a user who agreed.
    pub fn send_consumption(
        &self,
        environment: AppleEnvironment,
        transaction_id: &str,
        consumption: &AppleConsumption,
    ) -> Result<(), Failure> {
        let content = ConsumptionContent {
            customer_consented: true,
            sample_content_provided: consumption.has_sample,
            delivery_status: if consumption.is_delivered { "DELIVERED" } else { "UNDELIVERED_OTHER" },
            consumption_percentage: consumption.used.min(100_000),
            refund_preference: consumption.preference.map(AppleRefundPreference::name),
        };
        let path = format!("/inApps/v2/transactions/consumption/{}", percent::encode(transaction_id));
        let answer = self.send(environment, "PUT", &path, Some(&json(&content)?))?;
        if (200..300).contains(&answer.status) { Ok(()) } else { Err(failure_of(answer)) }
    }

    /// Asks Apple to send a test notification. Returns the token with which its delivery can be queried.
    pub fn request_test_notification(&self, environment: AppleEnvironment) -> Result<String, Failure> {
        let answer = self.ask(environment, "POST", "/inApps/v1/notifications/test", None)?;
        let answer: TestAnswer = answer.ok_or_else(|| invalid_response("not_found"))?;
        Ok(answer.test_notification_token)
    }

    /// Returns the result of the last attempt to deliver a test notification, such as `SUCCESS`; `None` before the first.
    pub fn test_notification_result(
        &self,
        environment: AppleEnvironment,
        token: &str,
    ) -> Result<Option<String>, Failure> {
        let path = format!("/inApps/v1/notifications/test/{}", percent::encode(token));
        let answer: Option<TestStatus> = self.ask(environment, "GET", &path, None)?;
        let attempts = answer.map(|answer| answer.send_attempts).unwrap_or_default();
        Ok(attempts.last().and_then(|attempt| clean_code(&attempt.send_attempt_result)))
    }

    /// Returns the bearer token of a request made at this time (seconds).
    pub(super) fn token(&self, now: i64) -> Result<String, Failure> {
        let header = TokenHeader { alg: "ES256", kid: &self.key_id, typ: "JWT" };
        let claims = TokenClaims {
            iss: &self.issuer_id,
            iat: now,
            exp: now + TOKEN_LIFETIME,
            aud: "appstoreconnect-v1",
            bid: &self.verifier.bundle_id,
        };
        let token = self.key.sign(&header, &claims);
        token.map_err(|_| Failure::new(FailureKind::Misconfigured, PROVIDER, "signing_failed"))
    }

    fn verified(&self, jws: &str) -> Result<AppleTransaction, Failure> {
        self.verifier.transaction(jws, (self.clock)()).map_err(|reason| invalid_response(reason.code()))
    }

    /// Sends a request and parses the answer; `None` for an unknown transaction.
    fn ask<T: DeserializeOwned>(
        &self,
        environment: AppleEnvironment,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> Result<Option<T>, Failure> {
        let answer = self.send(environment, method, path, body)?;
        match answer.status {
            200..=299 => {
                let body = answer.read_all(MAX_RESPONSE_BYTES)?;
                json::from_slice(&body).map(Some).map_err(|_| invalid_response("answer_unreadable"))
            }
            404 => {
                let body = answer.read_error();
                let error: AppleError = json::from_slice(&body).unwrap_or_default();
                if error.error_code == TRANSACTION_NOT_FOUND { Ok(None) } else { Err(failure(404, &error)) }
            }
            _ => Err(failure_of(answer)),
        }
    }

    fn send(
        &self,
        environment: AppleEnvironment,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> Result<HttpResponse, Failure> {
        let authorization = format!("Bearer {}", self.token((self.clock)() / 1000)?);
        let mut headers = vec![("accept", "application/json"), ("authorization", authorization.as_str())];
        if body.is_some() {
            headers.push(("content-type", "application/json"));
        }
        let base = match environment {
            AppleEnvironment::Production => &self.base,
            AppleEnvironment::Sandbox => &self.sandbox_base,
        };
        self.client.send(method, &format!("{}{path}", base.base()), &headers, body.unwrap_or_default().as_bytes())
    }
}

fn json(content: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(content);
    text.map_err(|_| Failure::new(FailureKind::Misconfigured, PROVIDER, "content_not_serializable"))
}

fn failure_of(answer: HttpResponse) -> Failure {
    let status = answer.status;
    failure(status, &json::from_slice(&answer.read_error()).unwrap_or_default())
}

/// Maps an error. Apple says of some not-found codes that they may be retried.
fn failure(status: u16, error: &AppleError) -> Failure {
    let kind = match (status, error.error_code) {
        (401 | 403, _) => FailureKind::Misconfigured,
        (429, _) => FailureKind::Busy,
        (_, 4_040_002 | 4_040_004 | 4_040_006 | 5_000_001) | (500.., _) => FailureKind::OutcomeUnknown,
        (400..=499, 1..) => FailureKind::Refused,
        _ => FailureKind::InvalidResponse,
    };
    let code = if error.error_code == 0 { format!("http_{status}") } else { error.error_code.to_string() };
    Failure::new(kind, PROVIDER, code)
}

fn invalid_response(code: &str) -> Failure {
    Failure::new(FailureKind::InvalidResponse, PROVIDER, code)
}
