//! Concurrent requests.

use std::sync::Barrier;

use super::client::{Request, Response};

/// Sends all requests at once from separate threads. Returns the responses in the same order.
pub fn send_concurrently(requests: Vec<Request>) -> Vec<Response> {
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
