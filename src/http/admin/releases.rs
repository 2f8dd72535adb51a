//! `/admin/releases`: app releases.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::lists::StaffList;
use crate::{
    app::App,
    config::LimitsConfig,
    domain::messaging::releases::{self, AppVersion, DownloadUrl, Release, ReleaseDraft},
    error::{Fault, Result},
    http::{
        body::RawValue,
        console::views::{
            cells::Column, context::ViewContext, layout::Place, list_page::Frame, pages::messages as view, texts::Text,
        },
        params::{Flag, Nothing, NotificationText, Parameter, Reason, RowNumber, Rules, parameters, text},
        reply::{Created, Json},
        request_context::RequestContext,
        v0::version::{AppRelease, Platform, VersionCode},
    },
    types::{PageRequest, Paginated, Timestamp},
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

/// The releases, below the form for a new one.
pub struct ReleaseList;

impl StaffList for ReleaseList {
    type Params = Nothing;
    type Filter = ();
    type Row = Release;

    const PLACE: Place = Place::Releases;
    const EMPTY: Text = Text::NoReleases;
    const COLUMNS: &'static [Column<Release>] = view::RELEASE;

    fn filter(_: &RequestContext, _: Nothing) -> Result<()> {
        Ok(())
    }

    fn read(app: &App, (): &(), page: PageRequest) -> Result<Paginated<Release>> {
        releases::list(&app.core, page)
    }

    fn frame(cx: &ViewContext, _: &App, _: Option<&()>) -> Result<Frame> {
        Ok(Frame { above: view::new_release(cx, false), ..Frame::default() })
    }
}

impl Parameter for DownloadUrl {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        Self::parse(&text(value)?)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": Self::LENGTH, "example": "https://app.example.com/download" })
    }
}
