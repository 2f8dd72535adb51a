//! Admission of model calls: a limit for all users, a limit per user, and a bounded queue.
//!
//! The calls of one user that wait count against the user's limit like running ones, so that no user fills the queue.
//! Permits are granted in order of arrival. Waiting holds no thread: a caller gets a future.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use oneshot::AsyncReceiver;

use crate::{
    concurrency::lock::lock_unpoisoned,
    error::{Code, Error, Result},
    types::UserId,
};

/// Limits how many model calls run and wait.
pub struct AdmissionQueue {
    max_running: u32,
    max_per_user: u32,
    max_waiting: u32,
    state: SharedState,
}

type SharedState = Arc<Mutex<State>>;

#[derive(Default)]
struct State {
    running: u32,
    /// Running and waiting calls by user.
    calls_by_user: HashMap<UserId, u32>,
    waiting: VecDeque<Waiter>,
    next_number: u64,
}

struct Waiter {
    number: u64,
    user: UserId,
    sender: oneshot::Sender<CallPermit>,
}

/// A permit for one running call, released on drop.
pub struct CallPermit {
    state: SharedState,
    user: UserId,
}

/// A future that resolves to a permit. Dropping it leaves the queue.
#[must_use = "the permit is granted only when this future resolves"]
pub struct PermitFuture(PermitState);

enum PermitState {
    Ready(Option<CallPermit>),
    Queued { receiver: AsyncReceiver<CallPermit>, number: u64, user: UserId, state: SharedState },
}

impl AdmissionQueue {
    pub fn new(max_running: u32, max_per_user: u32, max_waiting: u32) -> Self {
        Self { max_running, max_per_user, max_waiting, state: Arc::default() }
    }

    /// Requests a permit for a call of this user.
    ///
    /// # Errors
    /// `too_many_calls` when the user has enough calls running or waiting, `overloaded` when the queue is full.
    pub fn acquire(&self, user: UserId) -> Result<PermitFuture> {
        let mut state = lock_unpoisoned(&self.state);
        if state.calls_by_user.get(&user).copied().unwrap_or(0) >= self.max_per_user {
            return Err(Code::TooManyCalls.into());
        }
        if state.running < self.max_running {
            state.running += 1;
            state.add_call(user);
            let permit = CallPermit { state: Arc::clone(&self.state), user };
            return Ok(PermitFuture(PermitState::Ready(Some(permit))));
        }
        if state.waiting.len() >= self.max_waiting as usize {
            return Err(overloaded());
        }
        let (sender, receiver) = oneshot::async_channel();
        let number = state.next_number;
        state.next_number += 1;
        state.add_call(user);
        state.waiting.push_back(Waiter { number, user, sender });
        Ok(PermitFuture(PermitState::Queued { receiver, number, user, state: Arc::clone(&self.state) }))
    }

    /// Returns the number of running and of waiting calls.
    pub fn running_and_waiting(&self) -> (u32, usize) {
        let state = lock_unpoisoned(&self.state);
        (state.running, state.waiting.len())
    }
}

/// The error for a call that gets no permit.
pub fn overloaded() -> Error {
    Error::new(Code::Overloaded).detail(("Too many language model calls are running.", "正在进行的模型调用过多。"))
}

impl Future for PermitFuture {
    type Output = Result<CallPermit>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            PermitState::Ready(permit) => {
                Poll::Ready(permit.take().ok_or_else(|| Error::internal("a permit was polled after it was granted")))
            }
            PermitState::Queued { receiver, .. } => {
                Pin::new(receiver).poll(context).map(|permit| permit.map_err(|_| overloaded()))
            }
        }
    }
}

impl Drop for PermitFuture {
    fn drop(&mut self) {
        if let PermitState::Queued { number, user, state, .. } = &self.0 {
            let mut state = lock_unpoisoned(state);
            // If the permit was granted meanwhile, the receiver holds it and releases it on drop.
            if let Some(index) = state.waiting.iter().position(|waiter| waiter.number == *number) {
                state.waiting.remove(index);
                state.remove_call(*user);
            }
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let next = {
            let mut state = lock_unpoisoned(&self.state);
            state.remove_call(self.user);
            let next = state.waiting.pop_front();
            if next.is_none() {
                state.running -= 1;
            }
            next
        };
        if let Some(Waiter { user, sender, .. }) = next {
            // If the waiter has just been dropped, sending fails, drops the permit, and so grants it to the next waiter.
            drop(sender.send(Self { state: Arc::clone(&self.state), user }));
        }
    }
}

impl State {
    fn add_call(&mut self, user: UserId) {
        *self.calls_by_user.entry(user).or_default() += 1;
    }

    fn remove_call(&mut self, user: UserId) {
        if let Some(count) = self.calls_by_user.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                self.calls_by_user.remove(&user);
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

    fn take(future: PermitFuture) -> CallPermit {
        pollster::block_on(future).unwrap()
    }

    /// Returns the permit if it is already granted.
    fn poll(future: &mut PermitFuture) -> Option<CallPermit> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match Pin::new(future).poll(&mut context) {
            Poll::Ready(permit) => Some(permit.unwrap()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn limits_running_and_waiting_calls_of_a_user() {
        let queue = AdmissionQueue::new(1, 2, 9);
        let _running = take(queue.acquire(user(1)).unwrap());
        let waiting = queue.acquire(user(1)).unwrap();
        assert_eq!(queue.acquire(user(1)).err().unwrap().code, Code::TooManyCalls);
        drop(waiting);
        assert!(queue.acquire(user(1)).is_ok());
    }

    #[test]
    fn grants_permits_in_order_of_arrival() {
        let queue = AdmissionQueue::new(1, 2, 2);
        let running = take(queue.acquire(user(1)).unwrap());
        let (mut first, mut second) = (queue.acquire(user(2)).unwrap(), queue.acquire(user(3)).unwrap());
        assert_eq!(queue.acquire(user(4)).err().unwrap().code, Code::Overloaded);
        assert!(poll(&mut first).is_none());
        drop(running);
        let running = poll(&mut first).unwrap();
        assert!(poll(&mut second).is_none());
        assert_eq!(queue.running_and_waiting(), (1, 1));
        drop(running);
        drop(poll(&mut second).unwrap());
        assert_eq!(queue.running_and_waiting(), (0, 0));
    }

    #[test]
    fn dropped_future_leaves_the_queue() {
        let queue = AdmissionQueue::new(1, 1, 3);
        let running = take(queue.acquire(user(1)).unwrap());
        let (dropped, mut remaining) = (queue.acquire(user(2)).unwrap(), queue.acquire(user(3)).unwrap());
        drop(dropped);
        assert_eq!(queue.running_and_waiting(), (1, 1));
        drop(running);
        drop(poll(&mut remaining).unwrap());
        assert_eq!(queue.running_and_waiting(), (0, 0));
    }

    #[test]
    fn permit_of_a_dropped_waiter_passes_to_the_next() {
        let queue = AdmissionQueue::new(1, 1, 3);
        let running = take(queue.acquire(user(1)).unwrap());
        let (granted, mut next) = (queue.acquire(user(2)).unwrap(), queue.acquire(user(3)).unwrap());
        drop(running);
        drop(granted);
        drop(poll(&mut next).unwrap());
        assert_eq!(queue.running_and_waiting(), (0, 0));
    }
}
