//! The service on PostgreSQL: a database made from the seed, and a fresh copy of it for every start.

use std::path::Path;

use crate::{
    distance,
    seed::Seed,
    support::{Failure, postgresql::PostgresServer},
};

/// The database that the others are copied from.
const TEMPLATE: &str = "yarrow_load_seed";
const COPY: &str = "yarrow_load";

pub struct SeededServer {
    server: PostgresServer,
    /// The same server at a distance.
    distant: PostgresServer,
}

impl SeededServer {
    /// Connects to a server and fills the template.
    pub fn prepare(address: &str, seed: &Seed, directory: &Path) -> Result<Self, Failure> {
        let server = PostgresServer::new(address);
        // The copy marks its source as moved.
        let source = directory.join("to-postgresql");
        seed.copy_to(&source)?;
        server.fill(TEMPLATE, &source)?;
        std::fs::remove_dir_all(source)?;
        let far = directory.join("distance");
        std::fs::create_dir(&far)?;
        distance::start(&far, address)?;
        let user = address.split(' ').find(|part| part.starts_with("user=")).unwrap_or_default();
        Ok(Self { server, distant: PostgresServer::new(&format!("host={} {user}", far.display())) })
    }

    /// Creates a fresh copy of the seed and returns its URL.
    pub fn fresh(&self, is_distant: bool) -> Result<String, Failure> {
        self.server.create(COPY, TEMPLATE)?;
        self.server.settle(COPY)?;
        if is_distant { self.distant.url(COPY) } else { self.server.url(COPY) }
    }

    /// Counts the rows of a table.
    pub fn count(&self, table: &str) -> Result<u64, Failure> {
        self.server.count(COPY, table)
    }
}
