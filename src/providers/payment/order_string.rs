//! Signed request parameters, and the order string that the app passes to the payment screen.
//!
//! Only this module builds what it signs. It rejects numbers, amounts and subjects that the provider would reject. It
//! also rejects subjects with `&` or `=`, because they could make one signed text readable as another.

use serde::Serialize;

use super::alipay::certificates::AlipayCertificateNumbers;
use super::signing::Signer;
use super::{Fen, OrderRequest, form, is_number};
use crate::providers::shanghai_time::shanghai_text;
use crate::providers::{Failure, FailureKind};

/// Our identity at the provider, which signs requests.
#[derive(Debug)]
pub(super) struct Merchant {
    /// The gateway's name, for failures.
    pub(super) provider: &'static str,
    pub(super) app_id: String,
    pub(super) seller_id: Option<String>,
    pub(super) notify_url: String,
    pub(super) signer: Signer,
    /// Set in certificate mode only: in key mode the provider rejects requests with the numbers.
    pub(super) certificates: Option<AlipayCertificateNumbers>,
}

/// One parameter of a request.
pub(super) type OrderParameter = (&'static str, String);

const MAX_AMOUNT_FEN: i64 = 10_000_000_000;

#[derive(Serialize)]
struct AppPay<'a> {
    out_trade_no: &'a str,
    total_amount: String,
    subject: &'a str,
    product_code: &'static str,
    time_expire: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    seller_id: Option<&'a str>,
}

impl Merchant {
    /// Returns the order string: `name=value&…&sign=…`, to be passed on unchanged.
    pub(super) fn order_string(&self, order: &OrderRequest) -> Result<String, Failure> {
        if let Some(fault) = order_fault(order) {
            return Err(self.misconfigured(fault));
        }
        let content = self.json(&AppPay {
            out_trade_no: &order.order_no,
            total_amount: order.amount.to_string(),
            subject: &order.subject,
            product_code: "QUICK_MSECURITY_PAY",
            time_expire: self.time_text(order.expires_at)?,
            seller_id: self.seller_id.as_deref(),
        })?;
        let mut parameters = self.common_parameters("alipay.trade.app.pay", order.now)?;
        parameters.push(("notify_url", self.notify_url.clone()));
        parameters.push(("biz_content", content));
        self.sign(&mut parameters)?;
        Ok(form::encode_all(&parameters))
    }

    /// Returns the parameters that every request has, except `biz_content` and `sign`.
    pub(super) fn common_parameters(&self, method: &'static str, now: i64) -> Result<Vec<OrderParameter>, Failure> {
        let mut parameters = vec![
            ("method", method.to_owned()),
            ("app_id", self.app_id.clone()),
            ("charset", "utf-8".to_owned()),
            ("version", "1.0".to_owned()),
            ("sign_type", self.signer.sign_type().to_owned()),
            ("timestamp", self.time_text(now)?),
        ];
        if let Some(numbers) = &self.certificates {
            parameters.push(("app_cert_sn", numbers.app.clone()));
            parameters.push(("alipay_root_cert_sn", numbers.roots.clone()));
        }
        Ok(parameters)
    }

    /// Appends `sign`, computed over all parameters.
    pub(super) fn sign(&self, parameters: &mut Vec<OrderParameter>) -> Result<(), Failure> {
        let text = form::request_text(parameters);
        let signature = self.signer.sign(&text).map_err(|_| self.misconfigured("signing_failed"))?;
        parameters.push(("sign", signature));
        Ok(())
    }

    /// Serialises a `biz_content` as compact JSON.
    pub(super) fn json(&self, content: &impl Serialize) -> Result<String, Failure> {
        serde_json::to_string(content).map_err(|_| self.misconfigured("content_not_serializable"))
    }

    pub(super) fn misconfigured(&self, code: &str) -> Failure {
        Failure::new(FailureKind::Misconfigured, self.provider, code)
    }

    fn time_text(&self, milliseconds: i64) -> Result<String, Failure> {
        shanghai_text(milliseconds).ok_or_else(|| self.misconfigured("time_out_of_range"))
    }
}

/// Returns true if the amount can be charged or refunded.
pub(super) fn is_chargeable(amount: Fen) -> bool {
    (1..=MAX_AMOUNT_FEN).contains(&amount.as_fen())
}

fn order_fault(order: &OrderRequest) -> Option<&'static str> {
    if !is_number(&order.order_no) {
        return Some("invalid_order_number");
    }
    if !is_chargeable(order.amount) {
        return Some("amount_out_of_range");
    }
    if !is_subject(&order.subject) {
        return Some("invalid_subject");
    }
    (order.expires_at <= order.now).then_some("order_expired")
}

fn is_subject(subject: &str) -> bool {
    let forbidden = |character: char| matches!(character, '/' | '=' | '&') || character.is_control();
    (1..=256).contains(&subject.chars().count()) && !subject.contains(forbidden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::payment::vectors;
    use crate::providers::rsa::PrivateKey;

    fn merchant() -> Merchant {
        Merchant {
            provider: "alipay",
            app_id: "2021000000000001".to_owned(),
            seller_id: Some("2088000000000001".to_owned()),
            notify_url: "https://api.example.test/payment/notify".to_owned(),
            signer: Signer::Rsa2(vectors::merchant_key()),
            certificates: None,
        }
    }

    fn order() -> OrderRequest {
        OrderRequest {
            order_no: "D202601150000000001".to_owned(),
            amount: Fen::parse("6.00").unwrap(),
            subject: "金币 60 个".to_owned(),
            expires_at: vectors::AFTERNOON + 900_000,
            now: vectors::AFTERNOON,
        }
    }

    #[test]
    fn signs_published_order_strings_equally() {
        let all = vectors::alipay();
        for name in ["official_python", "official_node", "community_python"] {
            let vector = &all["app_pay"][name];
            let parameters: Vec<form::FormField> = vectors::string_pairs(&vector["parameters"]);
            let text = form::request_text(&parameters);
            assert_eq!(text, vector["sign_content"].as_str().unwrap(), "{name}");
            let signer = Signer::Rsa2(vectors::merchant_key());
            assert_eq!(signer.sign(&text).unwrap(), vector["sign"].as_str().unwrap(), "{name}");
        }
    }

    #[test]
    fn published_order_strings_have_the_signed_parameters() {
        let all = vectors::alipay();
        for name in ["official_python", "official_node", "community_python"] {
            let vector = &all["app_pay"][name];
            let order_string = vector["order_string"].as_str().unwrap();
            let decoded = form::decode(order_string.as_bytes()).unwrap();
            assert_eq!(form::request_text(&decoded), vector["sign_content"].as_str().unwrap(), "{name}");
            // Blanks as `+` and as `%20` are both in use; apart from that the encoding is the same.
            assert_eq!(form::encode_all(&decoded), order_string.replace('+', "%20"), "{name}");
        }
    }

    #[test]
    fn order_strings_are_signed_and_complete() {
        let order_string = merchant().order_string(&order()).unwrap();
        let fields = form::decode(order_string.as_bytes()).unwrap();
        let text = "app_id=2021000000000001&biz_content={\"out_trade_no\":\"D202601150000000001\",\
            \"total_amount\":\"6.00\",\"subject\":\"金币 60 个\",\"product_code\":\"QUICK_MSECURITY_PAY\",\
            \"time_expire\":\"2026-01-15 16:45:00\",\"seller_id\":\"2088000000000001\"}&charset=utf-8\
            &method=alipay.trade.app.pay&notify_url=https://api.example.test/payment/notify\
            &sign_type=RSA2&timestamp=2026-01-15 16:30:00&version=1.0";
        assert_eq!(form::request_text(&fields), text);
        let verifier = super::super::signing::Verifier::Rsa2(vectors::merchant_key().public_key());
        assert!(verifier.verifies(text.as_bytes(), form::value_of(&fields, "sign").unwrap()));
    }

    #[test]
    fn rejects_orders_that_the_provider_would_reject() {
        type Change = fn(&mut OrderRequest);
        let changes: [(Change, &str); 9] = [
            (|order| order.order_no = String::new(), "invalid_order_number"),
            (|order| order.order_no = "D-1".to_owned(), "invalid_order_number"),
            (|order| order.order_no = "D".repeat(65), "invalid_order_number"),
            (|order| order.amount = Fen::ZERO, "amount_out_of_range"),
            (|order| order.amount = Fen::from_fen(MAX_AMOUNT_FEN + 1).unwrap(), "amount_out_of_range"),
            (|order| order.subject = "coins&trade_status=TRADE_SUCCESS".to_owned(), "invalid_subject"),
            (|order| order.subject = "币".repeat(257), "invalid_subject"),
            (|order| order.subject = "two\nlines".to_owned(), "invalid_subject"),
            (|order| order.expires_at = order.now, "order_expired"),
        ];
        for (change, code) in changes {
            let mut order = order();
            change(&mut order);
            let refused = merchant().order_string(&order).unwrap_err();
            assert_eq!((refused.kind, refused.code.as_str()), (FailureKind::Misconfigured, code));
        }
    }

    #[test]
    fn debug_output_hides_the_key() {
        let secret = vectors::keys()["merchant"]["private_pkcs8_der_base64"].as_str().unwrap().to_owned();
        assert!(PrivateKey::parse(&secret).is_ok());
        assert!(format!("{:?}", merchant()).contains("PrivateKey(hidden)"));
    }
}
