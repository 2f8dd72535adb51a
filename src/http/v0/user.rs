//! `/user`: the user's profile.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::identity::{
        profile,
        users::{self, Gender, ProfileChange},
    },
    error::Result,
    http::{
        claims::Claims,
        params::{Birthday, Clearable, Nickname, Rules, Signature, parameters},
        reply::Json,
        request_context::RequestContext,
    },
    types::UserId,
};

parameters! {
    FindProfileParams(fields) {
        claims: Claims = {
            let id = fields.optional("id", "The caller's own id.");
            let user_id = fields.optional("userId", "Alias of `id`.");
            fields.cross_field(id.zip(user_id), named_user)
        };
    }

    ChangeProfileParams(fields) {
        id: Option<UserId> = fields.optional("id", "The caller's own id.");
        user_id: Option<UserId> = fields.optional("userId", "Alias of `id`.");
        nickname: Option<Nickname> = fields.optional("nickname", "Moderated. Unchanged if absent.");
        gender: Option<Clearable<Gender>> = fields.optional("gender", "`unknown`, `male`, `female` or `other`; also 0, 1, 2, 9, 未知, 男, 女, 其他, M, F.");
        birthday: Option<Birthday> = fields.optional("birthday", "Date from 1900-01-01 to today. An empty text deletes it.");
        signature: Option<Signature> = fields.optional("signature", "Moderated. Unchanged if absent.");
    }

    ChangeNicknameParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        id: Option<UserId> = fields.optional("id", "Alias of `userId`.");
        nickname: Nickname = fields.required("nickname", "The new nickname. Screened.");
    }

    ChangeSignatureParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        id: Option<UserId> = fields.optional("id", "Alias of `userId`.");
        signature: Signature = fields.required("signature", "The new signature. Screened.");
    }
}

/// A user's profile.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Profile)]
pub struct ProfileResponse {
    id: UserId,
    user_id: UserId,
    #[schema(example = "青山")]
    nickname: String,
    gender: Gender,
    #[schema(example = "1990-05-17")]
    birthday: Option<String>,
    #[schema(example = "心静则明")]
    signature: String,
}

impl From<users::Profile> for ProfileResponse {
    fn from(profile: users::Profile) -> Self {
        Self {
            id: profile.id,
            user_id: profile.id,
            nickname: profile.nickname,
            gender: profile.gender,
            birthday: profile.birthday,
            signature: profile.signature,
        }
    }
}

pub async fn find_profile(
    context: RequestContext,
    FindProfileParams { claims }: FindProfileParams,
) -> Result<Json<ProfileResponse>> {
    let user = context.subject_id(&claims)?;
    Ok(Json(profile::find(&context.app.core, user)?.into()))
}

pub async fn change_profile(context: RequestContext, change: ChangeProfileParams) -> Result<Json<ProfileResponse>> {
    let user = context.acting_for(&claims(change.id, change.user_id))?;
    let change = ProfileChange {
        nickname: change.nickname.map(|Nickname(text)| text),
        gender: change.gender.map(|Clearable(gender)| gender.unwrap_or(Gender::Unknown)),
        birthday: change.birthday.map(|Birthday(day)| day),
        signature: change.signature.map(|Signature(text)| text),
    };
    apply(&context, user, change).await
}

pub async fn change_nickname(context: RequestContext, change: ChangeNicknameParams) -> Result<Json<ProfileResponse>> {
    let user = context.acting_for(&claims(change.id, change.user_id))?;
    apply(&context, user, ProfileChange { nickname: Some(change.nickname.0), ..ProfileChange::default() }).await
}

pub async fn change_signature(context: RequestContext, change: ChangeSignatureParams) -> Result<Json<ProfileResponse>> {
    let user = context.acting_for(&claims(change.id, change.user_id))?;
    apply(&context, user, ProfileChange { signature: Some(change.signature.0), ..ProfileChange::default() }).await
}

async fn apply(context: &RequestContext, user: UserId, change: ProfileChange) -> Result<Json<ProfileResponse>> {
    Ok(Json(context.screened(move |app| profile::change(&app.moderation, user, change)).await?.into()))
}

fn named_user(rules: &Rules<'_>, (id, user_id): (Option<UserId>, Option<UserId>)) -> Result<Claims> {
    rules.context.require_claims(claims(id, user_id), "id")
}

fn claims(id: Option<UserId>, user_id: Option<UserId>) -> Claims {
    Claims { id, user_id, phone_number: None }
}
