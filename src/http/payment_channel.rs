//! The channel of a payment, and the callbacks of channels that answer by status.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    http::{HeaderMap, Response, StatusCode, header},
};
use serde_json::{Value, json};

use crate::{
    app::App,
    config::LimitsConfig,
    domain::money::payments::callbacks::{self, CallbackReply, CallbackResult},
    error::{Code, Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        openapi::schemas::enumerated,
        params::{BodyShape, Fields, Parameter, Parameters, PayerClientKind, Rules, text},
        reply::{JSON, Reply, ReplyDescription, status},
        request_context::RequestContext,
    },
    providers::payment::{CHANNELS, PayerClient, wechat},
    types::{NamedEnum, clean},
};

/// The name of a payment channel.
pub struct ChannelName(pub String);

impl NamedEnum for ChannelName {
    const NAMES: &'static [&'static str] = &CHANNELS;
    const IDENTIFIERS: &'static [&'static str] = &CHANNELS;
}

impl Parameter for ChannelName {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let name = text(value)?;
        let known = CHANNELS.into_iter().find(|known| *known == name.trim());
        let fault = || {
            Fault::new(
                FieldCode::UnknownValue,
                (format!("must be one of: {}", CHANNELS.join(", ")), format!("须为其中之一：{}", CHANNELS.join(", "))),
            )
        };
        known.map(|name| Self(name.to_owned())).ok_or_else(fault)
    }

    fn schema(_: &LimitsConfig) -> Value {
        enumerated("PaymentChannel", "sandbox")
    }
}

/// The buyer's id in WeChat, under the app id of the channel.
pub struct OpenId(pub String);

impl Parameter for OpenId {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = clean(&text(value)?, 128)?;
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if id.bytes().all(is_id) {
            Ok(Self(id))
        } else {
            Err(Fault::new(
                FieldCode::InvalidFormat,
                ("must be letters, digits, `_` and `-`", "只能包含字母、数字、`_` 和 `-`"),
            ))
        }
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9A-Za-z_-]{1,128}$", "example": "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o" })
    }
}

/// Builds the client from the request's parameters.
///
/// # Errors
/// `invalid_parameters` for a page inside WeChat without the buyer's id.
fn payer_client(rules: &Rules<'_>, (kind, open_id): (Option<PayerClientKind>, Option<OpenId>)) -> Result<PayerClient> {
    Ok(match (kind, open_id) {
        (None | Some(PayerClientKind::MobileApp), _) => PayerClient::MobileApp,
        (Some(PayerClientKind::H5), _) => PayerClient::H5 { client_ip: rules.context.meta.client.to_string() },
        (Some(PayerClientKind::Native), _) => PayerClient::Native,
        (Some(PayerClientKind::Jsapi), Some(OpenId(open_id))) => PayerClient::Jsapi { open_id },
        (Some(PayerClientKind::Jsapi), None) => {
            let fault =
                Fault::new(FieldCode::Required, ("is required with the client `jsapi`", "客户端为 `jsapi` 时必填"));
            return Err(Error::field("openId", fault));
        }
    })
}

/// The way of paying.
pub struct PaymentChoice {
    /// The channel; `None` for the default one.
    pub channel: Option<String>,
    pub client: PayerClient,
}

/// Reads the way of paying.
pub fn payment_choice(fields: &mut Fields<'_, '_>) -> Option<PaymentChoice> {
    let channel: Option<Option<ChannelName>> =
        fields.optional("channel", "The channel of the payment. By default the first of `payment.channels`.");
    let kind = fields.optional("client", "The program in which the buyer pays, for WeChat Pay: `app` by default.");
    let open_id = fields.optional("openId", "The buyer's id in WeChat, for `jsapi`.");
    let client = fields.cross_field(kind.zip(open_id), payer_client);
    channel
        .zip(client)
        .map(|(channel, client)| PaymentChoice { channel: channel.map(|ChannelName(name)| name), client })
}

/// The channel that a callback is for. The body is verified as it is.
pub struct ChannelCallbackParams {
    channel: ChannelName,
}

impl Parameters for ChannelCallbackParams {
    const BODY: BodyShape = BodyShape::Raw;

    fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        fields.path("channel", "The channel.").map(|channel| Self { channel })
    }
}

/// The reply to a payment callback: a status, or for some channels a word such as `success`.
pub enum ChannelReply {
    Word(CallbackReply),
    Done,
    /// An error in the format of WeChat Pay, which then sends the callback again.
    Failed(StatusCode),
}

/// Receives the callback of a channel.
pub async fn receive(context: RequestContext, params: ChannelCallbackParams) -> Result<ChannelReply> {
    let ChannelName(channel) = params.channel;
    let found = context.app.payments.channels.find(&channel).ok_or(Code::NotFound)?;
    let answers_in_words = found.gateway.answers_in_words();
    let mut outcome = attempt(&context, &channel).await?;
    if let Some(result) = outcome.take_if(|result| !result.is_genuine) {
        let name = channel.clone();
        // An unknown key may be a new one of the provider.
        let (result, has_new_key) = context
            .blocking(move |app: &App| {
                let has_new_key = callbacks::fetch_missing_key(&app.payments, &name, &result);
                Ok((result, has_new_key))
            })
            .await?;
        outcome = if has_new_key { attempt(&context, &channel).await? } else { Some(result) };
    }
    let Some(result) = outcome else {
        return if answers_in_words {
            Ok(ChannelReply::Word(CallbackReply::Fail))
        } else {
            refused(&channel, Code::Overloaded.into())
        };
    };
    let order_no = result.order_no.as_deref().filter(|_| result.is_acknowledged());
    let verdict = result.verdict.name();
    tracing::info!(request_id = context.meta.request_id, callback = result.id, verdict, order_no, channel, "notified");
    match result.is_acknowledged() {
        _ if answers_in_words => Ok(ChannelReply::Word(result.word())),
        true => Ok(ChannelReply::Done),
        false if result.is_genuine => refused(&channel, Code::Internal.into()),
        false => {
            let detail = (
                "The signature is not valid. Compare the signing keys in the settings with the provider's.",
                "签名无效，请核对配置中的签名密钥与支付渠道后台是否一致。",
            );
            refused(&channel, Error::new(Code::Unauthenticated).detail(detail))
        }
    }
}

/// Returns the reply after which the provider sends the callback again.
fn refused(channel: &str, error: Error) -> Result<ChannelReply> {
    if channel == wechat::PROVIDER { Ok(ChannelReply::Failed(status(error.code))) } else { Err(error) }
}

/// Processes the callback once; `None` if the disk takes too long.
async fn attempt(context: &RequestContext, channel: &str) -> Result<Option<CallbackResult>> {
    let (headers, body) = (signed_headers(&context.headers), context.body.to_vec());
    let pending = callbacks::receive(&context.app.payments, Some(channel), headers, body);
    match tokio::time::timeout(context.app.core.config.limits.notify_timeout, pending).await {
        Ok(result) => result.map(Some),
        Err(_) => Ok(None),
    }
}

/// Returns the headers as texts. One that occurs twice is left out: the sender signed one of them at most.
fn signed_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text = |name: &header::HeaderName| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())),
            _ => None,
        }
    };
    headers.keys().filter_map(text).collect()
}

impl Reply for ChannelReply {
    fn into_response(self) -> Result<Response<Body>> {
        match self {
            Self::Word(word) => word.into_response(),
            Self::Done => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NO_CONTENT;
                Ok(response)
            }
            Self::Failed(status) => {
                let body = json!({ "code": "FAIL", "message": status.canonical_reason().unwrap_or_default() });
                let mut response = Response::new(Body::from(body.to_string()));
                *response.status_mut() = status;
                response.headers_mut().insert(header::CONTENT_TYPE, JSON);
                Ok(response)
            }
        }
    }

    fn describe() -> ReplyDescription {
        let word = json!({ "type": "string", "enum": CallbackReply::ALL.map(CallbackReply::name) });
        ReplyDescription {
            statuses: vec![
                (StatusCode::OK, "Alipay and the sandbox: `success` once it is on disk; `fail` to have it sent again."),
                (StatusCode::NO_CONTENT, "It is on disk."),
            ],
            contents: vec![("text/plain", word)],
            schemas: Vec::new(),
            headers: &[],
        }
    }
}
