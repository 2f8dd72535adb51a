//! A JSON document of any size, made as a file and sent in pieces.

use std::io::{Read, Seek};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, StatusCode, header},
};
use serde_json::json;
use tempfile::SpooledTempFile;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::reply::{Answer, AnswerDocument, JSON};
use crate::error::Error;

/// Bytes sent at once.
const PIECE: usize = 64 * 1024;
/// Pieces that wait for a slow reader before the sender waits too.
const WAITING: usize = 4;

/// A document that has been written and is to be sent.
pub struct Download(SpooledTempFile);

impl Download {
    /// Takes what was written, from its beginning.
    ///
    /// # Errors
    /// `internal` when the file fails.
    pub fn of(mut file: SpooledTempFile) -> Result<Self, Error> {
        file.rewind().map_err(Error::internal)?;
        Ok(Self(file))
    }
}

impl Answer for Download {
    fn into_response(self) -> Result<Response<Body>, Error> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut file = self.0;
        // Ends when all is sent, when the file fails, or when the client goes away.
        tokio::task::spawn_blocking(move || {
            while let Some(piece) = next_piece(&mut file) {
                let is_last = piece.is_err();
                if sender.blocking_send(piece).is_err() || is_last {
                    break;
                }
            }
        });
        let mut response = Response::new(Body::from_stream(ReceiverStream::new(receiver)));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, JSON);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"account.json\""));
        Ok(response)
    }

    fn describe() -> AnswerDocument {
        let schema = json!({
            "type": "object",
            "description": "A member for each kind of thing that is held.",
            "additionalProperties": true,
            "example": { "account": { "id": "10001", "nickname": "青山" }, "history": [], "points": [] },
        });
        AnswerDocument {
            statuses: vec![(StatusCode::OK, "The document.")],
            contents: vec![("application/json", schema)],
            schemas: Vec::new(),
        }
    }
}

/// The next piece of the file; nothing at its end.
fn next_piece(file: &mut SpooledTempFile) -> Option<std::io::Result<Bytes>> {
    let mut piece = vec![0; PIECE];
    match file.read(&mut piece) {
        Ok(0) => None,
        Ok(read) => {
            piece.truncate(read);
            Some(Ok(Bytes::from(piece)))
        }
        Err(error) => Some(Err(error)),
    }
}
