//! Test support: a real server, HTTP clients, fake providers and assertions.

pub mod alipay;
pub mod channels;
pub mod wechat;
pub mod app_store;
pub mod google_play;
pub mod identity_services;
pub mod stripe;
pub mod acme_server;
pub mod fake_s3;
pub mod model_requests;
mod client;
mod crashes;
mod database;
pub mod fake_smtp;
mod operator;
mod received;
mod document;
mod fake_model;
mod in_process;
mod parallel;
pub mod raw;
mod server;
pub mod tls;
pub mod fake_apns;
pub mod fake_provider;
mod polling;

pub use client::{Caller, Request, Response};
pub use crashes::{assert_sound, copy_directory, count, kill_after, kill_at_intervals, peak_memory, spawn_command};
pub use database::{Database, Row, allow_changes, create_trigger, drop_trigger, refuse_changes};
pub use document::{Document, Operation, Parameter, ParameterLocation, is_same_name, plain_text};
pub use fake_model::{FakeModel, ModelBehaviour};
pub use in_process::open_app;
pub use operator::{CommandOutput, install};
pub use parallel::send_concurrently;
pub use polling::{eventually, eventually_ok, eventually_some, soon};
pub use server::{
    Binary, Server, Setup, contents_of, directory_in_memory, filler_statement, holds, kill, log_statement, postgresql,
};
