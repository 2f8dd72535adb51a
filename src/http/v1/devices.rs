//! `/api/v1/devices`: the caller's apps that get pushes.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::messaging::{
        push,
        push_queue::{self, PushDevice},
    },
    error::{Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{Nothing, Parameter, RowNumber, Rules, parameters, text},
        reply::{Json, NoContent},
        request_context::RequestContext,
    },
    providers::push::PushService,
    types::Timestamp,
};

/// Tokens of today have at most a few hundred characters.
const MAX_TOKEN: usize = 2048;

parameters! {
    RegisterPushDeviceParams(fields) {
        service: PushService = fields.required("service", "The push service that issued the token.");
        token: PushToken = fields.required("token", "The token that the service gave to the app.");
    }

    RemovePushDeviceParams(fields) {
        id: RowNumber = fields.path("id", "Id of the registered app.");
    }
}

/// An app that gets pushes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PushDevice)]
pub struct PushDeviceResponse {
    #[schema(example = "7")]
    id: String,
    service: PushService,
    created_at: Timestamp,
    /// The last registration.
    #[schema(value_type = String, format = DateTime, example = "2026-01-05T09:00:00.000Z")]
    updated_at: Timestamp,
}

/// The caller's apps that get pushes, newest first.
#[derive(Serialize, ToSchema)]
pub struct PushDevices {
    items: Vec<PushDeviceResponse>,
}

impl From<PushDevice> for PushDeviceResponse {
    fn from(device: PushDevice) -> Self {
        Self {
            id: device.id.to_string(),
            service: device.service,
            created_at: device.created_at,
            updated_at: device.updated_at,
        }
    }
}

/// The token of an app at a push service.
pub struct PushToken(String);

impl Parameter for PushToken {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let token = text(value)?.trim().to_owned();
        if token.len() > MAX_TOKEN {
            return Err(Fault::new(
                FieldCode::TooLong,
                (format!("must have at most {MAX_TOKEN} characters"), format!("最多 {MAX_TOKEN} 个字符")),
            ));
        }
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if is_token {
            Ok(Self(token))
        } else {
            Err(Fault::new(FieldCode::InvalidFormat, ("must be a token", "必须是令牌")))
        }
    }

    fn schema(_: &LimitsConfig) -> serde_json::Value {
        let example = "0f".repeat(32);
        serde_json::json!({ "type": "string", "maxLength": MAX_TOKEN, "example": example })
    }
}

pub async fn register(context: RequestContext, params: RegisterPushDeviceParams) -> Result<Json<PushDeviceResponse>> {
    let (user, by) = (context.user()?, context.own_token()?);
    let (service, PushToken(token)) = (params.service, params.token);
    context.app.push.require(service)?;
    // It becomes a part of a path.
    if service == PushService::Apns && !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Error::field(
            "token",
            Fault::new(FieldCode::InvalidFormat, ("must be hexadecimal digits", "必须是十六进制数字")),
        ));
    }
    let pending = push::register(&context.app.core, user, by, service, token);
    Ok(Json(context.committed(pending).await?.into()))
}

pub async fn list(context: RequestContext, _: Nothing) -> Result<Json<PushDevices>> {
    let items = push_queue::list(&context.app.core, context.user()?)?;
    Ok(Json(PushDevices { items: items.into_iter().map(Into::into).collect() }))
}

pub async fn remove(
    context: RequestContext,
    RemovePushDeviceParams { id }: RemovePushDeviceParams,
) -> Result<NoContent> {
    context.committed(push_queue::remove(&context.app.core, context.user()?, id.0)).await?;
    Ok(NoContent)
}
