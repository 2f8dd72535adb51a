//! Concurrent list changes, provider switches and checks.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use super::{LISTED, OWN, check, judged, switch, violations, with_vendor};
use crate::support::{Response, Server, Setup, fake_provider::FakeProvider, send_concurrently};

const CALLERS: usize = 120;

fn add(server: &Server, key: &str, word: &str) -> Response {
    server.post("/admin/sensitive-words/add").token(key).json(&json!({ "word": word, "type": "ads" })).send()
}

fn remove(server: &Server, key: &str, word: &str) -> Response {
    server.request("DELETE", "/admin/sensitive-words/remove").token(key).json(&json!({ "word": word })).send()
}

/// Runs the function for each caller on its own thread, all at the same moment.
fn together(run: impl Fn(usize) + Sync) {
    let (start, run) = (Barrier::new(CALLERS), &run);
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                run(caller);
            });
        }
    });
}

#[test]
fn checks_use_the_current_list_during_concurrent_changes() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("editor"));
    let refusals = AtomicUsize::new(0);
    let allowed = |question: &str| {
        let allowed = check(&server, &user, question).expect(200).json()["allowed"] == true;
        refusals.fetch_add(usize::from(!allowed), Ordering::Relaxed);
        allowed
    };
    together(|caller| match caller % 3 {
        // Each editor sees its own changes at once.
        0 => {
            let word = format!("仙山{caller}号");
            for round in 0..2 {
                add(&server, &key, &word).expect(201);
                assert!(!allowed(&format!("去{word}吗")), "{word} was added, round {round}");
                remove(&server, &key, &word).expect(200);
                assert!(allowed(&format!("去{word}吗")), "{word} was removed, round {round}");
            }
        }
        1 => (0..3).for_each(|_| assert!(!allowed(&format!("一起{LISTED}吧")), "an unrelated word is lost")),
        _ => (0..3).for_each(|_| assert!(allowed("今年换工作合适吗"), "an innocent text is rejected")),
    });
    let recorded = usize::try_from(violations(&server)).unwrap();
    assert_eq!(recorded, refusals.load(Ordering::Relaxed), "each rejection is recorded once");
    let figures = server.get("/admin/sensitive-words/statistics").token(&key).send().expect(200).json();
    let stored: i64 = server.value("select count(*) from words");
    assert_eq!(figures["total"], stored);
}

#[test]
fn one_of_several_concurrent_changes_of_a_word_succeeds() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("editor"));
    for round in 0..2 {
        let body = json!({ "word": "蓬莱仙", "type": "ads" });
        let request = server.post("/admin/sensitive-words/add").token(&key).json(&body);
        let responses = send_concurrently(vec![request; CALLERS]);
        assert_eq!(responses.iter().filter(|response| response.status == 201).count(), 1, "{round}");
        let others: Vec<_> = responses.iter().filter(|response| !matches!(response.status, 200 | 201)).collect();
        assert!(others.is_empty(), "{others:?}");
        assert_eq!(check(&server, &user, "去蓬莱仙好吗").expect(200).json()["allowed"], false);
        let request =
            server.request("DELETE", "/admin/sensitive-words/remove").token(&key).json(&json!({ "word": "蓬萊仙" }));
        let responses = send_concurrently(vec![request; CALLERS]);
        assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 1, "{round}");
        assert!(responses.iter().all(|response| matches!(response.status, 200 | 404)));
        assert_eq!(check(&server, &user, "去蓬莱仙好吗").expect(200).json()["allowed"], true);
    }
}

#[test]
fn concurrent_switches_disturb_no_check() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    // One permit for each caller. With fewer, some would fall back.
    let setup = with_vendor(&provider)
        .with("MODERATION_MAX_CONCURRENT_CALLS", 2 * CALLERS)
        .with("MODERATION_CONNECT_TIMEOUT", "20 s");
    let server = setup.with("MODERATION_TIMEOUT", "20 s").start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    let refusals = AtomicUsize::new(0);
    together(|caller| {
        if caller % 6 == 0 {
            for external in [true, false, true] {
                assert_eq!(switch(&server, &key, external).expect(200).json()["enableFallback"], true);
            }
            return;
        }
        for (question, refused_by) in [(format!("一起{LISTED}吧"), "local"), ("问你的微信".to_owned(), "aliyun")]
        {
            let response = check(&server, &user, &question).expect(200).json();
            let is_refused = response["provider"] == refused_by;
            assert_eq!(
                (&response["allowed"], &response["degraded"]),
                (&json!(!is_refused), &json!(false)),
                "{response}"
            );
            refusals.fetch_add(usize::from(is_refused), Ordering::Relaxed);
        }
    });
    assert_eq!(usize::try_from(violations(&server)).unwrap(), refusals.load(Ordering::Relaxed));
    // Every switch is audited, without gaps.
    let flips: Vec<String> = {
        let database = server.database();
        let mut statement =
            database.prepare("select reason from audit where action like '%/switch' order by id").unwrap();
        statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(flips.len(), CALLERS / 6 * 3);
    let status = server.get("/admin/sensitive-word-migration/status").token(&key).send().expect(200).json();
    let stored: Value = json!(server.value::<String>("select value from settings where name = 'moderation.service'"));
    assert_eq!(status["service"], stored);
}
