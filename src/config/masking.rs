//! Masks secrets inside URLs: user information and query.

const MASK: &str = "****";

/// Masks the secrets of a URL for display. Only the server knows which query values are secret, so all are masked. A
/// text that is no URL is returned unchanged.
pub fn mask_url_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let authority =
        authority.rsplit_once('@').map_or_else(|| authority.to_owned(), |(_, host)| format!("{MASK}@{host}"));
    let (path, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let parts: String = query.split_inclusive(['?', '#', '&', ';']).map(without_value).collect();
    format!("{scheme}://{authority}{path}{parts}")
}

/// Masks the value of `name=value`, or a value alone, and keeps the separator after it.
fn without_value(part: &str) -> String {
    let kept = part.strip_suffix(['?', '#', '&', ';']).unwrap_or(part);
    let end = &part[kept.len()..];
    let (name, value) = kept.split_once('=').map_or(("", kept), |(name, value)| (&kept[..=name.len()], value));
    let shown = if value.is_empty() { "" } else { MASK };
    format!("{name}{shown}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_user_names_and_keys() {
        for (text, shown) in [
            ("https://user:hunter2@example.com:8443/v1", "https://****@example.com:8443/v1"),
            ("https://hunter2@example.com", "https://****@example.com"),
            ("https://a:b@c@example.com/?x=1", "https://****@example.com/?x=****"),
            (
                "https://example.com/v1?region=cn&api_key=hunter2&x=1",
                "https://example.com/v1?region=****&api_key=****&x=****",
            ),
            ("https://example.com?Token=hunter2", "https://example.com?Token=****"),
            (
                "https://example.com/?Signature=a=b#access_token=hunter2",
                "https://example.com/?Signature=****#access_token=****",
            ),
            ("https://example.com/?client_secret=hunter2;key=", "https://example.com/?client_secret=****;key="),
            ("https://example.com/v1?hunter2#hunter2", "https://example.com/v1?****#****"),
        ] {
            assert_eq!(mask_url_secrets(text), shown);
        }
    }

    #[test]
    fn leaves_urls_without_secrets_unchanged() {
        for text in ["", "yarrow/", "https://example.com/a@b", "https://example.com/v1;a=b?x=", "key=value"] {
            assert_eq!(mask_url_secrets(text), text);
        }
    }
}
