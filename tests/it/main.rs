//! Integration tests over HTTP and the real binary.
//!
//! Each test starts its own server on its own data directory, so tests run in any order and in parallel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and may say with which seed"
)]
#![allow(clippy::needless_pass_by_value, clippy::items_after_statements, reason = "a test reads better so")]

mod support;

mod identity;
mod divination;
mod money;
mod moderation;
mod messaging;
mod operations;

mod access;
mod architecture;
mod cli;
mod commands;
mod concurrency;
mod damaged_database;
mod docs_commands;
mod documentation;
mod durability;
mod endpoint_access;
mod environment_faults;
mod field_errors;
mod fuzzing;
mod generated_docs;
mod idempotency;
mod invalid_input;
mod journey;
mod languages;
mod limits;
mod log_privacy;
mod offline;
mod old_app_parameters;
mod openapi;
mod openapi_conformance;
mod overload;
mod portable_sql;
mod postgresql;
mod providers;
mod query_plans;
mod response_headers;
mod tls;
mod user_costs;
mod web_pages;
