//! `/admin/code-messages`: the requests for verification codes of an address, with their outcomes.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::identity::{
        accounts::{self, CodeMessages},
        codes::messages::CodeMessageRecord,
        users::{self, Address},
    },
    error::{Error, Fault, FieldCode, Result},
    http::{params::parameters, reply::Json, request_context::RequestContext},
    types::{EmailAddress, PhoneNumber, UserId},
};

parameters! {
    CodeMessagesParams(fields) {
        phone_number: Option<PhoneNumber> = fields.optional("phoneNumber", "A phone number, with or without an account. One of the three is required.");
        email: Option<EmailAddress> = fields.optional("email", "An email address, with or without an account.");
        user_id: Option<UserId> = fields.optional("userId", "A user, for all addresses of the account.");
    }
}

/// The last requests for codes, newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeMessageList {
    items: Vec<CodeMessageRecord>,
    /// The reason why the provider told no deliveries.
    #[schema(example = "provider aliyun failed: misconfigured (Forbidden.RAM)")]
    delivery_error: Option<String>,
}

impl From<CodeMessages> for CodeMessageList {
    fn from(found: CodeMessages) -> Self {
        Self { items: found.items, delivery_error: found.receipts_failure.map(|failure| failure.to_string()) }
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
