//! The ledger with its two assets, products, payments, purchases in app stores and invites.

pub mod coins;
pub mod invites;
pub mod ledger;
pub mod missing_coins;
pub mod payments;
pub mod points;
pub mod products;
pub mod purchases;
