//! Progress bars on standard error.

use indicatif::{ProgressBar, ProgressStyle};

use super::Common;

/// Returns a progress bar with this template. It is hidden with `--json` and where standard error is not a terminal.
pub fn progress_bar(common: &Common, length: u64, template: &str) -> ProgressBar {
    let bar = if common.json { ProgressBar::hidden() } else { ProgressBar::new(length) };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
