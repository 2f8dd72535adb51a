//! How far a long piece of work is, on standard error.

use indicatif::{ProgressBar, ProgressStyle};

use super::Common;

/// A bar in this style. It hides itself where nobody watches.
pub fn progress_bar(common: &Common, length: u64, style: &str) -> ProgressBar {
    let bar = if common.json { ProgressBar::hidden() } else { ProgressBar::new(length) };
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
