//! What a device calls itself, as its owner finds it in the list of devices.

use axum::http::{HeaderMap, header};

use crate::types::clean_line;

/// Characters of a label.
const LONGEST: usize = 64;

/// Systems as they stand in a `User-Agent`, the more telling first, and as people call them.
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

/// A name made of the `User-Agent`: the program, and the system that it says it runs on. Empty if it says nothing.
pub fn label(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let program = agent.split([' ', '/']).next().unwrap_or_default();
    // Every browser calls itself that.
    let program = if program == "Mozilla" { "" } else { program };
    let system = SYSTEMS.iter().find(|(word, _)| agent.contains(word)).map_or("", |(_, name)| name);
    let words: Vec<_> = [program, system].into_iter().filter(|word| !word.is_empty()).collect();
    let label: String = words.join(", ").chars().take(LONGEST).collect();
    clean_line(&label, LONGEST).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_label_tells_program_and_system() {
        let of = |agent: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
            label(&headers)
        };
        assert_eq!(of("Yarrow/2.1 (iPhone; iOS 19.1)"), "Yarrow, iPhone");
        assert_eq!(of("Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36"), "Android");
        assert_eq!(of("okhttp/4.12"), "okhttp");
        assert_eq!(of(""), "");
        assert_eq!(label(&HeaderMap::new()), "");
    }
}
