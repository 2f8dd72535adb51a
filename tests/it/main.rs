//! Everything that is tested through the doors: HTTP on a port of its own, and the real binary.
//!
//! Each test starts its own server on its own data directory, so tests can run in any order and at once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod kit;

mod admin;
mod cli;
mod durability;
mod faults;
mod guards;
mod idempotency;
mod input;
mod journey;
mod ledger;
mod limits;
mod openapi;
mod providers;
mod rooms;
mod v0;
