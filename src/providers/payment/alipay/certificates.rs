//! Certificate mode: the numbers that every request of such an app must carry, and the provider's key.
//!
//! The provider's console chooses the mode for each app. In key mode requests must not have the numbers, so the
//! settings say which mode it is. A number is a hash of the issuer's name and the serial number in decimal digits.

use md5::{Digest as _, Md5};
use x509_parser::{
    objects::{oid_registry, oid2abbrev},
    prelude::X509Certificate,
};

use super::fault;
use crate::{
    providers::{payment::SettingFault, rsa::PublicKey, x509::parse_certificate},
    types::{hex, parse_pem},
};

/// The certificates of an app in certificate mode, as the provider's console offers them for download.
#[derive(Clone)]
pub struct AlipayCertificateTexts {
    /// `appCertPublicKey_….crt`: the certificate of our key.
    pub app: String,
    /// `alipayCertPublicKey_RSA2.crt`: the certificate of the provider's key.
    pub alipay: String,
    /// `alipayRootCert.crt`: several certificates, some of which are not RSA.
    pub roots: String,
}

/// The numbers in requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::providers::payment) struct AlipayCertificateNumbers {
    /// `app_cert_sn`.
    pub(in crate::providers::payment) app: String,
    /// `alipay_root_cert_sn`.
    pub(in crate::providers::payment) roots: String,
}

/// The parsed certificates.
#[derive(Debug)]
pub(super) struct AlipayCertificates {
    pub(super) numbers: AlipayCertificateNumbers,
    /// The number that responses name.
    pub(super) certificate_number: String,
    pub(super) app_key: PublicKey,
    pub(super) alipay_key: PublicKey,
}

impl AlipayCertificates {
    /// Parses the certificates, or returns their faults.
    pub(super) fn parse(texts: &AlipayCertificateTexts) -> Result<Self, Vec<SettingFault>> {
        let wanted = "must be the certificate that the provider's console offers, as PEM";
        let (app, alipay, roots) = (only(&texts.app), only(&texts.alipay), root_numbers(&texts.roots));
        match (app, alipay, roots) {
            (Some((app_number, app_key)), Some((certificate_number, alipay_key)), Some(roots)) => {
                let numbers = AlipayCertificateNumbers { app: app_number, roots };
                Ok(Self { numbers, certificate_number, app_key, alipay_key })
            }
            (app, alipay, roots) => {
                let found = [
                    ("app_certificate", app.is_some()),
                    ("alipay_certificate", alipay.is_some()),
                    ("root_certificates", roots.is_some()),
                ];
                Err(found.iter().filter(|(_, is_found)| !is_found).map(|(setting, _)| fault(setting, wanted)).collect())
            }
        }
    }
}

/// Returns the number and the key of the only certificate of a text.
fn only(text: &str) -> Option<(String, PublicKey)> {
    let blocks = parse_pem(text.as_bytes()).ok()?;
    let [block] = blocks.as_slice() else { return None };
    let certificate = parse_certificate(&block.der)?;
    Some((number_of(&certificate)?, PublicKey::from_der(certificate.public_key().raw).ok()?))
}

/// Returns the numbers of the roots that sign with RSA, in their order. Others may not even be readable.
fn root_numbers(text: &str) -> Option<String> {
    let blocks = parse_pem(text.as_bytes()).ok()?;
    let certificates = blocks.iter().filter_map(|block| parse_certificate(&block.der));
    let is_rsa = |certificate: &X509Certificate<'_>| {
        certificate.signature_algorithm.algorithm.to_id_string().starts_with("1.2.840.113549.1.1.")
    };
    let numbers: Vec<String> =
        certificates.filter(is_rsa).map(|certificate| number_of(&certificate)).collect::<Option<_>>()?;
    (!numbers.is_empty()).then(|| numbers.join("_"))
}

fn number_of(certificate: &X509Certificate<'_>) -> Option<String> {
    let mut names = Vec::new();
    for attribute in certificate.issuer().iter_attributes() {
        let name = oid2abbrev(attribute.attr_type(), oid_registry()).ok()?;
        names.push(format!("{name}={}", attribute.as_str().ok()?));
    }
    names.reverse();
    let text = format!("{}{}", names.join(","), certificate.tbs_certificate.serial);
    Some(hex(&Md5::digest(text)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Alipay, AlipaySettings, QUERY, calls};
    use super::*;
    use crate::providers::payment::{
        Fen, OrderRequest, form,
        signing::{Signer, Verifier},
        vectors::{string_pairs, text},
    };
    use crate::providers::rsa::PrivateKey;
    use serde_json::Value;

    fn published() -> Value {
        let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/alipay_certificates.json");
        serde_json::from_str(&std::fs::read_to_string(vectors).unwrap()).unwrap()
    }

    fn texts() -> AlipayCertificateTexts {
        let published = published();
        AlipayCertificateTexts {
            app: text(&published["app_cert_pem"]).to_owned(),
            alipay: text(&published["alipay_cert_pem"]).to_owned(),
            roots: text(&published["root_file_pem"]).to_owned(),
        }
    }

    #[test]
    fn numbers_and_keys_equal_the_published_ones() {
        let (published, parsed) = (published(), AlipayCertificates::parse(&texts()).ok().unwrap());
        assert_eq!(parsed.numbers.app, text(&published["app_cert_sn"]));
        assert_eq!(parsed.numbers.roots, text(&published["alipay_root_cert_sn"]));
        assert_eq!(parsed.certificate_number, text(&published["alipay_cert_sn"]));
        assert_eq!(parsed.alipay_key, PublicKey::parse(text(&published["alipay_public_key_pem"])).unwrap());
        assert_eq!(hex(&Md5::digest(text(&published["sn_text_of_app_cert"]))), parsed.numbers.app);
        let own = PrivateKey::parse(text(&published["app_private_key_pem"])).unwrap();
        assert_eq!(parsed.app_key, own.public_key());
    }

    #[test]
    fn signs_the_published_order_string_equally() {
        let published = published();
        let fields = string_pairs(&published["order"]["parameters"]);
        let decoded = form::decode(text(&published["order"]["order_string"]).as_bytes()).unwrap();
        let signed = form::request_text(&fields);
        assert_eq!(form::request_text(&decoded), signed);
        let signer = Signer::Rsa2(PrivateKey::parse(text(&published["app_private_key_pem"])).unwrap());
        let signature = signer.sign(&signed).unwrap();
        assert_eq!(form::value_of(&decoded, "sign"), Some(signature.as_str()));
        let parsed = AlipayCertificates::parse(&texts()).ok().unwrap();
        assert!(Verifier::Rsa2(parsed.app_key).verifies(signed.as_bytes(), &signature));
    }

    fn settings(texts: AlipayCertificateTexts) -> AlipaySettings {
        AlipaySettings {
            app_id: "2021000000000001".to_owned(),
            seller_id: None,
            private_key: text(&published()["app_private_key_pem"]).to_owned(),
            alipay_public_key: String::new(),
            certificates: Some(texts),
            gateway_url: "https://openapi.alipay.com/gateway.do".to_owned(),
            notify_url: "https://api.example.test/payment/notify".to_owned(),
            timeout: Duration::from_secs(1),
        }
    }

    fn gateway(settings: &AlipaySettings) -> Result<Alipay, Vec<&'static str>> {
        let gateway = Alipay::new(settings, Box::new(|| 1_768_465_800_000));
        gateway.map_err(|faults| faults.iter().map(|fault| fault.setting).collect())
    }

    #[test]
    fn order_strings_and_calls_carry_the_numbers() {
        let gateway = gateway(&settings(texts())).ok().unwrap();
        let order = OrderRequest {
            order_no: "D202601150000000001".to_owned(),
            amount: Fen::parse("6.00").unwrap(),
            subject: "金币 60 个".to_owned(),
            expires_at: 1_768_466_700_000,
            now: 1_768_465_800_000,
        };
        let order_string = gateway.order_string(&order).unwrap();
        let content = calls::TradeKey { out_trade_no: "D202601150000000001" };
        let (query, _) = calls::signed_request(&gateway.merchant, QUERY, &content, 1_768_465_800_000).unwrap();
        for parameters in [order_string, query] {
            let fields = form::decode(parameters.as_bytes()).unwrap();
            for name in ["app_cert_sn", "alipay_root_cert_sn"] {
                assert_eq!(form::value_of(&fields, name), published()[name].as_str(), "{name}");
            }
        }
    }

    #[test]
    fn a_response_of_another_certificate_is_told_from_a_forged_one() {
        let gateway = gateway(&settings(texts())).ok().unwrap();
        let code = |number: &str| {
            let body = format!(
                r#"{{"alipay_trade_query_response":{{"code":"10000"}},"alipay_cert_sn":"{number}","sign":"AAAA"}}"#
            );
            gateway.verify(QUERY, body.as_bytes()).unwrap_err().code
        };
        assert_eq!(code("00"), "alipay_certificate_changed");
        assert_eq!(code(text(&published()["alipay_cert_sn"])), "answer_signature_invalid");
    }

    #[test]
    fn the_mode_is_unambiguous_and_the_certificate_fits_the_key() {
        let both = AlipaySettings { alipay_public_key: "key".to_owned(), ..settings(texts()) };
        assert_eq!(gateway(&both).err(), Some(vec!["alipay_public_key"]));
        let app = texts().alipay;
        let swapped = settings(AlipayCertificateTexts { app, ..texts() });
        assert_eq!(gateway(&swapped).err(), Some(vec!["app_certificate"]));
        let alipay = texts().app;
        let own = settings(AlipayCertificateTexts { alipay, ..texts() });
        assert_eq!(gateway(&own).err(), Some(vec!["alipay_certificate"]));
    }

    #[test]
    fn names_the_faults_of_certificates() {
        type Change = fn(&mut AlipayCertificateTexts);
        let cases: [(Change, &str); 4] = [
            (|texts| texts.app = "key".to_owned(), "app_certificate"),
            (|texts| texts.alipay = texts.roots.clone(), "alipay_certificate"),
            (|texts| texts.alipay = String::new(), "alipay_certificate"),
            (|texts| texts.roots = "MAA=".to_owned(), "root_certificates"),
        ];
        for (change, setting) in cases {
            let mut texts = texts();
            change(&mut texts);
            let faults = AlipayCertificates::parse(&texts).unwrap_err();
            assert_eq!(faults.iter().map(|fault| fault.setting).collect::<Vec<_>>(), [setting]);
        }
    }
}
