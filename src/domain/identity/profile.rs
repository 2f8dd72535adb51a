//! Reads and changes profiles. Changed texts are screened first.

use crate::{
    core::Core,
    domain::{
        identity::{
            suspensions,
            users::{self, Profile, ProfileChange},
        },
        moderation::{self, Moderation, ScreenedField, engine::ContentType, reviews},
    },
    error::Result,
    store::{Pending, Read},
    types::{TimeZone, UserId},
};

pub fn find(core: &Core, user: UserId) -> Result<Profile> {
    core.store.read(|tx| users::profile_in(tx, user))
}

/// Changes the given parts of the profile and returns all of it.
///
/// # Errors
/// `content_rejected` if a text is refused; a violation is recorded and the profile stays unchanged.
/// `nickname_suspended` for another nickname of a user who may not change it.
pub fn change(moderation: &Moderation, user: UserId, mut change: ProfileChange) -> Pending<Profile> {
    let core = &moderation.core;
    let zone = core.config.limits.time_zone.clone();
    // Before the texts are screened, so that a user who may not change the nickname causes no violations by it.
    if let Err(error) = core.store.read(|tx| require_change_in(tx, user, &change, &zone)) {
        return Pending::ready(Err(error));
    }
    let nickname = ("nickname", ContentType::Nickname, change.nickname.as_deref());
    let signature = ("signature", ContentType::Signature, change.signature.as_deref());
    let fields: Vec<_> = [nickname, signature]
        .into_iter()
        .filter_map(|(name, content_type, text)| Some(ScreenedField { name, content_type, text: text? }))
        .collect();
    let mut screening = match moderation::screen(moderation, user, &fields) {
        Ok(screening) => screening,
        Err(refusal) => return refusal.record(core),
    };
    change.nickname = screening.replacement("nickname").or(change.nickname);
    change.signature = screening.replacement("signature").or(change.signature);
    let reviewed = screening.take_reviews();
    core.store.write(move |tx| {
        require_change_in(tx, user, &change, &zone)?;
        reviews::add_in(tx, &reviewed)?;
        users::change_profile_in(tx, user, &change)
    })
}

/// Rejects another nickname of a user who may not change it. Apps may send the unchanged one with other parts.
fn require_change_in(tx: &Read<'_>, user: UserId, change: &ProfileChange, zone: &TimeZone) -> Result<()> {
    match &change.nickname {
        Some(nickname) if *nickname != users::profile_in(tx, user)?.nickname => {
            suspensions::require_nickname_in(tx, user, zone)
        }
        _ => Ok(()),
    }
}
