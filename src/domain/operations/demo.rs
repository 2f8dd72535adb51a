//! Demo data: a service with some months of history.
//!
//! The data are created through the real operations with the clock set back, so they are always consistent. Only
//! secrets and ids differ between two demonstrations.

mod dice;
mod plan;
mod play;
mod texts;

use std::time::Duration;

use crate::{
    core::Core,
    domain::{
        divination::model_calls::ModelCalls,
        moderation::Moderation,
        money::{ledger, payments::Payments},
        operations::{
            admins::{
                self, Administrators,
                demo_owner::{self, DemoOwner},
                roles::Role,
            },
            figures,
            network_log::NetworkLog,
        },
    },
    error::Result,
    types::Secret,
};

/// The phone number of the first user, which the printed commands use.
pub const PHONE_NUMBER: &str = "13800138000";

/// Minutes by which the local time of most users is ahead of UTC.
const LOCAL_TIME: i64 = 8 * 60;
const MINUTES_OF_DAY: i64 = 24 * 60;

/// The services that create the data.
#[derive(Clone, Copy)]
pub struct DemoServices<'app> {
    pub core: &'app Core,
    pub moderation: &'app Moderation,
    pub model_calls: &'app ModelCalls,
    pub payments: &'app Payments,
    pub network_log: &'app NetworkLog,
    pub admins: &'app Administrators,
}

/// The created data and the credentials of their owner.
#[derive(Clone, Debug)]
pub struct SeededDemo {
    pub users: usize,
    pub castings: usize,
    pub owner: DemoOwner,
}

/// Fills a new data directory. Restores the clock in any case.
///
/// # Errors
/// Storage errors.
pub fn seed(services: DemoServices<'_>) -> Result<SeededDemo> {
    let mut player = play::Player::new(services);
    let seeded = seed_history(services, &mut player);
    services.core.clock.set_back(Duration::ZERO);
    seeded?;
    // The first look at the console shows figures, which the background jobs count later otherwise.
    figures::advance(services.core, &|| true)?;
    figures::advance_active_users(services.core, services.network_log, &|| true)?;
    ledger::verify_if_due(services.core, &mut |_, _| ())?;
    let owner = demo_owner::offer(services.admins)?;
    Ok(SeededDemo { users: player.users(), castings: player.castings, owner })
}

fn seed_history(services: DemoServices<'_>, player: &mut play::Player<'_>) -> Result<()> {
    let now = services.core.clock.now().0;
    let minute_of_day = (now / 60_000 + LOCAL_TIME).rem_euclid(MINUTES_OF_DAY);
    services.core.clock.set_back(Duration::from_hours(24) * plan::DAYS);
    for (name, role) in [(play::SUPPORT, Role::Support), (play::MODERATOR, Role::Moderator)] {
        admins::create(services.admins, name, Secret::random()?.reveal(), role)?;
    }
    player.play(&plan::plan(u32::try_from(minute_of_day).unwrap_or(0)))?;
    player.finish()
}
