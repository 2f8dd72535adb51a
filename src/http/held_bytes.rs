//! The memory that unread responses hold, and who is to read them.

use axum::body::Bytes;

use crate::{concurrency::byte_budget::ByteShare, types::UserId};

/// The receiver of a response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Receiver {
    User(UserId),
    Network(String),
}

/// The memory that a response's body holds until it is read. Without this extension it is the size of the body.
#[derive(Clone, Copy, Debug)]
pub struct HeldBytes(pub u64);

impl HeldBytes {
    /// The bytes exist once for all responses.
    pub const SHARED: Self = Self(0);
}

/// The content of a large response, with its share of the unread bytes.
#[derive(Debug)]
pub struct ChargedContent {
    bytes: Bytes,
    _share: ByteShare<Receiver>,
}

impl ChargedContent {
    pub fn new(bytes: Bytes, share: ByteShare<Receiver>) -> Self {
        Self { bytes, _share: share }
    }
}

impl AsRef<[u8]> for ChargedContent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
