//! Everything that is tested through the doors: HTTP on a port of its own, and the real binary.
//!
//! Each test starts its own server on its own data directory, so tests can run in any order and at once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and may say with which seed"
)]
#![allow(clippy::needless_pass_by_value, clippy::items_after_statements, reason = "a test reads better so")]

mod support;

mod abuse;
mod access;
mod admin;
mod alipay;
mod backups;
mod balances;
mod cli;
mod commands;
mod demo;
mod doctor;
mod documented;
mod documents;
mod durability;
mod ended_streams;
mod faults;
mod fuzzing;
mod guards;
mod hexagrams;
mod idempotency;
mod input;
mod installation;
mod journey;
mod ledger;
mod limits;
mod migrating;
mod model_answers;
mod model_calls;
mod model_screening;
mod model_use;
mod moderation;
mod offsite;
mod openapi;
mod operation;
mod payments;
mod plans;
mod providers;
mod races;
mod architecture;
mod log_privacy;
mod storage;
mod tls;
mod together;
mod cli_http_parity;
mod v0;
mod v1;
