//! RSA keys in the forms that payment providers hand out, and PKCS#1 v1.5 signatures with SHA-256.
//!
//! A key is accepted as PEM or as bare base64 DER, with any whitespace: private keys as PKCS#8 or PKCS#1, public keys
//! as `SubjectPublicKeyInfo` or PKCS#1. The format is found by trying, because the bare form has no label.
//!
//! SHA-1, keys under 2048 bits, encrypted keys and certificates are rejected. ring verifies with the inner PKCS#1 key
//! only, so the outer structure is removed here.

use std::fmt;

use ring::rand::SystemRandom;
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey};

use crate::types::{PemFault, parse_pem};

/// A private key that can sign. Its `Debug` form shows nothing of the key.
pub struct PrivateKey(RsaKeyPair);

/// A public key that can verify; held as the DER form of PKCS#1 `RSAPublicKey`.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

/// The reason why a configured key is rejected. The texts are for the operator and never contain key material.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(transparent)]
    Text(#[from] PemFault),
    #[error("this is {found}; {wanted} is required here")]
    WrongKind { found: &'static str, wanted: &'static str },
    #[error("the key has {0} bits; 2048 to 8192 are required")]
    WrongLength(usize),
    #[error("this is not an RSA private key in PKCS#8 or PKCS#1 form ({0})")]
    NotPrivateKey(String),
    #[error("this is not an RSA public key in SubjectPublicKeyInfo or PKCS#1 form")]
    NotPublicKey,
}

/// The error if the system's random source fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signature could not be created")]
pub struct SigningFailed;

impl PrivateKey {
    /// Parses a private key from PEM or base64 text in PKCS#8 or PKCS#1 form.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let (label, der) = decode_key_text(text)?;
        match label.as_deref() {
            Some("PUBLIC KEY" | "RSA PUBLIC KEY") => return Err(PRIVATE_KEY_WANTED),
            Some("CERTIFICATE") => return Err(wrong_kind("a certificate", "a private key")),
            _ => {}
        }
        let refusal = match RsaKeyPair::from_pkcs8(&der) {
            Ok(pair) => return Ok(Self(pair)),
            Err(refusal) => refusal,
        };
        if let Ok(pair) = RsaKeyPair::from_der(&der) {
            return Ok(Self(pair));
        }
        if inner_public_key(&der).is_some() {
            Err(PRIVATE_KEY_WANTED)
        } else {
            Err(KeyError::NotPrivateKey(refusal.to_string()))
        }
    }

    /// Returns the public half of this key.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.public_key().as_ref().to_vec())
    }

    /// Signs `message` with RSASSA-PKCS1-v1_5 and SHA-256. Equal messages yield equal signatures.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SigningFailed> {
        let mut signature = vec![0; self.0.public().modulus_len()];
        self.0.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).map_err(|_| SigningFailed)?;
        Ok(signature)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PrivateKey(hidden)")
    }
}

impl PublicKey {
    /// Parses a public key from PEM or base64 text in `SubjectPublicKeyInfo` or PKCS#1 form.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let (label, der) = decode_key_text(text)?;
        match label.as_deref() {
            Some("PRIVATE KEY" | "RSA PRIVATE KEY") => return Err(PUBLIC_KEY_WANTED),
            Some("CERTIFICATE") => return Err(wrong_kind("a certificate", "a public key")),
            _ => {}
        }
        if RsaKeyPair::from_pkcs8(&der).is_ok() || RsaKeyPair::from_der(&der).is_ok() {
            return Err(PUBLIC_KEY_WANTED);
        }
        Self::from_der(&der)
    }

    /// Parses a public key in the DER form of `SubjectPublicKeyInfo` or PKCS#1.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let inner = inner_public_key(der).ok_or(KeyError::NotPublicKey)?;
        let bits = modulus_bits(inner).ok_or(KeyError::NotPublicKey)?;
        if !(2048..=8192).contains(&bits) {
            return Err(KeyError::WrongLength(bits));
        }
        Ok(Self(inner.to_vec()))
    }

    /// Returns true if `signature` is this key's RSASSA-PKCS1-v1_5 signature with SHA-256 over `message`.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &self.0).verify(message, signature).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = modulus_bits(&self.0).unwrap_or_default();
        write!(formatter, "PublicKey({bits} bits)")
    }
}

const PRIVATE_KEY_WANTED: KeyError = wrong_kind("a public key", "a private key");
const PUBLIC_KEY_WANTED: KeyError = wrong_kind("a private key", "a public key");

const fn wrong_kind(found: &'static str, wanted: &'static str) -> KeyError {
    KeyError::WrongKind { found, wanted }
}

/// Decodes the first block of a text.
fn decode_key_text(text: &str) -> Result<(Option<String>, Vec<u8>), KeyError> {
    let first = parse_pem(text.as_bytes())?.into_iter().next().ok_or(PemFault::Empty)?;
    Ok((first.label, first.der))
}

const DER_INTEGER: u8 = 0x02;
const DER_BIT_STRING: u8 = 0x03;
const DER_SEQUENCE: u8 = 0x30;
/// `rsaEncryption`, 1.2.840.113549.1.1.1, with its tag and length.
const RSA_ENCRYPTION: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// Returns the PKCS#1 `RSAPublicKey` in `der`, which is either that or a `SubjectPublicKeyInfo` around it.
fn inner_public_key(der: &[u8]) -> Option<&[u8]> {
    if modulus_bits(der).is_some() {
        return Some(der);
    }
    let (fields, rest) = der_element(der, DER_SEQUENCE)?;
    let (algorithm, fields) = der_element(fields, DER_SEQUENCE)?;
    let (bits, trailing) = der_element(fields, DER_BIT_STRING)?;
    let whole = rest.is_empty() && trailing.is_empty() && algorithm.starts_with(RSA_ENCRYPTION);
    // The first byte of a bit string counts the unused bits of its last byte: none in a key.
    let inner = bits.strip_prefix(&[0])?;
    (whole && modulus_bits(inner).is_some()).then_some(inner)
}

/// Returns the modulus length of a PKCS#1 `RSAPublicKey`; `None` if `der` is anything else.
fn modulus_bits(der: &[u8]) -> Option<usize> {
    let (fields, rest) = der_element(der, DER_SEQUENCE)?;
    let (modulus, fields) = der_element(fields, DER_INTEGER)?;
    let (_exponent, trailing) = der_element(fields, DER_INTEGER)?;
    if !rest.is_empty() || !trailing.is_empty() {
        return None;
    }
    let magnitude = modulus.strip_prefix(&[0]).unwrap_or(modulus);
    let leading_zeros = magnitude.first()?.leading_zeros() as usize;
    Some(magnitude.len() * 8 - leading_zeros)
}

/// Splits off one element with the given tag: its content, and the bytes after it. Definite lengths up to 64 KiB.
fn der_element(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), rest.get(2..)?),
        _ => return None,
    };
    if found == tag { rest.split_at_checked(length) } else { None }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    fn keys() -> serde_json::Value {
        let vectors = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/alipay.json"));
        let vectors: serde_json::Value = serde_json::from_str(vectors).unwrap();
        vectors["keys"].clone()
    }

    fn forms(owner: &str, half: &str) -> Vec<String> {
        let keys = keys();
        let forms: Vec<String> = keys[owner]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| name.starts_with(half))
            .map(|(_, text)| text.as_str().unwrap().to_owned())
            .collect();
        assert!(forms.len() >= 3, "{owner} {half}: {} forms", forms.len());
        forms
    }

    #[test]
    fn all_forms_of_a_private_key_yield_equal_signatures() {
        for owner in ["merchant", "platform"] {
            let signatures: Vec<Vec<u8>> = forms(owner, "private")
                .iter()
                .map(|form| PrivateKey::parse(form).unwrap().sign(b"text").unwrap())
                .collect();
            assert_eq!(signatures.len(), 4);
            assert!(signatures.iter().all(|signature| *signature == signatures[0] && signature.len() == 256));
        }
    }

    #[test]
    fn all_forms_of_a_public_key_are_equal() {
        for owner in ["merchant", "platform", "other"] {
            let keys: Vec<PublicKey> =
                forms(owner, "public").iter().map(|form| PublicKey::parse(form).unwrap()).collect();
            assert!(keys.iter().all(|key| *key == keys[0]));
        }
    }

    #[test]
    fn a_signature_verifies_with_the_matching_key_and_text_only() {
        let merchant = PrivateKey::parse(&forms("merchant", "private")[0]).unwrap();
        let platform = PublicKey::parse(&forms("platform", "public")[0]).unwrap();
        let signature = merchant.sign(b"text").unwrap();
        assert!(merchant.public_key().verifies(b"text", &signature));
        assert!(!merchant.public_key().verifies(b"texT", &signature));
        assert!(!merchant.public_key().verifies(b"text", &signature[..255]));
        assert!(!merchant.public_key().verifies(b"text", b""));
        assert!(!platform.verifies(b"text", &signature));
    }

    #[test]
    fn whitespace_and_written_line_breaks_do_not_matter() {
        let pem = keys()["merchant"]["private_pkcs8_pem"].as_str().unwrap().to_owned();
        for spelling in
            [pem.replace('\n', "\r\n"), pem.replace('\n', " "), pem.replace('\n', "\\n"), format!("  \n{pem}\n\n")]
        {
            PrivateKey::parse(&spelling).unwrap();
        }
        let bare = keys()["platform"]["public_spki_der_base64"].as_str().unwrap().to_owned();
        PublicKey::parse(&format!("{}\n  {}", &bare[..64], &bare[64..])).unwrap();
    }

    #[test]
    fn the_two_halves_are_not_interchangeable() {
        for form in forms("merchant", "private") {
            assert_eq!(PublicKey::parse(&form), Err(PUBLIC_KEY_WANTED));
        }
        for form in forms("merchant", "public") {
            assert_eq!(PrivateKey::parse(&form).unwrap_err(), PRIVATE_KEY_WANTED);
        }
    }

    #[test]
    fn names_the_fault_of_an_invalid_key() {
        assert_eq!(PublicKey::parse(" \n"), Err(PemFault::Empty.into()));
        assert_eq!(PublicKey::parse("<put the key here>"), Err(PemFault::NotBase64.into()));
        assert_eq!(PublicKey::parse("MAA="), Err(KeyError::NotPublicKey));
        assert!(matches!(PrivateKey::parse("MAA="), Err(KeyError::NotPrivateKey(_))));
        assert_eq!(PublicKey::parse("-----BEGIN PUBLIC KEY-----\nMIIB"), Err(PemFault::NotClosed.into()));
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
        assert_eq!(PublicKey::parse(certificate), Err(wrong_kind("a certificate", "a public key")));
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----";
        assert_eq!(PrivateKey::parse(encrypted).unwrap_err(), PemFault::Encrypted.into());
        let legacy = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIB\n-----END RSA PRIVATE KEY-----";
        assert_eq!(PrivateKey::parse(legacy).unwrap_err(), PemFault::Encrypted.into());
    }

    #[test]
    fn rejects_a_short_public_key() {
        let mut modulus = vec![DER_INTEGER, 0x81, 0x81, 0x00];
        modulus.extend([0xff; 128]);
        let mut der = vec![DER_SEQUENCE, 0x81, u8::try_from(modulus.len() + 5).unwrap()];
        der.extend(modulus);
        der.extend([DER_INTEGER, 3, 1, 0, 1]);
        assert_eq!(PublicKey::parse(&STANDARD.encode(der)), Err(KeyError::WrongLength(1024)));
    }

    #[test]
    fn rejects_trailing_bytes_after_a_public_key() {
        for form in ["public_spki_pem", "public_pkcs1_pem"] {
            let text = keys()["platform"][form].as_str().unwrap().to_owned();
            let (_, mut der) = decode_key_text(&text).unwrap();
            der.push(0);
            assert_eq!(PublicKey::parse(&STANDARD.encode(&der)), Err(KeyError::NotPublicKey));
        }
    }

    #[test]
    fn rejects_a_public_key_of_another_algorithm() {
        let (_, mut der) = decode_key_text(keys()["platform"]["public_spki_pem"].as_str().unwrap()).unwrap();
        let position = der.windows(RSA_ENCRYPTION.len()).position(|window| window == RSA_ENCRYPTION).unwrap();
        der[position + RSA_ENCRYPTION.len() - 1] ^= 0x0a;
        assert_eq!(PublicKey::parse(&STANDARD.encode(&der)), Err(KeyError::NotPublicKey));
    }

    #[test]
    fn rejects_truncated_keys_without_panic() {
        let whole = STANDARD.decode(keys()["platform"]["public_spki_der_base64"].as_str().unwrap()).unwrap();
        for length in 1..whole.len() {
            assert_eq!(PublicKey::parse(&STANDARD.encode(&whole[..length])), Err(KeyError::NotPublicKey));
        }
    }

    #[test]
    fn debug_output_hides_the_private_key() {
        let key = PrivateKey::parse(&forms("merchant", "private")[0]).unwrap();
        assert_eq!(format!("{key:?}"), "PrivateKey(hidden)");
        assert_eq!(format!("{:?}", key.public_key()), "PublicKey(2048 bits)");
    }
}
