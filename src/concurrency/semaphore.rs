//! How many may do something at once: a slow vendor or a wave of password hashes must not take every thread there is.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::{
    concurrency::lock::locked,
    error::{Code, Error, Result},
};

/// A number of places, each for one doer at a time.
#[derive(Debug)]
pub struct Slots {
    most: u32,
    taken: AtomicU32,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub struct Slot<'slots>(&'slots AtomicU32);

impl Slots {
    pub fn new(most: u32) -> Self {
        Self { most, taken: AtomicU32::new(0) }
    }

    /// How many places there are.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Takes a place.
    ///
    /// # Errors
    /// `overloaded` when all are taken: waiting for one would hold a thread, which is what places are there to save.
    pub fn enter(&self) -> Result<Slot<'_>> {
        let before = self.taken.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(&self.taken);
        if before < self.most {
            Ok(slot)
        } else {
            Err(Error::new(Code::Overloaded).detail("Too many are doing this now."))
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A number of places, of which nobody may take all. Clones are the same places.
#[derive(Clone, Debug)]
pub struct Shares<T: Eq + Hash> {
    most: u32,
    taken: Arc<Mutex<Taken<T>>>,
}

/// Somebody's place among others, taken until this is dropped.
#[derive(Debug)]
pub struct Share<T: Eq + Hash> {
    whose: T,
    taken: Arc<Mutex<Taken<T>>>,
}

#[derive(Debug)]
struct Taken<T> {
    over_all: u32,
    by: HashMap<T, u32>,
}

impl<T: Eq + Hash + Clone> Shares<T> {
    pub fn new(most: u32) -> Self {
        Self { most, taken: Arc::new(Mutex::new(Taken { over_all: 0, by: HashMap::new() })) }
    }

    /// Takes a place. Nothing if all are taken, or as many by the same as they may have.
    pub fn enter(&self, whose: T, most_each: u32) -> Option<Share<T>> {
        let mut taken = locked(&self.taken);
        let of_theirs = taken.by.get(&whose).copied().unwrap_or(0);
        if taken.over_all >= self.most || of_theirs >= most_each {
            return None;
        }
        taken.over_all += 1;
        taken.by.insert(whose.clone(), of_theirs + 1);
        Some(Share { whose, taken: Arc::clone(&self.taken) })
    }
}

impl<T: Eq + Hash> Drop for Share<T> {
    fn drop(&mut self) {
        let mut taken = locked(&self.taken);
        taken.over_all = taken.over_all.saturating_sub(1);
        if let Some(count) = taken.by.get_mut(&self.whose) {
            *count -= 1;
            if *count == 0 {
                taken.by.remove(&self.whose);
            }
        }
    }
}

/// One place for each of something, such as users.
#[derive(Debug)]
pub struct OneEach<T: Eq + Hash>(Shares<T>);

impl<T: Eq + Hash + Clone> Default for OneEach<T> {
    fn default() -> Self {
        Self(Shares::new(u32::MAX))
    }
}

impl<T: Eq + Hash + Clone> OneEach<T> {
    /// Takes the place.
    ///
    /// # Errors
    /// `already_running` while it is taken.
    pub fn enter(&self, whose: T) -> Result<Share<T>> {
        self.0.enter(whose, 1).ok_or_else(|| Code::AlreadyRunning.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::UserId;

    #[test]
    fn a_place_is_free_again_when_its_taker_leaves() {
        let slots = Slots::new(1);
        let slot = slots.enter().unwrap();
        assert_eq!(slots.enter().unwrap_err().code, Code::Overloaded);
        drop(slot);
        assert!(slots.enter().is_ok());
    }

    #[test]
    fn each_user_has_one_place() {
        let places = OneEach::default();
        let own = places.enter(UserId(1)).unwrap();
        assert_eq!(places.enter(UserId(1)).unwrap_err().code, Code::AlreadyRunning);
        assert!(places.enter(UserId(2)).is_ok());
        drop(own);
        assert!(places.enter(UserId(1)).is_ok());
    }

    #[test]
    fn nobody_takes_all_places_and_there_are_no_more_than_there_are() {
        let places = Shares::new(3);
        let enter = |whose: &'static str| places.enter(whose, 2);
        let of_one = [enter("one"), enter("one")];
        assert!(of_one.iter().all(Option::is_some) && enter("one").is_none());
        let of_another = enter("another").unwrap();
        assert!(enter("another").is_none() && enter("a third").is_none());
        drop(of_one);
        assert!(enter("one").is_some() && enter("another").is_some());
        drop(of_another);
        assert!(places.taken.lock().unwrap().by.is_empty());
    }
}
