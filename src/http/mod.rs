//! HTTP: parses requests, authenticates callers, calls operations and builds responses. The only module with axum,
//! tokio and `async`.
//!
//! A request passes `serve` and `connection` (sockets and their timeouts), `request_layer` (id, compression, logs) and
//! axum's router. Then `endpoint_service` runs it: `guard` checks access, `params` reads the parameters, and a handler
//! in `v0`, `v1` or `admin` does the work. `routes` is the table of all endpoints.

pub(crate) mod admin;
mod allowed_hosts;
pub mod body;
mod body_encoding;
mod cast_moment;
mod claims;
mod classic_response;
pub mod client_ip;
mod connection;
mod connection_limiter;
pub mod console;
mod content_negotiation;
mod cors;
mod cross_site;
pub mod cursor_page;
mod device_label;
mod download;
pub(crate) mod endpoint;
pub(crate) mod endpoint_service;
mod event_connection;
pub(crate) mod guard;
mod held_bytes;
mod http2;
mod idempotent_reply;
mod identity_proof;
pub(crate) mod in_process;
mod inbox_hub;
mod interpretation_response;
mod interpretation_sse;
mod listener;
mod live_interpretations;
mod live_stream;
mod metrics;
mod numbered_page;
pub(crate) mod openapi;
pub(crate) mod params;
mod payment_channel;
mod precompressed;
mod public_content;
mod rate_limit;
mod redirect;
pub mod reply;
mod request_context;
mod request_layer;
mod request_meta;
mod request_token;
pub mod responses;
pub(crate) mod routes;
pub mod serve;
mod session_interpretation;
mod service_manager;
mod sse;
mod state;
mod stream_authorization;
mod system;
mod tls;
mod token_choice;
mod user_order;
mod user_purchase;
mod v0;
mod v1;

pub use openapi::document::{document, select};
pub use params::DocumentAudience;
pub use routes::endpoints;
