//! Forms that were sent after their session had ended. The sign-in page carries them as hidden fields, so that the server
//! keeps nothing. Secrets are left out.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use url::Url;

use crate::{
    error::Result,
    http::console::{
        request::{ConsoleRequest, FormFields, is_page_address, page},
        views::{
            context::is_below,
            pages::sign_in::{self, Interrupted, SignInPage},
        },
    },
};

/// The prefix of the sign-in page's fields that carry a form.
const KEPT: &str = "kept.";
/// The field with the address of a form.
const ACTION: &str = "kept-action";
/// The largest text that is carried. It comes back together with the fields of the sign-in, within the limit of a form.
const MAX_TEXT: usize = 64 << 10;
/// Fields that belong to a session or a page.
const NOT_KEPT: [&str; 3] = ["csrf", "once", "confirm"];

/// Responds to a form with the sign-in page, which leads back to the page of the form.
///
/// # Errors
/// Storage errors.
pub fn ask(console: &ConsoleRequest, action: &str) -> Result<Response<Body>> {
    let kept = console.form.pairs().iter().filter(|(name, value)| !value.is_empty() && is_kept(name));
    let fields: Vec<_> = kept.cloned().collect();
    let length: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    let query = console.query.as_query();
    let interrupted = Interrupted { action: format!("{action}{query}"), fields };
    let shown = SignInPage {
        next: referring_page(&console.context.headers).unwrap_or_else(|| console.address.clone()),
        has_ended: true,
        interrupted: Some(interrupted).filter(|kept| !kept.fields.is_empty() && length <= MAX_TEXT),
        ..SignInPage::default()
    };
    Ok(page(StatusCode::UNAUTHORIZED, sign_in::sign_in(&console.view()?, &shown)))
}

/// Returns the form that a sign-in carries.
pub fn carried(form: &FormFields) -> Option<Interrupted> {
    let action = form.find(ACTION).filter(|action| is_page_address(action))?.to_owned();
    let kept =
        form.pairs().iter().filter_map(|(name, value)| Some((name.strip_prefix(KEPT)?.to_owned(), value.clone())));
    let fields: Vec<_> = kept.filter(|(name, _)| is_kept(name)).collect();
    (!fields.is_empty()).then_some(Interrupted { action, fields })
}

/// Returns true for fields that are neither secret nor bound to a session.
fn is_kept(name: &str) -> bool {
    !NOT_KEPT.contains(&name) && !is_secret(name)
}

/// Returns true for fields that no page repeats.
pub fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ["password", "totp", "secret", "token"].iter().any(|secret| lower.contains(secret))
}

/// Returns the address of the console's page that sent a form.
fn referring_page(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let referrer = Url::parse(text(header::REFERER)?).ok()?;
    // Proxies may replace `Host`; browsers then say that the origin is the same.
    let is_own = text(header::HOST) == Some(referrer.authority())
        || headers.get("sec-fetch-site").is_some_and(|site| site.as_bytes() == b"same-origin");
    let query = referrer.query().map_or_else(String::new, |query| format!("?{query}"));
    (is_own && is_below(referrer.path())).then(|| format!("{}{query}", referrer.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_pages_of_the_console_on_this_host_only() {
        let page = |referrer: &str| {
            let headers = [(header::HOST, "127.0.0.1:8080"), (header::REFERER, referrer)];
            let headers = headers.map(|(name, value)| (name, HeaderValue::from_str(value).unwrap()));
            referring_page(&HeaderMap::from_iter(headers))
        };
        let shown = Some("/admin/console/users?q=a".to_owned());
        assert_eq!(page("http://127.0.0.1:8080/admin/console/users?q=a#top"), shown);
        for other in [
            "http://127.0.0.1:8081/admin/console/users",
            "https://evil.example/admin/console/users",
            "http://127.0.0.1:8080/admin/console/../payments",
            "http://127.0.0.1:8080/admin/consoles",
            "http://127.0.0.1:8080@evil.example/admin/console/users",
            "",
        ] {
            assert_eq!(page(other), None, "{other}");
        }
    }

    #[test]
    fn leaves_secrets_out() {
        let sent =
            b"kept-action=/admin/console/administrators&kept.name=bob&kept.newPassword=x&kept.totp=1&kept.csrf=y";
        let kept = carried(&FormFields::parse(sent).unwrap()).unwrap();
        assert_eq!(kept.fields, [("name".to_owned(), "bob".to_owned())]);
        assert!(carried(&FormFields::parse(b"kept-action=https://evil.example/&kept.name=bob").unwrap()).is_none());
    }
}
