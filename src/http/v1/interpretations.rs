//! `/api/v1/interpretations`: the ratings of interpretations, those of sessions and of the first API generation alike.

use crate::{
    domain::divination::interpretation,
    error::Result,
    http::{
        interpretation_sse::RatingResponse,
        params::{Flag, RatingNote, TraceId, parameters},
        reply::Json,
        request_context::RequestContext,
    },
};

parameters! {
    RateParams(fields) {
        trace_id: TraceId = fields.path("traceId", "The trace id of the interpretation.");
        helpful: Flag = fields.required("helpful", "True if the interpretation was helpful.");
        note: Option<RatingNote> = fields.optional("note", "A note to the operators. Moderated. Without one, an earlier note is deleted.");
    }
}

pub async fn rate(context: RequestContext, params: RateParams) -> Result<Json<RatingResponse>> {
    let (user, TraceId(trace_id), Flag(is_helpful)) = (context.user()?, params.trace_id, params.helpful);
    let note = params.note.map(|RatingNote(text)| text);
    let rated = context.screened(move |app| interpretation::rate(&app.moderation, user, trace_id, is_helpful, note));
    Ok(Json(rated.await?.into()))
}
