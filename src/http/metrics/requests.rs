//! Counting requests by endpoint, status and duration.
//!
//! It stands on the path of every request, so it costs three additions in memory that belongs to the thread: no lock,
//! no text, nothing allocated. What is added up per thread is put together when somebody asks.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use axum::http::Method;

use crate::metrics::microseconds;

/// Upper bounds of durations, in microseconds.
pub const BOUNDS: [u64; 15] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000,
    60_000_000,
];
/// The statuses that the service answers with. Others are counted together, as 0.
const STATUSES: [u16; 27] = [
    200, 201, 202, 204, 304, 308, 400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 422, 428, 429, 431, 499, 500, 502,
    503, 504, 206, 301,
];
const OTHER_STATUS: usize = STATUSES.len();
/// Statuses, then buckets, then the sum of durations.
const FIRST_BUCKET: usize = STATUSES.len() + 1;
const SUM: usize = FIRST_BUCKET + BOUNDS.len() + 1;
const ROW: usize = SUM + 1;
/// Fibonacci hashing: texts stand close to each other in memory, and a multiplication with this spreads them.
const SPREAD: usize = 0x9e37_79b9_7f4a_7c15;
/// Threads that count apart from each other; more share.
const MOST_SHARDS: usize = 16;

thread_local! {
    static SHARD: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The counters of all endpoints. The first row is for requests that found no endpoint.
pub struct RequestMetrics {
    endpoints: Vec<(Method, &'static str)>,
    places: Places,
    shards: Vec<Box<[AtomicU64]>>,
    next_shard: AtomicUsize,
}

/// What was counted for one endpoint.
pub struct Counted {
    pub method: &'static str,
    pub route: &'static str,
    /// Those statuses that were answered, and how often.
    pub statuses: Vec<(u16, u64)>,
    pub buckets: Vec<u64>,
    pub sum_microseconds: u64,
}

impl RequestMetrics {
    pub fn new(endpoints: Vec<(Method, &'static str)>, threads: usize) -> Self {
        let places = Places::new(&endpoints);
        let cells = (endpoints.len() + 1) * ROW;
        let shard = || (0..cells).map(|_| AtomicU64::new(0)).collect();
        let shards = (0..threads.clamp(1, MOST_SHARDS)).map(|_| shard()).collect();
        Self { endpoints, places, shards, next_shard: AtomicUsize::new(0) }
    }

    /// Counts a request that was answered.
    pub fn record(&self, method: &Method, route: Option<&'static str>, status: u16, duration: Duration) {
        let row = ROW * route.map_or(0, |route| self.places.find(&self.endpoints, method, route));
        let duration = microseconds(duration);
        let columns = [
            (STATUSES.iter().position(|known| *known == status).unwrap_or(OTHER_STATUS), 1),
            (FIRST_BUCKET + BOUNDS.partition_point(|bound| *bound < duration), 1),
            (SUM, duration),
        ];
        let shard = &self.shards[self.own_shard()];
        for (column, number) in columns {
            shard[row + column].fetch_add(number, Ordering::Relaxed);
        }
    }

    /// What was counted so far, for every endpoint that was called.
    pub fn counted(&self) -> Vec<Counted> {
        let rows = (0..=self.endpoints.len()).map(|row| self.counted_in(row));
        rows.filter(|counted| !counted.statuses.is_empty()).collect()
    }

    fn counted_in(&self, row: usize) -> Counted {
        let cell = |column: usize| -> u64 {
            self.shards.iter().map(|shard| shard[row * ROW + column].load(Ordering::Relaxed)).sum()
        };
        let statuses = STATUSES.iter().copied().chain([0]).enumerate();
        let (method, route) = match row.checked_sub(1).and_then(|index| self.endpoints.get(index)) {
            Some((method, route)) => (super::super::request_layer::method_name(method), *route),
            None => ("", "none"),
        };
        Counted {
            method,
            route,
            statuses: statuses.map(|(column, status)| (status, cell(column))).filter(|(_, count)| *count > 0).collect(),
            buckets: (FIRST_BUCKET..SUM).map(cell).collect(),
            sum_microseconds: cell(SUM),
        }
    }

    fn own_shard(&self) -> usize {
        let own = SHARD.get().unwrap_or_else(|| {
            let next = self.next_shard.fetch_add(1, Ordering::Relaxed);
            SHARD.set(Some(next));
            next
        });
        own % self.shards.len()
    }
}

/// Finds an endpoint's row by where its path stands in memory: the router hands on the very text that the endpoint was
/// declared with, so nothing has to be hashed or compared letter by letter.
struct Places {
    /// Address of a path and the first endpoint that has it; a power of two of them, at most half of them used.
    slots: Vec<(usize, usize)>,
    /// The next endpoint with the same path, by endpoint.
    next: Vec<Option<usize>>,
}

impl Places {
    fn new(endpoints: &[(Method, &'static str)]) -> Self {
        let size = (2 * endpoints.len().max(1)).next_power_of_two();
        let mut places = Self { slots: vec![(0, 0); size], next: vec![None; endpoints.len()] };
        for (index, (_, path)) in endpoints.iter().enumerate() {
            let slot = places.slot_of(path);
            if places.slots[slot].0 == 0 {
                places.slots[slot] = (address(path), index);
            } else {
                let mut last = places.slots[slot].1;
                while let Some(next) = places.next[last] {
                    last = next;
                }
                places.next[last] = Some(index);
            }
        }
        places
    }

    /// The row of an endpoint; 0 for none, such as a method that is answered without one.
    fn find(&self, endpoints: &[(Method, &'static str)], method: &Method, path: &'static str) -> usize {
        let (found, first) = self.slots[self.slot_of(path)];
        let mut candidate = (found != 0).then_some(first);
        while let Some(index) = candidate {
            if endpoints[index].0 == *method {
                return index + 1;
            }
            candidate = self.next[index];
        }
        0
    }

    /// The slot of this path, or the free one that it would get.
    fn slot_of(&self, path: &'static str) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (address(path).wrapping_mul(SPREAD) >> (usize::BITS / 2)) & mask;
        while self.slots[slot].0 != 0 && self.slots[slot].0 != address(path) {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

fn address(path: &'static str) -> usize {
    path.as_ptr() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_where_they_belong() {
        let (one, other) = ("/one", "/other/{id}");
        let endpoints = vec![(Method::GET, one), (Method::POST, other), (Method::POST, one)];
        let tally = RequestMetrics::new(endpoints, 2);
        let record = |method: &Method, route, status, micros| {
            tally.record(method, route, status, Duration::from_micros(micros));
        };
        record(&Method::GET, Some(one), 200, 100);
        record(&Method::GET, Some(one), 404, 600);
        std::thread::scope(|scope| drop(scope.spawn(|| record(&Method::POST, Some(one), 200, 90_000_000))));
        record(&Method::HEAD, Some(other), 200, 1);
        record(&Method::GET, None, 777, 1);
        let counted = tally.counted();
        let shown: Vec<_> =
            counted.iter().map(|row| (row.method, row.route, row.statuses.clone(), row.sum_microseconds)).collect();
        assert_eq!(
            shown,
            [
                ("", "none", vec![(200, 1), (0, 1)], 2),
                ("GET", one, vec![(200, 1), (404, 1)], 700),
                ("POST", one, vec![(200, 1)], 90_000_000),
            ]
        );
        assert_eq!(counted[1].buckets[..3], [1, 0, 1]);
        assert_eq!(counted[2].buckets.last(), Some(&1));
    }
}
