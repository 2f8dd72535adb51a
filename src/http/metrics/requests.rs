//! Counts requests by endpoint, status and duration. Recording costs three atomic additions.

use std::time::Duration;

use axum::http::Method;

use crate::metrics::{Counter, microseconds};

/// Upper bounds of the duration buckets, in microseconds.
pub const BOUNDS: [u64; 15] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000,
    60_000_000,
];
/// The statuses that the service responds with. Others are counted as 0.
const STATUSES: [u16; 27] = [
    200, 201, 202, 204, 304, 308, 400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 422, 428, 429, 431, 499, 500, 502,
    503, 504, 206, 301,
];

/// Request counters of all endpoints.
pub struct RequestMetrics {
    unmatched: EndpointCounters,
    /// By position in the route table.
    endpoints: Vec<EndpointCounters>,
}

struct EndpointCounters {
    method: &'static str,
    route: &'static str,
    /// One for each of [`STATUSES`], and one for all others.
    statuses: [Counter; STATUSES.len() + 1],
    buckets: [Counter; BOUNDS.len() + 1],
    sum_microseconds: Counter,
}

/// The counts of one endpoint at one moment.
pub struct RequestCounts {
    pub method: &'static str,
    pub route: &'static str,
    /// Statuses that occurred, with their counts.
    pub statuses: Vec<(u16, u64)>,
    pub buckets: Vec<u64>,
    pub sum_microseconds: u64,
}

impl RequestMetrics {
    /// Creates counters for the endpoints of the route table.
    pub fn new(endpoints: impl IntoIterator<Item = (Method, &'static str)>) -> Self {
        let endpoints = endpoints.into_iter().map(|(method, path)| EndpointCounters::new(method_name(&method), path));
        Self { unmatched: EndpointCounters::new("", "none"), endpoints: endpoints.collect() }
    }

    /// Counts a request of the endpoint at this position, or one that matched no endpoint.
    pub fn record(&self, endpoint: Option<usize>, status: u16, duration: Duration) {
        let counters = endpoint.and_then(|index| self.endpoints.get(index)).unwrap_or(&self.unmatched);
        let status = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len());
        let duration = microseconds(duration);
        counters.statuses[status].add(1);
        counters.buckets[BOUNDS.partition_point(|bound| *bound < duration)].add(1);
        counters.sum_microseconds.add(duration);
    }

    /// Returns the counts of every endpoint that received requests.
    pub fn counts(&self) -> Vec<RequestCounts> {
        let all = [&self.unmatched].into_iter().chain(&self.endpoints);
        all.map(EndpointCounters::counts).filter(|counts| !counts.statuses.is_empty()).collect()
    }
}

impl EndpointCounters {
    fn new(method: &'static str, route: &'static str) -> Self {
        Self {
            method,
            route,
            statuses: std::array::from_fn(|_| Counter::default()),
            buckets: Default::default(),
            sum_microseconds: Counter::default(),
        }
    }

    fn counts(&self) -> RequestCounts {
        let statuses = STATUSES.iter().copied().chain([0]).zip(self.statuses.iter().map(Counter::get));
        RequestCounts {
            method: self.method,
            route: self.route,
            statuses: statuses.filter(|(_, count)| *count > 0).collect(),
            buckets: self.buckets.iter().map(Counter::get).collect(),
            sum_microseconds: self.sum_microseconds.get(),
        }
    }
}

/// Returns the name of a standard method, and `OTHER` for any other text that a client sends.
pub fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("OTHER")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_requests_by_endpoint_status_and_duration() {
        let metrics = RequestMetrics::new([(Method::GET, "/one"), (Method::POST, "/two/{id}"), (Method::POST, "/one")]);
        metrics.record(Some(0), 200, Duration::from_micros(100));
        metrics.record(Some(0), 404, Duration::from_micros(600));
        metrics.record(Some(2), 200, Duration::from_secs(90));
        metrics.record(None, 200, Duration::from_micros(1));
        metrics.record(None, 777, Duration::from_micros(1));
        let counts = metrics.counts();
        let shown: Vec<_> =
            counts.iter().map(|row| (row.method, row.route, row.statuses.clone(), row.sum_microseconds)).collect();
        assert_eq!(
            shown,
            [
                ("", "none", vec![(200, 1), (0, 1)], 2),
                ("GET", "/one", vec![(200, 1), (404, 1)], 700),
                ("POST", "/one", vec![(200, 1)], 90_000_000),
            ]
        );
        assert_eq!(counts[1].buckets[..3], [1, 0, 1]);
        assert_eq!(counts[2].buckets.last(), Some(&1));
    }
}
