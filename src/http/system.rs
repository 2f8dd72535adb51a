//! The service's own endpoints: liveness, readiness, and the API document.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use serde::Serialize;
use serde_json::json;
use tokio::sync::OnceCell;
use utoipa::ToSchema;

use super::{
    endpoint::{Endpoint, Handler},
    openapi::{document, headers::Header},
    params::{DocumentAudience, FileName, Nothing, parameters},
    precompressed::{Precompressed, StaticFile},
    public_content::{CONFIRMED, PUBLIC_HEADERS, PublicContent, PublicResponse},
    reply::{JSON, Json, Reply, ReplyDescription},
    request_context::RequestContext,
};
use crate::{
    app::App,
    concurrency::lock::lock_unpoisoned,
    domain::{
        money::ledger,
        operations::{
            backups,
            health::{self, HealthSnapshot},
            integrity,
        },
    },
    error::{Code, Error, Result},
    types::Timestamp,
};

/// Allows only the page's own content. Swagger UI sets inline styles.
const DOCS_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'",
);

parameters! {
    DocsFileParams(fields) {
        file: FileName = fields.path("file", "Name of a file of the documentation.");
    }
}

/// The state of the process.
#[derive(Serialize, ToSchema)]
#[schema(as = Health)]
pub struct HealthResponse {
    #[schema(example = "ok")]
    status: &'static str,
}

pub async fn health(_: RequestContext, _: Nothing) -> Result<Json<HealthResponse>> {
    Ok(Json(HealthResponse { status: "ok" }))
}

/// The state of the service.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    #[schema(example = "ready")]
    status: &'static str,
    /// Queued writes.
    #[schema(example = 0)]
    writes_waiting: u64,
    #[schema(example = 4096)]
    writes_waiting_at_most: usize,
    ledger: health::LedgerState,
    /// Time of the last verification of the whole ledger.
    ledger_verified_at: Option<Timestamp>,
    /// Accounts suspended because their balance differs from their entries.
    #[schema(example = 0)]
    accounts_suspended: i64,
    /// `sound`, `damaged`, or `unchecked` until the first complete check.
    #[schema(example = "sound")]
    database: &'static str,
    /// Time of the last complete check.
    database_checked_at: Option<Timestamp>,
    backups: health::BackupState,
    /// Time of the last backup.
    backup_at: Option<Timestamp>,
    /// `ok`, or `low` below the free space that raises an alert.
    #[schema(example = "ok")]
    disk: &'static str,
    /// Providers that serve nobody: several calls in a row failed, or the provider rejects our key or account.
    #[schema(example = json!([]))]
    providers_down: Vec<&'static str>,
}

pub async fn readiness(context: RequestContext, _: Nothing) -> Result<Json<Readiness>> {
    let snapshot = context.blocking(|app| HealthSnapshot::collect(&app.health)).await?;
    // Proves that the writer thread responds and can lock the database. It writes nothing, because a full disk must not
    // stop reads.
    context.committed(context.app.core.store.probe_writer()).await?;
    let load = context.app.core.store.writer_load();
    let outages = context.app.health.outages(&snapshot).into_iter();
    Ok(Json(Readiness {
        status: "ready",
        writes_waiting: load.queued,
        writes_waiting_at_most: load.capacity,
        ledger: snapshot.ledger_state(),
        ledger_verified_at: snapshot.ledger.map(ledger::Verification::at),
        accounts_suspended: snapshot.accounts_suspended,
        database: snapshot.integrity.name(),
        database_checked_at: snapshot.integrity.last.as_ref().map(integrity::IntegrityCheck::at),
        backups: snapshot.backup_state(&context.app.core.config),
        backup_at: snapshot.backups.last.as_ref().map(backups::LastBackup::at),
        disk: if snapshot.is_disk_low(&context.app.core.config) { "low" } else { "ok" },
        providers_down: outages.filter_map(|(name, outage)| outage.map(|_| name)).collect(),
    }))
}

/// Content types of the documentation files.
const FILE_TYPES: [&str; 4] = ["text/html", "text/css", "text/javascript", "image/svg+xml"];

parameters! {
    ApiDocumentParams(fields) {
        audience: Option<DocumentAudience> = fields.optional("for", "`app` leaves out what apps do not call. By default the document has everything.");
    }
}

/// The API document.
pub struct ApiDocument(PublicResponse);

impl Reply for ApiDocument {
    fn into_response(self) -> Result<Response<Body>, Error> {
        Ok(self.0.into_response(JSON))
    }

    fn describe() -> ReplyDescription {
        let schema = json!({
            "type": "object",
            "description": "An OpenAPI document.",
            "additionalProperties": true,
            "example": { "openapi": "3.1.0" },
        });
        ReplyDescription {
            statuses: vec![(StatusCode::OK, "The document."), CONFIRMED],
            contents: vec![("application/json", schema)],
            schemas: Vec::new(),
            headers: PUBLIC_HEADERS,
        }
    }
}

/// A file of the documentation.
pub struct FileAnswer {
    content: PublicResponse,
    content_type: &'static str,
}

impl Reply for FileAnswer {
    fn into_response(self) -> Result<Response<Body>, Error> {
        let mut response = self.content.into_response(HeaderValue::from_static(self.content_type));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, DOCS_POLICY);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription {
            statuses: vec![(StatusCode::OK, "The file."), CONFIRMED],
            contents: FILE_TYPES.map(|content_type| (content_type, json!({ "type": "string" }))).to_vec(),
            schemas: Vec::new(),
            headers: &[
                Header::CACHE_CONTROL,
                Header::ETAG,
                Header::CONTENT_SECURITY_POLICY,
                Header::CONTENT_TYPE_OPTIONS,
            ],
        }
    }
}

/// A permanent redirect.
pub struct PermanentRedirect(&'static str);

impl Reply for PermanentRedirect {
    fn into_response(self) -> Result<Response<Body>, Error> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
        response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(self.0));
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription {
            statuses: vec![(StatusCode::PERMANENT_REDIRECT, "See `Location`.")],
            contents: Vec::new(),
            schemas: Vec::new(),
            headers: &[Header::LOCATION],
        }
    }
}

/// Returns the handler of the API document. Each is built on its first request, because that takes long.
pub fn api_document(endpoints: fn() -> Vec<Endpoint>) -> impl Handler<ApiDocumentParams, ApiDocument> {
    let caches = Arc::new([const { OnceCell::<PublicContent>::const_new() }; 2]);
    move |context: RequestContext, params: ApiDocumentParams| {
        let caches = Arc::clone(&caches);
        async move {
            let audience = params.audience.unwrap_or(DocumentAudience::All);
            let build = move |app: &App| {
                let document = document::document(&app.core.config, &document::select(endpoints(), audience));
                PublicContent::of(Precompressed::new(document)?)
            };
            let cache = match audience {
                DocumentAudience::All => &caches[0],
                DocumentAudience::App => &caches[1],
            };
            let document = cache.get_or_try_init(|| context.blocking(build)).await?;
            Ok(ApiDocument(document.choose_revalidated(&context.headers)))
        }
    }
}

pub async fn docs_entry(_: RequestContext, _: Nothing) -> Result<PermanentRedirect> {
    Ok(PermanentRedirect("/docs/"))
}

const DOCS_FILES: [StaticFile; 5] = [
    StaticFile {
        name: "index.html",
        content_type: "text/html; charset=utf-8",
        bytes: include_bytes!("../../assets/api-docs/index.html"),
    },
    StaticFile {
        name: "initializer.js",
        content_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../assets/api-docs/initializer.js"),
    },
    StaticFile {
        name: "swagger-ui-bundle.js",
        content_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../assets/api-docs/swagger-ui-bundle.js.gz"),
    },
    StaticFile {
        name: "swagger-ui.css",
        content_type: "text/css; charset=utf-8",
        bytes: include_bytes!("../../assets/api-docs/swagger-ui.css.gz"),
    },
    StaticFile {
        name: "icon.svg",
        content_type: "image/svg+xml",
        bytes: include_bytes!("../../assets/console/icon.svg"),
    },
];

/// The files of the documentation. Each is unpacked once and shared by all responses.
#[derive(Clone, Default)]
pub struct Documentation(Arc<Mutex<HashMap<&'static str, CachedFile>>>);

#[derive(Clone)]
struct CachedFile {
    content: PublicContent,
    content_type: &'static str,
}

impl Documentation {
    pub fn page(&self) -> impl Handler<Nothing, FileAnswer> + use<> {
        let documentation = self.clone();
        move |context: RequestContext, _: Nothing| {
            let page = documentation.file("index.html");
            async move { Ok(page?.choose(&context.headers)) }
        }
    }

    pub fn files(&self) -> impl Handler<DocsFileParams, FileAnswer> + use<> {
        let documentation = self.clone();
        move |context: RequestContext, DocsFileParams { file }: DocsFileParams| {
            let file = documentation.file(&file.0);
            async move { Ok(file?.choose(&context.headers)) }
        }
    }

    fn file(&self, name: &str) -> Result<CachedFile> {
        let file = DOCS_FILES.iter().find(|file| file.name == name).ok_or(Code::NotFound)?;
        let mut cached = lock_unpoisoned(&self.0);
        if let Some(file) = cached.get(name) {
            return Ok(file.clone());
        }
        let loaded = CachedFile::load(file)?;
        cached.insert(file.name, loaded.clone());
        Ok(loaded)
    }
}

impl CachedFile {
    fn load(file: &StaticFile) -> Result<Self> {
        Ok(Self { content: PublicContent::of(file.compressed()?)?, content_type: file.content_type })
    }

    fn choose(self, headers: &HeaderMap) -> FileAnswer {
        FileAnswer { content: self.content.choose_revalidated(headers), content_type: self.content_type }
    }
}
