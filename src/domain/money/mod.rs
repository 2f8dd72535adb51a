//! The ledger with its two assets, payments and invites.

pub mod coins;
pub mod invites;
pub mod ledger;
pub mod missing_coins;
pub mod payments;
pub mod points;
