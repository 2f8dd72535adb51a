//! `/admin/violations`: texts that were refused.

pub mod review;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::lists::StaffList;
use crate::{
    app::App,
    config::LimitsConfig,
    domain::{
        moderation::{
            engine::ContentType,
            violations::{
                self, DAYS_TO_KEEP, FREQUENT_DAYS, FREQUENT_THRESHOLD, NameCount, ViolationQuery, ViolationRecord,
                Violator,
            },
        },
        operations::admins::roles::Right,
    },
    error::{Fault, Result},
    http::{
        body::RawValue,
        console::views::{
            cells::Column,
            context::ViewContext,
            layout::Place,
            list_page::{FilterField, Frame},
            pages::moderation as view,
            texts::Text,
        },
        openapi::enums::ContentTypeName,
        params::{
            DaysToKeep, Nothing, PageNumber, PageSize, Parameter, RowNumber, Rules, TimeRange, WordType,
            optional_time_range, page, parameters, whole_number,
        },
        reply::Json,
        request_context::RequestContext,
    },
    types::{PageRequest, Paginated, Timestamp, UserId},
};

/// Frequent violators that the page lists.
const FREQUENT_LISTED: u32 = 10;

parameters! {
    ListViolationsParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "Only texts of this user.");
        content_type: Option<ContentType> = fields.optional("contentType", "Only texts of this kind.");
        violation_type: Option<WordType> = fields.optional("violationType", "Only texts rejected with this type.");
        time: TimeRange = optional_time_range(fields, "Only texts rejected at this time or later.", "Only texts rejected before this time; a whole day is included.");
    }

    UserViolationsParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
    }

    FrequentViolatorsParams(fields) {
        days: Option<Days> = fields.optional("days", "Days to look back. Default: 30.");
        threshold: Option<Threshold> = fields.optional("threshold", "Minimum number of rejected texts. Default: 3.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Users on a page.");
    }

    CleanUpViolationsParams(fields) {
        days_to_keep: Option<DaysToKeep> = fields.optional("daysToKeep", "Days of records to keep. Default: 180.");
    }

    ViolationParams(fields) {
        id: RowNumber = fields.path("id", "The record's number.");
    }
}

/// A rejected text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownViolation {
    #[schema(example = "7")]
    id: String,
    user_id: UserId,
    #[schema(value_type = ContentTypeName)]
    content_type: String,
    /// The type of the first word found.
    #[schema(example = "gambling")]
    violation_type: String,
    /// The listed words found, or the labels of the external service.
    #[schema(example = json!(["赌博"]))]
    matched_words: Vec<String>,
    /// The text with the matches masked.
    #[schema(example = "一起**吧")]
    masked_text: String,
    /// The service that refused: `local`, or the external service's name.
    #[schema(example = "local")]
    provider: String,
    created_at: Timestamp,
    /// The time at which a moderator acquitted the text.
    #[schema(value_type = Option<String>, format = DateTime, example = json!(null))]
    acquitted_at: Option<Timestamp>,
    #[schema(example = json!(null))]
    acquitted_by: Option<String>,
}

impl From<ViolationRecord> for ShownViolation {
    fn from(recorded: ViolationRecord) -> Self {
        Self {
            id: recorded.id.to_string(),
            user_id: recorded.user,
            content_type: recorded.content_type,
            violation_type: recorded.violation_type,
            matched_words: recorded.words,
            masked_text: recorded.masked_text,
            provider: recorded.provider,
            created_at: recorded.at,
            acquitted_at: recorded.acquitted_at,
            acquitted_by: recorded.acquitted_by,
        }
    }
}

pub struct ViolationList;

impl StaffList for ViolationList {
    type Params = ListViolationsParams;
    type Filter = ViolationQuery;
    type Row = ViolationRecord;

    const PLACE: Place = Place::Violations;
    const EMPTY: Text = Text::NoViolations;
    const COLUMNS: &'static [Column<ViolationRecord>] = view::VIOLATION;

    fn fields(_: &ViewContext) -> Vec<FilterField> {
        let [from, to] = FilterField::range(Text::From, Text::To);
        vec![
            FilterField::new("userId", Text::UserId),
            FilterField::new("violationType", Text::ViolationType),
            FilterField::new("contentType", Text::ContentType).choice(ContentType::ALL),
            from,
            to,
        ]
    }

    fn filter(context: &RequestContext, params: ListViolationsParams) -> Result<ViolationQuery> {
        context.name_subject(params.user_id);
        Ok(ViolationQuery {
            user: params.user_id,
            content_type: params.content_type.map(|content_type| content_type.name().to_owned()),
            violation_type: params.violation_type.map(|WordType(kind)| kind),
            from: params.time.start,
            to: params.time.end,
        })
    }

    fn read(app: &App, filter: &ViolationQuery, page: PageRequest) -> Result<Paginated<ViolationRecord>> {
        violations::list(&app.core, filter, page)
    }

    fn frame(cx: &ViewContext, app: &App, _: Option<&ViolationQuery>) -> Result<Frame> {
        let newest = PageRequest::of_newest(FREQUENT_LISTED);
        let frequent = violations::frequent(&app.core, FREQUENT_DAYS, FREQUENT_THRESHOLD, newest)?.items;
        let below = view::statistics(cx, &violations::types(&app.core)?, &frequent);
        let bulk = cx.may(Right::Moderate).then(|| view::bulk(cx));
        Ok(Frame { below, bulk, ..Frame::default() })
    }

    fn pick(found: &ViolationRecord) -> Option<String> {
        Some(found.id.to_string())
    }
}

pub async fn find(context: RequestContext, params: ViolationParams) -> Result<Json<ShownViolation>> {
    let RowNumber(id) = params.id;
    let found = violations::find(&context.app.core, id)?;
    context.meta.subject.get_or_init(|| found.user);
    Ok(Json(found.into()))
}

/// Statistics of a user's rejected texts.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserViolations {
    user_id: UserId,
    #[schema(example = 3)]
    total: i64,
    types: Vec<NameCount>,
    content_types: Vec<NameCount>,
    first_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-03T03:04:05.678Z")]
    last_at: Option<Timestamp>,
}

impl UserViolations {
    pub fn of(user_id: UserId, found: violations::ViolationSummary) -> Self {
        Self {
            user_id,
            total: found.total,
            types: found.types,
            content_types: found.content_types,
            first_at: found.first_at,
            last_at: found.last_at,
        }
    }
}

pub async fn user_stats(context: RequestContext, params: UserViolationsParams) -> Result<Json<UserViolations>> {
    context.meta.subject.get_or_init(|| params.user_id);
    Ok(Json(UserViolations::of(params.user_id, violations::of_user(&context.app.core, params.user_id)?)))
}

/// Rejected texts by type.
#[derive(Serialize, ToSchema)]
pub struct ViolationTypes {
    #[schema(example = 3)]
    total: i64,
    types: Vec<NameCount>,
}

pub async fn type_stats(context: RequestContext, _: Nothing) -> Result<Json<ViolationTypes>> {
    let types = context.report(|app| violations::types(&app.core)).await?;
    let total = types.iter().map(|kind| kind.count).sum();
    Ok(Json(ViolationTypes { total, types }))
}

/// A page of users with many violations, the most first.
#[derive(Serialize, ToSchema)]
pub struct FrequentViolators {
    items: Vec<Violator>,
    #[schema(example = 30)]
    days: u32,
    #[schema(example = 3)]
    threshold: u32,
    #[schema(example = 1)]
    page: u32,
    #[schema(example = 20)]
    size: u32,
    /// Users on all pages.
    #[schema(example = 1)]
    total: i64,
}

pub async fn frequent_violators(
    context: RequestContext,
    params: FrequentViolatorsParams,
) -> Result<Json<FrequentViolators>> {
    let page = page(&context, params.page, params.size);
    let days = params.days.map_or(FREQUENT_DAYS, |Days(days)| days);
    let threshold = params.threshold.map_or(FREQUENT_THRESHOLD, |Threshold(threshold)| threshold);
    let found = context.report(move |app| violations::frequent(&app.core, days, threshold, page)).await?;
    let Paginated { items, total } = found;
    Ok(Json(FrequentViolators { items, days, threshold, page: page.number, size: page.size, total }))
}

/// The result of a cleanup.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ViolationsCleaned {
    #[schema(example = 12)]
    deleted: u64,
    #[schema(example = 180)]
    days_to_keep: u32,
}

pub async fn clean_up(context: RequestContext, params: CleanUpViolationsParams) -> Result<Json<ViolationsCleaned>> {
    let days_to_keep = params.days_to_keep.map_or(DAYS_TO_KEEP, |DaysToKeep(days)| days);
    context.record_start().await?;
    let deleted = context.blocking(move |app| violations::clean_up(&app.core, days_to_keep)).await?;
    Ok(Json(ViolationsCleaned { deleted, days_to_keep }))
}

/// Days to look back.
pub struct Days(u32);

impl Parameter for Days {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 1..=36_500).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": 36_500, "example": 30 })
    }
}

/// Number of violations from which a user counts as frequent.
pub struct Threshold(u32);

impl Parameter for Threshold {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 1..=u32::MAX).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX, "example": 3 })
    }
}
