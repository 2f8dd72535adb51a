//! The HTTP door: it parses, proves who is calling, and replies. The only room with axum, tokio and `async`.
//!
//! A request passes `serve` and `connection` (sockets, their times) → `trace` (request id, log) → `router` (a table of
//! plain paths; axum's router for the rest) → `door` (access by `guard`, body, parameters) → a handler in `v0/`, `v1/`
//! or `admin/`, named like the operation it calls. `routes` is the one page where every endpoint stands with its access
//! and its documentation; router, API document and tests follow from it.

mod admin;
pub mod body;
pub mod client_ip;
mod connection;
mod connection_limiter;
mod bearer;
mod claims;
mod content_negotiation;
pub mod cursor_page;
mod device_label;
mod download;
mod endpoint;
mod endpoint_service;
mod guard;
mod idempotent_reply;
mod interpretation_response;
mod interpretation_sse;
mod large_response;
mod listener;
mod metrics;
mod numbered_page;
mod openapi;
mod params;
mod precompressed;
mod redirect;
mod reply;
mod request_context;
mod request_layer;
mod request_meta;
mod routes;
pub mod serve;
mod service_manager;
mod sse;
mod state;
mod stream_authorization;
mod system;
mod tls;
mod v0;
mod v1;

pub use openapi::document::document;
pub use routes::endpoints;

/// Response bodies that commands print in the same shape.
pub mod responses {
    pub use super::{
        admin::{
            audit::AuditRow,
            data_cleanup::DataCleared,
            feedback::AdminFeedback,
            network_logs::{ClientCount, LoggedRequest, SuspiciousClient},
            notifications::AdminNotification,
            payments::{
                AdminCallback, AdminOrder, AdminRefund, CallbackReceipt, OrderEntry, OrderInquiry, OrderRefunded,
                PaymentReport, Rehearsed, ReportSums,
            },
            sensitive_word_migration::ShownDisagreement,
            sensitive_words::{ShownWord, TextTested},
            user_data::{ModelAttachment, UserDataFix, UserDataIssue, UserDataSynchronised, UserDataValidation},
            violations::{FrequentViolator, ShownViolation, UserViolations, ViolationCount},
        },
        v0::{
            coin::{CoinsSynchronised, LedgerIssue},
            version::AppRelease,
        },
    };
}
