//! A disk that takes five milliseconds to sync: reads do not wait for it, and a save waits for two syncs.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread::scope,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::support::{Server, Setup};

const SYNC: Duration = Duration::from_millis(5);
const SAVERS: usize = 8;
const READS: usize = 400;

/// The times of reads and of saves that run beside them, in order.
struct Times {
    reads: Vec<Duration>,
    saves: Vec<Duration>,
}

impl Times {
    fn of_server(sync: Duration) -> Self {
        let inject = format!("inject=fdatasync,fsync:delay_enter={}", sync.as_micros());
        let strace = format!("exec strace -f -qq --seccomp-bpf -o /dev/null -e trace=fdatasync,fsync -e '{inject}'");
        let mut server = Setup::default().after(&format!("{strace} \"$0\" \"$@\"; true")).in_own_process().start();
        let times = Self::measure(&server);
        server.kill_traced();
        times
    }

    fn measure(server: &Server) -> Self {
        let reader = server.sign_in("13800138000");
        let savers: Vec<_> = (0..SAVERS).map(|number| server.sign_in(&format!("1390013800{number}"))).collect();
        let is_over = AtomicBool::new(false);
        let timed = |act: &dyn Fn()| {
            let begun = Instant::now();
            act();
            begun.elapsed()
        };
        let mut times = scope(|scope| {
            let (is_over, timed) = (&is_over, &timed);
            let saving: Vec<_> = savers
                .iter()
                .map(|saver| {
                    scope.spawn(move || {
                        let mut saves = Vec::new();
                        while !is_over.load(Ordering::Relaxed) {
                            let casting = json!({ "localRecordId": format!("r-{}", saves.len()), "jsonData": [7, 8] });
                            saves.push(timed(&|| {
                                server.post("/divination-history/save").by(saver).json(&casting).send().expect(200);
                            }));
                        }
                        saves
                    })
                })
                .collect();
            let read = || drop(server.get("/user/profile").by(&reader).send().expect(200));
            let reads = (0..READS).map(|_| timed(&read)).collect();
            is_over.store(true, Ordering::Relaxed);
            Self { reads, saves: saving.into_iter().flat_map(|saves| saves.join().unwrap()).collect() }
        });
        times.reads.sort_unstable();
        times.saves.sort_unstable();
        times
    }
}

#[test]
#[ignore = "needs strace; run with `cargo test --test it -- --ignored traced_`"]
fn traced_a_slow_disk_delays_no_read_and_a_save_by_two_syncs() {
    let (fast, slow) = (Times::of_server(Duration::ZERO), Times::of_server(SYNC));
    let percentile = |times: &[Duration], of_100: usize| times[times.len() * of_100 / 100];
    let (fast_read, slow_read) = (percentile(&fast.reads, 99), percentile(&slow.reads, 99));
    let (fast_save, slow_save) = (percentile(&fast.saves, 50), percentile(&slow.saves, 50));
    let told = format!("p99 of reads {fast_read:?} and {slow_read:?}, p50 of saves {fast_save:?} and {slow_save:?}");
    println!("{told}");
    // Beside fewer saves, reads are rather faster.
    assert!(slow_read < fast_read + SYNC / 2, "{told}");
    assert!(slow_save >= SYNC && slow_save < fast_save + 2 * SYNC, "{told}");
}
