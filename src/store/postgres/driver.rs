//! Input and output of one connection, on the thread that waits for an answer.
//!
//! Another thread would have to be woken for each request, and would have to wake this one for each answer, which costs more
//! than most statements.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Error as DatabaseError;

use crate::error::{Error, Result};

type Connection = Pin<Box<dyn Future<Output = Result<(), DatabaseError>> + Send>>;

pub(super) struct Driver {
    /// None once the connection has ended.
    connection: RefCell<Option<Connection>>,
    /// None only while it is dropped.
    runtime: Option<Runtime>,
}

impl Driver {
    /// Connects by `connect`, which returns a client with its connection. Must not run on a worker of another runtime.
    pub(super) fn connect<C>(
        connect: impl Future<Output = Result<(C, Connection), DatabaseError>>,
    ) -> Result<(C, Self)> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::internal)?;
        let (client, connection) = runtime.block_on(connect)?;
        Ok((client, Self { connection: RefCell::new(Some(connection)), runtime: Some(runtime) }))
    }

    /// Waits for the answer to a request. Must not run on a worker of another runtime.
    pub(super) fn wait<T>(&self, request: impl Future<Output = T>) -> T {
        let mut request = pin!(request);
        let answered = poll_fn(|context| {
            if let Poll::Ready(answer) = request.as_mut().poll(context) {
                return Poll::Ready(answer);
            }
            // Sends what the request has queued, and receives what has arrived.
            self.advance(context);
            request.as_mut().poll(context)
        });
        match &self.runtime {
            Some(runtime) => runtime.block_on(answered),
            None => pollster::block_on(answered),
        }
    }

    /// Receives what has arrived meanwhile, such as the end of the connection.
    pub(super) fn receive(&self) {
        self.wait(tokio::task::yield_now());
    }

    /// Sends what is queued, without waiting.
    pub(super) fn flush(&self) {
        self.advance(&mut Context::from_waker(Waker::noop()));
    }

    fn advance(&self, context: &mut Context<'_>) {
        let mut connection = self.connection.borrow_mut();
        let ended = connection.as_mut().is_some_and(|open| open.as_mut().poll(context).is_ready());
        if ended {
            // Requests fail from now on, with the cause.
            *connection = None;
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The client is dropped already, so this sends the message that ends the session.
        self.flush();
        if let Some(runtime) = self.runtime.take() {
            // Does not block, so a driver can be dropped on any thread.
            runtime.shutdown_background();
        }
    }
}
