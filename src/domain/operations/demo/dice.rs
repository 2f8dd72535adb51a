//! Reproducible random numbers by `SplitMix64`, so that every demonstration has the same past.

pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `bound`, or 0 if the bound is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        u32::try_from(((mixed >> 32) * u64::from(bound)) >> 32).unwrap_or(0)
    }

    /// Returns true with a probability of this many percent.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T], otherwise: T) -> T {
        let length = u32::try_from(from.len()).unwrap_or(u32::MAX);
        from.get(self.below(length) as usize).copied().unwrap_or(otherwise)
    }
}
