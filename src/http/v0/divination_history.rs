//! `/divination-history`: castings stored for clients.

use std::{
    borrow::Cow,
    ops::ControlFlow::{Break, Continue},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue as JsonValue};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::{
        divination::history::{self, HistoryDraft, HistoryEdit, RESTORINGS, RecordVersion, RestoredRecords, Unsaved},
        identity::users::User,
    },
    error::{Code, Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        claims::Claims,
        params::{
            AiResult, BodyShape, Clearable, ClientTimestamp, Fields, JsonData, Label, LocalRecordId, ObjectParameter,
            PageNumber, PageSize, Parameter, Parameters, Question, RowNumber, Rules, member, object, page, parameters,
            required,
        },
        reply::{Json, SerializedList},
        request_context::RequestContext,
    },
    types::{JsonText, PhoneNumber, Timestamp, UserId},
};

/// Maximum bytes of a list without pages: a thousand of the largest records would have a hundred MiB.
const UNPAGED_BYTES: usize = 8 << 20;

parameters! {
    SaveRecordParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        phone_number: Option<PhoneNumber> = fields.optional("phoneNumber", "The caller's own number.");
        local_record_id: LocalRecordId = fields.required("localRecordId", "The client's id of the record. Saving it again changes only the fields that are sent.");
        json_data: Option<JsonData> = fields.usual("jsonData", "The casting.");
        ai_result: Option<AiResult> = fields.optional("aiResult", "An interpretation that belongs to it.");
        question_type: Option<Clearable<Label>> = fields.optional("questionType", "The topic of the question.");
        question: Option<Clearable<Question>> = fields.usual("question", "The question.");
        timestamp: Option<Clearable<ClientTimestamp>> = fields.usual("timestamp", "The client's own time. Returned as a number and not interpreted.");
        base_version: Option<RowNumber> = fields.optional("baseVersion", "The `version` of the record that was edited. If the record has another one or was deleted, nothing is saved (409 `version_conflict`). By default the last save wins.");
    }

    ListHistoryParams(fields) {
        phone_number: Option<PhoneNumber> = fields.optional("phoneNumber", "The caller's own number.");
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        question_type: Option<Label> = fields.optional("questionType", "Only records of this type.");
        page: Option<PageNumber> = fields.optional("page", "Number of the page. Without `page` and `size`, up to 1000 records, or up to 8 MiB of them.");
        size: Option<PageSize> = fields.optional("size", "Records on a page.");
    }

    DeleteRecordsParams(fields) {
        user: UserId = {
            let phone_number = fields.optional("phoneNumber", "The caller's own number.");
            let user_id = fields.optional("userId", "The caller's own id.");
            fields.cross_field(phone_number.zip(user_id), acting_user)
        };
        ids: Vec<String> = {
            let local_record_id = fields.optional("localRecordId", "One record.");
            let local_record_ids = fields.list("localRecordIds", "Several records.");
            fields.cross_field(local_record_id.zip(local_record_ids), ids)
        };
    }

    CountRecordsParams(fields) {
        phone_number: PhoneNumber = fields.path("phoneNumber", "The caller's own number.");
    }

    OwnHistoryParams(fields) {
        phone_number: Option<PhoneNumber> = fields.optional("phoneNumber", "The caller's own number.");
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
    }
}

/// A member that a client sent as JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum JsonMember<'text> {
    Read(Option<JsonText<'text>>),
    /// The list appends it to the record as it is stored.
    Appended,
}

impl JsonMember<'_> {
    const fn is_appended(&self) -> bool {
        matches!(self, Self::Appended)
    }
}

/// A stored history record.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HistoryRecord)]
pub struct HistoryRecordResponse<'text> {
    user_id: UserId,
    #[schema(value_type = Option<String>, example = "13800138000")]
    phone_number: Option<PhoneNumber>,
    #[schema(example = "a1b2c3")]
    local_record_id: Cow<'text, str>,
    #[schema(example = "career")]
    question_type: Option<Cow<'text, str>>,
    #[schema(example = "今年换工作合适吗？")]
    question: Option<Cow<'text, str>>,
    /// The data as sent, byte for byte.
    #[schema(value_type = Option<serde_json::Value>, example = json!({"lines": [7, 8, 8, 8, 7, 6]}))]
    #[serde(skip_serializing_if = "JsonMember::is_appended")]
    json_data: JsonMember<'text>,
    #[schema(example = "水雷屯：万事起头难……")]
    ai_result: Option<Cow<'text, str>>,
    /// The client's own timestamp.
    #[schema(value_type = Option<f64>, example = 1_767_225_600_000_i64)]
    #[serde(skip_serializing_if = "JsonMember::is_appended")]
    timestamp: JsonMember<'text>,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Changes with every save. A save can name it as `baseVersion`.
    #[schema(value_type = String, example = "42")]
    version: RecordVersion,
}

impl<'text> HistoryRecordResponse<'text> {
    pub fn new(
        user: &User,
        history::HistoryRecord { draft, created_at, updated_at, version }: history::HistoryRecord<'text>,
    ) -> Self {
        Self {
            user_id: user.id,
            phone_number: user.phone_number.clone(),
            local_record_id: draft.local_record_id,
            question_type: draft.question_type,
            question: draft.question,
            json_data: JsonMember::Read(draft.json_data),
            ai_result: draft.ai_result,
            timestamp: JsonMember::Read(draft.client_timestamp),
            created_at,
            updated_at,
            version,
        }
    }
}

pub async fn save(context: RequestContext, save: SaveRecordParams) -> Result<Json<HistoryRecordResponse<'static>>> {
    let user = context.acting_user(&claims(save.user_id, save.phone_number))?;
    let edit = edit_of(SentRecord {
        local_record_id: save.local_record_id,
        json_data: save.json_data,
        ai_result: save.ai_result,
        question_type: save.question_type,
        question: save.question,
        timestamp: save.timestamp,
        base_version: save.base_version,
    });
    match context.committed(history::save(&context.app.core, user.id, edit)).await? {
        Ok(saved) => Ok(Json(HistoryRecordResponse::new(&user, saved))),
        Err(newer) => {
            let newer = newer.map(|record| serde_json::to_value(HistoryRecordResponse::new(&user, record)));
            Err(Error::new(Code::VersionConflict).with_record(newer.transpose().map_err(Error::internal)?))
        }
    }
}

/// The results of a batch, in the order of the request.
#[derive(Serialize, ToSchema)]
pub struct RecordsSaved {
    items: Vec<RecordSaved>,
}

/// The result of one record of a batch.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordSaved {
    #[schema(example = "a1b2c3")]
    local_record_id: String,
    /// Null if the record was not saved.
    updated_at: Option<Timestamp>,
    /// Its new version. Null if it was not saved.
    #[schema(value_type = Option<String>, example = "42")]
    version: Option<RecordVersion>,
    /// `history_full`, `history_too_large` or `version_conflict` for a record that was not saved.
    #[schema(example = json!(null))]
    error: Option<&'static str>,
    /// The newer state at a `version_conflict`. Null if the record was deleted.
    #[schema(example = json!(null))]
    record: Option<HistoryRecordResponse<'static>>,
}

pub async fn save_batch(context: RequestContext, params: SaveRecordsParams) -> Result<Json<RecordsSaved>> {
    let user = context.acting_user(&claims(None, None))?;
    let edits: Vec<_> = params.records.into_iter().map(|RecordItem(edit)| edit).collect();
    let ids: Vec<_> = edits.iter().map(|edit| edit.draft.local_record_id.clone().into_owned()).collect();
    let saved = context.committed(history::save_all(&context.app.core, user.id, edits)).await?;
    let items = ids.into_iter().zip(saved).map(|(local_record_id, outcome)| {
        let unsaved = |error, record| (None, None, Some(error), record);
        let (updated_at, version, error, record) = match outcome {
            Ok(record) => (Some(record.updated_at), Some(record.version), None, None),
            Err(Unsaved::Limit(code)) => unsaved(code.name(), None),
            Err(Unsaved::Changed(newer)) => {
                let newer = newer.map(|record| HistoryRecordResponse::new(&user, record));
                unsaved(Code::VersionConflict.name(), newer)
            }
        };
        RecordSaved { local_record_id, updated_at, version, error, record }
    });
    Ok(Json(RecordsSaved { items: items.collect() }))
}

/// The caller's records, newest first. Written without a copy, because this is the largest frequent response.
pub async fn list(
    context: RequestContext,
    list: ListHistoryParams,
) -> Result<SerializedList<HistoryRecordResponse<'static>>> {
    let user = context.acting_user(&claims(list.user_id, list.phone_number))?;
    let is_paged = list.page.is_some() || list.size.is_some();
    let page = is_paged.then(|| page(&context, list.page, list.size));
    let question_type = list.question_type.as_ref().map(|Label(text)| text.as_str());
    SerializedList::write(|items| {
        history::list(&context.app.core, user.id, question_type, page, |record, stored| {
            let mut item = HistoryRecordResponse::new(&user, record);
            for (member, text) in [&mut item.json_data, &mut item.timestamp].into_iter().zip(stored) {
                if text.is_some() {
                    *member = JsonMember::Appended;
                }
            }
            let [json_data, timestamp] = stored;
            items.push(&item, [("jsonData", json_data), ("timestamp", timestamp)])?;
            Ok(if is_paged || items.bytes() < UNPAGED_BYTES { Continue(()) } else { Break(()) })
        })
    })
}

/// The number of deleted records.
#[derive(Serialize, ToSchema)]
pub struct Deleted {
    #[schema(example = 1)]
    deleted: usize,
}

pub async fn delete(context: RequestContext, delete: DeleteRecordsParams) -> Result<Json<Deleted>> {
    let deleted = context.committed(history::delete(&context.app.core, delete.user, delete.ids)).await?;
    Ok(Json(Deleted { deleted }))
}

/// Another user's id is rejected before missing parameters are reported.
fn acting_user(rules: &Rules<'_>, (phone_number, user_id): (Option<PhoneNumber>, Option<UserId>)) -> Result<UserId> {
    rules.context.acting_for(&claims(user_id, phone_number))
}

/// Returns the ids to delete, single and multiple combined.
fn ids(rules: &Rules<'_>, (one, several): (Option<LocalRecordId>, Vec<LocalRecordId>)) -> Result<Vec<String>> {
    let ids: Vec<_> = one.into_iter().chain(several).map(|LocalRecordId(id)| id).collect();
    if ids.is_empty() {
        let fault = Fault::new(
            FieldCode::Required,
            ("`localRecordId` or `localRecordIds` is required", "须填写 `localRecordId` 或 `localRecordIds`"),
        );
        return Err(Error::field("localRecordId", fault));
    }
    let most = rules.config.limits.batch as usize;
    if ids.len() > most {
        let message = (
            format!("and `localRecordId` together must have at most {most} items"),
            format!("与 `localRecordId` 合计最多 {most} 项"),
        );
        return Err(Error::field("localRecordIds", Fault::new(FieldCode::TooMany, message)));
    }
    Ok(ids)
}

/// The number of records.
#[derive(Serialize, ToSchema)]
pub struct Counted {
    #[schema(example = 12)]
    count: i64,
}

pub async fn count(
    context: RequestContext,
    CountRecordsParams { phone_number }: CountRecordsParams,
) -> Result<Json<Counted>> {
    let user = context.acting_for(&Claims::of_phone(Some(phone_number)))?;
    Ok(Json(Counted { count: history::count(&context.app.core, user)? }))
}

/// The number of hidden records.
#[derive(Serialize, ToSchema)]
pub struct Deactivated {
    #[schema(example = 12)]
    deactivated: usize,
}

pub async fn deactivate_all(context: RequestContext, params: OwnHistoryParams) -> Result<Json<Deactivated>> {
    let user = context.acting_for(&claims(params.user_id, params.phone_number))?;
    let deactivated = context.committed(history::deactivate_all(&context.app.core, user)).await?;
    Ok(Json(Deactivated { deactivated }))
}

/// The number of restored records.
#[derive(Serialize, ToSchema)]
#[schema(as = Restored)]
pub struct HistoryRestored {
    #[schema(example = 12)]
    restored: usize,
    /// Records that stay hidden because the user would otherwise have too many.
    #[schema(example = 0)]
    hidden: i64,
}

impl From<RestoredRecords> for HistoryRestored {
    fn from(RestoredRecords { restored, hidden }: RestoredRecords) -> Self {
        Self { restored, hidden }
    }
}

pub async fn restore_all(context: RequestContext, params: OwnHistoryParams) -> Result<Json<HistoryRestored>> {
    let user = context.acting_for(&claims(params.user_id, params.phone_number))?;
    Ok(Json(context.committed(history::restore_all(&context.app.core, user, &RESTORINGS)).await?.into()))
}

/// The values of a record, as they were sent.
struct SentRecord {
    local_record_id: LocalRecordId,
    json_data: Option<JsonData>,
    ai_result: Option<AiResult>,
    question_type: Option<Clearable<Label>>,
    question: Option<Clearable<Question>>,
    timestamp: Option<Clearable<ClientTimestamp>>,
    base_version: Option<RowNumber>,
}

fn edit_of(sent: SentRecord) -> HistoryEdit {
    let draft = HistoryDraft {
        local_record_id: sent.local_record_id.0.into(),
        question_type: sent.question_type.map(|Clearable(label)| label.map_or("".into(), |Label(text)| text.into())),
        question: sent.question.map(|Clearable(question)| question.map_or("".into(), |Question(text)| text.into())),
        json_data: sent.json_data.map(|JsonData(json)| json),
        ai_result: sent.ai_result.map(|AiResult(text)| text.into()),
        client_timestamp: sent
            .timestamp
            .map(|Clearable(timestamp)| timestamp.map_or(JsonText::NULL, |ClientTimestamp(json)| json)),
    };
    HistoryEdit { draft, base_version: sent.base_version.map(|RowNumber(version)| RecordVersion(version)) }
}

/// Records to save. They may be the whole body, as a bare JSON array.
pub struct SaveRecordsParams {
    records: Vec<RecordItem>,
}

impl Parameters for SaveRecordsParams {
    const BODY: BodyShape = BodyShape::NamedOrItems("records");

    fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let records = fields.objects(
            "records",
            "The records, each with the fields of `/divination-history/save`. The body may be a bare array of them.",
        );
        Some(Self { records: records? })
    }
}

/// One record of a batch.
pub struct RecordItem(HistoryEdit);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenRecord<'json> {
    #[serde(borrow)]
    local_record_id: Option<&'json JsonValue>,
    #[serde(borrow)]
    json_data: Option<&'json JsonValue>,
    #[serde(borrow)]
    ai_result: Option<&'json JsonValue>,
    #[serde(borrow)]
    question_type: Option<&'json JsonValue>,
    #[serde(borrow)]
    question: Option<&'json JsonValue>,
    #[serde(borrow)]
    timestamp: Option<&'json JsonValue>,
    #[serde(borrow)]
    base_version: Option<&'json JsonValue>,
}

impl ObjectParameter for RecordItem {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Vec<(&'static str, Fault)>> {
        let shape = ("must be an object with a `localRecordId`", "须为含 `localRecordId` 的对象");
        let written: WrittenRecord<'_> = object(value, shape)?;
        let mut faults = Vec::new();
        let id = member::<LocalRecordId>(written.local_record_id, rules).and_then(|id| id.ok_or_else(required));
        let id = id.map_err(|fault| faults.push(("localRecordId", fault)));
        let json_data = member(written.json_data, rules).map_err(|fault| faults.push(("jsonData", fault)));
        let ai_result = member(written.ai_result, rules).map_err(|fault| faults.push(("aiResult", fault)));
        let question_type = member(written.question_type, rules).map_err(|fault| faults.push(("questionType", fault)));
        let question = member(written.question, rules).map_err(|fault| faults.push(("question", fault)));
        let timestamp = member(written.timestamp, rules).map_err(|fault| faults.push(("timestamp", fault)));
        let base_version = member(written.base_version, rules).map_err(|fault| faults.push(("baseVersion", fault)));
        let read = || {
            Ok::<_, ()>(SentRecord {
                local_record_id: id?,
                json_data: json_data?,
                ai_result: ai_result?,
                question_type: question_type?,
                question: question?,
                timestamp: timestamp?,
                base_version: base_version?,
            })
        };
        read().map(|sent| Self(edit_of(sent))).map_err(|()| faults)
    }

    fn schema(limits: &LimitsConfig) -> Value {
        json!({
            "type": "object",
            "required": ["localRecordId"],
            "properties": {
                "localRecordId": LocalRecordId::schema(limits),
                "jsonData": JsonData::schema(limits),
                "aiResult": AiResult::schema(limits),
                "questionType": Label::schema(limits),
                "question": Question::schema(limits),
                "timestamp": ClientTimestamp::schema(limits),
                "baseVersion": RowNumber::schema(limits),
            },
            "example": { "localRecordId": "a1b2c3", "question": "今年换工作合适吗？", "jsonData": { "lines": [7, 8, 8, 8, 7, 6] } },
        })
    }
}

fn claims(user_id: Option<UserId>, phone_number: Option<PhoneNumber>) -> Claims {
    Claims { user_id, phone_number, id: None }
}
