//! Figures of one run under load, and medians of several.

use super::process::{Usage, Used};

/// The figures of one run under load.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    pub requests_per_second: f64,
    /// Milliseconds.
    pub median: f64,
    /// Milliseconds.
    pub percentile_99: f64,
    /// Milliseconds.
    pub percentile_999: f64,
    /// The server's CPU time per request in microseconds.
    pub cpu_per_request: f64,
    /// The fraction of its core that the server used.
    pub utilisation: f64,
    /// Resident anonymous memory at the end, in bytes.
    pub memory: u64,
    /// Cores used by other processes.
    pub others: f64,
}

impl Measurement {
    // Numbers of requests are far below a float's exact range.
    #[expect(clippy::cast_precision_loss)]
    pub fn new(mut latencies: Vec<u32>, before: &Usage, after: &Usage, memory: u64) -> Self {
        latencies.sort_unstable();
        let count = latencies.len().max(1) as f64;
        let percentile = |of_1000: usize| {
            let index = (latencies.len() * of_1000 / 1000).min(latencies.len().saturating_sub(1));
            latencies.get(index).map_or(0.0, |microseconds| f64::from(*microseconds) / 1_000.0)
        };
        let Used { seconds, server, others } = before.until(after);
        Self {
            requests_per_second: count / seconds,
            median: percentile(500),
            percentile_99: percentile(990),
            percentile_999: percentile(999),
            cpu_per_request: server * 1e6 / count,
            utilisation: server / seconds,
            memory,
            others,
        }
    }
}

/// A median with its range.
pub struct Spread {
    pub median: f64,
    pub smallest: f64,
    pub largest: f64,
}

impl Spread {
    pub fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let last = values.len().saturating_sub(1);
        Self { median: f64::midpoint(at(last / 2), at(last.div_ceil(2))), smallest: at(0), largest: at(last) }
    }

    pub fn show(&self) -> String {
        format!("{:.3} ({:.2}..{:.2})", self.median, self.smallest, self.largest)
    }
}
