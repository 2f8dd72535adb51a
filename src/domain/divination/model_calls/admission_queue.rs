//! Places among the running calls: so many over all, so many for each user, and a queue that ends.
//!
//! A user's waiting calls count like running ones, so that nobody fills the queue alone. Places are given in the order
//! of coming. The queue holds no thread: whoever waits has a receipt, which HTTP awaits.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use oneshot::AsyncReceiver;

use crate::{
    concurrency::lock::locked,
    error::{Code, Error, Result},
    types::UserId,
};

/// How many model calls may run and wait.
pub struct Places {
    over_all: u32,
    of_user: u32,
    queue: u32,
    state: Shared,
}

type Shared = Arc<Mutex<State>>;

#[derive(Default)]
struct State {
    running: u32,
    /// Running and waiting calls by user.
    of_user: HashMap<UserId, u32>,
    waiting: VecDeque<Waiter>,
    next_number: u64,
}

struct Waiter {
    number: u64,
    user: UserId,
    sender: oneshot::Sender<Place>,
}

/// The place of one running call, taken until it is dropped.
pub struct Place {
    state: Shared,
    user: UserId,
}

/// The way to a place. Dropping it gives the turn to the next.
#[must_use = "a place is only there once this was waited for"]
pub struct Entering(Turn);

enum Turn {
    Now(Option<Place>),
    Waiting { receiver: AsyncReceiver<Place>, number: u64, user: UserId, state: Shared },
}

impl Places {
    pub fn new(over_all: u32, of_user: u32, queue: u32) -> Self {
        Self { over_all, of_user, queue, state: Arc::default() }
    }

    /// Asks for a place for a call of this user.
    ///
    /// # Errors
    /// `too_many_calls` when the user has enough running or waiting, `overloaded` when the queue is full.
    pub fn enter(&self, user: UserId) -> Result<Entering> {
        let mut state = locked(&self.state);
        if state.of_user.get(&user).copied().unwrap_or(0) >= self.of_user {
            return Err(Code::TooManyCalls.into());
        }
        if state.running < self.over_all {
            state.running += 1;
            state.count(user);
            return Ok(Entering(Turn::Now(Some(Place { state: Arc::clone(&self.state), user }))));
        }
        if state.waiting.len() >= self.queue as usize {
            return Err(overloaded());
        }
        let (sender, receiver) = oneshot::async_channel();
        let number = state.next_number;
        state.next_number += 1;
        state.count(user);
        state.waiting.push_back(Waiter { number, user, sender });
        Ok(Entering(Turn::Waiting { receiver, number, user, state: Arc::clone(&self.state) }))
    }

    /// Calls that run and calls that wait.
    pub fn taken(&self) -> (u32, usize) {
        let state = locked(&self.state);
        (state.running, state.waiting.len())
    }
}

/// What those are told for whom there is no place.
pub fn overloaded() -> Error {
    Error::new(Code::Overloaded).detail("Too many calls of the language model are running.")
}

impl Future for Entering {
    type Output = Result<Place>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Turn::Now(place) => Poll::Ready(place.take().ok_or_else(|| Error::internal("a place was asked for twice"))),
            Turn::Waiting { receiver, .. } => {
                Pin::new(receiver).poll(context).map(|place| place.map_err(|_| overloaded()))
            }
        }
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        if let Turn::Waiting { number, user, state, .. } = &self.0 {
            let mut state = locked(state);
            // If the turn has come meanwhile, the place is in the receiver and is freed with it.
            if let Some(index) = state.waiting.iter().position(|waiter| waiter.number == *number) {
                state.waiting.remove(index);
                state.discount(*user);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let next = {
            let mut state = locked(&self.state);
            state.discount(self.user);
            let next = state.waiting.pop_front();
            if next.is_none() {
                state.running -= 1;
            }
            next
        };
        if let Some(Waiter { user, sender, .. }) = next {
            // A waiter who has just left gives the place back, and so frees it for the next one.
            drop(sender.send(Self { state: Arc::clone(&self.state), user }));
        }
    }
}

impl State {
    fn count(&mut self, user: UserId) {
        *self.of_user.entry(user).or_default() += 1;
    }

    fn discount(&mut self, user: UserId) {
        if let Some(count) = self.of_user.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                self.of_user.remove(&user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: i64) -> UserId {
        UserId(number)
    }

    fn take(entering: Entering) -> Place {
        pollster::block_on(entering).unwrap()
    }

    /// The place, if it is there already.
    fn poll(entering: &mut Entering) -> Option<Place> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match Pin::new(entering).poll(&mut context) {
            Poll::Ready(place) => Some(place.unwrap()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_user_has_so_many_running_and_waiting() {
        let places = Places::new(1, 2, 9);
        let _running = take(places.enter(user(1)).unwrap());
        let waiting = places.enter(user(1)).unwrap();
        assert_eq!(places.enter(user(1)).err().unwrap().code, Code::TooManyCalls);
        drop(waiting);
        assert!(places.enter(user(1)).is_ok());
    }

    #[test]
    fn those_who_wait_come_in_their_order() {
        let places = Places::new(1, 2, 2);
        let running = take(places.enter(user(1)).unwrap());
        let (mut first, mut second) = (places.enter(user(2)).unwrap(), places.enter(user(3)).unwrap());
        assert_eq!(places.enter(user(4)).err().unwrap().code, Code::Overloaded);
        assert!(poll(&mut first).is_none());
        drop(running);
        let running = poll(&mut first).unwrap();
        assert!(poll(&mut second).is_none());
        assert_eq!(places.taken(), (1, 1));
        drop(running);
        drop(poll(&mut second).unwrap());
        assert_eq!(places.taken(), (0, 0));
    }

    #[test]
    fn who_leaves_the_queue_holds_nobody_up() {
        let places = Places::new(1, 1, 3);
        let running = take(places.enter(user(1)).unwrap());
        let (left, mut stays) = (places.enter(user(2)).unwrap(), places.enter(user(3)).unwrap());
        drop(left);
        assert_eq!(places.taken(), (1, 1));
        drop(running);
        drop(poll(&mut stays).unwrap());
        assert_eq!(places.taken(), (0, 0));
    }

    #[test]
    fn a_place_given_to_one_who_has_just_left_goes_to_the_next() {
        let places = Places::new(1, 1, 3);
        let running = take(places.enter(user(1)).unwrap());
        let (given, mut next) = (places.enter(user(2)).unwrap(), places.enter(user(3)).unwrap());
        drop(running);
        drop(given);
        drop(poll(&mut next).unwrap());
        assert_eq!(places.taken(), (0, 0));
    }
}
