//! Running interpretations of sessions, each with its text so far and its listeners.
//!
//! A call runs on a thread of its own and appends to a text that all listeners share, each at its own pace. So a slow
//! reader holds up neither the model nor other devices. A listener that leaves does not end the call; after a time
//! without listeners it is cancelled. What has ended is read from the database.
//!
//! Bounded: the admission queue limits the calls, the model client the bytes of a text, and [`MAX_LISTENERS`] the
//! listeners of a call.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use crate::{
    concurrency::lock::lock_unpoisoned,
    domain::divination::interpretation::CallRecord,
    error::{Code, Error, Result},
};

/// Listeners of one interpretation. Connections that broke without notice count for a while.
const MAX_LISTENERS: usize = 8;
/// The most bytes of text that a listener gets at once.
const MAX_PIECE: usize = 16 << 10;

/// The most interpretations whose [`LiveState::skipped`] is kept after their end.
const MAX_SHORTENED: usize = 64;

/// The running interpretations by session.
#[derive(Default)]
pub struct LiveInterpretations {
    running: Mutex<HashMap<String, Arc<LiveInterpretation>>>,
    /// Trace id and [`LiveState::skipped`] of interpretations that ended, for listeners that continue.
    shortened: Mutex<VecDeque<(String, usize)>>,
}

/// An interpretation that is prepared, runs, or has just ended.
pub struct LiveInterpretation {
    state: Mutex<LiveState>,
    /// Counts the changes of the state.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct LiveState {
    /// Set once the record of the call is written.
    call: Option<LiveCall>,
    text: String,
    /// The bytes before `text` that were sent as a part of it and turned out to be reasoning. Positions count them.
    skipped: usize,
    outcome: Option<LiveOutcome>,
    listeners: usize,
    /// A listener waits for the whole text, which is made even if it disconnects.
    must_finish: bool,
    /// The time since which there has been no listener.
    deserted_at: Option<Instant>,
}

/// The model call of an interpretation.
#[derive(Clone)]
pub struct LiveCall {
    pub trace_id: String,
    pub provider: String,
    pub model: String,
}

/// The end of an interpretation.
#[derive(Clone)]
pub enum LiveOutcome {
    Finished(Arc<CallRecord>),
    Failed(Arc<Error>),
}

/// A listener's next step.
pub enum LiveProgress {
    /// More text, and the position after it.
    Text(String, usize),
    Ended(LiveOutcome),
    /// Nothing new yet.
    Pending,
}

/// A listener, which counts until it is dropped.
pub struct LiveListener {
    live: Arc<LiveInterpretation>,
    changes: watch::Receiver<u64>,
}

/// The writing half of an interpretation. Dropping it ends the interpretation.
pub struct LiveWriter {
    live: Arc<LiveInterpretation>,
    registry: Arc<LiveInterpretations>,
    session_id: String,
}

impl LiveInterpretations {
    /// Returns a listener of the session's running interpretation, if there is one that `admits` accepts.
    ///
    /// # Errors
    /// `too_many_calls` if it has the maximum number of listeners.
    pub fn join(
        &self,
        session_id: &str,
        admits: impl FnOnce(Option<&LiveCall>) -> bool,
    ) -> Result<Option<LiveListener>> {
        let Some(live) = lock_unpoisoned(&self.running).get(session_id).cloned() else { return Ok(None) };
        if !admits(lock_unpoisoned(&live.state).call.as_ref()) {
            return Ok(None);
        }
        live.listen().map(Some)
    }

    /// Returns a listener of the session's interpretation, and the writer of a new one if none is running.
    ///
    /// # Errors
    /// `too_many_calls` if it has the maximum number of listeners.
    pub fn join_or_begin(self: &Arc<Self>, session_id: &str) -> Result<(LiveListener, Option<LiveWriter>)> {
        let mut running = lock_unpoisoned(&self.running);
        if let Some(live) = running.get(session_id) {
            return Ok((live.listen()?, None));
        }
        let live = Arc::new(LiveInterpretation::new(LiveState::default()));
        running.insert(session_id.to_owned(), Arc::clone(&live));
        drop(running);
        let listener = live.listen()?;
        Ok((listener, Some(LiveWriter { live, registry: Arc::clone(self), session_id: session_id.to_owned() })))
    }

    pub fn is_empty(&self) -> bool {
        lock_unpoisoned(&self.running).is_empty()
    }

    /// Returns a listener of a stored interpretation.
    pub fn listen_to_stored(&self, record: CallRecord) -> LiveListener {
        let shortened = lock_unpoisoned(&self.shortened);
        let skipped = shortened.iter().find(|(trace_id, _)| *trace_id == record.trace_id).map_or(0, |found| found.1);
        LiveListener::to_stored(record, skipped)
    }

    /// Remembers the part of a text that its record lacks.
    fn compare(&self, live: &LiveInterpretation, record: &CallRecord) {
        let result = record.result.as_deref().unwrap_or_default();
        let skipped = lock_unpoisoned(&live.state).text.strip_suffix(result).map_or(0, str::len);
        if skipped > 0 {
            let mut shortened = lock_unpoisoned(&self.shortened);
            shortened.truncate(MAX_SHORTENED - 1);
            shortened.push_front((record.trace_id.clone(), skipped));
        }
    }
}

impl LiveInterpretation {
    fn new(state: LiveState) -> Self {
        Self { state: Mutex::new(state), changes: watch::Sender::new(0) }
    }

    fn listen(self: &Arc<Self>) -> Result<LiveListener> {
        let mut state = lock_unpoisoned(&self.state);
        if state.listeners >= MAX_LISTENERS {
            return Err(Error::new(Code::TooManyCalls)
                .detail(("Too many devices listen to this interpretation.", "接收此次解读的设备过多。")));
        }
        state.listeners += 1;
        state.deserted_at = None;
        Ok(LiveListener { live: Arc::clone(self), changes: self.changes.subscribe() })
    }

    fn change(&self, change: impl FnOnce(&mut LiveState)) {
        change(&mut lock_unpoisoned(&self.state));
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }
}

impl LiveListener {
    fn to_stored(record: CallRecord, skipped: usize) -> Self {
        let state = LiveState {
            call: Some(LiveCall::of(&record)),
            text: record.result.clone().unwrap_or_default(),
            skipped,
            outcome: Some(LiveOutcome::Finished(Arc::new(record))),
            listeners: 1,
            ..LiveState::default()
        };
        let live = Arc::new(LiveInterpretation::new(state));
        Self { changes: live.changes.subscribe(), live }
    }

    /// Waits until the call has begun.
    ///
    /// # Errors
    /// The error that prevented it.
    pub async fn begun(&mut self) -> Result<LiveCall> {
        loop {
            self.changes.borrow_and_update();
            {
                let state = lock_unpoisoned(&self.live.state);
                match (&state.call, &state.outcome) {
                    (Some(call), _) => return Ok(call.clone()),
                    (None, Some(LiveOutcome::Failed(error))) => return Err(copy_of(error)),
                    (None, Some(LiveOutcome::Finished(record))) => return Ok(LiveCall::of(record)),
                    (None, None) => {}
                }
            }
            self.changed().await;
        }
    }

    /// Waits for the whole interpretation. The call is finished even if this listener leaves.
    ///
    /// # Errors
    /// The error of the call, or the one that prevented it.
    pub async fn finished(&mut self) -> Result<Arc<CallRecord>> {
        lock_unpoisoned(&self.live.state).must_finish = true;
        loop {
            self.changes.borrow_and_update();
            let outcome = lock_unpoisoned(&self.live.state).outcome.clone();
            match outcome {
                Some(LiveOutcome::Finished(record)) => return Ok(record),
                Some(LiveOutcome::Failed(error)) => return Err(copy_of(&error)),
                None => self.changed().await,
            }
        }
    }

    /// Returns the text after a position, or the end if there is none. Another position than that of an earlier piece
    /// is moved back to the start of its character, and one behind the whole text to the beginning.
    pub fn progress(&mut self, position: usize) -> LiveProgress {
        self.changes.borrow_and_update();
        let state = lock_unpoisoned(&self.live.state);
        let text = &state.text;
        let position = position.saturating_sub(state.skipped);
        let is_unknown = state.outcome.is_some() && position > text.len();
        let start = if is_unknown { 0 } else { text.floor_char_boundary(position) };
        let end = text.floor_char_boundary(start.saturating_add(MAX_PIECE));
        if start < end {
            return LiveProgress::Text(text[start..end].to_owned(), end + state.skipped);
        }
        state.outcome.clone().map_or(LiveProgress::Pending, LiveProgress::Ended)
    }

    /// Waits for a change since the last look.
    pub async fn changed(&mut self) {
        // The sender lives as long as this listener.
        let _ = self.changes.changed().await;
    }
}

impl Drop for LiveListener {
    fn drop(&mut self) {
        let mut state = lock_unpoisoned(&self.live.state);
        state.listeners -= 1;
        if state.listeners == 0 {
            state.deserted_at = Some(Instant::now());
        }
    }
}

impl LiveWriter {
    /// Reports that the record of the call is written.
    pub fn begin(&self, call: LiveCall) {
        self.live.change(|state| state.call = Some(call));
    }

    pub fn push(&self, text: &str) {
        self.live.change(|state| state.text.push_str(text));
    }

    /// Returns true while somebody listens, or has left less than `patience` ago.
    pub fn is_wanted(&self, patience: Duration) -> bool {
        is_wanted(&self.live, patience)
    }

    /// Returns [`Self::is_wanted`] as a function for other threads.
    pub fn wanted_check(&self, patience: Duration) -> impl Fn() -> bool + Send + Sync + 'static {
        let live = Arc::clone(&self.live);
        move || is_wanted(&live, patience)
    }

    /// Ends the interpretation for all listeners.
    pub fn end(self, outcome: Result<CallRecord>) {
        if let Ok(record) = &outcome {
            self.registry.compare(&self.live, record);
        }
        self.close(match outcome {
            Ok(record) => LiveOutcome::Finished(Arc::new(record)),
            Err(error) => LiveOutcome::Failed(Arc::new(error)),
        });
    }

    /// Removes the interpretation before its listeners are told, so that their next request begins a new one.
    fn close(&self, outcome: LiveOutcome) {
        {
            let mut running = lock_unpoisoned(&self.registry.running);
            if running.get(&self.session_id).is_some_and(|live| Arc::ptr_eq(live, &self.live)) {
                running.remove(&self.session_id);
            }
        }
        self.live.change(|state| {
            state.outcome.get_or_insert(outcome);
        });
    }
}

impl Drop for LiveWriter {
    fn drop(&mut self) {
        // Without effect after `end`.
        let unfinished = Error::internal("an interpretation ended without an outcome");
        self.close(LiveOutcome::Failed(Arc::new(unfinished)));
    }
}

impl LiveCall {
    fn of(record: &CallRecord) -> Self {
        Self { trace_id: record.trace_id.clone(), provider: record.provider.clone(), model: record.model.clone() }
    }
}

fn is_wanted(live: &LiveInterpretation, patience: Duration) -> bool {
    let state = lock_unpoisoned(&live.state);
    state.must_finish || state.deserted_at.is_none_or(|since| since.elapsed() < patience)
}

/// Copies an error for one of several listeners.
pub fn copy_of(error: &Error) -> Error {
    let copy = error.without_source().in_fields(error.fields.clone());
    let copy = match &error.trace_id {
        Some(trace_id) => copy.with_trace_id(trace_id),
        None => copy,
    };
    match &error.source {
        Some(source) => copy.caused_by(source.to_string()),
        None => copy,
    }
}
