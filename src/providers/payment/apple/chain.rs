//! The certificate chain of a message: leaf, intermediate, and the configured root.
//!
//! The root inside a message is not looked at. Validity is checked at the time of signing, which is the rule without
//! revocation checks: a message stays valid after its certificates have expired.

use std::sync::Mutex;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use x509_parser::{
    der_parser::{asn1_rs::Oid, oid},
    prelude::{ParsedExtension, X509Certificate, X509Version},
};

use crate::{concurrency::lock::lock_unpoisoned, providers::x509::parse_certificate, types::sha256_of_parts};

/// Marks leaf certificates that sign the store's messages.
const LEAF_MARKER: Oid<'static> = oid!(1.2.840.113635.100.6.11.1);
/// Marks the intermediate authority of developer services.
const INTERMEDIATE_MARKER: Oid<'static> = oid!(1.2.840.113635.100.6.2.1);
const ECDSA_SHA256: Oid<'static> = oid!(1.2.840.10045.4.3.2);
const ECDSA_SHA384: Oid<'static> = oid!(1.2.840.10045.4.3.3);
const EC_PUBLIC_KEY: Oid<'static> = oid!(1.2.840.10045.2.1);
const P256: Oid<'static> = oid!(1.2.840.10045.3.1.7);

/// Two signatures over P-384 take about a millisecond, so verified chains are kept for this long, in milliseconds.
const CACHE_LIFETIME: i64 = 15 * 60_000;
const CACHE_SIZE: usize = 32;

/// Verifies chains to one root.
pub(super) struct ChainVerifier {
    root: Vec<u8>,
    cache: Mutex<Vec<CachedChain>>,
}

struct CachedChain {
    digest: [u8; 32],
    verified_at: i64,
    chain: VerifiedChain,
}

#[derive(Clone)]
struct VerifiedChain {
    /// The leaf's P-256 key as an uncompressed point.
    key: Vec<u8>,
    /// The time in which all three certificates are valid, in epoch milliseconds.
    valid_from: i64,
    valid_until: i64,
}

impl ChainVerifier {
    /// Creates a verifier for this root in DER form, if it is a certificate of an authority.
    pub(super) fn new(root: &[u8]) -> Option<Self> {
        let certificate = parse_certificate(root)?;
        is_authority(&certificate)?.then(|| Self { root: root.to_vec(), cache: Mutex::default() })
    }

    /// Returns the leaf's key if the chain was valid at `signed_at`. Both times are epoch milliseconds.
    pub(super) fn key_of(&self, chain: &[String], signed_at: i64, now: i64) -> Option<Vec<u8>> {
        let [leaf, intermediate, root] = chain else { return None };
        let digest = sha256_of_parts(&[leaf.as_bytes(), intermediate.as_bytes(), root.as_bytes()]);
        let chain = match self.cached(&digest, now) {
            Some(chain) => chain,
            None => self.remember(digest, now, self.verify(leaf, intermediate)?),
        };
        (chain.valid_from..=chain.valid_until).contains(&signed_at).then_some(chain.key)
    }

    fn cached(&self, digest: &[u8; 32], now: i64) -> Option<VerifiedChain> {
        let cache = lock_unpoisoned(&self.cache);
        let found = cache.iter().find(|cached| cached.digest == *digest)?;
        (0..CACHE_LIFETIME).contains(&(now - found.verified_at)).then(|| found.chain.clone())
    }

    fn remember(&self, digest: [u8; 32], now: i64, chain: VerifiedChain) -> VerifiedChain {
        let mut cache = lock_unpoisoned(&self.cache);
        cache.retain(|cached| cached.digest != digest);
        if cache.len() >= CACHE_SIZE {
            cache.remove(0);
        }
        cache.push(CachedChain { digest, verified_at: now, chain: chain.clone() });
        chain
    }

    /// Verifies everything but the time.
    fn verify(&self, leaf: &str, intermediate: &str) -> Option<VerifiedChain> {
        let (leaf, intermediate) = (STANDARD.decode(leaf).ok()?, STANDARD.decode(intermediate).ok()?);
        let (leaf, intermediate) = (parse_certificate(&leaf)?, parse_certificate(&intermediate)?);
        let root = parse_certificate(&self.root)?;
        let is_trusted = is_issued_by(&leaf, &intermediate)
            && is_issued_by(&intermediate, &root)
            && is_authority(&intermediate)?
            && may_sign_messages(&leaf)?
            && has_marker(&leaf, &LEAF_MARKER)
            && has_marker(&intermediate, &INTERMEDIATE_MARKER)
            && [&leaf, &intermediate].iter().all(|certificate| is_understood(certificate));
        let validity = [&leaf, &intermediate, &root].map(|certificate| certificate.validity());
        let milliseconds = |seconds: i64| seconds.saturating_mul(1000);
        is_trusted.then_some(VerifiedChain {
            key: p256_key(&leaf)?,
            valid_from: milliseconds(validity.iter().map(|validity| validity.not_before.timestamp()).max()?),
            valid_until: milliseconds(validity.iter().map(|validity| validity.not_after.timestamp()).min()?),
        })
    }
}

fn is_issued_by(certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> bool {
    let algorithm = &certificate.signature_algorithm.algorithm;
    certificate.version() == X509Version::V3
        && certificate.issuer().as_raw() == issuer.subject().as_raw()
        && [ECDSA_SHA256, ECDSA_SHA384].contains(algorithm)
        && certificate.tbs_certificate.signature.algorithm == *algorithm
        && certificate.verify_signature(Some(issuer.public_key())).is_ok()
}

/// Returns true if the basic constraints mark an authority; `None` if they are malformed.
fn is_marked_authority(certificate: &X509Certificate<'_>) -> Option<bool> {
    Some(certificate.basic_constraints().ok()?.is_some_and(|constraints| constraints.value.ca))
}

/// Returns true for a certificate that may issue others; `None` if its extensions are malformed.
fn is_authority(certificate: &X509Certificate<'_>) -> Option<bool> {
    let usage = certificate.key_usage().ok()?;
    Some(is_marked_authority(certificate)? && usage.is_none_or(|usage| usage.value.key_cert_sign()))
}

fn may_sign_messages(certificate: &X509Certificate<'_>) -> Option<bool> {
    let usage = certificate.key_usage().ok()?;
    Some(!is_marked_authority(certificate)? && usage.is_none_or(|usage| usage.value.digital_signature()))
}

fn has_marker(certificate: &X509Certificate<'_>, marker: &Oid<'_>) -> bool {
    certificate.extensions().iter().any(|extension| extension.oid == *marker)
}

/// Returns false if a critical extension has a meaning that is unknown here.
fn is_understood(certificate: &X509Certificate<'_>) -> bool {
    let is_known = |parsed: &ParsedExtension<'_>| {
        matches!(
            parsed,
            ParsedExtension::BasicConstraints(_) | ParsedExtension::KeyUsage(_) | ParsedExtension::ExtendedKeyUsage(_)
        )
    };
    certificate.extensions().iter().filter(|extension| extension.critical).all(|extension| {
        is_known(extension.parsed_extension()) || [LEAF_MARKER, INTERMEDIATE_MARKER].contains(&extension.oid)
    })
}

fn p256_key(certificate: &X509Certificate<'_>) -> Option<Vec<u8>> {
    let key = certificate.public_key();
    let curve = key.algorithm.parameters.as_ref()?.as_oid().ok()?;
    let point = key.subject_public_key.data.as_ref();
    let is_p256 = key.algorithm.algorithm == EC_PUBLIC_KEY && curve == P256 && point.len() == 65;
    is_p256.then(|| point.to_vec())
}
