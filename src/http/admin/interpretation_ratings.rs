//! `/admin/interpretation-ratings`: users' ratings of interpretations.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::divination::interpretation::{self, Note, Rate, RatingReport},
    error::Result,
    http::{
        numbered_page::NumberedPage,
        params::{PageNumber, PageSize, TimeRange, optional_time_range, page, parameters},
        reply::Json,
        request_context::RequestContext,
    },
    types::{Timestamp, UserId},
};

parameters! {
    RatingReportParams(fields) {
        page: Option<PageNumber> = fields.optional("page", "Page number of the notes.");
        size: Option<PageSize> = fields.optional("size", "Notes on a page.");
        time: TimeRange = optional_time_range(fields, "Only ratings of this time or later.", "Only ratings before this time.");
    }
}

/// The ratings of interpretations by one model and prompt version.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RatingRate {
    #[schema(example = "openai")]
    provider: String,
    #[schema(example = "deepseek-chat")]
    model: String,
    #[schema(example = "2")]
    prompt_version: String,
    /// The number of rated interpretations.
    #[schema(example = 40)]
    rated: i64,
    #[schema(example = 34)]
    helpful: i64,
    /// The share of helpful ones in percent.
    #[schema(example = 85)]
    helpful_percent: i64,
}

impl From<Rate> for RatingRate {
    fn from(rate: Rate) -> Self {
        Self {
            helpful_percent: rate.helpful_percent(),
            provider: rate.provider,
            model: rate.model,
            prompt_version: rate.prompt_version,
            rated: rate.rated,
            helpful: rate.helpful,
        }
    }
}

/// A note of a user about an interpretation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RatingNote)]
pub struct RatingNoteRow {
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    trace_id: String,
    user_id: UserId,
    #[schema(example = "openai")]
    provider: String,
    #[schema(example = "deepseek-chat")]
    model: String,
    #[schema(example = "2")]
    prompt_version: String,
    #[schema(example = true)]
    helpful: bool,
    #[schema(example = "讲得很清楚。")]
    note: String,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:05:06.789Z")]
    rated_at: Timestamp,
}

impl From<Note> for RatingNoteRow {
    fn from(note: Note) -> Self {
        Self {
            trace_id: note.trace_id,
            user_id: note.user,
            provider: note.provider,
            model: note.model,
            prompt_version: note.prompt_version,
            helpful: note.is_helpful,
            note: note.text,
            rated_at: note.rated_at,
        }
    }
}

/// A name without generic arguments, which the schema of a field needs.
type NotePage = NumberedPage<RatingNoteRow>;

/// The ratings of a period.
#[derive(Serialize, ToSchema)]
#[schema(as = RatingReport)]
pub struct RatingReportResponse {
    rates: Vec<RatingRate>,
    notes: NotePage,
}

pub async fn report(context: RequestContext, params: RatingReportParams) -> Result<Json<RatingReportResponse>> {
    let page = page(&context, params.page, params.size);
    let (from, to) = (params.time.from(), params.time.to());
    let RatingReport { rates, notes } =
        context.report(move |app| interpretation::ratings(&app.core, from, to, page)).await?;
    let Json(notes) = NumberedPage::of(page, notes);
    Ok(Json(RatingReportResponse { rates: rates.into_iter().map(RatingRate::from).collect(), notes }))
}
