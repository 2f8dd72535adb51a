//! Reads and changes profiles. Changed texts are screened first.

use crate::{
    core::Core,
    domain::{
        identity::users::{self, Profile, ProfileChange},
        moderation::{self, Moderation, ScreenedField, engine::ContentType},
    },
    error::Result,
    store::Pending,
    types::UserId,
};

pub fn find(core: &Core, user: UserId) -> Result<Profile> {
    core.store.read(|tx| users::profile_in(tx, user))
}

/// Changes the given parts of the profile and returns all of it.
///
/// # Errors
/// `content_rejected` if a text is refused; a violation is recorded and the profile stays unchanged.
pub fn change(moderation: &Moderation, user: UserId, change: ProfileChange) -> Pending<Profile> {
    let nickname = ("nickname", ContentType::Nickname, change.nickname.as_deref());
    let signature = ("signature", ContentType::Signature, change.signature.as_deref());
    let fields: Vec<_> = [nickname, signature]
        .into_iter()
        .filter_map(|(name, content_type, text)| Some(ScreenedField { name, content_type, text: text? }))
        .collect();
    if let Some(refusal) = moderation::check_fields(moderation, user, &fields) {
        return refusal.record(&moderation.core);
    }
    moderation.core.store.write(move |tx| users::change_profile_in(tx, user, &change))
}
