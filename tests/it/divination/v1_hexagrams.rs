//! `/api/v1/hexagrams`: the classical texts and their caching.

use serde_json::{Value, json};

use crate::support::{Document, Request, Server, Setup};

fn server() -> Server {
    Setup::default().start()
}

fn hexagram(server: &Server, number: u8) -> Request {
    server.get(&format!("/api/v1/hexagrams/{number}"))
}

#[test]
fn lists_all_hexagrams_with_their_judgements() {
    let server = server();
    let list = server.get("/api/v1/hexagrams").send().expect(200).json();
    let items = list["items"].as_array().unwrap();
    let numbers: Vec<_> = items.iter().map(|item| item["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=64).collect::<Vec<_>>());
    let conflict = &items[5];
    assert_eq!(
        (&conflict["sign"], &conflict["chineseName"], &conflict["traditionalName"], &conflict["upper"]["chineseName"]),
        (&json!("䷅"), &json!("讼"), &json!("訟"), &json!("乾"))
    );
    assert_eq!(
        conflict["judgement"],
        json!({
            "traditional": "有孚，窒惕，中吉，終凶。利見大人，不利涉大川。",
            "simplified": "有孚，窒惕，中吉，终凶。利见大人，不利涉大川。",
        })
    );
    assert!(conflict.get("lines").is_none());
    for item in items {
        assert!(!item["judgement"]["traditional"].as_str().unwrap().is_empty(), "{item}");
        assert!(!item["plain"].as_str().unwrap().is_empty(), "{item}");
    }
}

#[test]
fn returns_every_text_of_a_hexagram() {
    let server = server();
    let following = hexagram(&server, 17).send().expect(200).json();
    let simplified = |text: &Value| text["simplified"].as_str().unwrap().to_owned();
    assert_eq!(simplified(&following["judgement"]), "元亨，利贞，无咎。");
    assert!(simplified(&following["commentary"]).starts_with("随，刚来而下柔"), "{following}");
    assert!(simplified(&following["image"]).starts_with("泽中有雷，随"), "{following}");
    let labels: Vec<_> =
        following["lines"].as_array().unwrap().iter().map(|line| line["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["初九", "六二", "六三", "九四", "九五", "上六"]);
    let fourth = &following["lines"][3];
    assert_eq!(fourth["text"]["traditional"], "隨有獲，貞凶。有孚在道，以明，何咎？");
    assert_eq!(simplified(&fourth["text"]), "随有获，贞凶。有孚在道，以明，何咎？");
    assert_eq!(simplified(&fourth["image"]), "随有获，其义凶也。有孚在道，明功也。");
    assert!(fourth["plain"].as_str().unwrap().starts_with("追随而有收获"), "{fourth}");
    assert_eq!(following["allLines"], Value::Null);
    for (number, label) in [(1, "用九"), (2, "用六")] {
        let pure = hexagram(&server, number).send().expect(200).json();
        assert_eq!((pure["lines"].as_array().unwrap().len(), &pure["allLines"]["label"]), (6, &json!(label)));
    }
}

#[test]
fn plain_sentences_follow_the_language_and_verses_do_not() {
    let server = server();
    let chinese = hexagram(&server, 17).send().expect(200).json();
    let english = hexagram(&server, 17).header("accept-language", "en-GB").send().expect(200).json();
    assert!(english["lines"][3]["plain"].as_str().unwrap().starts_with("Following brings gain"), "{english}");
    assert!(english["plain"].as_str().unwrap().is_ascii(), "{english}");
    assert_ne!(english["plain"], chinese["plain"]);
    assert_eq!(english["lines"][3]["text"], chinese["lines"][3]["text"]);
}

#[test]
fn clients_and_proxies_cache_the_texts() {
    let server = server();
    for path in ["/api/v1/hexagrams", "/api/v1/hexagrams/64"] {
        let first = server.get(path).send().expect(200);
        assert_eq!(first.header("cache-control"), Some("public, max-age=86400"), "{path}");
        assert_eq!(first.header("vary"), Some("accept-encoding, accept-language"), "{path}");
        let tag = first.header("etag").unwrap().to_owned();
        let again = server.get(path).header("if-none-match", &format!("\"other\", {tag}")).send().expect(304);
        assert!(again.bytes.is_empty());
        assert_eq!(
            (again.header("etag"), again.header("cache-control")),
            (Some(tag.as_str()), Some("public, max-age=86400"))
        );
        let english = server.get(path).header("accept-language", "en").header("if-none-match", &tag);
        assert_ne!(english.send().expect(200).header("etag"), Some(tag.as_str()), "{path}");
        server.get(path).header("if-none-match", "\"other\"").send().expect(200);
        // A bad token counts as none.
        let with_token = server.get(path).token("nobody's").send().expect(200);
        assert_eq!(with_token.header("cache-control"), Some("public, max-age=86400"), "{path}");
    }
}

#[test]
fn unknown_numbers_are_not_found_and_words_are_invalid() {
    let server = server();
    for number in ["0", "65", "-1", "256", "99999999999"] {
        let response = server.get(&format!("/api/v1/hexagrams/{number}")).send().expect_problem(404, "not_found");
        assert_eq!(response.header("etag"), None, "{number}");
    }
    for word in ["x", "1.5", "%E5%B1%AF"] {
        server.get(&format!("/api/v1/hexagrams/{word}")).send().expect_fields(&[("number", "invalid_type")]);
    }
}

#[test]
fn documented_examples_are_the_responses() {
    let server = server();
    let document = Document::of(&server);
    let example = |name: &str| {
        document.operation(name).value["responses"]["200"]["content"]["application/json"]["example"].clone()
    };
    assert_eq!(example("GET /api/v1/hexagrams/{number}"), hexagram(&server, 3).send().expect(200).json());
    let list = server.get("/api/v1/hexagrams").send().expect(200).json();
    assert_eq!(example("GET /api/v1/hexagrams")["items"][0], list["items"][2]);
    let operation = document.operation("GET /api/v1/hexagrams/{number}");
    let tag = hexagram(&server, 3).send().header("etag").unwrap().to_owned();
    document.expect_described(operation, &hexagram(&server, 3).header("if-none-match", &tag).send().expect(304));
    document.expect_described(operation, &hexagram(&server, 65).send().expect(404));
}
