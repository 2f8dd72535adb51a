//! Response headers in the API document. Responses set them elsewhere; a test compares both.

use serde_json::{Value, json};

/// A response header.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub name: &'static str,
    description: &'static str,
    example: &'static str,
    is_required: bool,
}

impl Header {
    pub const REQUEST_ID: Self = Self::new(
        "X-Request-Id",
        "The request's id. A valid id sent by the client is kept.",
        "9f2c1b7d0000000000000001",
    );
    pub const RETRY_AFTER: Self = Self::new("Retry-After", "Seconds to wait before a retry.", "30");
    pub const WWW_AUTHENTICATE: Self = Self::new(
        "WWW-Authenticate",
        "How to send a token.",
        "Bearer realm=\"yarrow\", error_description=\"Send the token as Authorization: Bearer <token>.\"",
    );
    pub const CACHE_CONTROL: Self =
        Self::new("Cache-Control", "`no-store`, or for public data how long it may be cached.", "no-store");
    pub const ETAG: Self = Self::new(
        "ETag",
        "The version of the response, for `If-None-Match`.",
        "W/\"5d41402abc4b2a76b9719d911017c592\"",
    );
    pub const RATE_LIMIT: Self = Self {
        is_required: false,
        ..Self::new(
            "RateLimit",
            "The limit that the caller is about to reach: requests left (`r`) and seconds until more are allowed (`t`).",
            "\"interpretations\";r=599;t=3600",
        )
    };
    pub const RATE_LIMIT_POLICY: Self = Self {
        is_required: false,
        ..Self::new(
            "RateLimit-Policy",
            "The limits of the endpoint: requests (`q`) in seconds (`w`).",
            "\"interpretations\";q=600;w=3600",
        )
    };
    pub const SUNSET: Self = Self {
        is_required: false,
        ..Self::new(
            "Sunset",
            "The time from which the endpoint may be gone, if the operator has set one.",
            "Fri, 31 Dec 2027 00:00:00 GMT",
        )
    };
    pub const LINK: Self = Self {
        is_required: false,
        ..Self::new(
            "Link",
            "The endpoint that replaces this one, with `Sunset`.",
            "</api/v1/account>; rel=\"successor-version\"",
        )
    };
    pub const CONTENT_DISPOSITION: Self =
        Self::new("Content-Disposition", "The suggested file name.", "attachment; filename=\"account.json\"");
    pub const CONTENT_SECURITY_POLICY: Self =
        Self::new("Content-Security-Policy", "The page loads nothing from other servers.", "default-src 'none'");
    pub const CONTENT_TYPE_OPTIONS: Self =
        Self::new("X-Content-Type-Options", "The content type must not be guessed.", "nosniff");
    pub const LOCATION: Self = Self::new("Location", "The target of the redirect.", "/docs/");
    pub const REPLAYED: Self = Self {
        is_required: false,
        ..Self::new(
            "Idempotency-Replayed",
            "Set if this is the stored response to an earlier request with the same `Idempotency-Key`.",
            "true",
        )
    };

    pub const ALL: [Self; 14] = [
        Self::REQUEST_ID,
        Self::RETRY_AFTER,
        Self::WWW_AUTHENTICATE,
        Self::CACHE_CONTROL,
        Self::ETAG,
        Self::SUNSET,
        Self::LINK,
        Self::RATE_LIMIT,
        Self::RATE_LIMIT_POLICY,
        Self::CONTENT_DISPOSITION,
        Self::CONTENT_SECURITY_POLICY,
        Self::CONTENT_TYPE_OPTIONS,
        Self::LOCATION,
        Self::REPLAYED,
    ];

    const fn new(name: &'static str, description: &'static str, example: &'static str) -> Self {
        Self { name, description, example, is_required: true }
    }

    /// Returns the component of the document.
    pub fn component(self) -> Value {
        let schema = json!({ "type": "string", "example": self.example });
        json!({ "description": self.description, "required": self.is_required, "schema": schema })
    }

    /// Returns a reference to the component.
    pub fn reference(self) -> Value {
        json!({ "$ref": format!("#/components/headers/{}", self.name) })
    }
}
