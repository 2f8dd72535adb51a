//! Keys and certificates as text: PEM, or bare base64 of the DER form.
//!
//! Secret stores and environment variables change such texts, so a byte order mark, missing line breaks and line breaks
//! written as the two characters `\n` are accepted. No fault repeats any of the text, which may be a private key.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Padding is optional because keys copied out of web forms often lose it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

const DER_SEQUENCE: u8 = 0x30;
/// The shortest base64 text that can be a key: a P-256 key in SEC1 form has more.
const SHORTEST_KEY: usize = 64;

/// One key or certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct PemBlock {
    /// The label of the PEM block, such as `CERTIFICATE`; `None` for bare base64.
    pub label: Option<String>,
    pub der: Vec<u8>,
}

impl PemBlock {
    /// Returns true for certificates and for unlabelled blocks, which may be one.
    pub fn is_certificate(&self) -> bool {
        self.label.as_deref().is_none_or(|label| label == "CERTIFICATE")
    }
}

/// The reason why a text is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PemFault {
    #[error("it is empty")]
    Empty,
    #[error("it is neither PEM nor base64 text")]
    NotBase64,
    #[error("a PEM block has no end line")]
    NotClosed,
    #[error("the private key is encrypted: store it without a passphrase")]
    Encrypted,
}

/// Returns the blocks of a text. Text around PEM blocks is ignored.
///
/// # Errors
/// The first fault.
pub fn parse_pem(text: &[u8]) -> Result<Vec<PemBlock>, PemFault> {
    let text = str::from_utf8(text).map_err(|_| PemFault::NotBase64)?;
    let text = without_byte_order_mark(text);
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let (label, after) = after.split_once("-----").ok_or(PemFault::NotClosed)?;
        let (body, after) = after.split_once("-----END").ok_or(PemFault::NotClosed)?;
        if label.contains("ENCRYPTED") || body.contains("ENCRYPTED") {
            return Err(PemFault::Encrypted);
        }
        blocks.push(PemBlock { label: Some(label.to_owned()), der: decode(body)? });
        rest = after;
    }
    if blocks.is_empty() {
        let der = decode(text)?;
        // Every key and certificate is a DER sequence; other base64 is a word, such as the name of a file.
        if der.first() != Some(&DER_SEQUENCE) {
            return Err(PemFault::NotBase64);
        }
        blocks.push(PemBlock { label: None, der });
    }
    Ok(blocks)
}

/// Removes the byte order mark that some editors write.
pub fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns true for a text that may be a key and not, for example, the name of its file.
pub fn looks_like_key(text: &str) -> bool {
    let is_base64 = |character: char| character.is_ascii_alphanumeric() || "+/=\\ \r\n".contains(character);
    let is_long = |run: &str| run.len() >= SHORTEST_KEY;
    text.contains("-----BEGIN ") || !text.starts_with('/') && text.split(|next| !is_base64(next)).any(is_long)
}

fn decode(body: &str) -> Result<Vec<u8>, PemFault> {
    let compact: String = body.replace("\\r", "").replace("\\n", "").split_ascii_whitespace().collect();
    if compact.is_empty() {
        return Err(PemFault::Empty);
    }
    BASE64.decode(compact).map_err(|_| PemFault::NotBase64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "MIIBCgKCAQEA";

    #[test]
    fn spellings_of_one_block_are_equal() {
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{BODY}\n-----END PUBLIC KEY-----\n");
        let expected = parse_pem(pem.as_bytes()).unwrap();
        assert_eq!(expected[0].label.as_deref(), Some("PUBLIC KEY"));
        for spelling in [
            pem.replace('\n', "\r\n"),
            pem.replace('\n', "\\n"),
            pem.replace('\n', "\\r\\n"),
            pem.replace('\n', " "),
            pem.replace('\n', ""),
            format!("\u{feff}{pem}"),
            format!("Bag Attributes: none\n{pem}"),
        ] {
            assert!(parse_pem(spelling.as_bytes()).unwrap() == expected, "{spelling}");
        }
        let bare = parse_pem(format!("\u{feff}{BODY}\n").as_bytes()).unwrap();
        assert!(bare[0].label.is_none() && bare[0].der == expected[0].der);
        assert_eq!(parse_pem(format!("{pem}{pem}").as_bytes()).unwrap().len(), 2);
    }

    #[test]
    fn faults_are_told_apart() {
        let fault = |text: &str| parse_pem(text.as_bytes()).err();
        assert_eq!(fault(""), Some(PemFault::Empty));
        assert_eq!(fault("-----BEGIN A-----\n-----END A-----"), Some(PemFault::Empty));
        assert_eq!(fault("-----BEGIN A-----\nAAAA"), Some(PemFault::NotClosed));
        assert_eq!(fault("-----BEGIN A"), Some(PemFault::NotClosed));
        assert_eq!(fault("hunter2!"), Some(PemFault::NotBase64));
        assert_eq!(parse_pem(&[0x30, 0x82]).err(), Some(PemFault::NotBase64));
        assert_eq!(fault("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END"), Some(PemFault::Encrypted));
    }

    #[test]
    fn keys_are_told_from_file_names() {
        assert!(looks_like_key("-----BEGIN PRIVATE KEY-----") && looks_like_key(&"MIIE+/".repeat(20)));
        assert!(!looks_like_key("/etc/letsencrypt/live/api.example.com/privkey.pem"));
        assert!(!looks_like_key(&format!("/{}", "directory/".repeat(20))) && !looks_like_key("key"));
    }
}
