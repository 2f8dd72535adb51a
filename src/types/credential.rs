//! Secrets made by the service: tokens and verification codes, from the system's random source.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest;

use crate::error::{Error, Result};

/// A secret text that is shown to its owner once. `Debug` prints nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// 256 random bits as 43 characters of URL-safe base64.
    ///
    /// # Errors
    /// `internal` when the system has no random source.
    pub fn random() -> Result<Self> {
        Ok(Self::from_bytes(&random_bytes::<32>()?))
    }

    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for its owner's answer or for the message that carries it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[secret]")
    }
}

/// Hashes a token for storage. With 256 random bits a plain SHA-256 cannot be reversed.
pub fn sha256(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
    bytes
}

/// The SHA-256 over several parts, each preceded by its length, so that no two lists of parts look alike.
pub fn sha256_of_parts(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

/// The bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        text.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(u32::from(digit), 16).unwrap_or_default()));
        text
    })
}

/// A code of `length` decimal digits, each equally likely.
///
/// # Errors
/// `internal` when the system has no random source.
pub fn random_digits(length: usize) -> Result<Secret> {
    random_text(length, b"0123456789").map(Secret)
}

/// A text of `length` characters of an alphabet of ASCII, each equally likely.
///
/// # Errors
/// `internal` when the system has no random source.
pub fn random_text(length: usize, alphabet: &[u8]) -> Result<String> {
    // Bytes above the largest multiple of the alphabet's length would favour its first characters.
    let bound = 256 - 256 % alphabet.len();
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let drawn = usize::from(random_bytes::<1>()?[0]);
        if drawn < bound {
            text.push(char::from(alphabet[drawn % alphabet.len()]));
        }
    }
    Ok(text)
}

/// Returns this many random bytes as lower-case hexadecimal digits.
///
/// # Errors
/// `internal` if the system has no random source.
pub fn random_hex<const BYTES: usize>() -> Result<String> {
    random_bytes::<BYTES>().map(|bytes| hex(&bytes))
}

/// Returns this many bytes from the system's random source.
///
/// # Errors
/// `internal` if the system has no random source.
pub fn random_bytes<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    fill_random(&mut bytes)?;
    Ok(bytes)
}

/// Fills the buffer from the system's random source.
///
/// # Errors
/// `internal` when the system has no random source.
pub fn fill_random(buffer: &mut [u8]) -> Result<()> {
    getrandom::fill(buffer).map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_carry_256_bits_and_hide_in_debug() {
        let token = Secret::random().unwrap();
        assert_eq!(token.reveal().len(), 43);
        assert_ne!(token, Secret::random().unwrap());
        assert_eq!(format!("{token:?}"), "[secret]");
    }

    #[test]
    fn codes_use_every_digit_about_equally() {
        let code = random_digits(20_000).unwrap();
        for digit in '0'..='9' {
            let count = code.reveal().matches(digit).count();
            assert!((1_700..2_300).contains(&count), "{digit} came {count} times in 20000");
        }
    }
}
