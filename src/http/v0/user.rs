//! `/user`: what users say of themselves.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::Limits,
    error::{Fault, FieldCode, Result},
    http::{
        body::Given,
        call::Call,
        params::{Claims, Nickname, Parameter, Rules, Signature, parameters, text},
        reply::Json,
    },
    ops::{
        profile,
        users::{self, Gender, ProfileChange},
    },
    types::UserId,
};

parameters! {
    OfUser {
        id: optional UserId = "id", "The caller's own id.";
        user_id: optional UserId = "userId", "Another name of `id`.";
    }

    ChangeProfile {
        id: optional UserId = "id", "The caller's own id.";
        user_id: optional UserId = "userId", "Another name of `id`.";
        nickname: optional Nickname = "nickname", "Screened. Stays as it is if it is not sent.";
        gender: optional Gender = "gender", "`unknown`, `male`, `female` or `other`; also 0, 1, 2, 9, 未知, 男, 女, 其他, M, F.";
        birthday: optional Birthday = "birthday", "A real day from 1900 to today; empty to take it away.";
        signature: optional Signature = "signature", "Screened. Stays as it is if it is not sent.";
    }

    ChangeNickname {
        user_id: optional UserId = "userId", "The caller's own id.";
        id: optional UserId = "id", "Another name of `userId`.";
        nickname: required Nickname = "nickname", "The new nickname. Screened.";
    }

    ChangeSignature {
        user_id: optional UserId = "userId", "The caller's own id.";
        id: optional UserId = "id", "Another name of `userId`.";
        signature: required Signature = "signature", "The new signature. Screened.";
    }
}

/// A user's profile.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    #[schema(value_type = String, example = "10001")]
    id: UserId,
    #[schema(value_type = String, example = "10001")]
    user_id: UserId,
    #[schema(example = "青山")]
    nickname: String,
    #[schema(example = "female")]
    gender: &'static str,
    #[schema(example = "1990-05-17")]
    birthday: Option<String>,
    #[schema(example = "心静则明")]
    signature: String,
}

impl From<users::Profile> for Profile {
    fn from(profile: users::Profile) -> Self {
        Self {
            id: profile.id,
            user_id: profile.id,
            nickname: profile.nickname,
            gender: profile.gender.name(),
            birthday: profile.birthday,
            signature: profile.signature,
        }
    }
}

pub async fn find_profile(call: Call, OfUser { id, user_id }: OfUser) -> Result<Json<Profile>> {
    let user = call.subject_id(&claims(id, user_id))?;
    Ok(Json(profile::find(&call.app, user)?.into()))
}

pub async fn change_profile(call: Call, change: ChangeProfile) -> Result<Json<Profile>> {
    let user = call.acting_for(&claims(change.id, change.user_id))?;
    let change = ProfileChange {
        nickname: change.nickname.map(|Nickname(text)| text),
        gender: change.gender,
        birthday: change.birthday.map(|Birthday(day)| day),
        signature: change.signature.map(|Signature(text)| text),
    };
    apply(&call, user, change).await
}

pub async fn change_nickname(call: Call, change: ChangeNickname) -> Result<Json<Profile>> {
    let user = call.acting_for(&claims(change.id, change.user_id))?;
    apply(&call, user, ProfileChange { nickname: Some(change.nickname.0), ..ProfileChange::default() }).await
}

pub async fn change_signature(call: Call, change: ChangeSignature) -> Result<Json<Profile>> {
    let user = call.acting_for(&claims(change.id, change.user_id))?;
    apply(&call, user, ProfileChange { signature: Some(change.signature.0), ..ProfileChange::default() }).await
}

async fn apply(call: &Call, user: UserId, change: ProfileChange) -> Result<Json<Profile>> {
    Ok(Json(call.committed(profile::change(&call.app, user, change)).await?.into()))
}

fn claims(id: Option<UserId>, user_id: Option<UserId>) -> Claims {
    Claims { id, user_id, phone_number: None }
}

impl Parameter for Gender {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        match text(given)?.trim().to_lowercase().as_str() {
            "unknown" | "0" | "未知" => Ok(Self::Unknown),
            "male" | "1" | "男" | "m" => Ok(Self::Male),
            "female" | "2" | "女" | "f" => Ok(Self::Female),
            "other" | "9" | "其他" => Ok(Self::Other),
            _ => Err(Fault::new(FieldCode::UnknownValue, "must be unknown, male, female or other")),
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "example": "female" })
    }
}

/// A day of birth, or none to take it away.
pub struct Birthday(Option<String>);

impl Parameter for Birthday {
    const EMPTY_IS_A_VALUE: bool = true;

    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let text = text(given)?;
        match text.trim() {
            "" => Ok(Self(None)),
            day => users::birthday(day, rules.today()).map(|day| Self(Some(day))),
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "pattern": "^$|^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "example": "1990-05-17" })
    }
}
