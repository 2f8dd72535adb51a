//! The certificate authority: sends the requests of the ACME client through the HTTP client of this service.

use std::time::Duration;

use ureq::http::{Request, Response};

use super::{
    Failure,
    client::{Client, Limits, Trust},
};

/// A certificate chain has a few kilobytes.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

pub struct CertificateAuthority(Client);

impl CertificateAuthority {
    /// Trusts only the roots in the PEM file `root` for connections to the authority, or the usual web roots if it is
    /// `None`.
    ///
    /// # Errors
    /// The fault of the file, as a message.
    pub fn new(root: Option<&str>) -> Result<Self, String> {
        let trust = match root {
            None => Trust::Web,
            Some(path) => {
                let pem = std::fs::read(path).map_err(|error| format!("acme.root_certificate: {path}: {error}"))?;
                Trust::only(&pem).map_err(|fault| format!("acme.root_certificate: {path}: {fault}"))?
            }
        };
        let wait = Duration::from_secs(30);
        let limits = Limits::for_whole_calls(wait, wait, true);
        Ok(Self(Client::trusting("acme", "acme.directory", limits, trust)))
    }

    /// Sends a request. Every HTTP status counts as a response.
    pub fn ask(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, Failure> {
        self.0.exchange(request, MAX_RESPONSE_BYTES)
    }
}
