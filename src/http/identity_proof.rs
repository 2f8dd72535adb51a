//! Proofs of identity in requests, in both API generations, and Apple's notifications about identities.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::identity::{accounts, identity_proofs::IdentityProof},
    error::{Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{Fields, Parameter, ProofKind, Rules, parameters, text},
        reply::Json,
        request_context::RequestContext,
    },
    types::Secret,
};

/// Longest proof. A token of Apple or Google has about 1000 characters.
const LONGEST_PROOF: usize = 3500;
const LONGEST_NONCE: usize = 256;

/// A token or code of a provider.
pub struct ProofText(Secret);

impl Parameter for ProofText {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let text = text(value)?;
        let text = text.trim();
        if text.len() > LONGEST_PROOF {
            return Err(Fault::new(FieldCode::TooLong, at_most(LONGEST_PROOF)));
        }
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Fault::new(
                FieldCode::InvalidFormat,
                ("must be the text that the provider gave to the app", "须为平台给应用的原文"),
            ));
        }
        Ok(Self(Secret::from_text(text)))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({
            "type": "string", "pattern": "^[!-~]+$", "maxLength": LONGEST_PROOF,
            "example": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        })
    }
}

/// The nonce that the app chose for a token.
struct Nonce(String);

impl Parameter for Nonce {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let text = text(value)?;
        if text.len() > LONGEST_NONCE {
            return Err(Fault::new(FieldCode::TooLong, at_most(LONGEST_NONCE)));
        }
        if text.chars().any(char::is_control) {
            return Err(Fault::new(
                FieldCode::InvalidCharacter,
                ("must not have control characters", "不能含控制字符"),
            ));
        }
        Ok(Self(text.into_owned()))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": LONGEST_NONCE, "example": "n-0S6_WzA2Mj" })
    }
}

/// Reads a proof of identity: the provider, and the text that it gave to the app.
pub fn identity_proof(fields: &mut Fields<'_, '_>) -> Option<IdentityProof> {
    let kind: Option<ProofKind> =
        fields.required("provider", "`apple`, `google`, `wechat`, or `phone` for the number of the SIM card.");
    let token: Option<Option<ProofText>> =
        fields.usual("idToken", "The identity token, for `apple` and `google`. Each is good for one request.");
    let nonce: Option<Option<Nonce>> = fields.optional(
        "nonce",
        "The nonce that the app chose for the identity token; for Apple the original, not its hash. Required if the token has one.",
    );
    let code: Option<Option<ProofText>> =
        fields.optional("code", "The code that WeChat gave to the app, for `wechat`.");
    let access_token: Option<Option<ProofText>> =
        fields.optional("accessToken", "The token of the SDK for number authentication, for `phone`.");
    let values = kind.zip(token).zip(nonce).zip(code).zip(access_token);
    fields.cross_field(values, |_, ((((kind, token), nonce), code), access_token)| {
        let nonce = nonce.map(|Nonce(text)| text).filter(|text| !text.is_empty());
        Ok(match kind {
            ProofKind::Apple => IdentityProof::Apple { token: required("idToken", token)?, nonce },
            ProofKind::Google => IdentityProof::Google { token: required("idToken", token)?, nonce },
            ProofKind::Wechat => IdentityProof::Wechat { code: required("code", code)? },
            ProofKind::Phone => IdentityProof::Phone { access_token: required("accessToken", access_token)? },
        })
    })
}

fn at_most(length: usize) -> (String, String) {
    (format!("must have at most {length} characters"), format!("最多 {length} 个字符"))
}

fn required(field: &str, value: Option<ProofText>) -> Result<Secret> {
    let fault =
        || Error::field(field, Fault::new(FieldCode::Required, ("is required by this provider", "此平台需要该参数")));
    value.map(|ProofText(text)| text).ok_or_else(fault)
}

parameters! {
    AppleEventParams(fields) {
        payload: ProofText = fields.required("payload", "The notification that Apple signed.");
    }
}

/// The response to a notification whose effect is stored.
#[derive(Serialize, ToSchema)]
pub struct IdentityEventReceived {
    #[schema(example = true)]
    received: bool,
}

/// Receives a notification of Apple about an identity.
pub async fn receive_apple_event(
    context: RequestContext,
    AppleEventParams { payload: ProofText(payload) }: AppleEventParams,
) -> Result<Json<IdentityEventReceived>> {
    let pending = if let Some(pending) = accounts::receive_known_apple_event(&context.app.identities, &payload) {
        pending?
    } else {
        let _permit = context.app.identities.events.try_acquire()?;
        context.blocking(move |app| accounts::receive_apple_event(&app.identities, &payload)).await?
    };
    let effect = context.committed(pending).await?;
    tracing::info!(request_id = context.meta.request_id, effect = effect.name(), "apple notified about an identity");
    Ok(Json(IdentityEventReceived { received: true }))
}
