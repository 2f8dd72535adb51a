//! Secrets that stand inside of addresses: who signs in, and keys in the query.

const MASK: &str = "****";
/// Parts of names whose values are secrets, in lower case.
const TELLING: [&str; 10] =
    ["key", "token", "secret", "sig", "password", "passwd", "pwd", "auth", "credential", "code"];

/// The address as it may be shown. A text that is no address is its own.
pub fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let authority =
        authority.rsplit_once('@').map_or_else(|| authority.to_owned(), |(_, host)| format!("{MASK}@{host}"));
    let pairs: String = rest.split_inclusive(['?', '#', '&', ';']).map(without_secret).collect();
    format!("{scheme}://{authority}{pairs}")
}

/// `name=value` with the character that ends it, if there is one.
fn without_secret(pair: &str) -> String {
    let Some((name, value)) = pair.split_once('=') else { return pair.to_owned() };
    let lower = name.to_ascii_lowercase();
    if value.is_empty() || !TELLING.iter().any(|telling| lower.contains(telling)) {
        return pair.to_owned();
    }
    let end = pair.strip_suffix(|last| "?#&;".contains(last)).map_or("", |kept| &pair[kept.len()..]);
    format!("{name}={MASK}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_signs_in_and_keys_are_masked() {
        for (text, shown) in [
            ("https://user:hunter2@example.com:8443/v1", "https://****@example.com:8443/v1"),
            ("https://hunter2@example.com", "https://****@example.com"),
            ("https://a:b@c@example.com/?x=1", "https://****@example.com/?x=1"),
            (
                "https://example.com/v1?region=cn&api_key=hunter2&x=1",
                "https://example.com/v1?region=cn&api_key=****&x=1",
            ),
            ("https://example.com?Token=hunter2", "https://example.com?Token=****"),
            (
                "https://example.com/?Signature=a=b#access_token=hunter2",
                "https://example.com/?Signature=****#access_token=****",
            ),
            ("https://example.com/?client_secret=hunter2;key=", "https://example.com/?client_secret=****;key="),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }

    #[test]
    fn what_holds_no_secret_stays() {
        for text in ["", "yarrow/", "https://example.com/a@b", "https://example.com/v1?region=cn#top", "key=value"] {
            assert_eq!(without_secrets(text), text);
        }
    }
}
