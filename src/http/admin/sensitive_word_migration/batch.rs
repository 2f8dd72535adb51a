//! `/admin/sensitive-word-migration/batch-compare`: both services' verdicts on many texts.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue as JsonValue};
use utoipa::ToSchema;

use super::TextCompared;
use crate::{
    config::LimitsConfig,
    domain::moderation::{
        compare::{self, ComparedText},
        engine::ContentType,
    },
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        openapi::schemas::enumerated,
        params::{BodyShape, Content, Fields, ObjectParameter, Parameters, Rules, member, object, required},
        reply::Json,
        request_context::RequestContext,
    },
};

/// Statistics of all comparisons of a batch.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchSummary {
    #[schema(example = 2)]
    total: usize,
    #[schema(example = 1)]
    agreed: usize,
    #[schema(example = 1)]
    disagreed: usize,
    /// Texts for which the external service could not be called.
    #[schema(example = 0)]
    failed: usize,
    #[schema(example = 1)]
    only_local_refused: usize,
    #[schema(example = 0)]
    only_external_refused: usize,
}

/// Both services' verdicts on many texts, in their order.
#[derive(Serialize, ToSchema)]
pub struct BatchCompared {
    items: Vec<TextCompared>,
    summary: BatchSummary,
}

pub async fn compare(context: RequestContext, batch: BatchCompare) -> Result<Json<BatchCompared>> {
    let texts: Vec<_> = batch.items.into_iter().map(|BatchItem(text)| text).collect();
    let compared = context.blocking(move |app| compare::compare_all(&app.moderation, &texts)).await?;
    let items: Vec<TextCompared> = compared.into_iter().map(Into::into).collect();
    let count = |is_counted: fn(&TextCompared) -> bool| items.iter().filter(|item| is_counted(item)).count();
    let summary = BatchSummary {
        total: items.len(),
        agreed: count(|item| item.agree == Some(true)),
        disagreed: count(|item| item.agree == Some(false)),
        failed: count(|item| item.agree.is_none()),
        only_local_refused: count(|item| item.agree == Some(false) && item.local.allowed == Some(false)),
        only_external_refused: count(|item| item.agree == Some(false) && item.local.allowed == Some(true)),
    };
    Ok(Json(BatchCompared { items, summary }))
}

/// Texts to compare. They may be the whole body, as a bare JSON array.
pub struct BatchCompare {
    items: Vec<BatchItem>,
}

impl Parameters for BatchCompare {
    const BODY: BodyShape = BodyShape::NamedOrItems("items");

    fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let items = fields.objects(
            "items",
            "The texts, each `{content, contentType?, userId?}` or the text alone. The body may be a bare array of them.",
        );
        Some(Self { items: items? })
    }
}

/// One text of a batch, in JSON.
pub struct BatchItem(ComparedText);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenItem<'json> {
    #[serde(borrow)]
    content: Option<&'json JsonValue>,
    #[serde(borrow)]
    content_type: Option<&'json JsonValue>,
    #[serde(borrow)]
    user_id: Option<&'json JsonValue>,
}

impl ObjectParameter for BatchItem {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Vec<(&'static str, Fault)>> {
        if let RawValue::Json(text) = value
            && text.get().starts_with('"')
        {
            let content = read_content(Some(text), rules).map_err(|fault| vec![("", fault)])?;
            return Ok(Self(ComparedText { content, content_type: ContentType::Question, user: None }));
        }
        let shape = ("must be a text, or an object with a text as `content`", "须为文本，或 `content` 为文本的对象");
        let WrittenItem { content, content_type, user_id } = object(value, shape)?;
        let mut faults = Vec::new();
        let content = read_content(content, rules).map_err(|fault| faults.push(("content", fault)));
        let content_type = member(content_type, rules).map_err(|fault| faults.push(("contentType", fault)));
        let user = member(user_id, rules).map_err(|fault| faults.push(("userId", fault)));
        match (content, content_type, user) {
            (Ok(content), Ok(content_type), Ok(user)) => {
                let content_type = content_type.unwrap_or(ContentType::Question);
                Ok(Self(ComparedText { content, content_type, user }))
            }
            _ => Err(faults),
        }
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({
            "type": "object",
            "required": ["content"],
            "properties": {
                "content": { "type": "string", "maxLength": 2_000 },
                "contentType": enumerated("ContentType", "question"),
                "userId": { "type": "string" },
            },
            "example": { "content": "今年换工作合适吗？", "contentType": "question" },
        })
    }
}

fn read_content(value: Option<&JsonValue>, rules: &Rules<'_>) -> Result<String, Fault> {
    match value {
        Some(raw) if !raw.get().starts_with('"') => {
            Err(Fault::new(FieldCode::InvalidType, ("must be a text", "须为文本")))
        }
        value => {
            let content = member(value, rules)?.map(|Content(text)| text);
            content.ok_or_else(required)
        }
    }
}
