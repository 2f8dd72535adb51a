//! Delivering a notification as a provider does: one POST of a form, answered with one word.

use std::time::Duration;

use crate::providers::{
    Failure,
    client::{Client, Limits, Post},
};

const PROVIDER: &str = "notification";
const TIME: Duration = Duration::from_secs(10);
/// A service answers seven characters; more than this is some other server's page.
const LONGEST_ANSWER_BYTES: usize = 4096;

/// Posts the form and returns the answer's text, whatever it says.
pub fn deliver(address: &str, form: &str) -> Result<String, Failure> {
    let limits = Limits { connect: TIME, first_byte: TIME, idle: TIME, total: TIME, reuse_connections: false };
    let post = Post {
        url: address,
        headers: &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
        body: form.as_bytes(),
        total: None,
        comes_whole: false,
    };
    let answer = Client::new(PROVIDER, limits).post(&post)?;
    let bytes = answer.read_all(LONGEST_ANSWER_BYTES)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
