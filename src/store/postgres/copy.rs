//! A PostgreSQL database as one side of a copy between databases.
//!
//! The lock on `store_state` keeps the writers of all copies of the service out until the transaction ends. It is taken
//! before the first read, so the snapshot contains everything that they had committed.

use std::pin::Pin;

use bytes::Bytes;
use secrecy::SecretString;
use tokio_postgres::{Error as DatabaseError, binary_copy::BinaryCopyInWriter, error::SqlState, types::Type};

use super::{
    connection::{Address, Connector},
    copies::running_copies_in,
    schema,
    session::Session,
};
use crate::{
    error::{Code, Error, Result},
    store::{
        SchemaPolicy, SqlValue,
        sqlite::{ColumnType, TableLayout},
        tables::quoted,
        transaction::Access,
    },
};

/// Begins the transaction. A copy has no time limits, except for the wait for another writer.
const BEGIN: &str = "begin isolation level repeatable read; set local statement_timeout = 0; \
    set local idle_in_transaction_session_timeout = 0; set local lock_timeout = '10s'; \
    lock table store_state in exclusive mode";

/// Begins a transaction that only reads and delays no writer.
const BEGIN_SNAPSHOT: &str = "begin isolation level repeatable read, read only; set local statement_timeout = 0; \
    set local idle_in_transaction_session_timeout = 0";

/// A transaction on a server.
pub(in crate::store) struct ServerCopySide {
    session: Session,
}

/// Streams rows into a table by `COPY`.
pub(in crate::store) struct ServerRows<'side> {
    writer: Pin<Box<BinaryCopyInWriter>>,
    session: &'side Session,
    table: String,
}

impl ServerCopySide {
    /// Begins a transaction that keeps other writers out. Creates the schema first if the policy permits it.
    pub(in crate::store) fn open(url: &SecretString, policy: SchemaPolicy) -> Result<Self> {
        let session = Connector::new(Address::parse(url)?).open()?;
        schema::prepare(&session, policy)?;
        session.run(BEGIN)?;
        Ok(Self { session })
    }

    /// Begins a transaction that reads one state of the database while others write.
    pub(super) fn open_snapshot(connector: &Connector) -> Result<Self> {
        let session = connector.open()?;
        session.run(BEGIN_SNAPSHOT)?;
        Ok(Self { session })
    }

    pub(in crate::store) fn access(&self) -> Access<'_> {
        Access::Server(&self.session)
    }

    pub(in crate::store) fn commit(self) -> Result<()> {
        Ok(self.session.run("commit")?)
    }

    /// Counts the copies of the service that run on the database.
    pub(in crate::store) fn running_servers(&self) -> Result<i64> {
        i64::try_from(running_copies_in(self.access())?.len()).map_err(Error::internal)
    }

    pub(in crate::store) fn insert_into(&self, table: &TableLayout) -> Result<ServerRows<'_>> {
        let types: Vec<_> = table.columns.iter().map(|(_, column)| type_of(*column)).collect();
        let (name, columns) = (quoted(&table.name), table.column_list());
        let sink = self.session.copy_in::<Bytes>(&format!("copy {name} ({columns}) from stdin binary"))?;
        let writer = Box::pin(BinaryCopyInWriter::new(sink, &types));
        Ok(ServerRows { writer, session: &self.session, table: table.name.clone() })
    }

    /// Collects the statistics of a filled table, which the checks and the first requests need.
    pub(in crate::store) fn analyze(&self, table: &TableLayout) -> Result<()> {
        Ok(self.session.run(&format!("analyze {}", quoted(&table.name)))?)
    }

    /// Returns the largest id that a table has ever had.
    pub(in crate::store) fn counter(&self, table: &TableLayout) -> Result<i64> {
        let Some(sequence) = self.sequence(table)? else { return Ok(0) };
        let last = format!("select case when is_called then last_value else 0 end from {sequence}");
        Ok(self.access().first(&last, &(), |row| row.get(0))?.unwrap_or(0))
    }

    /// Lets the ids of new rows begin after this one.
    pub(in crate::store) fn set_counter(&self, table: &TableLayout, counter: i64) -> Result<()> {
        let Some(sequence) = self.sequence(table)? else { return Ok(()) };
        // A sequence cannot hold 0, which stands for a table that never had a row.
        let set = "select setval(cast(cast(?1 as text) as regclass), greatest(?2, 1), ?2 > 0)";
        self.access().first(set, &(sequence, counter), |row| row.get::<i64>(0)).map(drop)
    }

    /// Returns the name of the sequence that numbers the rows of a table.
    fn sequence(&self, table: &TableLayout) -> Result<Option<String>> {
        let Some(key) = table.integer_key() else { return Ok(None) };
        let find = "select pg_get_serial_sequence(cast(?1 as text), cast(?2 as text))";
        let found = self.access().first(find, &(quoted(&table.name), key), |row| row.get(0))?;
        Ok(found.flatten())
    }
}

impl Drop for ServerCopySide {
    fn drop(&mut self) {
        // After a commit there is nothing to roll back. A failure ends the connection, and the transaction with it.
        if !self.session.is_lost() {
            drop(self.session.run("rollback"));
        }
    }
}

impl ServerRows<'_> {
    pub(in crate::store) fn write(&mut self, values: &[SqlValue<'_>]) -> Result<()> {
        let written = self.session.wait(self.writer.as_mut().write_raw(values.iter().copied()));
        written.map_err(|error| self.failure(error))
    }

    pub(in crate::store) fn finish(mut self) -> Result<()> {
        let finished = self.session.wait(self.writer.as_mut().finish());
        finished.map(drop).map_err(|error| self.failure(error))
    }

    /// Names the table whose rows the server rejects.
    fn failure(&self, error: DatabaseError) -> Error {
        self.session.note_failure(&error);
        let is_of_rows = |state: &SqlState| ["22", "23"].iter().any(|class| state.code().starts_with(class));
        match error.as_db_error() {
            Some(answer) if is_of_rows(answer.code()) => {
                let detail = format!("PostgreSQL rejects a row of the table {}: {}.", self.table, answer.message());
                Error::new(Code::ChecksFailed).english_detail(detail).caused_by(error)
            }
            _ => error.into(),
        }
    }
}

fn type_of(column: ColumnType) -> Type {
    match column {
        ColumnType::Integer => Type::INT8,
        ColumnType::Real => Type::FLOAT8,
        ColumnType::Text => Type::TEXT,
        ColumnType::Blob => Type::BYTEA,
    }
}
