//! Counters and histograms. Recording costs an atomic addition, without a lock or an allocation.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Upper bounds for durations of disk and provider calls, in microseconds.
pub const SLOW_BOUNDS: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000,
    60_000_000,
];
/// Upper bounds for batch sizes.
pub const SIZE_BOUNDS: [u64; 14] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512];

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A histogram with fixed buckets. The last bucket counts values above all bounds.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64; 14],
    buckets: [Counter; 15],
    sum: Counter,
}

/// The buckets and sum of a histogram at one moment.
#[derive(Clone, Debug)]
pub struct HistogramSnapshot {
    pub bounds: &'static [u64; 14],
    /// One more than the bounds.
    pub buckets: Vec<u64>,
    pub sum: u64,
}

impl Histogram {
    pub fn new(bounds: &'static [u64; 14]) -> Self {
        Self { bounds, buckets: Default::default(), sum: Counter::default() }
    }

    pub fn add(&self, value: u64) {
        if let Some(bucket) = self.buckets.get(self.bounds.partition_point(|bound| *bound < value)) {
            bucket.add(1);
        }
        self.sum.add(value);
    }

    pub fn add_duration(&self, duration: Duration) {
        self.add(microseconds(duration));
    }

    pub fn get(&self) -> HistogramSnapshot {
        HistogramSnapshot {
            bounds: self.bounds,
            buckets: self.buckets.iter().map(Counter::get).collect(),
            sum: self.sum.get(),
        }
    }
}

pub fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_value_in_the_first_bucket_that_fits() {
        let histogram = Histogram::new(&SIZE_BOUNDS);
        for value in [1, 2, 3, 4, 512, 513, 9_999] {
            histogram.add(value);
        }
        let found = histogram.get();
        assert_eq!(found.buckets, [1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(found.sum, 1 + 2 + 3 + 4 + 512 + 513 + 9_999);
    }
}
