//! Writes metrics in the `OpenMetrics` text format.

use std::{collections::HashMap, fmt};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text},
    metrics::{MetricType, exemplar::Exemplar},
    registry::Registry,
};

use crate::{
    error::{Error, Result},
    metrics::HistogramSnapshot,
};

/// A label and its value.
pub type MetricLabel = (&'static str, String);

/// All metric families.
#[derive(Debug, Default)]
pub struct Page(Vec<Family>);

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    samples: Vec<(Vec<MetricLabel>, Value)>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Debug)]
enum Value {
    Whole(u64),
    Real(f64),
    Histogram { sum: f64, count: u64, buckets: Vec<(f64, u64)> },
}

impl Page {
    /// Adds a counter. `_total` is appended to its name.
    pub fn counter(&mut self, name: &'static str, help: &'static str) -> Samples<'_> {
        self.family(name, help, Kind::Counter)
    }

    pub fn gauge(&mut self, name: &'static str, help: &'static str) -> Samples<'_> {
        self.family(name, help, Kind::Gauge)
    }

    pub fn histogram(&mut self, name: &'static str, help: &'static str) -> Samples<'_> {
        self.family(name, help, Kind::Histogram)
    }

    /// Encodes the page.
    ///
    /// # Errors
    /// `internal` for an invalid metric name.
    pub fn into_text(self) -> Result<String> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::with_capacity(64 << 10);
        text::encode(&mut text, &registry).map_err(Error::internal)?;
        Ok(text)
    }

    fn family(&mut self, name: &'static str, help: &'static str, kind: Kind) -> Samples<'_> {
        let samples = Vec::new();
        self.0.push(Family { name, help, kind, samples });
        Samples(self.0.last_mut())
    }
}

/// Collects the samples of one family.
pub struct Samples<'page>(Option<&'page mut Family>);

impl Samples<'_> {
    pub fn whole(self, labels: &[(&'static str, &str)], value: u64) -> Self {
        self.add(labels, Value::Whole(value))
    }

    pub fn real(self, labels: &[(&'static str, &str)], value: f64) -> Self {
        self.add(labels, Value::Real(value))
    }

    /// Adds a histogram of durations, in seconds.
    pub fn seconds(self, labels: &[(&'static str, &str)], found: &HistogramSnapshot) -> Self {
        self.buckets(labels, found.bounds, &found.buckets, found.sum, 1e6)
    }

    /// Adds a histogram of numbers.
    pub fn sizes(self, labels: &[(&'static str, &str)], found: &HistogramSnapshot) -> Self {
        self.buckets(labels, found.bounds, &found.buckets, found.sum, 1.0)
    }

    /// Adds buckets by their upper bounds, divided by `scale`.
    pub fn buckets(
        self,
        labels: &[(&'static str, &str)],
        bounds: &[u64],
        buckets: &[u64],
        sum: u64,
        scale: f64,
    ) -> Self {
        let upper = bounds.iter().map(|bound| real(*bound) / scale).chain([f64::INFINITY]);
        let buckets: Vec<_> = upper.zip(buckets.iter().copied()).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        self.add(labels, Value::Histogram { sum: real(sum) / scale, count, buckets })
    }

    fn add(mut self, labels: &[(&'static str, &str)], value: Value) -> Self {
        if let Some(family) = &mut self.0 {
            let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
            family.samples.push((labels, value));
        }
        self
    }
}

/// Converts to the number type of the page, which is exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "beyond 2^53 the last digits of a metric do not matter")]
pub const fn real(whole: u64) -> f64 {
    whole as f64
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut samples = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            for (labels, value) in &family.samples {
                if labels.is_empty() {
                    write(family.kind, value, &mut samples)?;
                } else {
                    write(family.kind, value, &mut samples.encode_family(labels)?)?;
                }
            }
        }
        Ok(())
    }
}

fn write(kind: Kind, value: &Value, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
    const NO_EXAMPLES: Option<&HashMap<usize, Exemplar<NoLabelSet, f64>>> = None;
    const NO_EXAMPLE: Option<&Exemplar<NoLabelSet, f64>> = None;
    match (kind, value) {
        (_, Value::Histogram { sum, count, buckets }) => encoder.encode_histogram(*sum, *count, buckets, NO_EXAMPLES),
        (Kind::Counter, Value::Whole(value)) => encoder.encode_counter(value, NO_EXAMPLE),
        (Kind::Counter, Value::Real(value)) => encoder.encode_counter(value, NO_EXAMPLE),
        (_, Value::Whole(value)) => encoder.encode_gauge(value),
        (_, Value::Real(value)) => encoder.encode_gauge(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_all_kinds_of_metrics() {
        let mut page = Page::default();
        page.counter("calls", "Calls").whole(&[("provider", "a \"b\"\n")], 2);
        page.gauge("free", "Free permits").whole(&[], 7);
        page.gauge("share", "A share").real(&[], 0.5);
        page.histogram("took_seconds", "Time").buckets(&[], &[250_000, 1_000_000], &[1, 0, 2], 9_500_000, 1e6);
        let text = page.into_text().unwrap();
        let expected = "# HELP calls Calls\n# TYPE calls counter\ncalls_total{provider=\"a \\\"b\\\"\\n\"} 2\n\
             # HELP free Free permits\n# TYPE free gauge\nfree 7\n\
             # HELP share A share\n# TYPE share gauge\nshare 0.5\n\
             # HELP took_seconds Time\n# TYPE took_seconds histogram\ntook_seconds_sum 9.5\ntook_seconds_count 3\n\
             took_seconds_bucket{le=\"0.25\"} 1\ntook_seconds_bucket{le=\"1.0\"} 1\ntook_seconds_bucket{le=\"+Inf\"} 3\n\
             # EOF\n";
        assert_eq!(text, expected);
    }
}
