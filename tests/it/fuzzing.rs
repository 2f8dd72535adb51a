//! Short runs of the fuzz targets on their seeds with random changes. `fuzz/run` runs for minutes.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

#[path = "../../fuzz/properties.rs"]
mod properties;

const ROUNDS: usize = 400;
/// Fragments that lead parsers to other branches.
const SPLICES: [&str; 12] = ["\0", "\"", "\\u0000", "%", "&", "=", "\r\n", ",", "９", "\u{200b}", "-", "{\"a\":["];

/// A deterministic random sequence.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }

    /// Returns the bytes with a few removed, inserted, repeated or changed.
    fn change(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut changed = bytes.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(changed.len() + 1);
            let end = at + self.below(changed.len() - at + 1);
            match self.below(6) {
                0 if at < changed.len() => changed[at] ^= 1 << self.below(8),
                1 => drop(changed.drain(at..end)),
                2 => drop(changed.splice(at..at, SPLICES[self.below(SPLICES.len())].bytes())),
                3 => {
                    let piece = changed[at..end].to_vec();
                    changed.extend(piece);
                }
                4 => changed.truncate(at),
                _ => changed.insert(at, u8::try_from(self.below(256)).unwrap()),
            }
        }
        changed
    }
}

#[test]
fn every_fuzz_target_holds_for_changed_seeds() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let mut start = [0; 8];
    getrandom::fill(&mut start).unwrap();
    let mut numbers = Numbers(u64::from_ne_bytes(start));
    for (name, target) in properties::TARGETS {
        assert!(fuzz.join("fuzz_targets").join(name).with_extension("rs").is_file(), "{name} is not a target");
        let seeds: Vec<_> =
            fs::read_dir(fuzz.join("seeds").join(name)).unwrap().map(|seed| seed.unwrap().path()).collect();
        assert!(!seeds.is_empty(), "{name} has no seeds");
        for seed in seeds.iter().map(|seed| fs::read(seed).unwrap()) {
            let mut tried = seed.clone();
            for round in 0..ROUNDS {
                let outcome = catch_unwind(AssertUnwindSafe(|| target(&tried)));
                assert!(outcome.is_ok(), "{name} fails with {:?}", String::from_utf8_lossy(&tried));
                tried = numbers.change(if round % 8 == 0 { &seed } else { &tried });
                tried.truncate(4096);
            }
        }
    }
}
