//! `/admin/sensitive-word-migration`: selects and compares the moderation services.

mod batch;

use serde::Serialize;
use utoipa::ToSchema;

pub use self::batch::compare as batch_compare;

use crate::{
    domain::moderation::{
        compare::{self, ComparedText, Comparison, TimedRuling},
        engine::ContentType,
        policy::{self, Service},
        shadow_mode::{self, Disagreement},
        status::{self, ModerationOverview},
    },
    error::Result,
    http::{
        admin::sensitive_words::FoundWord,
        numbered_page::NumberedPage,
        openapi::enums::ContentTypeName,
        params::{Content, Flag, Nothing, PageNumber, PageSize, page, parameters},
        reply::Json,
        request_context::RequestContext,
    },
    providers::breaker::BreakerState,
    types::{Timestamp, UserId, decimal_milliseconds},
};

parameters! {
    SwitchServiceParams(fields) {
        use_aliyun: Flag = fields.required("useAliyun", "True for the external service, false for the local list.");
    }

    SetFallbackParams(fields) {
        enable_fallback: Flag = fields.required("enableFallback", "True if the local list decides when the external service fails.");
    }

    CompareTextParams(fields) {
        content: Content = fields.required("content", "The text to check with both services.");
        content_type: Option<ContentType> = fields.optional("contentType", "The use of the text. Default: question.");
        user_id: Option<UserId> = fields.optional("userId", "The author of the text.");
    }

    ListDisagreementsParams(fields) {
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Disagreements per page.");
    }
}

/// The last failure of the external service.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceFailure {
    at: Timestamp,
    #[schema(example = "total_timeout")]
    code: String,
}

/// The word list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalService {
    #[schema(example = 60)]
    word_count: i64,
    #[schema(example = 13)]
    allowed_phrases: i64,
    /// The version of the stored list, and the version in use.
    #[schema(example = 1)]
    version: i64,
    #[schema(example = 1)]
    version_in_force: i64,
    #[schema(example = 1_400_000)]
    memory_bytes: usize,
}

/// The external moderator.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalService {
    /// `none` if there is none.
    #[schema(example = "aliyun")]
    provider: &'static str,
    #[schema(example = true)]
    configured: bool,
    /// `closed` while calls pass, `open` while they are rejected after failures, `probing` while a trial call runs.
    #[schema(example = "closed")]
    breaker: &'static str,
    /// Failures since the last response, while the breaker is closed.
    #[schema(example = 0)]
    failures: u32,
    last_failure: Option<ServiceFailure>,
    last_answer_at: Option<Timestamp>,
}

/// The state of moderation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModerationStatus {
    /// The deciding service.
    service: Service,
    #[schema(example = false)]
    use_aliyun: bool,
    #[schema(example = true)]
    enable_fallback: bool,
    local: LocalService,
    external: ExternalService,
    /// Share of texts that are also sent to the service that does not decide.
    #[schema(example = 0.0)]
    shadow_share: f64,
}

pub const fn shown(breaker: BreakerState) -> &'static str {
    match breaker {
        BreakerState::Closed { .. } => "closed",
        BreakerState::Open { probing: false, .. } => "open",
        BreakerState::Open { probing: true, .. } => "probing",
    }
}

impl From<ModerationOverview> for ModerationStatus {
    fn from(status: ModerationOverview) -> Self {
        let failures = if let BreakerState::Closed { faults } = status.breaker { faults } else { 0 };
        Self {
            service: status.policy.service,
            use_aliyun: status.policy.service == Service::External,
            enable_fallback: status.policy.falls_back,
            local: LocalService {
                word_count: status.words.total,
                allowed_phrases: status.words.allowed_phrases,
                version: status.words.version,
                version_in_force: status.active_version,
                memory_bytes: status.memory_bytes,
            },
            external: ExternalService {
                provider: status.provider,
                configured: status.is_configured,
                breaker: shown(status.breaker),
                failures,
                last_failure: status.last_failure.map(|failure| ServiceFailure { at: failure.at, code: failure.code }),
                last_answer_at: status.last_success_at,
            },
            shadow_share: status.sample_rate,
        }
    }
}

pub async fn status(context: RequestContext, _: Nothing) -> Result<Json<ModerationStatus>> {
    Ok(Json(context.blocking(|app| status::current(&app.moderation)).await?.into()))
}

pub async fn switch(context: RequestContext, to: SwitchServiceParams) -> Result<Json<ModerationStatus>> {
    let service = if to.use_aliyun.0 { Service::External } else { Service::Local };
    let before =
        context.committed(policy::switch(&context.app.core, &context.app.moderation.external, service)).await?;
    context.meta.reason.get_or_init(|| format!("{} to {}", before.service.name(), service.name()));
    status(context, Nothing).await
}

pub async fn set_fallback(context: RequestContext, to: SetFallbackParams) -> Result<Json<ModerationStatus>> {
    let Flag(falls_back) = to.enable_fallback;
    let before = context.committed(policy::set_fallback(&context.app.core, falls_back)).await?;
    let name = |falls_back| if falls_back { "on" } else { "off" };
    context.meta.reason.get_or_init(|| format!("{} to {}", name(before.falls_back), name(falls_back)));
    status(context, Nothing).await
}

/// One service's verdict on a text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceOpinion {
    /// True if the service could be called.
    #[schema(example = true)]
    available: bool,
    #[schema(example = false)]
    allowed: Option<bool>,
    /// The type of the first match.
    #[schema(example = "gambling")]
    violation_type: Option<String>,
    /// The listed words found, or the labels of the external service.
    #[schema(example = json!(["赌博"]))]
    found: Vec<String>,
    matches: Vec<FoundWord>,
    /// The reason why the service could not be called.
    #[schema(example = "not_configured")]
    error: Option<String>,
}

impl ServiceOpinion {
    fn of(opinion: TimedRuling) -> Self {
        let ruling = opinion.ruling;
        Self {
            available: true,
            allowed: Some(ruling.allowed),
            violation_type: Some(ruling.violation_type).filter(|kind| !kind.is_empty()),
            found: ruling.found,
            matches: ruling.matches.into_iter().map(Into::into).collect(),
            error: None,
        }
    }

    fn none(error: String) -> Self {
        let (found, matches) = (Vec::new(), Vec::new());
        Self { available: false, allowed: None, violation_type: None, found, matches, error: Some(error) }
    }
}

/// The time each service took.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Durations {
    #[schema(example = 0.004)]
    local_ms: f64,
    #[schema(example = 84.2)]
    external_ms: Option<f64>,
}

/// Both services' verdicts on a text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextCompared {
    local: ServiceOpinion,
    external: ServiceOpinion,
    /// Null if the external service could not be called.
    #[schema(example = true)]
    agree: Option<bool>,
    durations: Durations,
}

impl From<Comparison> for TextCompared {
    fn from(compared: Comparison) -> Self {
        let agree = compared.agree();
        let milliseconds = |opinion: &TimedRuling| opinion.took.as_secs_f64() * 1e3;
        let durations = Durations {
            local_ms: milliseconds(&compared.local),
            external_ms: compared.external.as_ref().ok().map(milliseconds),
        };
        let external = compared.external.map_or_else(ServiceOpinion::none, ServiceOpinion::of);
        Self { local: ServiceOpinion::of(compared.local), external, agree, durations }
    }
}

pub async fn compare(context: RequestContext, params: CompareTextParams) -> Result<Json<TextCompared>> {
    let content_type = params.content_type.unwrap_or(ContentType::Question);
    let text = ComparedText { content: params.content.0, content_type, user: params.user_id };
    Ok(Json(context.blocking(move |app| compare::compare(&app.moderation, &text)).await?.into()))
}

/// The health of the local list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalHealth {
    #[schema(example = true)]
    healthy: bool,
    #[schema(example = 0.004)]
    duration_ms: f64,
}

/// The health of the external service.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalHealth {
    #[schema(example = true)]
    configured: bool,
    /// Null if no external service is configured.
    #[schema(example = true)]
    healthy: Option<bool>,
    /// `closed`, `open` or `probing`. Texts reach the service only while it is `closed`.
    #[schema(example = "closed")]
    breaker: &'static str,
    #[schema(example = 84.2)]
    duration_ms: Option<f64>,
    #[schema(example = "total_timeout")]
    error: Option<String>,
    /// Time of the probe; its result is cached for a minute, because each is billed.
    checked_at: Option<Timestamp>,
}

/// The health of both services.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ModerationHealth)]
pub struct ModerationHealthResponse {
    /// True if the local list and, if configured, the external service work.
    #[schema(example = true)]
    healthy: bool,
    local: LocalHealth,
    external: ExternalHealth,
}

pub async fn check_health(context: RequestContext, _: Nothing) -> Result<Json<ModerationHealthResponse>> {
    let health = context.blocking(|app| status::check_health(&app.moderation)).await?;
    let probe = health.external.as_ref();
    Ok(Json(ModerationHealthResponse {
        healthy: health.is_healthy(),
        local: LocalHealth { healthy: health.local_is_current, duration_ms: decimal_milliseconds(health.local_took) },
        external: ExternalHealth {
            configured: probe.is_some(),
            healthy: health.external_is_healthy(),
            breaker: shown(health.breaker),
            duration_ms: probe.map(|probe| decimal_milliseconds(probe.took)),
            error: probe.and_then(|probe| probe.failure.clone()),
            checked_at: probe.map(|probe| probe.at),
        },
    }))
}

/// A text on which the two services disagreed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownDisagreement {
    #[schema(example = "7")]
    id: String,
    #[schema(value_type = ContentTypeName)]
    content_type: String,
    /// The service that decided.
    #[schema(value_type = Service)]
    decided_by: String,
    #[schema(example = true)]
    local_allowed: bool,
    #[schema(example = false)]
    external_allowed: bool,
    /// Types found by the local list.
    #[schema(example = json!([]))]
    words: Vec<String>,
    /// Labels found by the external service.
    #[schema(example = json!(["pt_to_contact"]))]
    labels: Vec<String>,
    #[schema(example = "今晚**吗")]
    masked_text: String,
    created_at: Timestamp,
}

impl From<Disagreement> for ShownDisagreement {
    fn from(found: Disagreement) -> Self {
        Self {
            id: found.id.to_string(),
            content_type: found.content_type,
            decided_by: found.decided_by,
            local_allowed: found.local_allowed,
            external_allowed: found.external_allowed,
            words: found.words,
            labels: found.labels,
            masked_text: found.masked_text,
            created_at: found.at,
        }
    }
}

pub async fn disagreements(
    context: RequestContext,
    params: ListDisagreementsParams,
) -> Result<Json<NumberedPage<ShownDisagreement>>> {
    let page = page(&context, params.page, params.size);
    let found = shadow_mode::disagreements(&context.app.core, page)?;
    Ok(NumberedPage::of(page, found))
}
