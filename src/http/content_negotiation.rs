//! Quality values of headers such as `Accept` and `Accept-Encoding`, and the language that a client prefers.

use axum::http::{HeaderMap, header};

use crate::types::{LanguageTag, Locale};

/// Responses up to this size fit into one packet anyway.
pub const COMPRESSED_ABOVE: u64 = 1024;

/// Returns the quality that a header gives to a choice, 1 by default, or `None` if the header does not name it.
pub fn quality(header: &str, choice: &str) -> Option<f32> {
    header.split(',').find_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case(choice) {
            return None;
        }
        Some(quality_in(parts))
    })
}

/// Returns the language that the client prefers of those that the service speaks. All kinds of Chinese are one. Speakers
/// of other languages get English.
pub fn preferred_locale(headers: &HeaderMap) -> Option<Locale> {
    let header = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok())?;
    let (mut chinese, mut english, mut other) = (0.0_f32, 0.0_f32, 0.0_f32);
    for range in header.split(',') {
        let tag = range.split(';').next().unwrap_or_default().trim();
        let best = match tag.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "zh" => &mut chinese,
            "en" => &mut english,
            "" | "*" => continue,
            _ => &mut other,
        };
        *best = best.max(quality_of(range));
    }
    if chinese > 0.0 && chinese >= english {
        Some(Locale::Chinese)
    } else {
        (english > 0.0 || other > 0.0).then_some(Locale::English)
    }
}

/// Returns the region and script of the language that the client prefers most.
pub fn language_tag(headers: &HeaderMap) -> LanguageTag {
    let header = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // Of equal ones the first.
    let preferred = header.split(',').rev().max_by(|one, other| quality_of(one).total_cmp(&quality_of(other)));
    LanguageTag::parse(preferred.and_then(|range| range.split(';').next()).unwrap_or_default())
}

/// Returns the quality of one choice, such as `en-GB; q=0.8`.
pub fn quality_of(choice: &str) -> f32 {
    quality_in(choice.split(';').skip(1).map(str::trim))
}

fn quality_in<'header>(mut parameters: impl Iterator<Item = &'header str>) -> f32 {
    let quality = parameters.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    quality.map_or(1.0, |quality| quality.parse().unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn quality_defaults_to_one() {
        let header = "application/json, TEXT/event-stream ; charset=utf-8; q=0.5,text/html;q=0, text/plain;Q=x";
        let qualities = ["application/json", "text/event-stream", "text/html", "text/plain", "text", ""]
            .map(|choice| quality(header, choice));
        assert_eq!(["en-GB; q=0.1", "zh"].map(|choice| Some(quality_of(choice))), [Some(0.1), Some(1.0)]);
        assert_eq!(qualities, [Some(1.0), Some(0.5), Some(0.0), Some(1.0), None, None]);
    }

    #[test]
    fn languages_follow_their_quality() {
        let preferred = |header: &'static str| {
            preferred_locale(&HeaderMap::from_iter([(header::ACCEPT_LANGUAGE, HeaderValue::from_static(header))]))
        };
        for header in
            ["zh", "zh-CN", "zh-Hans", "zh-TW", "zh_CN", "ZH-hant-HK;q=0.5", "fr, zh;q=0.2, en;q=0.1", "en, zh"]
        {
            assert_eq!(preferred(header), Some(Locale::Chinese), "{header}");
        }
        for header in ["en", "en-GB", "EN_us", "zh;q=0.8, en;q=0.9", "zh;q=0, en;q=0.1", "de, en;q=0.3"]
            .into_iter()
            .chain(["fr", "de-AT", "ja, *;q=0.5", "enm", "zha", "zh;q=0, ko"])
        {
            assert_eq!(preferred(header), Some(Locale::English), "{header}");
        }
        for header in ["", "*", "zh;q=0", "en;q=0.0", "de;q=0, *"] {
            assert_eq!(preferred(header), None, "{header}");
        }
        assert_eq!(preferred_locale(&HeaderMap::new()), None);
    }

    #[test]
    fn region_and_script_are_those_of_the_most_preferred_language() {
        let tag = |header: &'static str| {
            language_tag(&HeaderMap::from_iter([(header::ACCEPT_LANGUAGE, HeaderValue::from_static(header))]))
        };
        for (header, region, is_traditional) in [
            ("zh-TW,zh;q=0.9,en-US;q=0.8", Some("TW"), true),
            ("zh-Hant-HK", Some("HK"), true),
            ("zh-Hans-HK", Some("HK"), false),
            ("zh-Hant", None, true),
            ("en;q=0.5, en-gb", Some("GB"), false),
            ("zh, zh-CN", None, false),
            ("es-419", None, false),
            ("en-TW", Some("TW"), false),
            ("", None, false),
        ] {
            assert_eq!((tag(header).region_code().as_deref(), tag(header).is_traditional), (region, is_traditional));
        }
    }
}
