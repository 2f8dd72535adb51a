//! The service on PostgreSQL: a database made from the seed, and a fresh copy of it for every start.

use std::path::Path;

use crate::{
    seed::Seed,
    support::{Failure, postgresql::PostgresServer},
};

/// The database that the others are copied from.
const TEMPLATE: &str = "yarrow_load_seed";
const COPY: &str = "yarrow_load";

pub struct SeededServer(PostgresServer);

impl SeededServer {
    /// Connects to a server and fills the template.
    pub fn prepare(address: &str, seed: &Seed, directory: &Path) -> Result<Self, Failure> {
        let server = PostgresServer::new(address);
        // The copy marks its source as moved.
        let source = directory.join("to-postgresql");
        seed.copy_to(&source)?;
        server.fill(TEMPLATE, &source)?;
        std::fs::remove_dir_all(source)?;
        Ok(Self(server))
    }

    /// Creates a fresh copy of the seed and returns its URL.
    pub fn fresh(&self) -> Result<String, Failure> {
        self.0.create(COPY, TEMPLATE)?;
        self.0.settle(COPY)?;
        self.0.url(COPY)
    }

    /// Counts the rows of a table.
    pub fn count(&self, table: &str) -> Result<u64, Failure> {
        self.0.count(COPY, table)
    }
}
