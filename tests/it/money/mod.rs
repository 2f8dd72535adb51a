//! Coins, points, invites, payments and the ledger.

mod alipay;
mod app_store_purchases;
mod balances;
mod channels;
mod google_play_purchases;
mod grouped_writes;
mod kills;
mod ledger;
mod payments;
mod products;
mod v0_coin;
mod v0_payment;
mod v1_invite;
mod v1_points;
