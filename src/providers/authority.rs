//! The certificate authority: the requests of an ACME client, over the one HTTP client.

use std::time::Duration;

use ureq::http::{Request, Response};

use super::{
    Failure,
    client::{Client, Limits, Trust},
};

/// A chain of certificates is a few kilobytes.
const LONGEST_ANSWER: usize = 256 * 1024;

pub struct CertificateAuthority(Client);

impl CertificateAuthority {
    /// `root` names a PEM file with the only root that the authority's own address is trusted by; else the web's.
    ///
    /// # Errors
    /// What is wrong with the file, in words.
    pub fn new(root: Option<&str>) -> Result<Self, String> {
        let trust = match root {
            None => Trust::Web,
            Some(path) => {
                let pem = std::fs::read(path).map_err(|error| format!("acme.root_certificate: {path}: {error}"))?;
                Trust::only(&pem).map_err(|fault| format!("acme.root_certificate: {path}: {fault}"))?
            }
        };
        let wait = Duration::from_secs(30);
        let limits = Limits { connect: wait, first_byte: wait, idle: wait, total: wait, reuse_connections: true };
        Ok(Self(Client::trusting("acme", limits, trust)))
    }

    /// Asks. Every status is an answer.
    pub fn ask(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, Failure> {
        self.0.exchange(request, LONGEST_ANSWER)
    }
}
