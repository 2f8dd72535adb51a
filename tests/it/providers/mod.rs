//! The provider drivers over real sockets: requests sent, and the handling of every bad response.

mod alipay;
mod client;
mod email;
mod language_model;
mod sms;
mod sms_failover;
mod wechat;
mod app_store;
mod google_play;
mod stripe;
