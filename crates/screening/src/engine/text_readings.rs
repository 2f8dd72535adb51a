//! The readings of one text. Each, and its letters, are read at most once.

use std::cell::OnceCell;

use super::{
    emoji_letters, emoji_names,
    letters::LetteredText,
    readings::{self, Fillers, Reading},
    similar_characters,
};

/// A text as written, and its other readings.
pub(super) struct TextReadings<'text> {
    text: &'text str,
    written: LetteredText<'text>,
    without_emoji: OnceCell<Option<LetteredText<'static>>>,
    spelled: OnceCell<Option<LetteredText<'static>>>,
    fillers: OnceCell<Fillers<'text>>,
    without_fillers: OnceCell<Option<Reading>>,
    without_particles: OnceCell<Option<Reading>>,
    resembled: OnceCell<Option<Reading>>,
    named: [OnceCell<Option<Reading>>; 2],
}

impl<'text> TextReadings<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        Self {
            text,
            written: LetteredText::new(text),
            without_emoji: OnceCell::new(),
            spelled: OnceCell::new(),
            fillers: OnceCell::new(),
            without_fillers: OnceCell::new(),
            without_particles: OnceCell::new(),
            resembled: OnceCell::new(),
            named: [OnceCell::new(), OnceCell::new()],
        }
    }

    pub(super) fn written(&self) -> &LetteredText<'text> {
        &self.written
    }

    /// Returns the text with emoji that have letters as mere separators.
    pub(super) fn without_emoji(&self) -> Option<&LetteredText<'static>> {
        let read = || emoji_letters::without_letters(self.text).map(LetteredText::new);
        self.without_emoji.get_or_init(read).as_ref()
    }

    /// Returns the text with crosses and bopomofo as Latin letters.
    pub(super) fn spelled(&self) -> Option<&LetteredText<'static>> {
        self.spelled.get_or_init(|| readings::spelled(self.text).map(LetteredText::new)).as_ref()
    }

    /// Returns the text with fillers as separators.
    pub(super) fn without_fillers(&self) -> Option<&Reading> {
        self.without_fillers.get_or_init(|| self.fillers().skipped(false)).as_ref()
    }

    /// Returns the text with fillers and particles as separators.
    pub(super) fn without_particles(&self) -> Option<&Reading> {
        self.without_particles.get_or_init(|| self.fillers().skipped(true)).as_ref()
    }

    /// Returns the text with the letters that its characters resemble.
    pub(super) fn resembled(&self) -> Option<&Reading> {
        self.resembled.get_or_init(|| similar_characters::resembled(self.text)).as_ref()
    }

    /// Returns the text with its emoji as the characters of their first or second names.
    pub(super) fn named(&self, second: bool) -> Option<&Reading> {
        self.named[usize::from(second)].get_or_init(|| emoji_names::named(self.text, second)).as_ref()
    }

    fn fillers(&self) -> &Fillers<'text> {
        self.fillers.get_or_init(|| Fillers::read(self.text))
    }
}
