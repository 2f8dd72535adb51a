//! Long changes in steps, each a write that takes the writer so little time that no other write waits long.
//!
//! What a change is to achieve must hold from its first write on, or it must not matter in which order its parts happen.

use std::{
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{concurrency::lock::lock_unpoisoned, core::Core, error::Result, store::Write};

/// The time of the writer that one step takes, without the sync of the disk.
const STEP: Duration = Duration::from_millis(15);
/// Rows that a step changes before it looks at the time again. A row may have 100 KiB.
pub const CHUNK: u32 = 16;

/// Repeats `change` in steps until it returns 0 or `continues` returns false. It changes a few rows and returns their
/// number. Each step is counted in `changed`, so that steps before a failure count.
///
/// # Errors
/// Errors of `change`, storage errors; earlier steps stay.
pub fn repeat(
    core: &Core,
    changed: &mut usize,
    continues: &dyn Fn() -> bool,
    change: impl Fn(&Write<'_>) -> Result<usize> + Clone + Send + 'static,
) -> Result<()> {
    while continues() {
        let change = change.clone();
        let (step, is_complete) = in_turn(core, move |tx| {
            let (begun, mut step) = (Instant::now(), 0);
            loop {
                let chunk = change(tx)?;
                step += chunk;
                if chunk == 0 || begun.elapsed() >= STEP {
                    return Ok((step, chunk == 0));
                }
            }
        })?;
        *changed += step;
        if is_complete {
            break;
        }
        sleep(core.step_pause);
    }
    Ok(())
}

/// Runs `change` for each item, as many in a step as there is time for, until `continues` returns false. Returns the
/// results.
///
/// # Errors
/// As of [`repeat`].
pub fn for_each<Item: Send + Sync + 'static, Done: Send + 'static>(
    core: &Core,
    continues: &dyn Fn() -> bool,
    items: Vec<Item>,
    change: impl Fn(&Write<'_>, &Item) -> Result<Done> + Clone + Send + 'static,
) -> Result<Vec<Done>> {
    let items = Arc::new(items);
    let mut done = Vec::with_capacity(items.len());
    while done.len() < items.len() && continues() {
        let (all, change, first) = (Arc::clone(&items), change.clone(), done.len());
        let step = in_turn(core, move |tx| {
            let (begun, mut step) = (Instant::now(), Vec::new());
            for item in all.iter().skip(first) {
                step.push(change(tx, item)?);
                if begun.elapsed() >= STEP {
                    break;
                }
            }
            Ok(step)
        })?;
        done.extend(step);
        if done.len() < items.len() {
            sleep(core.step_pause);
        }
    }
    Ok(done)
}

/// Writes a step. Of all long changes of this process, one has a step in the writer's queue at a time.
fn in_turn<T: Send + 'static>(core: &Core, step: impl FnOnce(&Write<'_>) -> Result<T> + Send + 'static) -> Result<T> {
    let _turn = lock_unpoisoned(&core.step_turn);
    core.store.write(step).wait()
}
