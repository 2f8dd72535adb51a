//! `/admin/releases`: app releases.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::messaging::releases::{self, AppVersion, DownloadUrl, Release, ReleaseDraft},
    error::{Fault, Result},
    http::{
        body::RawValue,
        numbered_page::NumberedPage,
        params::{
            Flag, NotificationText, PageNumber, PageSize, Parameter, Reason, RowNumber, Rules, page, parameters, text,
        },
        reply::{Created, Json},
        request_context::RequestContext,
        v0::version::{AppRelease, Platform, VersionCode},
    },
    types::Timestamp,
};

parameters! {
    PublishReleaseParams(fields) {
        version: AppVersion = fields.required("version", "The version, such as `2.3.1`.");
        version_code: VersionCode = fields.required("versionCode", "Build number. Releases are ordered by it.");
        platform: Option<Platform> = fields.optional("platform", "Platform of the release. Default: all.");
        is_required: Option<Flag> = fields.optional("isRequired", "True if older clients must update.");
        notes: Option<NotificationText> = fields.optional("notes", "Release notes.");
        download_url: Option<DownloadUrl> = fields.optional("downloadUrl", "Download URL.");
    }

    ListReleasesParams(fields) {
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Releases per page.");
    }

    WithdrawReleaseParams(fields) {
        id: RowNumber = fields.path("id", "Id of the release.");
        reason: Option<Reason> = fields.optional("reason", "The reason, for the audit.");
    }
}

/// A release of the app, also a withdrawn one.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminRelease {
    #[serde(flatten)]
    release: AppRelease,
    /// Clients no longer hear of a withdrawn release.
    #[schema(value_type = Option<String>, format = DateTime, example = json!(null))]
    withdrawn_at: Option<Timestamp>,
}

impl From<Release> for AdminRelease {
    fn from(release: Release) -> Self {
        let withdrawn_at = release.withdrawn_at;
        Self { release: release.into(), withdrawn_at }
    }
}

pub async fn withdraw(context: RequestContext, params: WithdrawReleaseParams) -> Result<Json<AdminRelease>> {
    context.authority(params.reason.map(|Reason(reason)| reason))?;
    let RowNumber(id) = params.id;
    Ok(Json(context.committed(releases::withdraw(&context.app.core, id)).await?.into()))
}

pub async fn publish(context: RequestContext, publish: PublishReleaseParams) -> Result<Created<AdminRelease>> {
    let draft = ReleaseDraft {
        version: publish.version,
        version_code: publish.version_code.0,
        platform: publish.platform.map(|Platform(name)| name),
        is_required: publish.is_required.is_some_and(|Flag(is_required)| is_required),
        notes: publish.notes.map(|NotificationText(text)| text).unwrap_or_default(),
        download_url: publish.download_url,
    };
    Ok(Created(context.committed(releases::publish(&context.app.core, draft)).await?.into()))
}

pub async fn list(context: RequestContext, params: ListReleasesParams) -> Result<Json<NumberedPage<AdminRelease>>> {
    let page = page(&context, params.page, params.size);
    let found = releases::list(&context.app.core, page)?;
    Ok(NumberedPage::of(page, found))
}

impl Parameter for DownloadUrl {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        Self::parse(&text(value)?)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": Self::LENGTH, "example": "https://app.example.com/download" })
    }
}
