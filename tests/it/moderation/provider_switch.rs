//! A thousand provider switches during checks.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use serde_json::json;

use super::{LISTED, OWN, check, judged, switch, with_vendor};
use crate::support::fake_provider::FakeProvider;

const FLIPS: usize = 1_000;

#[test]
fn a_thousand_switches_under_load_cause_no_wrong_or_lost_response() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let setup = with_vendor(&provider).with("MODERATION_TIMEOUT", "50 s");
    // On a slow machine the load lasts longer.
    let setup = setup.with("MODERATION_TEXTS_PER_USER_HOUR", 1_000_000).with("LLM_CALLS_PER_USER_HOUR", 1_000_000);
    let server = setup.start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    let (is_over, requested) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    let refused = AtomicUsize::new(0);
    let load = |round: usize| {
        let mut slowest = Duration::ZERO;
        let mut number = round;
        while !is_over.load(Ordering::Relaxed) {
            number += 1;
            // Each text is rejected by one moderator only, so the verdict identifies it.
            let question = match number % 3 {
                0 => format!("第{number}次一起{LISTED}吧"),
                1 => format!("第{number}次问你的微信"),
                _ => format!("第{number}次问工作"),
            };
            let started_at = Instant::now();
            let response = check(&server, &user, &question).expect(200).json();
            slowest = slowest.max(started_at.elapsed());
            let is_local = response["provider"] == "local";
            let expected = match number % 3 {
                0 => !is_local,
                1 => is_local,
                _ => true,
            };
            assert_eq!((&response["allowed"], &response["degraded"]), (&json!(expected), &json!(false)), "{response}");
            assert!(is_local || response["provider"] == "aliyun", "{response}");
            requested[usize::from(is_local)].fetch_add(1, Ordering::Relaxed);
            refused.fetch_add(usize::from(!expected), Ordering::Relaxed);
        }
        slowest
    };
    let slowest = std::thread::scope(|scope| {
        let load = &load;
        let callers: Vec<_> = (0..4).map(|round| scope.spawn(move || load(round))).collect();
        for flip in 0..FLIPS {
            let external = flip % 2 == 0;
            let status = switch(&server, &key, external).expect(200).json();
            assert_eq!(status["useAliyun"], external, "{flip}");
        }
        is_over.store(true, Ordering::Relaxed);
        callers.into_iter().map(|caller| caller.join().unwrap()).max().unwrap()
    });
    let requested = requested.map(|count| count.load(Ordering::Relaxed));
    println!(
        "{FLIPS} flips; {} and {} texts were judged outside and here; the slowest took {slowest:?}",
        requested[0], requested[1]
    );
    assert!(requested.iter().all(|&count| count > 20), "{requested:?}");
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
    // Every rejection is recorded exactly once.
    let refusals: i64 = server.value("select count(*) from violations");
    let audited: i64 = server.value("select count(*) from audit where action like '%/switch'");
    assert_eq!(audited, i64::try_from(FLIPS).unwrap());
    assert_eq!(usize::try_from(refusals).unwrap(), refused.load(Ordering::Relaxed));
    let wrong: i64 =
        server.value("select count(*) from violations where (provider = 'local') <> (violation_type = 'gambling')");
    assert_eq!(wrong, 0);
}
