//! `/admin/data-cleanup`: purges of tables, each confirmed by a second request.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::operations::{
        confirmations::{self, ConfirmationRequest},
        purge::{self, PurgeResult, PurgeTarget},
    },
    error::Result,
    http::{
        params::{Credential, parameters},
        reply::Json,
        request_context::RequestContext,
    },
};

parameters! {
    ClearDataParams(fields) {
        confirm: Option<Credential> = fields.optional("confirm", "The token from the 428 response to the same request without it.");
    }
}

/// The result of a cleanup.
#[derive(Serialize, ToSchema)]
pub struct DataCleared {
    /// Rows deleted, by table.
    #[schema(example = json!({ "codes": 12 }))]
    deleted: BTreeMap<String, i64>,
    /// Remaining rows of the same kind, by table.
    #[schema(example = json!({}))]
    kept: BTreeMap<String, i64>,
    /// Name of the backup made beforehand.
    #[schema(example = "yarrow-20260102T030405.678Z-before-cleanup.db")]
    backup: String,
}

impl From<PurgeResult> for DataCleared {
    fn from(cleared: PurgeResult) -> Self {
        let PurgeResult { deleted, kept, backup } = cleared;
        Self { deleted: deleted.into_iter().collect(), kept: kept.into_iter().collect(), backup }
    }
}

pub async fn clear_all(context: RequestContext, clear: ClearDataParams) -> Result<Json<DataCleared>> {
    confirmed(context, clear, PurgeTarget::All).await
}

pub async fn clear_codes(context: RequestContext, clear: ClearDataParams) -> Result<Json<DataCleared>> {
    confirmed(context, clear, PurgeTarget::VerificationCodes).await
}

pub async fn clear_payments(context: RequestContext, clear: ClearDataParams) -> Result<Json<DataCleared>> {
    confirmed(context, clear, PurgeTarget::PaymentRecords).await
}

pub async fn clear_feedback(context: RequestContext, clear: ClearDataParams) -> Result<Json<DataCleared>> {
    confirmed(context, clear, PurgeTarget::Feedback).await
}

async fn confirmed(context: RequestContext, clear: ClearDataParams, target: PurgeTarget) -> Result<Json<DataCleared>> {
    let actor = context.admin()?.actor();
    let preview = context.report(move |app| purge::dry_run(&app.core, &app.network_log, target)).await?;
    let token = clear.confirm.map(|Credential(token)| token);
    let demand = ConfirmationRequest { actor, action: target.name().to_owned(), token, preview };
    context.committed(confirmations::require(&context.app.core, demand)).await?;
    context.record_start().await?;
    let cleared =
        context.blocking(move |app| purge::run(&app.backups, &app.network_log, target, &mut |_, _, _| ())).await?;
    Ok(Json(cleared.into()))
}
