//! What is held until somebody has read it, at most one delivery for each of them.
//!
//! While one is read, another is refused: two devices of a user that cut each other off would both come again, without
//! end. Of one that nobody reads any more, another takes the place: a phone that lost its network does not say so. What
//! is held is let go of then and there, whatever its connection is waiting for.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::concurrency::lock::locked;

/// For how long nothing was taken of a delivery that nobody reads. The system takes more only once a third of its own
/// buffer is free, some hundred KiB, which a phone on a slow network needs several seconds to read.
const STALLED_AFTER: Duration = Duration::from_secs(15);

/// What is under way, by whom it is for.
#[derive(Debug)]
pub struct Deliveries<T: Eq + Hash>(Arc<Mutex<UnderWay<T>>>);

type UnderWay<T> = HashMap<T, Arc<Mutex<Held>>>;

/// Somebody's delivery, held until this is dropped or another takes its place.
#[derive(Debug)]
pub struct Delivery<T: Eq + Hash> {
    whose: T,
    held: Arc<Mutex<Held>>,
    under_way: Arc<Mutex<UnderWay<T>>>,
}

#[derive(Debug)]
struct Held {
    /// Nothing once another delivery has taken the place.
    content: Option<Vec<u8>>,
    length: usize,
    taken: usize,
    last_taken: Instant,
}

/// Another delivery has taken the place.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("another delivery has taken the place of one that nobody read")]
pub struct Superseded;

impl<T: Eq + Hash> Default for Deliveries<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Eq + Hash + Clone> Deliveries<T> {
    /// Begins a delivery.
    ///
    /// # Errors
    /// While another is read: how long it takes at least until that one counts as one that nobody reads.
    pub fn begin(&self, whose: T, content: Vec<u8>, now: Instant) -> Result<Delivery<T>, Duration> {
        let mut under_way = locked(&self.0);
        if let Some(older) = under_way.get(&whose) {
            locked(older).give_up(now)?;
        }
        let length = content.len();
        let held = Arc::new(Mutex::new(Held { content: Some(content), length, taken: 0, last_taken: now }));
        under_way.insert(whose.clone(), Arc::clone(&held));
        Ok(Delivery { whose, held, under_way: Arc::clone(&self.0) })
    }
}

impl<T: Eq + Hash> Delivery<T> {
    /// The next bytes, up to this many; none when all were taken. They are a copy, so that none of the rest is held by
    /// whoever has them.
    ///
    /// # Errors
    /// When another delivery has taken the place.
    pub fn take(&self, most: usize, now: Instant) -> Result<Vec<u8>, Superseded> {
        locked(&self.held).take(most, now)
    }

    /// How many bytes were not taken yet.
    pub fn left(&self) -> usize {
        let held = locked(&self.held);
        held.length - held.taken
    }
}

impl<T: Eq + Hash> Drop for Delivery<T> {
    fn drop(&mut self) {
        let mut under_way = locked(&self.under_way);
        if under_way.get(&self.whose).is_some_and(|held| Arc::ptr_eq(held, &self.held)) {
            under_way.remove(&self.whose);
        }
    }
}

impl Held {
    fn give_up(&mut self, now: Instant) -> Result<(), Duration> {
        let left = STALLED_AFTER.saturating_sub(now.saturating_duration_since(self.last_taken));
        if !left.is_zero() {
            return Err(left);
        }
        self.content = None;
        Ok(())
    }

    fn take(&mut self, most: usize, now: Instant) -> Result<Vec<u8>, Superseded> {
        let content = self.content.as_ref().ok_or(Superseded)?;
        let end = self.length.min(self.taken + most);
        let piece = content[self.taken..end].to_vec();
        (self.taken, self.last_taken) = (end, now);
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_taken_piece_by_piece_and_then_there_is_room_for_another() {
        let (deliveries, now) = (Deliveries::default(), Instant::now());
        let delivery = deliveries.begin("one", b"abcde".to_vec(), now).unwrap();
        assert_eq!((delivery.take(3, now), delivery.left()), (Ok(b"abc".to_vec()), 2));
        assert!(deliveries.begin("other", Vec::new(), now).is_ok());
        assert_eq!((delivery.take(3, now), delivery.left()), (Ok(b"de".to_vec()), 0));
        assert_eq!(delivery.take(3, now), Ok(Vec::new()));
        assert_eq!(deliveries.begin("one", Vec::new(), now).unwrap_err(), STALLED_AFTER);
        drop(delivery);
        assert!(deliveries.begin("one", Vec::new(), now).is_ok());
    }

    #[test]
    fn a_delivery_that_nobody_reads_gives_way_and_one_that_is_read_does_not() {
        let (deliveries, begun) = (Deliveries::default(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        let older = deliveries.begin((), b"abcde".to_vec(), begun).unwrap();
        assert!(older.take(1, at(9)).is_ok());
        assert_eq!(deliveries.begin((), Vec::new(), at(18)).unwrap_err(), Duration::from_secs(6));
        assert!(older.take(1, at(21)).is_ok());
        let newer = deliveries.begin((), b"fgh".to_vec(), at(36)).unwrap();
        assert!(locked(&older.held).content.is_none(), "it is held although nobody gets it");
        assert_eq!((older.take(1, at(36)), older.left()), (Err(Superseded), 3));
        // The older one's end leaves the newer one in its place.
        drop(older);
        assert!(deliveries.begin((), Vec::new(), at(39)).is_err());
        assert_eq!(newer.take(9, at(39)), Ok(b"fgh".to_vec()));
        drop(newer);
        assert!(locked(&deliveries.0).is_empty());
    }
}
