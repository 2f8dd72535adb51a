//! Email addresses in one canonical form.
//!
//! One mailbox is one account: trimmed, full-width characters folded, lower-cased, the domain as in DNS. Dots and plus
//! signs are kept, because their meaning depends on the mail server. A local part is ASCII and unquoted: other forms
//! are valid, but few mail servers accept them.

use std::str::FromStr;

use email_address::Options;
use serde::Serialize;
use smol_str::SmolStr;
use unicode_normalization::UnicodeNormalization;

use crate::error::{Fault, FieldCode};

/// The most characters that an address may have, RFC 5321.
const LONGEST: usize = 254;

/// An email address in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct EmailAddress(SmolStr);

impl EmailAddress {
    /// Reads one address, in any spelling.
    ///
    /// # Errors
    /// `invalid_format` or `too_long`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let text = text.trim();
        if text.chars().nth(LONGEST).is_some() {
            return Err(too_long());
        }
        let plain: String = text.nfkc().collect();
        let (local_part, domain) = plain.rsplit_once('@').ok_or_else(invalid)?;
        if !local_part.is_ascii() || local_part.contains('"') {
            return Err(invalid());
        }
        let domain = idna::domain_to_ascii_strict(domain).map_err(|_| invalid())?;
        if !is_registrable(&domain) {
            return Err(invalid());
        }
        let canonical = format!("{}@{domain}", local_part.to_ascii_lowercase());
        if canonical.len() > LONGEST {
            return Err(too_long());
        }
        let grammar = Options::default().with_required_tld().without_display_text().without_domain_literal();
        let is_address = email_address::EmailAddress::parse_with_options(&canonical, grammar).is_ok();
        if is_address { Ok(Self(canonical.into())) } else { Err(invalid()) }
    }

    /// Takes an address that the service stored itself.
    pub fn from_canonical(text: &str) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the address of the mailbox as far as it can be told: without a `+tag`, and without the dots that Gmail
    /// ignores. For rewards only: an account keeps the address that its user chose.
    pub fn mailbox(&self) -> Self {
        let (local_part, domain) = self.0.rsplit_once('@').unwrap_or((&self.0, ""));
        let name = local_part.split_once('+').map_or(local_part, |(name, _)| name);
        if name.is_empty() {
            return self.clone();
        }
        if matches!(domain, "gmail.com" | "googlemail.com") {
            return Self(format!("{}@gmail.com", name.replace('.', "")).into());
        }
        Self(format!("{name}@{domain}").into())
    }

    /// Returns the part after the `@`.
    pub fn domain(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(_, domain)| domain)
    }
}

impl FromStr for EmailAddress {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        Self::parse(text)
    }
}

impl std::fmt::Display for EmailAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Returns true if the domain can exist: top-level domains are letters, or encoded with `xn--`. Mail servers take the
/// others for IP addresses and connect to them, inside the operator's network too.
fn is_registrable(domain: &str) -> bool {
    let (_, top) = domain.rsplit_once('.').unwrap_or_default();
    let is_letters = top.len() >= 2 && top.bytes().all(|byte| byte.is_ascii_lowercase());
    (is_letters || top.starts_with("xn--")) && !matches!(top, "invalid" | "localhost")
}

fn invalid() -> Fault {
    Fault::new(FieldCode::InvalidFormat, ("must be an email address", "须为邮箱地址"))
}

fn too_long() -> Fault {
    Fault::new(
        FieldCode::TooLong,
        (format!("must be at most {LONGEST} characters long"), format!("最多 {LONGEST} 个字")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalises_all_spellings() {
        for spelling in [
            "li.ming+app@example.com",
            "  Li.Ming+App@Example.COM\n",
            "ｌｉ．ｍｉｎｇ＋ａｐｐ＠ｅｘａｍｐｌｅ．ｃｏｍ",
            "li.ming+app@example。com",
        ] {
            assert_eq!(EmailAddress::parse(spelling).unwrap().as_str(), "li.ming+app@example.com", "{spelling}");
        }
        assert_eq!(EmailAddress::parse("a@例子.中国").unwrap().as_str(), "a@xn--fsqu00a.xn--fiqs8s");
        assert_eq!(EmailAddress::parse("a@XN--FSQU00A.xn--fiqs8s").unwrap().domain(), "xn--fsqu00a.xn--fiqs8s");
    }

    #[test]
    fn aliases_share_a_mailbox() {
        let mailbox = |text: &str| EmailAddress::parse(text).unwrap().mailbox().as_str().to_owned();
        for alias in ["a.b@example.com", "a.b+1@example.com", "A.B+1+2@example.com"] {
            assert_eq!(mailbox(alias), "a.b@example.com", "{alias}");
        }
        for alias in ["ab@gmail.com", "a.b+x@gmail.com", "a.b@googlemail.com"] {
            assert_eq!(mailbox(alias), "ab@gmail.com", "{alias}");
        }
        assert_eq!(mailbox("+a@example.com"), "+a@example.com");
    }

    #[test]
    fn keeps_dots_and_tags() {
        assert_ne!(EmailAddress::parse("a.b@example.com"), EmailAddress::parse("ab@example.com"));
        assert_ne!(EmailAddress::parse("a+b@example.com"), EmailAddress::parse("a@example.com"));
    }

    #[test]
    fn rejects_anything_but_one_plain_address() {
        for text in [
            "",
            "a",
            "@",
            "a@",
            "@example.com",
            "a@example",
            "a@b@example.com",
            "a b@example.com",
            "a@exam ple.com",
            ".a@example.com",
            "a.@example.com",
            "a..b@example.com",
            "a@example..com",
            "a@-example.com",
            "a@[127.0.0.1]",
            "a@127.0.0.1",
            "a@example.123",
            "a@example.0x7f",
            "a@example.c",
            "a@example.com.",
            "a@host.invalid",
            "a@app.localhost",
            "\"a\"@example.com",
            "\"a@x\"@example.com",
            "A <a@example.com>",
            "a@example.com,b@example.com",
            "a@example.com;b@example.com",
            "a@example.com\nbcc: b@example.com",
            "a@example.com\0",
            "a\u{200b}@example.com",
            "мария@example.com",
            "a(comment)@example.com",
            "<a@example.com>",
        ] {
            assert_eq!(
                EmailAddress::parse(text).map_err(|fault| fault.code),
                Err(FieldCode::InvalidFormat),
                "{text:?}"
            );
        }
        let long = format!("a@{}.com", "x".repeat(300));
        assert!(EmailAddress::parse(&long).is_err());
        let long_local_part = format!("{}@example.com", "x".repeat(65));
        assert!(EmailAddress::parse(&long_local_part).is_err());
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn canonical_addresses_parse_to_themselves(text in "[a-zA-Z.+_-]{0,12}@[a-zA-Z0-9.-]{0,20}|.*@.*|.*") {
                if let Ok(address) = EmailAddress::parse(&text) {
                    prop_assert!(address.as_str().is_ascii() && address.as_str().len() <= LONGEST);
                    prop_assert!(!address.as_str().bytes().any(|byte| byte.is_ascii_uppercase() || byte.is_ascii_whitespace()));
                    prop_assert_eq!(EmailAddress::parse(address.as_str()), Ok(address));
                }
            }

            #[test]
            fn ignores_case_and_spaces(local in "[a-z][a-z0-9+_.-]{0,8}[a-z]", domain in "[a-z]{1,12}\\.(com|org|cn)", blank in "[ \\t\\n]{0,3}") {
                prop_assume!(!local.contains(".."));
                let address = format!("{local}@{domain}");
                let spelling = format!("{blank}{}{blank}", address.to_uppercase());
                let read = EmailAddress::parse(&spelling).unwrap();
                prop_assert_eq!(read.as_str(), address);
            }
        }
    }
}
