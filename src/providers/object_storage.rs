//! Object storage with the S3 protocol: put, list, get and delete.
//!
//! The library signs each request in its URL; this module owns sending, retries and the meaning of responses. A large
//! object is uploaded in parts, each retried on its own, and exists only after the last. Uploads carry their MD5, which
//! every server compares: it detects truncation and authenticates nothing.
//!
//! Listings and downloads have limits on pages, objects, bytes and time, because a server may respond without end.

mod xml;

use std::{
    fs::File,
    io::{Read as _, Write},
    path::Path,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use md5::{Digest as _, Md5};
use rusty_s3::{
    Bucket, Credentials, S3Action, UrlStyle,
    actions::{CompleteMultipartUploadResponse, CreateMultipartUpload, ListObjectsV2},
};
use secrecy::{ExposeSecret, SecretString};

use super::{
    Failure, FailureKind, clean_code,
    client::{Client, HttpResponse, Limits},
};

/// The driver's name.
pub const NAME: &str = "s3";
/// The code of an object or file above a limit.
const TOO_LARGE: &str = "file_too_large";

/// Size of a part. Larger objects are uploaded in parts.
const PART_BYTES: usize = 16 << 20;
const MAX_ATTEMPTS: u32 = 3;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_mins(1);
/// For one part.
const PART_TIMEOUT: Duration = Duration::from_mins(30);
/// Timeout of a whole download. A stalled one fails long before.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_hours(24);
/// The protocol's maximum number of parts.
const MAX_PARTS: u64 = 10_000;
/// Validity of a signed URL: longer than one request may take.
const URL_VALIDITY: Duration = Duration::from_hours(1);
/// Bytes of one page of a listing: a thousand keys of a thousand bytes, and their markup.
const MAX_PAGE_BYTES: usize = 4 << 20;
/// Limits of a whole listing.
const MAX_PAGES: u32 = 200;
const MAX_OBJECTS: usize = 100_000;
const MAX_LIST_BYTES: usize = 32 << 20;
const LIST_TIMEOUT: Duration = Duration::from_mins(5);
/// Other responses have a few hundred bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// Maximum bytes of an upload id and of a part's tag, which are both sent back.
const MAX_NAME_BYTES: usize = 1_024;

/// The endpoint and the credentials. `Debug` masks the secret.
#[derive(Clone, Debug)]
pub struct ObjectStorageSettings {
    /// `https://s3.eu-central-1.amazonaws.com`, or the address of another server.
    pub endpoint: String,
    pub bucket: String,
    pub region: String,
    /// True to name the bucket in the path instead of the host.
    pub bucket_in_path: bool,
    pub access_key_id: String,
    pub secret_access_key: SecretString,
}

/// One bucket.
pub struct ObjectStorage {
    bucket: Bucket,
    credentials: Credentials,
    client: Client,
    downloads: Client,
}

/// A stored file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub key: String,
    pub bytes: u64,
}

/// A page of a listing.
struct ListPage {
    objects: Vec<Object>,
    next: Option<NextPage>,
    /// Size of the response.
    bytes: usize,
}

/// The start of the next page of a listing.
enum NextPage {
    Token(String),
    /// The last key so far, for servers that know only the first version of listings and give no token.
    Marker(String),
}

/// The outcome of storing an object under a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewObject {
    Stored,
    /// The key is taken, perhaps by an earlier attempt whose response was lost.
    Exists,
    /// The server cannot store an object only if its key is new.
    Unsupported,
}

/// Receives the bytes transferred so far and the total.
pub type TransferProgress<'watcher> = &'watcher mut dyn FnMut(u64, u64);

impl ObjectStorage {
    /// # Errors
    /// `Misconfigured` if endpoint and bucket do not make a URL.
    pub fn new(settings: &ObjectStorageSettings) -> Result<Self, Failure> {
        let misconfigured = |code| Failure::new(FailureKind::Misconfigured, NAME, code);
        let endpoint = settings.endpoint.parse().map_err(|_| misconfigured("endpoint"))?;
        let style = if settings.bucket_in_path { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let bucket = Bucket::new(endpoint, style, settings.bucket.clone(), settings.region.clone());
        let limits = Limits {
            connect: CONNECT_TIMEOUT,
            first_byte: FIRST_BYTE_TIMEOUT,
            idle: FIRST_BYTE_TIMEOUT,
            total: PART_TIMEOUT,
            reuse_connections: true,
        };
        Ok(Self {
            bucket: bucket.map_err(|_| misconfigured("bucket"))?,
            credentials: Credentials::new(
                settings.access_key_id.clone(),
                settings.secret_access_key.expose_secret().to_owned(),
            ),
            downloads: Client::new(NAME, "backup.s3_endpoint", Limits { total: DOWNLOAD_TIMEOUT, ..limits }),
            client: Client::new(NAME, "backup.s3_endpoint", limits),
        })
    }

    /// Stores a file under a key and replaces an existing object.
    ///
    /// # Errors
    /// The object was not stored, or its state is unknown.
    pub fn put(&self, key: &str, path: &Path, progress: TransferProgress<'_>) -> Result<(), Failure> {
        let mut file = File::open(path).map_err(|_| unreadable())?;
        let total = file.metadata().map_err(|_| unreadable())?.len();
        // Checked here and not after hours of uploading.
        if total > PART_BYTES as u64 * MAX_PARTS {
            return Err(Failure::new(FailureKind::Refused, NAME, TOO_LARGE));
        }
        let first = part_of(&mut file)?;
        if first.len() < PART_BYTES {
            let action = || self.bucket.put_object(Some(&self.credentials), key).sign(URL_VALIDITY);
            with_retries(|| self.upload(&action(), &first).map(drop))?;
            progress(total, total);
            return Ok(());
        }
        let action = || self.bucket.create_multipart_upload(Some(&self.credentials), key).sign(URL_VALIDITY);
        let answer = with_retries(|| text(accepted(self.send("POST", &action(), &[])?)?, MAX_RESPONSE_BYTES))?;
        let document = whole("InitiateMultipartUploadResult", &answer, "upload_not_understood")?;
        let created =
            CreateMultipartUpload::parse_response(&document).map_err(|_| invalid_response("upload_not_understood"))?;
        let id = created.upload_id();
        if id.len() > MAX_NAME_BYTES {
            return Err(invalid_response("upload_not_understood"));
        }
        let upload = Upload { storage: self, key, id };
        let stored = upload.send_parts(first, &mut file, total, progress).and_then(|tags| upload.complete(&tags));
        if stored.is_err() {
            upload.abort();
        }
        stored
    }

    /// Stores a file under a key unless the key is taken. For a file of several parts, check and upload are separate
    /// requests, so it may replace an object that is uploaded meanwhile.
    ///
    /// # Errors
    /// The object was not stored, or its state is unknown.
    pub fn put_new(&self, key: &str, path: &Path) -> Result<NewObject, Failure> {
        let mut file = File::open(path).map_err(|_| unreadable())?;
        let bytes = part_of(&mut file)?;
        if bytes.len() >= PART_BYTES {
            return match self.get(key, 0) {
                Ok(None) => self.put(key, path, &mut |_, _| ()).map(|()| NewObject::Stored),
                Ok(Some(_)) => Ok(NewObject::Exists),
                Err(failure) if failure.code == TOO_LARGE => Ok(NewObject::Exists),
                Err(failure) => Err(failure),
            };
        }
        let digest = STANDARD.encode(Md5::digest(&bytes));
        let headers = [("content-md5", digest.as_str()), ("if-none-match", "*")];
        with_retries(|| {
            let url = self.bucket.put_object(Some(&self.credentials), key).sign(URL_VALIDITY);
            let answer = self.client.upload("PUT", url.as_ref(), &headers, &bytes)?;
            match answer.status {
                412 => Ok(NewObject::Exists),
                501 => Ok(NewObject::Unsupported),
                // Another upload of the same key was running.
                409 => Err(Failure::new(FailureKind::Busy, NAME, "conflict")),
                _ => accepted(answer).map(|_| NewObject::Stored),
            }
        })
    }

    /// Returns an object of at most `limit` bytes, or nothing if there is none.
    ///
    /// # Errors
    /// The transfer failed; `file_too_large`.
    pub fn get(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
        with_retries(|| {
            let mut bytes = Vec::new();
            match self.fetch(key, limit, &mut bytes, &mut |_, _| ()) {
                Ok(_) => Ok(Some(bytes)),
                Err(failure) if failure.is_missing_object() => Ok(None),
                Err(failure) => Err(failure),
            }
        })
    }

    /// Lists the first objects with a prefix, in the order of their keys: a thousand, or as many as the server sends.
    ///
    /// # Errors
    /// Those of [`Self::list`].
    pub fn list_first(&self, prefix: &str) -> Result<Vec<Object>, Failure> {
        Ok(self.list_page(prefix, None, None, None, FIRST_BYTE_TIMEOUT)?.objects)
    }

    /// Lists the objects with a prefix.
    ///
    /// # Errors
    /// The listing failed, or exceeds a limit.
    pub fn list(&self, prefix: &str) -> Result<Vec<Object>, Failure> {
        self.list_after(prefix, None)
    }

    /// Lists the objects with a prefix whose keys come after this one.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn list_after(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Object>, Failure> {
        let (mut found, mut next, mut bytes) = (Vec::new(), None, 0);
        let begun = Instant::now();
        for _ in 0..MAX_PAGES {
            let time_left = LIST_TIMEOUT.checked_sub(begun.elapsed());
            let time_left = time_left.ok_or_else(|| Failure::new(FailureKind::TimedOut, NAME, "list_timeout"))?;
            let page = self.list_page(prefix, after, next.as_ref(), None, time_left)?;
            bytes += page.bytes;
            found.extend(page.objects);
            if bytes > MAX_LIST_BYTES || found.len() > MAX_OBJECTS {
                break;
            }
            next = page.next;
            if next.is_none() {
                return Ok(found);
            }
        }
        Err(invalid_response("list_too_long"))
    }

    /// Checks that the server responds and accepts the credentials.
    ///
    /// # Errors
    /// Those of [`Self::list`].
    pub fn probe(&self, prefix: &str) -> Result<(), Failure> {
        self.list_page(prefix, None, None, Some(1), FIRST_BYTE_TIMEOUT).map(drop)
    }

    fn list_page(
        &self,
        prefix: &str,
        after: Option<&str>,
        next: Option<&NextPage>,
        most: Option<usize>,
        time: Duration,
    ) -> Result<ListPage, Failure> {
        let mut action = self.bucket.list_objects_v2(Some(&self.credentials));
        action.with_prefix(prefix.to_owned());
        if let Some(after) = after {
            action.with_start_after(after.to_owned());
        }
        match next {
            None => {}
            Some(NextPage::Token(token)) => action.with_continuation_token(token.as_str()),
            Some(NextPage::Marker(key)) => action.query_mut().insert("marker", key.as_str()),
        }
        if let Some(most) = most {
            action.with_max_keys(most);
        }
        let answer = with_retries(|| {
            let answer = self.client.send_within(time, "GET", action.sign(URL_VALIDITY).as_ref(), &[], b"")?;
            text(accepted(answer)?, MAX_PAGE_BYTES)
        })?;
        let not_understood = || invalid_response("list_not_understood");
        let document = whole("ListBucketResult", &answer, "list_not_understood")?;
        let (document, is_first_version) = xml::without_truncation(document);
        let page = ListObjectsV2::parse_response(&document).map_err(|_| not_understood())?;
        let objects = page.contents.into_iter().map(|object| {
            let bytes = object.size.ok_or_else(|| invalid_response("list_without_sizes"))?;
            Ok(Object { key: object.key, bytes })
        });
        let mut objects = objects.collect::<Result<Vec<_>, Failure>>()?;
        let next = if is_first_version {
            let last = objects.last().map(|object| object.key.clone());
            // A server that knows no marker either would send the same page for ever.
            let is_later = |key: &String| !matches!(next, Some(NextPage::Marker(marker)) if key <= marker);
            Some(NextPage::Marker(last.filter(is_later).ok_or_else(not_understood)?))
        } else {
            page.next_continuation_token.map(NextPage::Token)
        };
        // The first version does not know where to start.
        objects.retain(|object| after.is_none_or(|after| object.key.as_str() > after));
        Ok(ListPage { objects, next, bytes: answer.len() })
    }

    /// Writes an object of at most `limit` bytes to `target` and returns its size in bytes.
    ///
    /// # Errors
    /// `Refused` if there is no such object; `file_too_large` if it exceeds the limit; other kinds if the transfer was
    /// incomplete.
    pub fn fetch(
        &self,
        key: &str,
        limit: u64,
        target: &mut impl Write,
        progress: TransferProgress<'_>,
    ) -> Result<u64, Failure> {
        let url = self.bucket.get_object(Some(&self.credentials), key).sign(URL_VALIDITY);
        let answer = accepted(self.downloads.send("GET", url.as_ref(), &[], b"")?)?;
        let total = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let (mut reader, mut buffer, mut received) = (answer.into_reader(), vec![0; 256 << 10], 0);
        loop {
            if total.max(received) > limit {
                return Err(invalid_response(TOO_LARGE));
            }
            match reader.read(&mut buffer)? {
                0 => break,
                count => {
                    received += count as u64;
                    let fitting = count - usize::try_from(received.saturating_sub(limit)).unwrap_or(count).min(count);
                    target.write_all(&buffer[..fitting]).map_err(|_| unwritable())?;
                    progress(received, total.max(received));
                }
            }
        }
        if received < total {
            return Err(Failure::new(FailureKind::OutcomeUnknown, NAME, "file_cut_short"));
        }
        Ok(received)
    }

    /// Deletes an object. Deleting a missing object succeeds.
    ///
    /// # Errors
    /// The object still exists, or its state is unknown.
    pub fn delete(&self, key: &str) -> Result<(), Failure> {
        let action = || self.bucket.delete_object(Some(&self.credentials), key).sign(URL_VALIDITY);
        with_retries(|| accepted(self.send("DELETE", &action(), &[])?).map(drop))
    }
}

impl Failure {
    /// Returns true if the requested object does not exist.
    pub fn is_missing_object(&self) -> bool {
        matches!(self.code.as_str(), "NoSuchKey" | "NotFound" | "http_404")
    }
}

impl ObjectStorage {
    fn send(&self, method: &str, url: &impl AsRef<str>, body: &[u8]) -> Result<HttpResponse, Failure> {
        self.client.send(method, url.as_ref(), &[], body)
    }

    /// Sends a file or a part of it.
    fn upload(&self, url: &impl AsRef<str>, body: &[u8]) -> Result<HttpResponse, Failure> {
        let digest = STANDARD.encode(Md5::digest(body));
        accepted(self.client.upload("PUT", url.as_ref(), &[("content-md5", &digest)], body)?)
    }
}

/// A multipart upload in progress.
struct Upload<'storage> {
    storage: &'storage ObjectStorage,
    key: &'storage str,
    id: &'storage str,
}

impl Upload<'_> {
    /// Sends all parts and returns their tags.
    fn send_parts(
        &self,
        first: Vec<u8>,
        file: &mut File,
        total: u64,
        progress: TransferProgress<'_>,
    ) -> Result<Vec<String>, Failure> {
        let (mut part, mut tags, mut sent) = (first, Vec::new(), 0);
        while !part.is_empty() {
            let number = u16::try_from(tags.len() + 1).map_err(|_| invalid_response(TOO_LARGE))?;
            let storage = self.storage;
            let action = || storage.bucket.upload_part(Some(&storage.credentials), self.key, number, self.id);
            let tag = with_retries(|| {
                let answer = storage.upload(&action().sign(URL_VALIDITY), &part)?;
                let tag = answer.header("etag").filter(|tag| tag.len() <= MAX_NAME_BYTES);
                tag.map(str::to_owned).ok_or_else(|| invalid_response("part_without_tag"))
            })?;
            tags.push(tag);
            sent += part.len() as u64;
            progress(sent, total.max(sent));
            part = part_of(file)?;
        }
        Ok(tags)
    }

    fn complete(&self, tags: &[String]) -> Result<(), Failure> {
        let storage = self.storage;
        let tags = tags.iter().map(String::as_str);
        let action = storage.bucket.complete_multipart_upload(Some(&storage.credentials), self.key, self.id, tags);
        let url = action.sign(URL_VALIDITY);
        let body = action.body();
        // A server that has already sent status 200 reports a late failure in the body.
        let answer = text(accepted(storage.send("POST", &url, body.as_bytes())?)?, MAX_RESPONSE_BYTES)?;
        let not_completed = || Failure::new(FailureKind::OutcomeUnknown, NAME, "upload_not_completed");
        let document = whole("CompleteMultipartUploadResult", &answer, "upload_not_completed");
        let document = document.map_err(|_| not_completed())?;
        CompleteMultipartUploadResponse::parse(&document).map(drop).map_err(|_| not_completed())
    }

    /// Aborts the upload, so that its parts are not billed. If that fails too, the bucket's lifecycle rule for
    /// incomplete uploads removes them.
    fn abort(&self) {
        let storage = self.storage;
        let action = || storage.bucket.abort_multipart_upload(Some(&storage.credentials), self.key, self.id);
        let aborted = with_retries(|| accepted(storage.send("DELETE", &action().sign(URL_VALIDITY), &[])?).map(drop));
        if let Err(failure) = aborted {
            tracing::warn!(%failure, "an incomplete upload could not be removed");
        }
    }
}

/// Returns the next part of a file; empty at its end.
fn part_of(file: &mut File) -> Result<Vec<u8>, Failure> {
    let mut part = Vec::new();
    file.take(PART_BYTES as u64).read_to_end(&mut part).map_err(|_| unreadable())?;
    Ok(part)
}

/// Retries an idempotent request after a short delay.
fn with_retries<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    for number in 1..MAX_ATTEMPTS {
        match attempt() {
            Err(failure) if failure.is_retryable() => {
                std::thread::sleep(failure.retry_after.unwrap_or_default().max(Duration::from_millis(500) * number));
            }
            outcome => return outcome,
        }
    }
    attempt()
}

fn accepted(answer: HttpResponse) -> Result<HttpResponse, Failure> {
    let kind = match answer.status {
        200..=299 => return Ok(answer),
        // All requests to a bucket are idempotent.
        429 | 500 | 502 | 503 => FailureKind::Busy,
        401 | 403 | 301 | 307 => FailureKind::Misconfigured,
        // Insufficient storage.
        507 => FailureKind::Refused,
        500.. => FailureKind::OutcomeUnknown,
        _ => FailureKind::Refused,
    };
    let status = answer.status;
    let body = String::from_utf8_lossy(&answer.read_error()).into_owned();
    let code = xml::error_code(&body).as_deref().and_then(clean_code);
    Err(Failure::new(kind, NAME, code.unwrap_or_else(|| format!("http_{status}"))))
}

fn text(answer: HttpResponse, limit: usize) -> Result<String, Failure> {
    String::from_utf8(answer.read_all(limit)?).map_err(|_| invalid_response("answer_not_text"))
}

/// Returns the response in the protocol's form if its document is complete. The parser would accept a truncated one as a
/// shorter one.
fn whole(root: &str, answer: &str, otherwise: &'static str) -> Result<String, Failure> {
    let document = xml::canonical(answer).filter(|(found, _)| found == root);
    document.map(|(_, document)| document).ok_or_else(|| invalid_response(otherwise))
}

fn invalid_response(code: &'static str) -> Failure {
    Failure::new(FailureKind::InvalidResponse, NAME, code)
}

fn unreadable() -> Failure {
    Failure::new(FailureKind::Misconfigured, NAME, "file_not_readable")
}

fn unwritable() -> Failure {
    Failure::new(FailureKind::Misconfigured, NAME, "file_not_writable")
}
