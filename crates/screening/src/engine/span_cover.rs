//! Sets of spans, and the masking of matches.

use super::{candidate::ByteSpan, types::Match};

/// Replaces each character of a match by an asterisk.
pub fn mask(text: &str, matches: &[Match]) -> String {
    let cover = SpanCover::new(matches.iter().map(|found| (found.start, found.end)).collect());
    let shown = |(index, character)| if cover.covers(index) { '*' } else { character };
    text.chars().enumerate().map(shown).collect()
}

/// Spans by their start, each with the farthest end of all spans up to it.
pub(super) struct SpanCover(Vec<(usize, usize)>);

impl SpanCover {
    pub(super) fn new(mut spans: Vec<(usize, usize)>) -> Self {
        spans.sort_unstable();
        let mut farthest = 0;
        for span in &mut spans {
            farthest = farthest.max(span.1);
            span.1 = farthest;
        }
        Self(spans)
    }

    /// Returns true if one of the spans contains this one.
    pub(super) fn contains(&self, span: &ByteSpan) -> bool {
        self.farthest_end(span.start) >= span.end
    }

    fn covers(&self, index: usize) -> bool {
        self.farthest_end(index) > index
    }

    /// Returns the farthest end of the spans that start here or earlier.
    fn farthest_end(&self, start: usize) -> usize {
        let count = self.0.partition_point(|span| span.0 <= start);
        count.checked_sub(1).map_or(0, |index| self.0[index].1)
    }
}
