//! Labels devices by their `User-Agent`, for the list of devices.

use axum::http::{HeaderMap, header};

use crate::types::clean_line;

/// Longest label, in characters.
const MAX_LENGTH: usize = 64;

/// Words in a `User-Agent` and the names of their systems, most specific first.
const SYSTEMS: [(&str, &str); 9] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("HarmonyOS", "HarmonyOS"),
    ("Android", "Android"),
    ("Macintosh", "Mac"),
    ("Mac OS", "Mac"),
    ("Windows", "Windows"),
    ("Darwin", "Apple"),
    ("Linux", "Linux"),
];

/// Returns the program and system of the `User-Agent`, or an empty text.
pub fn from_user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let program = agent.split([' ', '/']).next().unwrap_or_default();
    // All browsers start with this word.
    let program = if program == "Mozilla" { "" } else { program };
    let system = SYSTEMS.iter().find(|(word, _)| agent.contains(word)).map_or("", |(_, name)| name);
    let words: Vec<_> = [program, system].into_iter().filter(|word| !word.is_empty()).collect();
    let label: String = words.join(", ").chars().take(MAX_LENGTH).collect();
    clean_line(&label, MAX_LENGTH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn label_has_program_and_system() {
        let of = |agent: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
            from_user_agent(&headers)
        };
        assert_eq!(of("Yarrow/2.1 (iPhone; iOS 19.1)"), "Yarrow, iPhone");
        assert_eq!(of("Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36"), "Android");
        assert_eq!(of("okhttp/4.12"), "okhttp");
        assert_eq!(of(""), "");
        assert_eq!(from_user_agent(&HeaderMap::new()), "");
    }
}
