//! The HTTP door: it parses, proves who is calling, and replies. The only room with axum, tokio and `async`.
//!
//! A request passes `serve` and `connection` (sockets, their times) → `trace` (request id, log) → `router` (a table of
//! plain paths; axum's router for the rest) → `door` (access by `guard`, body, parameters) → a handler in `v0/`, `v1/`
//! or `admin/`, named like the operation it calls. `routes` is the one page where every endpoint stands with its access
//! and its documentation; router, API document and tests follow from it.

mod accept;
mod admin;
pub mod body;
mod request_context;
pub mod client_ip;
mod connection;
pub mod cursor_page;
mod described_headers;
mod device;
mod endpoint_service;
mod connection_limiter;
mod download;
mod endpoint;
mod stream_authorization;
mod listener;
mod guard;
mod interpreting;
mod large_response;
mod metrics;
mod interpretation_sse;
mod numbered_page;
mod openapi;
mod precompressed;
mod params;
mod redirect;
mod reply;
mod router;
mod routes;
mod schemas;
pub mod serve;
mod service_manager;
mod stream;
mod system;
mod tls;
mod trace;
mod v0;
mod v1;
mod vocabulary;

pub use openapi::document;
pub use routes::endpoints;

/// Answers that commands give in the same shape.
pub mod answers {
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
