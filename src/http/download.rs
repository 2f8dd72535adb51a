//! A JSON document of any size, made as a file and sent in pieces.

use std::io::{Read, Seek};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, StatusCode, header},
};
use futures_util::stream;
use serde_json::json;
use tempfile::SpooledTempFile;

use super::openapi::headers::Header;
use super::reply::{JSON, Reply, ReplyDescription};
use crate::{concurrency::semaphore::KeyedPermit, error::Error, types::UserId};

/// Bytes read and sent at once.
const PIECE: usize = 256 * 1024;

/// A document that has been written and is to be sent.
pub struct Download {
    file: SpooledTempFile,
    /// Its user's place: taken until the document has been sent, or its client is gone.
    _own: KeyedPermit<UserId>,
}

impl Download {
    /// Takes what was written, from its beginning.
    ///
    /// # Errors
    /// `internal` when the file fails.
    pub fn of(mut file: SpooledTempFile, own: KeyedPermit<UserId>) -> Result<Self, Error> {
        file.rewind().map_err(Error::internal)?;
        Ok(Self { file, _own: own })
    }

    /// The next piece, and what is left; nothing at the end. A slow client keeps the file, and no thread.
    async fn next_piece(self) -> std::io::Result<Option<(Bytes, Self)>> {
        let read = tokio::task::spawn_blocking(move || self.read_piece());
        read.await.map_err(std::io::Error::other)?
    }

    fn read_piece(mut self) -> std::io::Result<Option<(Bytes, Self)>> {
        let mut piece = vec![0; PIECE];
        let read = self.file.read(&mut piece)?;
        piece.truncate(read);
        Ok((read > 0).then(|| (Bytes::from(piece), self)))
    }
}

impl Reply for Download {
    fn into_response(self) -> Result<Response<Body>, Error> {
        let mut response = Response::new(Body::from_stream(stream::try_unfold(self, Self::next_piece)));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, JSON);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"account.json\""));
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        let schema = json!({
            "type": "object",
            "description": "A member for each kind of thing that is held.",
            "additionalProperties": true,
            "example": { "account": { "id": "10001", "nickname": "青山" }, "history": [], "points": [] },
        });
        ReplyDescription {
            statuses: vec![(StatusCode::OK, "The document.")],
            contents: vec![("application/json", schema)],
            schemas: Vec::new(),
            headers: &[Header::CACHE_CONTROL, Header::CONTENT_DISPOSITION],
        }
    }
}
