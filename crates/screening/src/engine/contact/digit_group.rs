//! A group of adjacent digits in a text.

/// Adjacent digits, as a range of atoms.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) digits: Vec<u8>,
    /// The characters between this group and the one before it.
    pub(super) gap: String,
}

impl Group {
    /// Returns the number, if it has at most nine digits.
    pub(super) fn value(&self) -> Option<u32> {
        let is_short = self.digits.len() <= 9;
        is_short.then(|| self.digits.iter().fold(0, |value, &digit| value * 10 + u32::from(digit)))
    }
}
