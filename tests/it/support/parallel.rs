//! Many callers at the same moment.

use std::sync::Barrier;

use super::client::{Answer, Request};

/// Sends all requests at once, each from a thread of its own, and returns the answers in the same order.
pub fn at_once(requests: Vec<Request>) -> Vec<Answer> {
    let start = Barrier::new(requests.len());
    std::thread::scope(|scope| {
        let send = |request: Request| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                request.send()
            })
        };
        let threads: Vec<_> = requests.into_iter().map(send).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
