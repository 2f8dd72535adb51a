//! An in-memory S3 server that rejects unsigned requests.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use md5::{Digest as _, Md5};
use ring::{digest, hmac};
use yarrow::types::hex;

use super::fake_provider::{FakeProvider, ReceivedRequest, Reply};

pub const KEY_ID: &str = "AKIDEXAMPLE";
pub const KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
pub const REGION: &str = "eu-central-1";

/// The body of an endless response.
static FILLER: [u8; 64 << 10] = [b' '; 64 << 10];

/// The stored objects by key.
type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A running S3 server with one bucket.
pub struct FakeS3 {
    pub provider: FakeProvider,
    objects: Objects,
    /// The number of requests to fail with 503.
    faults: Arc<Mutex<u32>>,
    keeps_all: Arc<AtomicBool>,
    fault: Arc<Mutex<Fault>>,
}

/// A fault of the bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Stores half of each object and reports success.
    StoresHalf,
    /// Truncates listings without saying so.
    CutsLists,
    /// Knows only the first version of listings, with two objects a page: a marker, and no token.
    ListsByMarker,
    /// Returns empty listings.
    ListsNothing,
    /// Accepts parts but does not complete multipart uploads.
    CompletesNothing,
    /// Delays responses to uploads by this many milliseconds.
    TakesLong(u64),
    /// Rejects uploads with this status and code.
    Refuses(u16, &'static str),
    /// Does not know conditional requests: responds with 501, or ignores the condition with 200.
    Unconditional(u16),
    /// Stores objects and drops the response.
    LosesResponses,
    /// Lists a thousand objects on every page, and never the last page.
    ListsWithoutEnd,
    /// Lists nothing on every page, and never the last page.
    EmptyPages,
    /// Sends a page of a listing without end.
    EndlessPage,
    /// Sends manifests without end.
    EndlessManifests,
    /// Sends backups without end, whatever size it lists.
    EndlessBackups,
}

impl FakeS3 {
    pub fn new() -> Self {
        let (objects, faults, keeps_all) = (Objects::default(), Arc::new(Mutex::new(0)), Arc::<AtomicBool>::default());
        let fault = Arc::new(Mutex::new(Fault::None));
        let mut state = State {
            objects: Arc::clone(&objects),
            parts: BTreeMap::new(),
            pages: 0,
            faults: Arc::clone(&faults),
            keeps_all: Arc::clone(&keeps_all),
            fault: Arc::clone(&fault),
        };
        let provider = FakeProvider::with_handler(move |request| state.response(request));
        Self { provider, objects, faults, keeps_all, fault }
    }

    /// Rejects all deletions.
    pub fn keep_all(&self) {
        self.keeps_all.store(true, Ordering::Relaxed);
    }

    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        self.objects.lock().unwrap().clone()
    }

    pub fn remove(&self, key: &str) {
        self.objects.lock().unwrap().remove(key).unwrap();
    }

    pub fn put(&self, key: &str, bytes: &[u8]) {
        self.objects.lock().unwrap().insert(key.into(), bytes.to_vec());
    }

    /// Fails the next requests with 503.
    pub fn fail(&self, requests: u32) {
        *self.faults.lock().unwrap() = requests;
    }

    /// Sets or clears the fault.
    pub fn inject_fault(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    /// Returns the contents of a configuration file that uses this bucket.
    pub fn settings(&self) -> String {
        format!(
            "[backup]\nevery = \"0 s\"\nfollow = \"0 s\"\ns3_endpoint = \"{}\"\ns3_bucket = \"backups\"\ns3_region = \"{REGION}\"\n\
             s3_access_key_id = \"{KEY_ID}\"\ns3_secret_access_key = \"{KEY}\"\n",
            self.provider.url()
        )
    }
}

struct State {
    objects: Objects,
    /// The parts of the only multipart upload, by number.
    parts: BTreeMap<u16, Vec<u8>>,
    /// Pages of an endless listing.
    pages: u32,
    faults: Arc<Mutex<u32>>,
    keeps_all: Arc<AtomicBool>,
    fault: Arc<Mutex<Fault>>,
}

impl State {
    fn response(&mut self, request: &ReceivedRequest) -> Reply {
        let mut faults = self.faults.lock().unwrap();
        if *faults > 0 {
            *faults -= 1;
            return Reply::status(503).body("<Error><Code>SlowDown</Code></Error>");
        }
        drop(faults);
        if !is_signed(request) {
            return Reply::status(403).body("<Error><Code>SignatureDoesNotMatch</Code></Error>");
        }
        let (path, query) = split(request);
        let value = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let key = path.strip_prefix("/backups/").unwrap_or_default().to_owned();
        let fault = *self.fault.lock().unwrap();
        if request.method == "PUT" {
            let digest = STANDARD.encode(Md5::digest(&request.body));
            assert_eq!(request.header("content-md5"), Some(digest.as_str()));
            match fault {
                Fault::TakesLong(milliseconds) => {
                    return Reply::status(503).after(Duration::from_millis(milliseconds));
                }
                Fault::Refuses(status, code) => {
                    return Reply::status(status).body(format!("<Error><Code>{code}</Code></Error>"));
                }
                _ => {}
            }
        }
        let part = value("partNumber").map(|number| number.parse::<u16>().unwrap());
        match (request.method.as_str(), part, value("uploads"), value("uploadId")) {
            ("GET", ..) if key.is_empty() && fault == Fault::CutsLists => {
                let text = self.list(&value("prefix").unwrap_or_default());
                Reply::status(200).body(&text[..text.find("</Contents>").unwrap_or(text.len() / 2)])
            }
            ("GET", ..) if key.is_empty() && fault == Fault::ListsNothing => document(self.list("nothing/begins/so")),
            ("GET", ..) if key.is_empty() && fault == Fault::ListsWithoutEnd => {
                self.pages += 1;
                document(page_without_end(self.pages, 1_000))
            }
            ("GET", ..) if key.is_empty() && fault == Fault::EmptyPages => {
                self.pages += 1;
                document(page_without_end(self.pages, 0))
            }
            ("GET", ..) if key.is_empty() && fault == Fault::EndlessPage => Reply::status(200).body(FILLER).endless(),
            ("GET", ..) if key.contains(".db.json") && fault == Fault::EndlessManifests => {
                Reply::status(200).body(FILLER).endless()
            }
            ("GET", ..) if key.contains(".db") && fault == Fault::EndlessBackups => {
                Reply::status(200).body(FILLER).endless()
            }
            ("GET", ..) if key.is_empty() => {
                let by_marker = fault == Fault::ListsByMarker;
                let after = value(if by_marker { "marker" } else { "start-after" }).unwrap_or_default();
                let text = self.list_after(&value("prefix").unwrap_or_default(), &after);
                document(if by_marker { first_two_objects(text) } else { text })
            }
            ("GET", ..) => match self.objects.lock().unwrap().get(&key) {
                Some(bytes) => Reply::status(200).body(bytes.clone()),
                None => Reply::status(404).body("<Error><Code>NoSuchKey</Code></Error>"),
            },
            ("PUT", Some(number), ..) => {
                self.parts.insert(number, request.body.clone());
                Reply::status(200).header("etag", &format!("\"part-{number}\""))
            }
            ("PUT", ..) if request.header("if-none-match").is_some() && fault == Fault::Unconditional(501) => {
                Reply::status(501).body("<Error><Code>NotImplemented</Code></Error>")
            }
            ("PUT", ..)
                if request.header("if-none-match") == Some("*")
                    && !matches!(fault, Fault::Unconditional(_))
                    && self.objects.lock().unwrap().contains_key(&key) =>
            {
                Reply::status(412).body("<Error><Code>PreconditionFailed</Code></Error>")
            }
            ("PUT", ..) => {
                let stored = if fault == Fault::StoresHalf { request.body.len() / 2 } else { request.body.len() };
                self.objects.lock().unwrap().insert(key, request.body[..stored].to_vec());
                if fault == Fault::LosesResponses {
                    return Reply::status(504);
                }
                Reply::status(200).header("etag", "\"whole\"")
            }
            ("POST", _, Some(_), _) => xml("InitiateMultipartUploadResult", "<UploadId>one</UploadId>"),
            ("POST", .., Some(_)) if fault == Fault::CompletesNothing => {
                Reply::status(400).body("<Error><Code>InvalidPart</Code></Error>")
            }
            ("POST", .., Some(_)) => {
                let named = String::from_utf8_lossy(&request.body).matches("<PartNumber>").count();
                assert_eq!(named, self.parts.len());
                let whole = std::mem::take(&mut self.parts).into_values().flatten().collect();
                self.objects.lock().unwrap().insert(key, whole);
                xml("CompleteMultipartUploadResult", "<ETag>\"all\"</ETag>")
            }
            ("DELETE", ..) if self.keeps_all.load(Ordering::Relaxed) => {
                Reply::status(403).body("<Error><Code>AccessDenied</Code></Error>")
            }
            ("DELETE", .., None) => {
                self.objects.lock().unwrap().remove(&key);
                Reply::status(204)
            }
            _ => Reply::status(204),
        }
    }

    fn list(&self, prefix: &str) -> String {
        self.list_after(prefix, "")
    }

    fn list_after(&self, prefix: &str, after: &str) -> String {
        let objects = self.objects.lock().unwrap();
        let mut contents = String::from("<IsTruncated>false</IsTruncated><MaxKeys>1000</MaxKeys>");
        for (key, bytes) in objects.iter().filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after) {
            let size = bytes.len();
            write!(
                contents,
                "<Contents><Key>{key}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>\
                 <ETag>\"x\"</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            )
            .unwrap();
        }
        text_of("ListBucketResult", &contents)
    }
}

/// Cuts a listing after two objects, as the first version of the protocol does.
fn first_two_objects(text: String) -> String {
    const END: &str = "</Contents>";
    let ends: Vec<_> = text.match_indices(END).map(|(start, _)| start + END.len()).collect();
    let [_, second, .., last] = ends[..] else { return text };
    let page = [&text[..second], &text[last..]].concat();
    page.replace("<IsTruncated>false</IsTruncated>", "<IsTruncated>true</IsTruncated><NextMarker>x</NextMarker>")
}

/// A page with this many objects, and a token for the next page.
fn page_without_end(number: u32, objects: u32) -> String {
    let mut contents = format!(
        "<IsTruncated>true</IsTruncated><MaxKeys>1000</MaxKeys><NextContinuationToken>{number}</NextContinuationToken>"
    );
    for object in 0..objects {
        let name = "x".repeat(900);
        write!(
            contents,
            "<Contents><Key>yarrow/{name}{number}-{object}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>\
             <ETag>\"x\"</ETag><Size>1</Size><StorageClass>STANDARD</StorageClass></Contents>"
        )
        .unwrap();
    }
    text_of("ListBucketResult", &contents)
}

fn xml(name: &str, content: &str) -> Reply {
    document(text_of(name, content))
}

fn document(text: String) -> Reply {
    Reply::status(200).header("content-type", "application/xml").body(text)
}

fn text_of(name: &str, content: &str) -> String {
    // Some servers return another namespace, single quotes or a prefix, and some none.
    match name {
        "ListBucketResult" => format!(
            "<?xml version='1.0' encoding='UTF-8'?><{name} xmlns='http://doc.s3.amazonaws.com/2006-03-01'>{content}</{name}>"
        ),
        "InitiateMultipartUploadResult" => format!("<{name}>{content}</{name}>"),
        _ => format!("<s3:{name} xmlns:s3=\"http://s3.amazonaws.com/doc/2006-03-01/\">{content}</s3:{name}>"),
    }
}

/// Returns the decoded path and query.
fn split(request: &ReceivedRequest) -> (String, Vec<(String, String)>) {
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned();
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    });
    (decoded(path), pairs.collect())
}

/// Verifies the AWS Signature Version 4 in the query.
fn is_signed(request: &ReceivedRequest) -> bool {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let mut pairs: Vec<_> = query.split('&').map(str::to_owned).collect();
    let Some(position) = pairs.iter().position(|pair| pair.starts_with("X-Amz-Signature=")) else { return false };
    let claimed = pairs.remove(position).split_once('=').unwrap().1.to_owned();
    pairs.iter_mut().filter(|pair| !pair.contains('=')).for_each(|pair| pair.push('='));
    pairs.sort();
    let (_, decoded) = split(request);
    let value = |name: &str| decoded.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let (Some(time), Some(credential)) = (value("X-Amz-Date"), value("X-Amz-Credential")) else { return false };
    let scope = format!("{}/{REGION}/s3/aws4_request", &time[..8]);
    if credential != format!("{KEY_ID}/{scope}") {
        return false;
    }
    let host = request.header("host").unwrap_or_default();
    let canonical = format!("{}\n{path}\n{}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD", request.method, pairs.join("&"));
    let digest = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}");
    let mut key = format!("AWS4{KEY}").into_bytes();
    for step in [&time[..8], REGION, "s3", "aws4_request"] {
        key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), step.as_bytes()).as_ref().to_vec();
    }
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), text.as_bytes());
    hex(signature.as_ref()) == claimed
}
