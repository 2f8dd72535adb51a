//! `/admin/user-data`: checks users' stored data for consistency and repairs it.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    app::App,
    config::LimitsConfig,
    domain::{
        divination::{
            chat::{self, ChatContext},
            history,
        },
        identity::{
            user_data::{self, Issue, SyncReport, UserRepair, UserSelector, Validation},
            users::{Gender, listing::mask_address},
        },
    },
    error::{Code, Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        claims::Claims,
        params::{BodyShape, Fields, Parameter, Parameters, Reason, Rules, parameters, text},
        reply::Json,
        request_context::RequestContext,
        v0::divination_history::HistoryRestored,
    },
    types::{PhoneNumber, UserId},
};

parameters! {
    UserDataParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
    }

    PhoneDataParams(fields) {
        phone_number: PhoneNumber = fields.path("phoneNumber", "The user's number, in any spelling.");
    }

    RepairUserParams(fields) {
        phone_number: PhoneNumber = fields.path("phoneNumber", "The user's number, in any spelling.");
        reason: Option<Reason> = fields.optional("reason", "Reason, stored in the audit event.");
    }

    RestoreHistoryParams(fields) {
        user_id: UserId = fields.path("userId", "The user's id.");
        reason: Option<Reason> = fields.optional("reason", "Reason, stored in the audit event.");
    }

    SynchroniseUserParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "Only this user.");
        phone_number: Option<PhoneNumber> = fields.optional("phoneNumber", "Only the user with this number.");
        reason: Option<Reason> = fields.optional("reason", "Reason, stored in the audit event.");
    }
}

/// The users to validate.
pub struct Batch(Vec<UserSelector>);

impl Parameters for Batch {
    const BODY: BodyShape = BodyShape::NamedOrItems("users");

    fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let users = fields.list("users", "Ids or phone numbers of users. The body may also be this array alone.");
        let user_ids = fields.list("userIds", "Ids of users.");
        let phone_numbers = fields.list("phoneNumbers", "Phone numbers of users.");
        let all = users.zip(user_ids).zip(phone_numbers);
        fields.cross_field(all, |rules, ((users, user_ids), phone_numbers)| {
            everybody(rules, users, user_ids, phone_numbers).map(Self)
        })
    }
}

/// A phone number or a user id. No user id is as long as a phone number.
impl Parameter for UserSelector {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        text(value)?;
        PhoneNumber::read(value, rules).map(Self::Phone).or_else(|_| {
            let id = UserId::read(value, rules);
            id.map(Self::Id).map_err(|_| {
                Fault::new(FieldCode::InvalidFormat, ("must be a user id or a phone number", "须为用户 ID 或手机号"))
            })
        })
    }

    fn schema(limits: &LimitsConfig) -> Value {
        UserId::schema(limits)
    }
}

/// An inconsistency in a user's stored data.
#[derive(Serialize, ToSchema)]
pub struct UserDataIssue {
    /// `account_missing`, `balance_wrong`, `account_suspended`, `ledger_broken`, `phone_not_canonical`,
    /// `phone_invalid`, `duplicate_phone`, `email_not_canonical`, `duplicate_email`, `history_sums_wrong`.
    #[schema(example = "balance_wrong")]
    code: &'static str,
    #[schema(example = "the coin balance is 61; the ledger's entries sum to 60")]
    detail: String,
    /// True if `fix` repairs it.
    #[schema(example = true)]
    fixable: bool,
}

impl From<Issue> for UserDataIssue {
    fn from(Issue { code, detail, fixable }: Issue) -> Self {
        Self { code, detail, fixable }
    }
}

/// The result of validating a user.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserDataValidation {
    user_id: UserId,
    /// Masked unless the request names it.
    #[schema(example = "138••••8000")]
    phone_number: Option<String>,
    #[schema(example = true)]
    consistent: bool,
    issues: Vec<UserDataIssue>,
}

impl From<Validation> for UserDataValidation {
    fn from(found: Validation) -> Self {
        Self {
            user_id: found.user,
            phone_number: found.phone_number,
            consistent: found.issues.is_empty(),
            issues: found.issues.into_iter().map(Into::into).collect(),
        }
    }
}

pub async fn validate_by_id(context: RequestContext, params: UserDataParams) -> Result<Json<UserDataValidation>> {
    validate(context, UserSelector::Id(params.user_id)).await
}

pub async fn validate_by_phone(context: RequestContext, params: PhoneDataParams) -> Result<Json<UserDataValidation>> {
    validate(context, UserSelector::Phone(params.phone_number)).await
}

async fn validate(context: RequestContext, who: UserSelector) -> Result<Json<UserDataValidation>> {
    let found = context.report(move |app| validated(app, &who)).await?;
    context.meta.subject.get_or_init(|| found.user);
    Ok(Json(found.into()))
}

/// Validates a user. Masks the number unless the caller named it, because nobody gave a reason to see it.
fn validated(app: &App, who: &UserSelector) -> Result<Validation> {
    let mut found = user_data::validate(&app.core, who)?;
    if matches!(who, UserSelector::Id(_)) {
        found.phone_number = found.phone_number.map(|number| mask_address(&number));
    }
    Ok(found)
}

/// The result of repairing a user.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserDataFix {
    user_id: UserId,
    #[schema(example = "13800138000")]
    phone_number: Option<String>,
    /// True if no issue remains.
    #[schema(example = true)]
    consistent: bool,
    /// Issues that were repaired.
    fixed: Vec<UserDataIssue>,
    /// Issues that need a manual decision.
    remaining: Vec<UserDataIssue>,
}

impl From<UserRepair> for UserDataFix {
    fn from(done: UserRepair) -> Self {
        Self {
            user_id: done.user,
            phone_number: done.phone_number,
            consistent: done.remaining.is_empty(),
            fixed: done.fixed.into_iter().map(Into::into).collect(),
            remaining: done.remaining.into_iter().map(Into::into).collect(),
        }
    }
}

pub async fn fix(context: RequestContext, params: RepairUserParams) -> Result<Json<UserDataFix>> {
    let by = context.authority(params.reason.map(|Reason(reason)| reason))?;
    let done =
        context.committed(user_data::repair(&context.app.core, UserSelector::Phone(params.phone_number), by)).await?;
    context.meta.subject.get_or_init(|| done.user);
    Ok(Json(done.into()))
}

/// The result of validating one of many users.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BatchItem)]
pub struct UserValidation {
    /// The requested id, or the id of the user with the requested phone number.
    user_id: Option<UserId>,
    /// Masked unless the request names it.
    #[schema(example = "138••••8000")]
    phone_number: Option<String>,
    /// True if the user exists.
    #[schema(example = true)]
    found: bool,
    #[schema(example = true)]
    consistent: bool,
    issues: Vec<UserDataIssue>,
}

/// The results of validating many users, in the order of the request.
#[derive(Serialize, ToSchema)]
pub struct BatchValidation {
    items: Vec<UserValidation>,
    #[schema(example = 1)]
    consistent: usize,
    #[schema(example = 0)]
    inconsistent: usize,
    /// Number of users who do not exist.
    #[schema(example = 0)]
    missing: usize,
}

pub async fn validate_batch(context: RequestContext, batch: Batch) -> Result<Json<BatchValidation>> {
    let items = context.report(move |app| batch.0.iter().map(|who| item(app, who)).collect::<Result<Vec<_>>>()).await?;
    let count = |is_counted: fn(&UserValidation) -> bool| items.iter().filter(|item| is_counted(item)).count();
    Ok(Json(BatchValidation {
        consistent: count(|item| item.found && item.consistent),
        inconsistent: count(|item| item.found && !item.consistent),
        missing: count(|item| !item.found),
        items,
    }))
}

fn everybody(
    rules: &Rules<'_>,
    mut everybody: Vec<UserSelector>,
    user_ids: Vec<UserId>,
    phone_numbers: Vec<PhoneNumber>,
) -> Result<Vec<UserSelector>> {
    everybody.extend(user_ids.into_iter().map(UserSelector::Id));
    everybody.extend(phone_numbers.into_iter().map(UserSelector::Phone));
    let most = rules.config.limits.batch as usize;
    if everybody.is_empty() {
        return Err(Error::field(
            "userIds",
            Fault::new(FieldCode::Required, ("or `phoneNumbers` is required", "须填写本项或 `phoneNumbers`")),
        ));
    }
    if everybody.len() > most {
        let fault = Fault::new(
            FieldCode::TooMany,
            (
                format!("and the other lists together must have at most {most} items"),
                format!("与其他列表合计最多 {most} 项"),
            ),
        );
        return Err(Error::field("userIds", fault));
    }
    Ok(everybody)
}

fn item(app: &App, who: &UserSelector) -> Result<UserValidation> {
    match validated(app, who) {
        Ok(found) => Ok(UserValidation {
            user_id: Some(found.user),
            phone_number: found.phone_number,
            found: true,
            consistent: found.issues.is_empty(),
            issues: found.issues.into_iter().map(Into::into).collect(),
        }),
        Err(error) if error.code == Code::NotFound => {
            let (user_id, phone_number) = match who {
                UserSelector::Id(id) => (Some(*id), None),
                UserSelector::Phone(number) => (None, Some(number.as_str().to_owned())),
            };
            Ok(UserValidation { user_id, phone_number, found: false, consistent: false, issues: Vec::new() })
        }
        Err(error) => Err(error),
    }
}

/// An issue with its user.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssueOfUser {
    user_id: UserId,
    #[serde(flatten)]
    issue: UserDataIssue,
}

/// The result of a synchronisation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserDataSynchronised {
    /// Number of users checked.
    #[schema(example = 1200)]
    checked: u64,
    /// Number of users with repaired issues.
    #[schema(example = 2)]
    fixed: u64,
    /// Number of deleted history records whose user no longer exists.
    #[schema(example = 0)]
    orphans_deleted: u64,
    /// Number of users with issues that need a manual decision.
    #[schema(example = 0)]
    inconsistent: u64,
    /// Remaining issues, at most a thousand.
    issues: Vec<IssueOfUser>,
}

impl From<SyncReport> for UserDataSynchronised {
    fn from(done: SyncReport) -> Self {
        let issues = done.issues.into_iter().map(|(user_id, issue)| IssueOfUser { user_id, issue: issue.into() });
        Self {
            checked: done.checked,
            fixed: done.fixed,
            orphans_deleted: done.orphans_deleted,
            inconsistent: done.inconsistent,
            issues: issues.collect(),
        }
    }
}

pub async fn synchronise(context: RequestContext, params: SynchroniseUserParams) -> Result<Json<UserDataSynchronised>> {
    let by = context.authority(params.reason.map(|Reason(reason)| reason))?;
    let user = match (params.user_id, params.phone_number) {
        (id @ Some(_), phone_number @ Some(_)) => {
            let same = context.subject(&Claims { user_id: id, phone_number, id: None })?;
            Some(UserSelector::Id(same.id))
        }
        (id, phone_number) => id.map(UserSelector::Id).or(phone_number.map(UserSelector::Phone)),
    };
    let done = match user {
        Some(user) => {
            let repair = context.committed(user_data::repair(&context.app.core, user, by)).await?;
            context.meta.subject.get_or_init(|| repair.user);
            SyncReport::of_user(repair)
        }
        None => context.blocking(move |app| user_data::synchronise(&app.core, &by, &mut |_| ())).await?,
    };
    Ok(Json(done.into()))
}

pub async fn restore_history(context: RequestContext, params: RestoreHistoryParams) -> Result<Json<HistoryRestored>> {
    let user = context.subject(&Claims::of_user(Some(params.user_id)))?;
    context.authority(params.reason.map(|Reason(reason)| reason))?;
    Ok(Json(context.committed(history::restore_all(&context.app.core, user.id, &[])).await?.into()))
}

/// The data about a user that is attached to model calls. Nothing else about a user leaves the service.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelAttachment {
    user_id: UserId,
    /// The user's stable pseudonym at the provider.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015")]
    reference: String,
    #[schema(example = "青山")]
    nickname: Option<String>,
    gender: Option<Gender>,
    /// The user's age, to ten years.
    #[schema(example = "30-39")]
    age: Option<String>,
    /// The system message with these data, sent before a conversation.
    #[schema(
        example = "你在一款周易应用里与用户交谈……{\"age\":\"30-39\",\"gender\":\"female\",\"nickname\":\"青山\"}"
    )]
    message: String,
}

impl ModelAttachment {
    pub fn of(user_id: UserId, ChatContext { reference, introduction, message }: ChatContext) -> Self {
        let chat::Introduction { nickname, gender, age } = introduction;
        Self { user_id, reference, nickname, gender, age, message }
    }
}

pub async fn show_attachment(context: RequestContext, params: UserDataParams) -> Result<Json<ModelAttachment>> {
    let attached = chat::context(&context.app.model_calls, params.user_id, context.locale())?;
    context.meta.subject.get_or_init(|| params.user_id);
    Ok(Json(ModelAttachment::of(params.user_id, attached)))
}
