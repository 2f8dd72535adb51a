//! A JSON document of any size, written to a temporary file and sent in chunks.

use std::io::{Read, Seek};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, StatusCode, header},
};
use futures_util::stream;
use serde_json::json;
use tempfile::SpooledTempFile;

use super::{
    held_bytes::BodyBytes,
    openapi::headers::Header,
    reply::{JSON, Reply, ReplyDescription},
};
use crate::{concurrency::semaphore::KeyedPermit, error::Error, types::UserId};

/// Bytes read and sent at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Bytes of a document that are buffered in memory; a larger one goes to an unnamed temporary file.
pub const HELD_IN_MEMORY: usize = 1 << 20;

/// A complete document to send.
pub struct Download {
    file: SpooledTempFile,
    /// The user's permit, held until the document is sent or the client disconnects.
    _own: KeyedPermit<UserId>,
}

impl Download {
    /// Rewinds a written file.
    ///
    /// # Errors
    /// `internal` if the file fails.
    pub fn of(mut file: SpooledTempFile, own: KeyedPermit<UserId>) -> Result<Self, Error> {
        file.rewind().map_err(Error::internal)?;
        Ok(Self { file, _own: own })
    }

    /// Returns the next chunk and the rest, or `None` at the end. A slow client holds the file but no thread.
    async fn next_piece(self) -> std::io::Result<Option<(Bytes, Self)>> {
        let read = tokio::task::spawn_blocking(move || self.read_piece());
        read.await.map_err(std::io::Error::other)?
    }

    fn read_piece(mut self) -> std::io::Result<Option<(Bytes, Self)>> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let read = self.file.read(&mut chunk)?;
        chunk.truncate(read);
        Ok((read > 0).then(|| (Bytes::from(chunk), self)))
    }
}

impl Reply for Download {
    fn into_response(self) -> Result<Response<Body>, Error> {
        let mut response = Response::new(Body::from_stream(stream::try_unfold(self, Self::next_piece)));
        response.extensions_mut().insert(BodyBytes(HELD_IN_MEMORY + CHUNK_BYTES));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, JSON);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"account.json\""));
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        let schema = json!({
            "type": "object",
            "description": "One member per kind of data.",
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
