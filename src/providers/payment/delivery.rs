//! Delivers a callback as a provider does: one POST of a form, with a one-word response.

use std::time::Duration;

use crate::providers::{
    Failure,
    client::{Client, Limits, Post},
};

const PROVIDER: &str = "callback";
const TIMEOUT: Duration = Duration::from_secs(10);
/// A service responds with seven characters; a longer response is another server's page.
const MAX_RESPONSE_BYTES: usize = 4096;

/// Posts the form and returns the text of the response, whatever it is.
pub fn deliver(address: &str, form: &str) -> Result<String, Failure> {
    let limits =
        Limits { connect: TIMEOUT, first_byte: TIMEOUT, idle: TIMEOUT, total: TIMEOUT, reuse_connections: false };
    let post = Post {
        url: address,
        headers: &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
        body: form.as_bytes(),
        total: None,
        is_unstreamed: false,
    };
    let answer = Client::new(PROVIDER, "payment.notify_url", limits).post(&post)?;
    let bytes = answer.read_all(MAX_RESPONSE_BYTES)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
