//! A linear classifier over the words of a question, pairs of neighbours and the rules that match.
//!
//! `assets/risk/weights.tsv` has the weight of each feature for each class, relative to a harmless question.
//! `tests/risk/train.py` computes it from labelled sentences. Rules alone miss most indirect sentences, and the classifier
//! alone misses rare words, so each rule is a feature.

use std::ops::Range;

use super::{
    RiskClass,
    rules::Effect,
    text::{PlainText, key, pair_key},
};
use crate::engine::FixedMap;

const CLASSES: usize = RiskClass::ALL.len();
/// Weights are stored as whole numbers.
const SCALE: f32 = 100.0;
/// The feature whose weights are added to every score.
const BIAS: &str = "=";
/// Stand for the beginning and the end of a text.
const BEGIN: &str = "^";
const END: &str = "$";

type Weights = [i16; CLASSES];

/// A word or a pair of which the model has weights.
pub(super) struct Known {
    units: Range<usize>,
    place: usize,
}

/// The weights of all features.
#[derive(Default)]
pub(super) struct Model {
    bias: Weights,
    weights: Vec<Weights>,
    /// The places of the weights by feature.
    places: FixedMap<u64, u32>,
}

impl Model {
    /// Reads a table: a feature and its weights in the order of the classes, separated by tabs. Empty weights are 0.
    pub(super) fn read(table: &str) -> Result<Self, String> {
        let mut model = Self::default();
        for line in table.lines() {
            let mut columns = line.split('\t');
            let feature = columns.next().unwrap_or_default();
            let mut weights = Weights::default();
            for (weight, column) in weights.iter_mut().zip(columns.by_ref()) {
                if !column.is_empty() {
                    *weight = column.parse().map_err(|_| format!("{line}: is no number"))?;
                }
            }
            if columns.next().is_some() {
                return Err(format!("{line}: has too many columns"));
            }
            if feature == BIAS {
                model.bias = weights;
            } else {
                let place = u32::try_from(model.weights.len()).map_err(|error| error.to_string())?;
                let words = feature.split(' ').map(key);
                model.places.insert(words.reduce(pair_key).unwrap_or_default(), place);
                model.weights.push(weights);
            }
        }
        model.places.shrink_to_fit();
        Ok(model)
    }

    /// Returns the words and pairs of a text that the model knows.
    pub(super) fn known(&self, text: &PlainText) -> Vec<Known> {
        let mut known = Vec::with_capacity(2 * text.units.len());
        let mut add = |key: u64, units: Range<usize>| {
            known.extend(self.places.get(&key).map(|place| Known { units, place: *place as usize }));
        };
        let (mut before, mut start) = (key(BEGIN), 0);
        for (place, unit) in text.units.iter().enumerate() {
            add(*unit, place..place + 1);
            add(pair_key(before, *unit), start..place + 1);
            (before, start) = (*unit, place);
        }
        add(pair_key(before, key(END)), start..text.units.len());
        known
    }

    /// Returns the score of each class for a part of a text. It is harmless if none is above 0. Each feature counts once,
    /// so that a long text of few words is no stranger than a short one.
    pub(super) fn scores(&self, part: &Range<usize>, known: &[Known], effects: &[Effect]) -> [f32; CLASSES] {
        let rules = effects.iter().filter_map(|effect| self.places.get(&key(&effect.feature())));
        // They are in the order of their ends.
        let place_of = |end: usize| known.partition_point(|known| known.units.end <= end);
        let known = known[place_of(part.start)..place_of(part.end)].iter();
        let known = known.filter(|known| known.units.start >= part.start).map(|known| known.place);
        let mut places: Vec<usize> = known.chain(rules.map(|place| *place as usize)).collect();
        places.sort_unstable();
        places.dedup();
        let mut sums = [0.0; CLASSES];
        for weights in places.iter().map(|place| self.weights[*place]) {
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += f32::from(weight));
        }
        let norm = f32::from(u16::try_from(places.len().max(1)).unwrap_or(u16::MAX)).sqrt();
        std::array::from_fn(|class| (sums[class] / norm + f32::from(self.bias[class])) / SCALE)
    }
}

/// Returns true if these units are in a part of the text.
pub(super) fn is_within(units: &Range<usize>, part: &Range<usize>) -> bool {
    part.start <= units.start && units.end <= part.end
}

/// Returns the features of a text as the table has them, for its training.
#[cfg(test)]
pub(super) fn features(text: &PlainText, matches: &[super::Match]) -> Vec<String> {
    let units = text.unit_texts();
    let words: Vec<&str> = std::iter::once(BEGIN).chain(units.iter().map(String::as_str)).chain([END]).collect();
    let pairs = words.windows(2).map(|pair| pair.join(" "));
    units.iter().cloned().chain(pairs).chain(matches.iter().map(|found| found.effect.feature())).collect()
}
