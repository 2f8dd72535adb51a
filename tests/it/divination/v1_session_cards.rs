//! `GET /api/v1/sessions/{id}/card.svg`: castings as pictures.

use serde_json::{Value, json};

use crate::support::{Caller, Request, Response, Server, Setup};

const OWN: &str = "13800138000";
const OTHER: &str = "13900139000";
const QUESTION: &str = "今年换工作合适吗？";

fn fixture(setup: Setup) -> (Server, Caller) {
    let server = setup.with("POINTS_CAST", 0).start();
    let user = server.sign_in(OWN);
    (server, user)
}

/// Makes a session and returns the path of its card.
fn session(server: &Server, user: &Caller, question: &str, lines: &str, more: &Value) -> String {
    let lines: Vec<_> = lines.bytes().map(|digit| digit - b'0').collect();
    let mut body = json!({ "question": question, "method": "manual", "lines": lines });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = server.post("/api/v1/sessions").by(user).json(&body).send().expect(201).json();
    format!("/api/v1/sessions/{}/card.svg", made["id"].as_str().unwrap())
}

fn at_noon() -> Value {
    json!({ "castAt": "2026-11-25T23:30:00+08:00", "timeZone": "Asia/Shanghai" })
}

fn card(server: &Server, user: &Caller, path: &str, query: &[(&str, &str)]) -> Request {
    server.get(path).by(user).query(query)
}

/// Returns a card after checking that it is well-formed and inert.
fn svg(response: Response) -> String {
    let text = response.expect(200).text();
    expect_well_formed(&text);
    for forbidden in
        ["<script", "href", "url(", "@import", "<foreignObject", "<image", "<use", "onload=\"", "javascript:"]
    {
        assert!(!text.contains(forbidden), "{forbidden} in {text}");
    }
    assert_eq!(text.matches("http").count(), 1, "only the namespace: {text}");
    text
}

/// Checks that elements nest and that text has no bare `<`, `&` or control character.
fn expect_well_formed(text: &str) {
    let mut open = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        expect_escaped(&rest[..start]);
        let end = start + rest[start..].find('>').unwrap_or_else(|| panic!("an element does not end: {rest}"));
        let element = &rest[start + 1..end];
        assert!(element.matches('"').count().is_multiple_of(2), "{element}");
        expect_escaped(element);
        let name = element.trim_matches('/').split_whitespace().next().unwrap();
        if element.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{text}");
        } else if !element.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
}

fn expect_escaped(text: &str) {
    for after in text.split('&').skip(1) {
        let entity = after.split(';').next().unwrap();
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&entity), "&{after}");
    }
    let is_inert = |character: char| match character {
        '\n' => true,
        '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FFFE}' | '\u{FFFF}' => false,
        character => !character.is_control(),
    };
    assert!(text.chars().all(is_inert), "{text:?}");
}

/// Returns the texts that the picture shows.
fn shown(svg: &str) -> Vec<String> {
    let texts =
        svg.split("<text ").skip(1).map(|text| text.split_once('>').unwrap().1.split_once("</text>").unwrap().0);
    texts.map(ToOwned::to_owned).collect()
}

#[test]
fn draws_hexagrams_chart_and_verses() {
    let (server, user) = fixture(Setup::default());
    let path = session(&server, &user, QUESTION, "788976", &at_noon());
    let chinese = svg(card(&server, &user, &path, &[]).send());
    let texts = shown(&chinese);
    for expected in [
        "泽雷随",
        "风雷益",
        "第 17 卦 · suí",
        "2026-11-25 23:30 · Asia/Shanghai · 手动起卦",
        "丙午",
        "己亥",
        "甲辰",
        "甲子",
        "寅卯",
        "震宫（木）· 归魂",
        "随 · 上六",
        "随 · 九四",
        "青龙",
        "玄武",
        "世",
        "应",
        "官鬼",
        "丁亥水",
        "辛未土",
        "回头克",
        "伏 子孙 庚午火",
        "Yarrow",
    ] {
        assert!(texts.iter().any(|text| text == expected), "{expected} is not in {texts:?}");
    }
    assert!(texts.concat().contains("随有获，贞凶。有孚在道，以明，何咎？"), "{texts:?}");
    assert_eq!((chinese.matches("<circle").count(), chinese.matches("lang=\"zh-Hans\" xml:lang").count()), (2, 1));
    assert!(chinese.contains("<title>泽雷随 → 风雷益</title>"), "{chinese}");
    assert!(chinese.contains("<desc>泽雷随 → 风雷益。动爻：九四、上六。随 · 上六："), "{chinese}");

    let english = svg(card(&server, &user, &path, &[("lang", "en")]).send());
    let texts = shown(&english);
    for expected in [
        "Following",
        "Increase",
        "17 · 随 suí",
        "Bing-Wu",
        "Yin, Mao",
        "Palace of 震 zhèn (wood), returning soul",
        "Officials",
        "丁亥 Ding-Hai, water",
        "Soaring Serpent",
        "Subject",
        "Object",
        "controls it",
        "hidden: Children 庚午 Geng-Wu, fire",
        "Following · fourth line 九四",
    ] {
        assert!(texts.iter().any(|text| text == expected), "{expected} is not in {texts:?}");
    }
}

#[test]
fn a_cast_at_rest_has_one_hexagram_and_its_judgement() {
    let (server, user) = fixture(Setup::default());
    let path = session(&server, &user, QUESTION, "788878", &at_noon());
    let picture = svg(card(&server, &user, &path, &[]).send());
    let texts = shown(&picture);
    assert!(texts.iter().any(|text| text == "屯 · 卦辞"), "{texts:?}");
    assert!(!texts.iter().any(|text| text == "之卦"), "{texts:?}");
    assert!(picture.contains("无动爻"), "{picture}");
}

#[test]
fn without_a_calendar_the_time_and_what_follows_from_it_are_absent() {
    let (server, user) = fixture(Setup::default());
    let path = session(&server, &user, QUESTION, "999999", &at_noon());
    server.edit("update sessions set time_zone = 'Mars/Olympus'");
    let texts = shown(&svg(card(&server, &user, &path, &[]).send()));
    for expected in ["手动起卦", "乾为天", "坤为地", "乾 · 用九", "子孙", "甲子水"] {
        assert!(texts.iter().any(|text| text == expected), "{expected} is not in {texts:?}");
    }
    for absent in ["年", "旬空", "青龙"] {
        assert!(!texts.iter().any(|text| text == absent), "{absent} is in {texts:?}");
    }
}

#[test]
fn language_and_colours_are_chosen() {
    let (server, user) = fixture(Setup::default());
    let path = session(&server, &user, QUESTION, "788976", &at_noon());
    let is_english = |request: Request| svg(request.send()).contains("lang=\"en\"");
    assert!(!is_english(card(&server, &user, &path, &[])));
    assert!(is_english(card(&server, &user, &path, &[]).header("accept-language", "en-GB")));
    server.patch("/api/v1/preferences").by(&user).json(&json!({ "locale": "en" })).send().expect(200);
    assert!(is_english(card(&server, &user, &path, &[]).header("accept-language", "zh")));
    assert!(!is_english(card(&server, &user, &path, &[("lang", "zh-CN")])));

    let auto = svg(card(&server, &user, &path, &[]).send());
    let [light, dark] = ["light", "dark"].map(|theme| svg(card(&server, &user, &path, &[("theme", theme)]).send()));
    assert!(auto.contains("@media (prefers-color-scheme:dark)"), "{auto}");
    assert!(!light.contains("@media") && !dark.contains("@media"));
    assert_ne!(light, dark);
}

#[test]
fn the_question_is_shown_only_if_asked_for() {
    let (server, user) = fixture(Setup::default());
    let path = session(&server, &user, QUESTION, "788976", &at_noon());
    for query in [&[][..], &[("question", "false")]] {
        assert!(!svg(card(&server, &user, &path, query).send()).contains("换工作"));
    }
    let asked = svg(card(&server, &user, &path, &[("question", "true")]).send());
    assert!(shown(&asked).iter().any(|text| text == QUESTION), "{asked}");
}

#[test]
fn hostile_questions_stay_text() {
    let (server, user) = fixture(Setup::default().with("LIMITS_QUESTION", 300));
    for question in [
        "</text><script>alert(1)</script><text>",
        "]]>&lt;&#0;<!-- \" onload=\"alert(1)\" x='",
        "left \u{202E}right\u{2066} \u{200F}end\u{FFFE}\u{FEFF}",
        "line\none\r\ntwo\tthree\u{2028}four",
    ] {
        let path = session(&server, &user, question, "666666", &at_noon());
        svg(card(&server, &user, &path, &[("question", "true")]).send());
    }
    for question in ["問".repeat(300), "W".repeat(300), "a\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}".repeat(40)] {
        let path = session(&server, &user, &question, "666666", &at_noon());
        let picture = svg(card(&server, &user, &path, &[("question", "true")]).send());
        let longest = shown(&picture).iter().map(|line| line.chars().count()).max().unwrap();
        assert!(longest < 200, "{picture}");
    }
}

#[test]
fn clients_cache_a_card_for_themselves() {
    let (server, user) = fixture(Setup::default());
    let path = session(&server, &user, QUESTION, "788976", &at_noon());
    let first = card(&server, &user, &path, &[]).send().expect(200);
    for (name, expected) in [
        ("content-type", "image/svg+xml; charset=utf-8"),
        ("cache-control", "private, no-cache"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"),
    ] {
        assert_eq!(first.header(name), Some(expected), "{name}");
    }
    assert!(first.header("vary").unwrap().contains("authorization"));
    let tag = first.header("etag").unwrap().to_owned();
    let again = card(&server, &user, &path, &[]).header("if-none-match", &tag).send().expect(304);
    assert!(again.bytes.is_empty());
    assert_eq!((again.header("etag"), again.header("cache-control")), (Some(&*tag), Some("private, no-cache")));
    let dark = card(&server, &user, &path, &[("theme", "dark")]).header("if-none-match", &tag).send().expect(200);
    assert_ne!(dark.header("etag"), Some(&*tag));
}

#[test]
fn only_the_owner_sees_a_card() {
    let (server, user) = fixture(Setup::default());
    let path = session(&server, &user, QUESTION, "788976", &at_noon());
    let other = server.sign_in(OTHER);
    card(&server, &other, &path, &[]).send().expect_problem(404, "not_found");
    server.get(&path).send().expect_problem(401, "unauthenticated");
    card(&server, &user, &path, &[("theme", "pink"), ("lang", "fr"), ("question", "maybe")]).send().expect_fields(&[
        ("lang", "unknown_value"),
        ("question", "invalid_type"),
        ("theme", "unknown_value"),
    ]);
    server.get("/api/v1/sessions/x/card.svg").by(&user).send().expect_fields(&[("id", "invalid_format")]);
    server.delete(path.trim_end_matches("/card.svg")).by(&user).send().expect(204);
    card(&server, &user, &path, &[]).send().expect_problem(404, "not_found");
}

#[test]
fn the_operator_names_the_service() {
    let (server, user) = fixture(Setup::default().with("BRAND_NAME", "山泽 & Co"));
    let path = session(&server, &user, QUESTION, "788976", &at_noon());
    let texts = shown(&svg(card(&server, &user, &path, &[]).send()));
    assert!(texts.iter().any(|text| text == "山泽 &amp; Co"), "{texts:?}");
}
