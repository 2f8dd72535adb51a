//! `/api/v1/account`: the caller's account, addresses, export and deletion.

use serde::Serialize;
use tempfile::spooled_tempfile_in;
use utoipa::ToSchema;

use crate::{
    app::App,
    domain::identity::{
        accounts::{self, BalancesAfterDeletion, DeletionActor, ProvedAddress},
        identities::{IdentityProvider, UserIdentity},
        identity_proofs::IdentityProof,
        profile,
        users::{Address, Gender, ProfileChange},
    },
    error::{Error, Fault, FieldCode, Result},
    http::{
        download::{Download, HELD_IN_MEMORY},
        identity_proof::identity_proof,
        params::{
            Birthday, Clearable, Nickname, Nothing, RejectParams, Rules, Signature, VerificationCode, parameters,
        },
        reply::{Json, NoContent},
        request_context::RequestContext,
    },
    types::{EmailAddress, PhoneNumber, Timestamp, UserId},
};

parameters! {
    ChangeAccountParams(fields) {
        nickname: Option<Nickname> = fields.optional("nickname", "Moderated. Unchanged if absent.");
        gender: Option<Clearable<Gender>> = fields.optional("gender", "`unknown`, `male`, `female` or `other`.");
        birthday: Option<Birthday> = fields.optional("birthday", "Date from 1900-01-01 to today. An empty text deletes it.");
        signature: Option<Signature> = fields.optional("signature", "Moderated. Unchanged if absent.");
    }

    LinkIdentityParams(fields) {
        proof: IdentityProof = identity_proof(fields);
    }

    UnlinkIdentityParams(fields) {
        provider: IdentityProvider = fields.path("provider", "The provider of the identity.");
    }

    ChangeAddressParams(fields) {
        code: VerificationCode = fields.required("code", "The code sent to the new address for the purpose `address`.");
        address: Address = {
            let email = fields.optional("email", "The new email address. Send this or `phoneNumber`.");
            let phone_number = fields.usual("phoneNumber", "The new phone number. Send this or `email`.");
            fields.cross_field(email.zip(phone_number), one_address)
        };
    }
}

/// An identity at another service with which the caller can sign in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkedIdentity {
    provider: IdentityProvider,
    linked_at: Timestamp,
    #[schema(value_type = String, format = DateTime, example = "2026-01-05T09:00:00.000Z")]
    last_used_at: Timestamp,
}

impl From<UserIdentity> for LinkedIdentity {
    fn from(identity: UserIdentity) -> Self {
        Self { provider: identity.key.provider, linked_at: identity.linked_at, last_used_at: identity.last_used_at }
    }
}

/// An account.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Account)]
pub struct AccountResponse {
    id: UserId,
    #[schema(value_type = Option<String>, example = "li.ming@example.com")]
    email: Option<EmailAddress>,
    #[schema(value_type = Option<String>, example = "13800138000")]
    phone_number: Option<PhoneNumber>,
    /// The identities at other services with which the user can sign in.
    identities: Vec<LinkedIdentity>,
    #[schema(example = "青山")]
    nickname: String,
    gender: Gender,
    #[schema(example = "1990-05-17")]
    birthday: Option<String>,
    #[schema(example = "心静则明")]
    signature: String,
    /// The balance of points, which pay for castings.
    #[schema(example = 100)]
    points: i64,
    /// The balance of coins, used by the first API generation.
    #[schema(example = 0)]
    coins: i64,
    deletion: DeletionShown,
    created_at: Timestamp,
}

/// The effect that a deletion of the account would have on the balances, to be shown before it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AccountDeletion)]
pub struct DeletionShown {
    /// Points that would be parked for the email address, for the next account with it.
    #[schema(example = 100)]
    points_kept: i64,
    /// Points that would be lost, because the account has no email address.
    #[schema(example = 0)]
    points_lost: i64,
    /// Coins that would be lost.
    #[schema(example = 0)]
    coins_lost: i64,
}

impl From<BalancesAfterDeletion> for DeletionShown {
    fn from(BalancesAfterDeletion { points_kept, points_lost, coins_lost }: BalancesAfterDeletion) -> Self {
        Self { points_kept, points_lost, coins_lost }
    }
}

impl From<accounts::Account> for AccountResponse {
    fn from(account: accounts::Account) -> Self {
        let accounts::Account { user, profile, identities, points, coins, after_deletion } = account;
        Self {
            id: user.id,
            email: user.email,
            phone_number: user.phone_number,
            identities: identities.into_iter().map(Into::into).collect(),
            nickname: profile.nickname,
            gender: profile.gender,
            birthday: profile.birthday,
            signature: profile.signature,
            points,
            coins,
            deletion: after_deletion.into(),
            created_at: user.created_at,
        }
    }
}

pub async fn find(context: RequestContext, _: Nothing) -> Result<Json<AccountResponse>> {
    Ok(Json(accounts::find(&context.app.core, context.user()?)?.into()))
}

pub async fn change(context: RequestContext, change: ChangeAccountParams) -> Result<Json<AccountResponse>> {
    let user = context.user()?;
    let change = ProfileChange {
        nickname: change.nickname.map(|Nickname(text)| text),
        gender: change.gender.map(|Clearable(gender)| gender.unwrap_or(Gender::Unknown)),
        birthday: change.birthday.map(|Birthday(day)| day),
        signature: change.signature.map(|Signature(text)| text),
    };
    context.screened(move |app| profile::change(&app.moderation, user, change)).await?;
    Ok(Json(accounts::find(&context.app.core, user)?.into()))
}

pub async fn change_address(context: RequestContext, change: ChangeAddressParams) -> Result<Json<AccountResponse>> {
    let (user, token) = (context.user()?, context.own_token()?);
    let code = change.code.of_digits(accounts::code_digits(&change.address));
    let proved = ProvedAddress { address: change.address, code, client: context.meta.client };
    context.committed(accounts::change_address(&context.app.code_sender, user, token, proved)).await?;
    Ok(Json(accounts::find(&context.app.core, user)?.into()))
}

pub async fn link_identity(context: RequestContext, params: LinkIdentityParams) -> Result<Json<AccountResponse>> {
    let (user, token, client) = (context.user()?, context.own_token()?, context.meta.client);
    let link = move |app: &App| accounts::link_identity(&app.identities, (user, token), &params.proof, client);
    context.committed(context.blocking(link).await?).await?;
    Ok(Json(accounts::find(&context.app.core, user)?.into()))
}

pub async fn unlink_identity(context: RequestContext, params: UnlinkIdentityParams) -> Result<NoContent> {
    let (user, token) = (context.user()?, context.own_token()?);
    context.committed(accounts::unlink_identity(&context.app.core, user, token, params.provider)).await?;
    Ok(NoContent)
}

/// Exports all stored data of the caller.
pub async fn export(context: RequestContext, _: Nothing) -> Result<Download> {
    let user = context.user()?;
    let own = context.app.exports.by_user.try_acquire(user)?;
    context
        .blocking(move |app| {
            let directory = app.core.config.data_dir();
            let mut file = spooled_tempfile_in(HELD_IN_MEMORY, directory);
            accounts::export(&app.exports, user, &mut file)?;
            Download::of(file, own)
        })
        .await
}

pub async fn delete(context: RequestContext, _: RejectParams) -> Result<NoContent> {
    let (user, token) = (context.user()?, context.own_token()?);
    context.blocking(move |app| accounts::erase(&app.core, user, DeletionActor::Owner { token })).await?;
    Ok(NoContent)
}

fn one_address(_: &Rules<'_>, (email, phone_number): (Option<EmailAddress>, Option<PhoneNumber>)) -> Result<Address> {
    match (email, phone_number) {
        (Some(email), None) => Ok(Address::Email(email)),
        (None, Some(phone_number)) => Ok(Address::Phone(phone_number)),
        (None, None) => Err(Error::field(
            "email",
            Fault::new(FieldCode::Required, ("is required, or `phoneNumber`", "必填，或填写 `phoneNumber`")),
        )),
        (Some(_), Some(_)) => {
            let fault = Fault::new(
                FieldCode::UnknownValue,
                ("must not be sent together with `email`", "不能与 `email` 同时填写"),
            );
            Err(Error::field("phoneNumber", fault))
        }
    }
}
