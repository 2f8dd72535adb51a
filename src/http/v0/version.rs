//! `/version`: update checks and the latest release.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::messaging::releases::{self, AppVersion, ClientVersion, LARGEST_CODE, Release},
    error::{Code, Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{MaybeInvalid, Parameter, Rules, parameters, text, whole_number},
        public_content::{PublicJson, PublicResource},
        reply::Json,
        request_context::RequestContext,
    },
    types::{Timestamp, clean},
};

/// Maximum characters of a version and of a platform.
const NAME: usize = 64;

parameters! {
    CheckVersionParams(fields) {
        platform: Option<Platform> = fields.optional("platform", "Platform of the client. Without it, releases for any platform count.");
        client: ClientVersion = {
            let version = fields.optional("clientVersion", "The client's version, such as `2.3.1`.");
            let code = fields.optional("clientVersionCode", "Build number of the client. Takes precedence over `clientVersion`.");
            fields.cross_field(version.zip(code), client)
        };
    }

    LatestVersionParams(fields) {
        platform: Option<Platform> = fields.optional("platform", "Platform of the client. Without it, releases for any platform count.");
    }
}

/// A published version of the app.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppRelease {
    #[schema(example = "3")]
    id: String,
    #[schema(example = "2.3.1")]
    version: String,
    #[schema(example = 231)]
    version_code: i64,
    /// Null for all platforms.
    #[schema(example = "android")]
    platform: Option<String>,
    /// Clients older than this release must update.
    #[schema(example = false)]
    is_required: bool,
    #[schema(example = "修复若干问题。")]
    notes: String,
    #[schema(example = "https://app.example.com/download")]
    download_url: Option<String>,
    published_at: Timestamp,
}

impl PublicResource for AppRelease {}

impl From<Release> for AppRelease {
    fn from(release: Release) -> Self {
        Self {
            id: release.id.to_string(),
            version: release.version,
            version_code: release.version_code,
            platform: release.platform,
            is_required: release.is_required,
            notes: release.notes,
            download_url: release.download_url,
            published_at: release.published_at,
        }
    }
}

/// The recommendation for a client.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateAdvice {
    /// True if a newer version exists.
    #[schema(example = true)]
    update_available: bool,
    /// True if the client must update before it continues.
    #[schema(example = false)]
    update_required: bool,
    latest: Option<AppRelease>,
}

pub async fn check(context: RequestContext, check: CheckVersionParams) -> Result<Json<UpdateAdvice>> {
    let advice = releases::check(&context.app.core, &check.client, name(check.platform.as_ref()))?;
    Ok(Json(UpdateAdvice {
        update_available: advice.update_available,
        update_required: advice.update_required,
        latest: advice.latest.map(Into::into),
    }))
}

/// Returns the client's version. If a version code is given, the version text need not be valid.
fn client(
    _: &Rules<'_>,
    (version, code): (Option<MaybeInvalid<AppVersion>>, Option<MaybeInvalid<VersionCode>>),
) -> Result<ClientVersion> {
    match (code.map(|MaybeInvalid(code)| code), version.map(|MaybeInvalid(version)| version)) {
        (Some(Ok(VersionCode(code))), _) => Ok(ClientVersion::Code(code)),
        (None, Some(Ok(version))) => Ok(ClientVersion::Text(version)),
        (None, None) => {
            let fault = Fault::new(
                FieldCode::Required,
                ("`clientVersion` or `clientVersionCode` is required", "须填写 `clientVersion` 或 `clientVersionCode`"),
            );
            Err(Error::field("clientVersion", fault))
        }
        (code, version) => {
            let code = code.and_then(Result::err).map(|fault| fault.in_field("clientVersionCode"));
            let version = version.and_then(Result::err).map(|fault| fault.in_field("clientVersion"));
            Err(Error::fields(version.into_iter().chain(code).collect()))
        }
    }
}

pub async fn latest(context: RequestContext, params: LatestVersionParams) -> Result<PublicJson<AppRelease>> {
    let latest = releases::latest(&context.app.core, name(params.platform.as_ref()))?.ok_or(Code::NoRelease)?;
    PublicJson::changing(&AppRelease::from(latest), &context.headers)
}

fn name(platform: Option<&Platform>) -> Option<&str> {
    platform.map(|Platform(name)| name.as_str())
}

/// A build number.
pub struct VersionCode(pub i64);

impl Parameter for VersionCode {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 0..=LARGEST_CODE).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": LARGEST_CODE, "example": 231 })
    }
}

/// A short platform name in lower case.
pub struct Platform(pub String);

impl Parameter for Platform {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let name = clean(&text(value)?, NAME)?.to_lowercase();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !name.is_empty() && name.bytes().all(is_plain) {
            return Ok(Self(name));
        }
        Err(Fault::new(
            FieldCode::InvalidFormat,
            ("must be a short name, such as android or ios", "须为简短的名称，例如 android 或 ios"),
        ))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": NAME, "example": "android" })
    }
}

impl Parameter for AppVersion {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        Self::parse(&clean(&text(value)?, NAME)?)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": NAME, "example": "2.3.1" })
    }
}
