//! Statements that a connection keeps prepared, found by where their text stands in the program.
//!
//! The library's own cache hashes the text twice for every use and orders its entries by age, which costs a third of a
//! point query. Texts that live as long as the program need neither: each has an address of its own, and there are only
//! so many of them. Texts that are put together at run time go to the library's cache.

use std::cell::RefCell;

use rusqlite::{Connection, Statement};

use crate::error::{Error, Result};

/// The text of a statement.
pub trait Sql: Copy {
    fn text(&self) -> &str;

    /// The text, if it lives as long as the program.
    fn lasting(&self) -> Option<&'static str>;
}

impl Sql for &'static str {
    fn text(&self) -> &str {
        self
    }

    fn lasting(&self) -> Option<&'static str> {
        Some(self)
    }
}

impl Sql for &String {
    fn text(&self) -> &str {
        self
    }

    fn lasting(&self) -> Option<&'static str> {
        None
    }
}

/// What lends a prepared statement: [`Kept`], whatever the lifetime of its connection.
pub(super) trait Lend {
    /// CheckpointConnection the statement to `borrow`, once.
    fn lend(&self, sql: &'static str, borrow: &mut dyn FnMut(&mut Statement<'_>) -> Result<()>) -> Result<()>;
}

/// The statements of one connection.
pub(super) struct Kept<'connection> {
    connection: &'connection Connection,
    /// Ordered by address and length. An entry is empty while its statement is lent.
    entries: RefCell<Vec<(Place, Option<Statement<'connection>>)>>,
}

type Place = (usize, usize);

impl<'connection> Kept<'connection> {
    pub(super) fn new(connection: &'connection Connection) -> Self {
        Self { connection, entries: RefCell::default() }
    }

    /// The statement of this place; prepared anew if it is asked for the first time, or while it is lent already.
    fn take(&self, place: Place, sql: &str) -> Result<Statement<'connection>> {
        let mut entries = self.entries.try_borrow_mut().map_err(Error::internal)?;
        let kept = match entries.binary_search_by_key(&place, |(place, _)| *place) {
            Ok(index) => entries.get_mut(index).and_then(|(_, statement)| statement.take()),
            Err(index) => {
                entries.insert(index, (place, None));
                None
            }
        };
        match kept {
            Some(statement) => Ok(statement),
            None => Ok(self.connection.prepare(sql)?),
        }
    }

    fn give_back(&self, place: Place, statement: Statement<'connection>) -> Result<()> {
        let mut entries = self.entries.try_borrow_mut().map_err(Error::internal)?;
        if let Ok(index) = entries.binary_search_by_key(&place, |(place, _)| *place)
            && let Some((_, entry)) = entries.get_mut(index)
        {
            *entry = Some(statement);
        }
        Ok(())
    }
}

impl Lend for Kept<'_> {
    fn lend(&self, sql: &'static str, borrow: &mut dyn FnMut(&mut Statement<'_>) -> Result<()>) -> Result<()> {
        let place = (sql.as_ptr().addr(), sql.len());
        let mut statement = self.take(place, sql)?;
        let outcome = borrow(&mut statement);
        // What was bound may be large, and somebody's words.
        statement.clear_bindings();
        self.give_back(place, statement)?;
        outcome
    }
}
