//! XML of servers that speak the S3 protocol, by local names.
//!
//! Each server has its own namespace, or none, or a prefix for it, and its own quotation marks. The library reads one
//! form, so other documents are written anew in it.

use xmlparser::{ElementEnd, Token, Tokenizer};

const NAMESPACE: &str = r#" xmlns="http://s3.amazonaws.com/doc/2006-03-01/""#;

/// Returns the name of the root element, and the document without prefixes and attributes in the protocol's namespace.
/// `None` if it is not complete.
pub(super) fn canonical(text: &str) -> Option<(String, String)> {
    let (mut root, mut written, mut open) = (None, String::new(), Vec::new());
    for token in Tokenizer::from(text.trim_start_matches('\u{feff}').trim()) {
        match token.ok()? {
            Token::ElementStart { local, .. } => {
                let namespace = if root.is_none() { NAMESPACE } else { "" };
                root.get_or_insert(local.as_str());
                written.extend(["<", local.as_str(), namespace]);
                open.push(local.as_str());
            }
            Token::ElementEnd { end: ElementEnd::Open, .. } => written.push('>'),
            Token::ElementEnd { end: ElementEnd::Empty, .. } => {
                open.pop()?;
                written.push_str("/>");
            }
            Token::ElementEnd { end: ElementEnd::Close(_, local), .. } => {
                open.pop().filter(|name| *name == local.as_str())?;
                written.extend(["</", local.as_str(), ">"]);
            }
            Token::Text { text } if !open.is_empty() => written.push_str(text.as_str()),
            Token::Cdata { text, .. } => written.push_str(&text.as_str().replace('&', "&amp;").replace('<', "&lt;")),
            _ => {}
        }
    }
    if open.is_empty() { Some((root?.to_owned(), written)) } else { None }
}

/// Returns a listing that the library accepts, and true if it was truncated without a token. Servers that know only the
/// first version of listings (Tencent COS, Huawei OBS) give none: the next page begins after the last key.
pub(super) fn without_truncation(document: String) -> (String, bool) {
    const TRUNCATED: &str = "<IsTruncated>true</IsTruncated>";
    let is_first_version = document.contains(TRUNCATED) && !document.contains("<NextContinuationToken>");
    if is_first_version { (document.replace(TRUNCATED, ""), true) } else { (document, false) }
}

/// Returns the code of an error document.
pub(super) fn error_code(text: &str) -> Option<String> {
    let (_, document) = canonical(text)?;
    let (_, rest) = document.split_once("<Code>")?;
    rest.split('<').next().map(|code| code.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use rusty_s3::actions::{CompleteMultipartUploadResponse, CreateMultipartUpload, ListObjectsV2};

    use super::*;

    /// Answers in the form that each server documents, with its source and other values.
    const DOCUMENTED: &str = include_str!("../../../tests/vectors/s3-dialects.json");
    const KEY: &str = "yarrow/changes/000001/000000000001";

    #[derive(serde::Deserialize)]
    struct Documented {
        server: String,
        sources: Vec<String>,
        listing: Option<String>,
        initiated: Option<String>,
        completed: Option<String>,
        error: Option<String>,
    }

    #[test]
    fn documented_answers_are_read() {
        let documented: Vec<Documented> = serde_json::from_str(DOCUMENTED).unwrap();
        assert_eq!(documented.len(), 10);
        for Documented { server, sources, listing, initiated, completed, error } in documented {
            assert!(sources.iter().any(|source| source.starts_with("https://")), "{server}");
            let form_of = |text: &str| canonical(text).unwrap_or_else(|| panic!("{server}: {text}")).1;
            if let Some(text) = &listing {
                let page = ListObjectsV2::parse_response(&form_of(text)).unwrap_or_else(|e| panic!("{server}: {e}"));
                let listed: Vec<_> = page.contents.iter().map(|object| (object.key.as_str(), object.size)).collect();
                assert_eq!(listed, [(KEY, Some(7))], "{server}");
            }
            if let Some(text) = &initiated {
                let created = CreateMultipartUpload::parse_response(&form_of(text)).unwrap();
                assert_eq!(created.upload_id(), "u-1", "{server}");
            }
            if let Some(text) = &completed {
                CompleteMultipartUploadResponse::parse(&form_of(text)).unwrap();
            }
            if let Some(text) = &error {
                assert_eq!(error_code(text).as_deref(), Some("AccessDenied"), "{server}");
            }
        }
    }

    /// Servers by the head of their documents: declaration, prefix of names, attributes of the root.
    const DIALECTS: [(&str, &str, &str, &str); 11] = [
        ("AWS", r#"<?xml version="1.0" encoding="UTF-8"?>"#, "", r#"xmlns="http://s3.amazonaws.com/doc/2006-03-01/""#),
        ("GCS", "<?xml version='1.0' encoding='UTF-8'?>", "", "xmlns='http://doc.s3.amazonaws.com/2006-03-01'"),
        (
            "MinIO",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
            "",
            r#"xmlns="http://s3.amazonaws.com/doc/2006-03-01/""#,
        ),
        ("R2", "", "", r#"xmlns="http://s3.amazonaws.com/doc/2006-03-01/""#),
        ("OSS", "<?xml version=\"1.0\" ?>\n", "", r#"xmlns="http://doc.oss-cn-hangzhou.aliyuncs.com""#),
        ("COS", "<?xml version='1.0' encoding='utf-8' ?>\n", "", ""),
        (
            "OBS",
            r#"<?xml version="1.0" encoding="UTF-8"?>"#,
            "",
            r#"xmlns="http://obs.cn-north-4.myhuaweicloud.com/doc/2015-06-30/""#,
        ),
        (
            "B2",
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\r\n",
            "",
            r#"xmlns="http://s3.amazonaws.com/doc/2006-03-01/""#,
        ),
        (
            "Wasabi",
            "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
            "s3:",
            r#"xmlns:s3="http://s3.amazonaws.com/doc/2006-03-01/""#,
        ),
        ("Supabase", "", "", r#"xmlns = "http://s3.amazonaws.com/doc/2006-03-01/""#),
        (
            "Ceph",
            r#"<?xml version="1.0" encoding="UTF-8"?>"#,
            "ns0:",
            r#"a="b" xmlns:ns0='http://s3.amazonaws.com/doc/2006-03-01/'"#,
        ),
    ];

    /// Writes a document in a dialect. `{p}` stands for the prefix.
    fn written((_, head, prefix, attributes): (&str, &str, &str, &str), root: &str, content: &str) -> String {
        format!("{head}<{prefix}{root} {attributes}>{}</{prefix}{root} >\n", content.replace("{p}", prefix))
    }

    #[test]
    fn documents_of_every_dialect_are_read() {
        for dialect in DIALECTS {
            let text = written(
                dialect,
                "ListBucketResult",
                "<!-- c --><{p}Name>b</{p}Name>\n <{p}Contents><{p}Size>7</{p}Size><{p}Generation>1</{p}Generation>\
                 <{p}ETag>&quot;x&quot;</{p}ETag><{p}Key><![CDATA[yarrow/a&b]]></{p}Key>\
                 <{p}LastModified>2026-01-02T03:04:05.000Z</{p}LastModified></{p}Contents><{p}Prefix/>\
                 <{p}IsTruncated>true</{p}IsTruncated><{p}NextContinuationToken>t</{p}NextContinuationToken>\
                 <{p}KeyCount>1</{p}KeyCount><{p}MaxKeys>1000</{p}MaxKeys>",
            );
            let (root, document) = canonical(&text).unwrap();
            let page = ListObjectsV2::parse_response(&document).unwrap_or_else(|error| panic!("{dialect:?}: {error}"));
            let listed: Vec<_> = page.contents.iter().map(|object| (object.key.as_str(), object.size)).collect();
            assert_eq!((root.as_str(), listed.as_slice()), ("ListBucketResult", &[("yarrow/a&b", Some(7))][..]));
            assert_eq!(page.next_continuation_token.as_deref(), Some("t"));
            // A truncated document is none.
            for end in (0..text.trim_end().len()).filter(|end| text.is_char_boundary(*end)) {
                assert_eq!(canonical(&text[..end]), None, "{dialect:?} {end}");
            }
            let started = "<{p}Bucket>b</{p}Bucket><{p}Key>k</{p}Key><{p}UploadId>u-1</{p}UploadId>";
            let (_, document) = canonical(&written(dialect, "InitiateMultipartUploadResult", started)).unwrap();
            assert_eq!(CreateMultipartUpload::parse_response(&document).unwrap().upload_id(), "u-1");
            let completed =
                "<{p}Location>l</{p}Location><{p}Bucket>b</{p}Bucket><{p}Key>k</{p}Key><{p}ETag>\"x-1\"</{p}ETag>";
            let (root, document) = canonical(&written(dialect, "CompleteMultipartUploadResult", completed)).unwrap();
            assert!(
                root == "CompleteMultipartUploadResult" && CompleteMultipartUploadResponse::parse(&document).is_ok()
            );
            let error = "<{p}Code>SlowDown</{p}Code><{p}Message>m</{p}Message>";
            assert_eq!(error_code(&written(dialect, "Error", error)).as_deref(), Some("SlowDown"));
        }
        for text in ["", "<html><p>no", "no", "<a></b>"] {
            assert_eq!((canonical(text), error_code(text)), (None, None), "{text}");
        }
    }
}
