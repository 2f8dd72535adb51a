//! The headers of answers as the API document describes them. They are set where the answers are made; a test holds
//! what is sent against this.

use serde_json::{Value, json};

/// A header.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub name: &'static str,
    meaning: &'static str,
    example: &'static str,
    is_always_there: bool,
}

impl Header {
    pub const REQUEST_ID: Self =
        Self::new("X-Request-Id", "The request's id: the caller's own, if it is sane.", "9f2c1b7d0000000000000001");
    pub const RETRY_AFTER: Self = Self::new("Retry-After", "Seconds after which to try again.", "30");
    pub const WWW_AUTHENTICATE: Self = Self::new("WWW-Authenticate", "How to say who is calling.", "Bearer");
    pub const CACHE_CONTROL: Self = Self::new("Cache-Control", "Nobody between may keep the answer.", "no-store");
    pub const CONTENT_DISPOSITION: Self =
        Self::new("Content-Disposition", "Under which name to keep it.", "attachment; filename=\"account.json\"");
    pub const CONTENT_SECURITY_POLICY: Self =
        Self::new("Content-Security-Policy", "Nothing is loaded from elsewhere.", "default-src 'none'");
    pub const CONTENT_TYPE_OPTIONS: Self =
        Self::new("X-Content-Type-Options", "The content is what its type says.", "nosniff");
    pub const LOCATION: Self = Self::new("Location", "Where it is.", "/docs/");
    pub const REPLAYED: Self = Self {
        is_always_there: false,
        ..Self::new(
            "Idempotency-Replayed",
            "There if this is the answer to an earlier request with the same `Idempotency-Key`.",
            "true",
        )
    };

    pub const ALL: [Self; 9] = [
        Self::REQUEST_ID,
        Self::RETRY_AFTER,
        Self::WWW_AUTHENTICATE,
        Self::CACHE_CONTROL,
        Self::CONTENT_DISPOSITION,
        Self::CONTENT_SECURITY_POLICY,
        Self::CONTENT_TYPE_OPTIONS,
        Self::LOCATION,
        Self::REPLAYED,
    ];

    const fn new(name: &'static str, meaning: &'static str, example: &'static str) -> Self {
        Self { name, meaning, example, is_always_there: true }
    }

    /// As a component of the document.
    pub fn component(self) -> Value {
        let schema = json!({ "type": "string", "example": self.example });
        json!({ "description": self.meaning, "required": self.is_always_there, "schema": schema })
    }

    /// A reference to that.
    pub fn reference(self) -> Value {
        json!({ "$ref": format!("#/components/headers/{}", self.name) })
    }
}
