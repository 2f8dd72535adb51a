//! Many at once: the list changes and the switch is flipped while texts are judged, all started together.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use super::{LISTED, OWN, check, judged, switch, violations, with_vendor};
use crate::support::{Answer, Server, Setup, at_once, vendors::Vendor};

const CALLERS: usize = 120;

fn add(server: &Server, key: &str, word: &str) -> Answer {
    server.post("/admin/sensitive-words/add").token(key).json(&json!({ "word": word, "type": "ads" })).send()
}

fn remove(server: &Server, key: &str, word: &str) -> Answer {
    server.request("DELETE", "/admin/sensitive-words/remove").token(key).json(&json!({ "word": word })).send()
}

/// Runs this for each caller from a thread of its own, all at the same moment.
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
fn texts_are_judged_by_the_list_of_their_moment_while_many_change_it() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("editor"));
    let refusals = AtomicUsize::new(0);
    let allowed = |question: &str| {
        let allowed = check(&server, &user, question).expect(200).json()["allowed"] == true;
        refusals.fetch_add(usize::from(!allowed), Ordering::Relaxed);
        allowed
    };
    together(|caller| match caller % 3 {
        // Each editor sees every change of its own at once, whatever the others do.
        0 => {
            let word = format!("仙山{caller}号");
            for round in 0..2 {
                add(&server, &key, &word).expect(201);
                assert!(!allowed(&format!("去{word}吗")), "{word} was added, round {round}");
                remove(&server, &key, &word).expect(200);
                assert!(allowed(&format!("去{word}吗")), "{word} was removed, round {round}");
            }
        }
        1 => (0..3).for_each(|_| assert!(!allowed(&format!("一起{LISTED}吧")), "a word nobody touches is lost")),
        _ => (0..3).for_each(|_| assert!(allowed("今年换工作合适吗"), "an innocent text is refused")),
    });
    let recorded = usize::try_from(violations(&server)).unwrap();
    assert_eq!(recorded, refusals.load(Ordering::Relaxed), "each refusal is on record once");
    let figures = server.get("/admin/sensitive-words/statistics").token(&key).send().expect(200).json();
    let stored: i64 = server.value("select count(*) from words");
    assert_eq!(figures["total"], stored);
}

#[test]
fn of_many_who_add_or_remove_one_word_one_does() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("editor"));
    for round in 0..2 {
        let body = json!({ "word": "蓬莱仙", "type": "ads" });
        let request = server.post("/admin/sensitive-words/add").token(&key).json(&body);
        let answers = at_once(vec![request; CALLERS]);
        assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1, "{round}");
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 201)));
        assert_eq!(check(&server, &user, "去蓬莱仙山").expect(200).json()["allowed"], false);
        let request =
            server.request("DELETE", "/admin/sensitive-words/remove").token(&key).json(&json!({ "word": "蓬萊仙" }));
        let answers = at_once(vec![request; CALLERS]);
        assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1, "{round}");
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 404)));
        assert_eq!(check(&server, &user, "去蓬莱仙山").expect(200).json()["allowed"], true);
    }
}

#[test]
fn flips_and_checks_that_start_together_disturb_nobody() {
    let vendor = Vendor::answering(|request| judged(request, "微信"));
    // As many calls as there are callers, or some of them would find no place and fall back.
    let setup = with_vendor(&vendor).with("MODERATION_CALLS", 2 * CALLERS).with("MODERATION_CONNECT_TIMEOUT", "20 s");
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
            let answer = check(&server, &user, &question).expect(200).json();
            let is_refused = answer["provider"] == refused_by;
            assert_eq!((&answer["allowed"], &answer["degraded"]), (&json!(!is_refused), &json!(false)), "{answer}");
            refusals.fetch_add(usize::from(is_refused), Ordering::Relaxed);
        }
    });
    assert_eq!(usize::try_from(violations(&server)).unwrap(), refusals.load(Ordering::Relaxed));
    // Every flip is on record, and says from where to where without a gap.
    let flips: Vec<String> = {
        let database = server.database();
        let mut statement =
            database.prepare("select reason from audit where action like '%/switch' order by id").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(flips.len(), CALLERS / 6 * 3);
    let status = server.get("/admin/sensitive-word-migration/status").token(&key).send().expect(200).json();
    let stored: Value = json!(server.value::<String>("select value from settings where name = 'moderation.service'"));
    assert_eq!(status["service"], stored);
}
