//! Detects the form of a response: one document, or a stream.
//!
//! Some servers send a whole response to a stream request or the reverse, and declare the wrong type for either. So the
//! first bytes decide, and the type only if they are ambiguous.

use super::chat::TOO_LARGE;
use super::{Flow, ModelRequest, OPENAI, OutputChunk};
use crate::providers::client::{BodyReader, HttpResponse};
use crate::providers::{Failure, FailureKind};

/// The prefixes of stream lines.
const FIELDS: [&str; 5] = ["data:", "event:", "id:", "retry:", ":"];
/// The UTF-8 byte order mark that some servers send first.
const MARK: &[u8] = "\u{feff}".as_bytes();
const BUFFER_BYTES: usize = 2 * 1024;

/// A response whose start was read.
pub(super) struct StartedResponse {
    pub(super) is_stream: bool,
    pub(super) first: Vec<u8>,
    pub(super) rest: BodyReader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Whole,
    Stream,
    /// More bytes are needed.
    Open,
    Neither,
}

/// Reads until the form is known. Blank lines may come first, to keep the connection alive.
pub(super) fn detect(
    answer: HttpResponse,
    request: &ModelRequest,
    max_response_bytes: usize,
    sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
) -> Result<StartedResponse, Failure> {
    let is_stream_by_type = is_stream_by_type(&answer, request);
    let mut rest = answer.into_reader();
    let mut first = Vec::new();
    let mut received = 0;
    let mut buffer = [0_u8; BUFFER_BYTES];
    loop {
        let count = rest.read(&mut buffer)?;
        received += count;
        first.extend_from_slice(&buffer[..count]);
        let is_stream = match Form::of(&first) {
            Form::Open if count > 0 && received > max_response_bytes => {
                return Err(Failure::new(FailureKind::InvalidResponse, OPENAI, TOO_LARGE));
            }
            Form::Open if count > 0 => {
                // Blank lines are only keep-alives, and there may be many.
                let blank = first.len() - first.strip_prefix(MARK).unwrap_or(&first).trim_ascii_start().len();
                first.drain(..blank);
                if sink(OutputChunk::KEEP_ALIVE) == Flow::Stop {
                    return Err(Failure::new(FailureKind::Cancelled, OPENAI, "cancelled"));
                }
                continue;
            }
            Form::Whole => false,
            Form::Stream => true,
            Form::Open | Form::Neither => is_stream_by_type,
        };
        return Ok(StartedResponse { is_stream, first, rest });
    }
}

impl Form {
    fn of(first: &[u8]) -> Self {
        if MARK.starts_with(first) {
            return Self::Open;
        }
        let first = first.strip_prefix(MARK).unwrap_or(first).trim_ascii_start();
        if first.starts_with(b"{") {
            Self::Whole
        } else if FIELDS.iter().any(|field| first.starts_with(field.as_bytes())) {
            Self::Stream
        } else if FIELDS.iter().any(|field| field.as_bytes().starts_with(first)) {
            Self::Open
        } else {
            Self::Neither
        }
    }
}

fn is_stream_by_type(answer: &HttpResponse, request: &ModelRequest) -> bool {
    let content_type = answer.header("content-type").unwrap_or_default().to_ascii_lowercase();
    content_type.contains("event-stream") || (request.stream && !content_type.contains("json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_the_form_from_the_first_bytes() {
        let cases = [
            ("", Form::Open),
            ("\r\n \n", Form::Open),
            ("\n{", Form::Whole),
            ("da", Form::Open),
            ("data: {", Form::Stream),
            ("\u{feff}event: x", Form::Stream),
            (": alive", Form::Stream),
            ("\u{feff}", Form::Open),
            ("\u{feff}\n{", Form::Whole),
            ("<html>", Form::Neither),
            ("dada", Form::Neither),
        ];
        for (text, form) in cases {
            assert_eq!(Form::of(text.as_bytes()), form, "{text:?}");
        }
    }
}
