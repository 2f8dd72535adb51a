//! The force of a line in motion (元神忌神章): what fails, what is held, and what acts.

use super::{BranchState, ChangeRelation, ChangedLine, ChartLine, DayEffect, Progress};

/// The force of a line in motion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    Growing,
    Lasting,
    /// The new line controls it, retreats, or is void or broken; or the line itself is broken.
    Failing,
    /// The day or the new line combines with it and holds it.
    Held,
}

impl BranchState {
    /// Returns true if the day feeds the branch or has its element without striking it.
    pub(crate) fn is_helped_by_day(self) -> bool {
        matches!(self.day_effect, DayEffect::Feeds | DayEffect::Supports)
    }

    pub(crate) fn is_strong_in_month(self) -> bool {
        self.strength.is_strong() && !self.month_break
    }
}

/// Returns the cause for which a moving line fails or is held, by its name among the phrases (`why`).
pub(crate) fn cause_of_failure(line: &ChartLine) -> Option<&'static str> {
    let (state, new) = (line.state, line.becomes);
    match new {
        _ if state.is_some_and(|state| state.month_break && !state.is_helped_by_day()) => Some("month_broken"),
        Some(new) if new.relation == ChangeRelation::ControlsBack && !is_nothing(&new) => Some("controlled_back"),
        Some(new) if new.progress == Some(Progress::Retreating) => Some("retreats"),
        Some(new) if is_nothing(&new) && new.state.is_some_and(|state| state.month_break) => Some("into_break"),
        Some(new) if is_nothing(&new) => Some("into_void"),
        Some(new) if new.combination => Some("held"),
        Some(_) if state.is_some_and(|state| state.day_combination) => Some("held_by_day"),
        _ => None,
    }
}

/// Returns true if a new line is broken, or void without strength, so that a change into it comes to nothing.
pub(crate) fn is_nothing(new: &ChangedLine) -> bool {
    new.state.is_some_and(|state| {
        let has_strength = state.is_helped_by_day() || state.is_strong_in_month();
        (state.month_break || state.void) && !has_strength
    })
}

impl Force {
    pub(crate) fn of(line: &ChartLine) -> Self {
        match (cause_of_failure(line), line.becomes) {
            (Some("held" | "held_by_day"), _) => Self::Held,
            (Some(_), _) => Self::Failing,
            (None, Some(new))
                if new.relation == ChangeRelation::FeedsBack || new.progress == Some(Progress::Advancing) =>
            {
                Self::Growing
            }
            _ => Self::Lasting,
        }
    }

    pub(crate) fn acts(self) -> bool {
        matches!(self, Self::Growing | Self::Lasting)
    }
}
