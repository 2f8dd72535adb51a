//! The ledger, its two currencies, payments and invitations.

pub mod coins;
pub mod invites;
pub mod ledger;
pub mod payments;
pub mod points;
