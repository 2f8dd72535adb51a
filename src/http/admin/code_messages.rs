//! `/admin/code-messages`: the requests for verification codes of an address, with their outcomes.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::identity::{
        accounts::{self, CodeMessages},
        codes::messages::{CodeMessageRecord, StoredDelivery},
        users::{self, Address},
    },
    error::{Error, Fault, FieldCode, Result},
    http::{params::parameters, reply::Json, request_context::RequestContext},
    types::{EmailAddress, PhoneNumber, Timestamp, UserId},
};

parameters! {
    CodeMessagesParams(fields) {
        phone_number: Option<PhoneNumber> = fields.optional("phoneNumber", "A phone number, with or without an account. One of the three is required.");
        email: Option<EmailAddress> = fields.optional("email", "An email address, with or without an account.");
        user_id: Option<UserId> = fields.optional("userId", "A user, for all addresses of the account.");
    }
}

/// A request for a verification code.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeMessageRow {
    /// `sms` or `email`.
    #[schema(example = "sms")]
    channel: String,
    /// `sign_in`, `address` or `cancellation`.
    #[schema(example = "sign_in")]
    purpose: String,
    asked_at: Timestamp,
    /// `asked`: the provider's answer is awaited, or the server stopped before it. `sent`: the provider accepted the
    /// message. `not_sent`: it did not. `unknown`: it may have. `refused`: a limit or overload of this service.
    /// `review_account`: nothing is sent to this address.
    #[schema(example = "sent")]
    outcome: String,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:06.012Z")]
    finished_at: Option<Timestamp>,
    #[schema(example = "aliyun")]
    provider: Option<String>,
    /// The provider's code for a failure, or this service's for a refusal.
    #[schema(example = "isv.BUSINESS_LIMIT_CONTROL")]
    code: Option<String>,
    /// The provider's identifier of the message, or of the failed call.
    #[schema(example = "900619746936498440^0")]
    receipt: Option<String>,
    /// The provider's words, with addresses and numbers masked.
    #[schema(example = "OK")]
    words: Option<String>,
    delivery: Option<CodeDelivery>,
}

/// The carrier's report about a sent message.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeDelivery {
    /// `waiting`, `delivered` or `failed`.
    #[schema(example = "delivered")]
    status: String,
    /// The carrier's code.
    #[schema(example = "DELIVERED")]
    code: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:09.000Z")]
    at: Option<Timestamp>,
}

impl From<CodeMessageRecord> for CodeMessageRow {
    fn from(message: CodeMessageRecord) -> Self {
        let delivery = message.delivery.map(|StoredDelivery { status, code, at }| CodeDelivery { status, code, at });
        Self {
            channel: message.channel,
            purpose: message.purpose,
            asked_at: message.asked_at,
            outcome: message.outcome,
            finished_at: message.finished_at,
            provider: message.provider,
            code: message.code,
            receipt: message.receipt,
            words: message.words,
            delivery,
        }
    }
}

/// The last requests for codes, newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeMessageList {
    items: Vec<CodeMessageRow>,
    /// The reason why the provider told no deliveries.
    #[schema(example = "provider aliyun failed: misconfigured (Forbidden.RAM)")]
    delivery_error: Option<String>,
}

impl From<CodeMessages> for CodeMessageList {
    fn from(found: CodeMessages) -> Self {
        Self {
            items: found.items.into_iter().map(Into::into).collect(),
            delivery_error: found.receipts_failure.map(|failure| failure.to_string()),
        }
    }
}

pub async fn list(context: RequestContext, params: CodeMessagesParams) -> Result<Json<CodeMessageList>> {
    let CodeMessagesParams { phone_number, email, user_id } = params;
    let mut addresses: Vec<_> = phone_number.map(Address::Phone).into_iter().chain(email.map(Address::Email)).collect();
    if addresses.is_empty() && user_id.is_none() {
        return Err(Error::field(
            "phoneNumber",
            Fault::new(FieldCode::Required, ("or `email` or `userId` is required", "须填写本项、`email` 或 `userId`")),
        ));
    }
    let subject = context.app.core.store.read(|tx| match (user_id, addresses.first()) {
        (Some(id), _) => users::find_in(tx, id).map(Some),
        (None, Some(address)) => users::find_by_address_in(tx, address),
        (None, None) => Ok(None),
    })?;
    if let Some(user) = subject {
        context.meta.subject.get_or_init(|| user.id);
        if user_id.is_some() {
            addresses.extend(user.addresses());
        }
    }
    let found = context.blocking(move |app| accounts::delivered_code_messages(&app.code_sender, &addresses)).await?;
    Ok(Json(found.into()))
}
