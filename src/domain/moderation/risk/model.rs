//! A linear classifier over the words of a question, pairs of neighbours and the rules that match.
//!
//! `assets/risk/weights.tsv` has the weight of each feature for each class, relative to a harmless question.
//! `tests/risk/train.py` computes it from labelled sentences. Rules alone miss most indirect sentences, and the classifier
//! alone misses rare words, so each rule is a feature.

use super::{
    RiskClass,
    rules::Effect,
    text::{PlainText, key, pair_key},
};
use crate::domain::moderation::engine::FixedMap;

const CLASSES: usize = RiskClass::ALL.len();
/// Weights are stored as whole numbers.
const SCALE: f32 = 100.0;
/// The feature whose weights are added to every score.
const BIAS: &str = "=";
/// Stand for the beginning and the end of a text.
const BEGIN: &str = "^";
const END: &str = "$";

type Weights = [i16; CLASSES];

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

    /// Returns the score of each class. A question is harmless if none is above 0. Each feature counts once, so that a
    /// long text of few words is no stranger than a short one.
    pub(super) fn scores(&self, text: &PlainText, effects: &[Effect]) -> [f32; CLASSES] {
        let mut is_counted = vec![false; self.weights.len()];
        let (mut sums, mut count) = ([0.0; CLASSES], 0);
        let mut add = |key: u64| {
            let Some(place) = self.places.get(&key).map(|place| *place as usize) else { return };
            if !std::mem::replace(&mut is_counted[place], true) {
                count += 1;
                sums.iter_mut().zip(self.weights[place]).for_each(|(sum, weight)| *sum += f32::from(weight));
            }
        };
        let mut before = key(BEGIN);
        for unit in &text.units {
            add(*unit);
            add(pair_key(before, *unit));
            before = *unit;
        }
        add(pair_key(before, key(END)));
        effects.iter().for_each(|effect| add(key(&effect.feature())));
        let norm = f32::from(u16::try_from(count.max(1)).unwrap_or(u16::MAX)).sqrt();
        std::array::from_fn(|class| (sums[class] / norm + f32::from(self.bias[class])) / SCALE)
    }
}

/// Returns the features of a text as the table has them, for its training.
#[cfg(test)]
pub(super) fn features(text: &PlainText, effects: &[Effect]) -> Vec<String> {
    let units = text.unit_texts();
    let words: Vec<&str> = std::iter::once(BEGIN).chain(units.iter().map(String::as_str)).chain([END]).collect();
    let pairs = words.windows(2).map(|pair| pair.join(" "));
    units.iter().cloned().chain(pairs).chain(effects.iter().map(|effect| effect.feature())).collect()
}
