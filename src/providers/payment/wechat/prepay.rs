//! Placing an order, and what the app or page passes to WeChat to show the payment screen.
//!
//! Repeating the call with unchanged parameters yields a fresh prepay id for the same order, so an order that is handed
//! out again stays one order.

use serde::{Deserialize, Serialize};

use super::signature::WeChatMerchant;
use crate::providers::{payment::OrderRequest, rsa::SigningFailed, shanghai_time::shanghai_text};

/// The kind of client that pays. Each has its own path and its own answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeChatClient<'a> {
    /// A mobile app with WeChat's SDK.
    MobileApp,
    /// A page inside WeChat. The payer's id belongs to our app id.
    Jsapi { open_id: &'a str },
    /// A page in a mobile browser outside WeChat.
    H5 { client_ip: &'a str },
    /// A code that the payer scans.
    Native,
}

/// The answer for the client, in the words of its SDK.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum WeChatPayment {
    MobileApp(AppPaymentCall),
    Jsapi(JsapiPaymentCall),
    /// The page to open within five minutes.
    H5 {
        h5_url: String,
    },
    /// The text of the code to scan within two hours.
    Native {
        code_url: String,
    },
}

/// The signed parameters of the app's call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppPaymentCall {
    pub appid: String,
    pub partnerid: String,
    pub prepayid: String,
    pub package: &'static str,
    pub noncestr: String,
    pub timestamp: String,
    pub sign: String,
}

/// The signed parameters of a page's call inside WeChat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JsapiPaymentCall {
    pub app_id: String,
    pub time_stamp: String,
    pub nonce_str: String,
    pub package: String,
    pub sign_type: &'static str,
    pub pay_sign: String,
}

#[derive(Serialize)]
pub(super) struct PrepayContent<'a> {
    appid: &'a str,
    mchid: &'a str,
    description: &'a str,
    out_trade_no: &'a str,
    time_expire: String,
    notify_url: &'a str,
    amount: PrepayAmount,
    #[serde(skip_serializing_if = "Option::is_none")]
    payer: Option<Payer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scene_info: Option<SceneInfo<'a>>,
}

#[derive(Serialize)]
struct PrepayAmount {
    total: i64,
    currency: &'static str,
}

#[derive(Serialize)]
struct Payer<'a> {
    openid: &'a str,
}

#[derive(Serialize)]
struct SceneInfo<'a> {
    payer_client_ip: &'a str,
    h5_info: H5Info,
}

#[derive(Serialize)]
struct H5Info {
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The members of all answers to the call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PrepayAnswer {
    pub(super) prepay_id: Option<String>,
    pub(super) h5_url: Option<String>,
    pub(super) code_url: Option<String>,
}

impl WeChatClient<'_> {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::MobileApp => "/v3/pay/transactions/app",
            Self::Jsapi { .. } => "/v3/pay/transactions/jsapi",
            Self::H5 { .. } => "/v3/pay/transactions/h5",
            Self::Native => "/v3/pay/transactions/native",
        }
    }
}

/// Returns the request's content, or the code of the order's fault.
pub(super) fn content<'a>(
    client: WeChatClient<'a>,
    order: &'a OrderRequest,
    app_id: &'a str,
    merchant_id: &'a str,
    notify_url: &'a str,
) -> Result<PrepayContent<'a>, &'static str> {
    if !is_order_number(&order.order_no) {
        return Err("invalid_order_number");
    }
    let total = order.amount.as_fen();
    if !(1..=MAX_AMOUNT_FEN).contains(&total) {
        return Err("amount_out_of_range");
    }
    if !(1..=127).contains(&order.subject.chars().count()) || order.subject.contains(char::is_control) {
        return Err("invalid_subject");
    }
    if order.expires_at <= order.now {
        return Err("order_expired");
    }
    let (payer, scene_info) = match client {
        WeChatClient::MobileApp | WeChatClient::Native => (None, None),
        WeChatClient::Jsapi { open_id } => (Some(Payer { openid: open_id }), None),
        WeChatClient::H5 { client_ip } => {
            (None, Some(SceneInfo { payer_client_ip: client_ip, h5_info: H5Info { kind: "Wap" } }))
        }
    };
    Ok(PrepayContent {
        appid: app_id,
        mchid: merchant_id,
        description: &order.subject,
        out_trade_no: &order.order_no,
        time_expire: rfc3339(order.expires_at).ok_or("time_out_of_range")?,
        notify_url,
        amount: PrepayAmount { total, currency: "CNY" },
        payer,
        scene_info,
    })
}

/// Returns what the client needs, signed at `now` (seconds); `Ok(None)` if the answer lacks it.
pub(super) fn payment(
    client: WeChatClient<'_>,
    answer: PrepayAnswer,
    merchant: &WeChatMerchant,
    app_id: &str,
    now: i64,
    nonce: &str,
) -> Result<Option<WeChatPayment>, SigningFailed> {
    let prepay_id = answer.prepay_id.filter(|id| !id.is_empty());
    Ok(match (client, prepay_id) {
        (WeChatClient::MobileApp, Some(prepay_id)) => {
            let timestamp = now.to_string();
            let sign = merchant.sign(&[app_id, &timestamp, nonce, &prepay_id])?;
            Some(WeChatPayment::MobileApp(AppPaymentCall {
                appid: app_id.to_owned(),
                partnerid: merchant.merchant_id.clone(),
                prepayid: prepay_id,
                package: "Sign=WXPay",
                noncestr: nonce.to_owned(),
                timestamp,
                sign,
            }))
        }
        (WeChatClient::Jsapi { .. }, Some(prepay_id)) => {
            let (time_stamp, package) = (now.to_string(), format!("prepay_id={prepay_id}"));
            let pay_sign = merchant.sign(&[app_id, &time_stamp, nonce, &package])?;
            Some(WeChatPayment::Jsapi(JsapiPaymentCall {
                app_id: app_id.to_owned(),
                time_stamp,
                nonce_str: nonce.to_owned(),
                package,
                sign_type: "RSA",
                pay_sign,
            }))
        }
        (WeChatClient::H5 { .. }, _) => answer.h5_url.map(|h5_url| WeChatPayment::H5 { h5_url }),
        (WeChatClient::Native, _) => answer.code_url.map(|code_url| WeChatPayment::Native { code_url }),
        (WeChatClient::MobileApp | WeChatClient::Jsapi { .. }, None) => None,
    })
}

pub(super) const MAX_AMOUNT_FEN: i64 = 10_000_000_000;

/// Returns true if the text can be an order number at the provider.
pub(super) fn is_order_number(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-|*".contains(&byte);
    (6..=32).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Formats epoch milliseconds as RFC 3339 in Shanghai time.
fn rfc3339(milliseconds: i64) -> Option<String> {
    shanghai_text(milliseconds).map(|text| format!("{}+08:00", text.replace(' ', "T")))
}
