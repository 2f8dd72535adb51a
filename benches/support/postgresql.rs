//! A PostgreSQL server with databases for the service.

use std::path::Path;

use postgres::{Client, NoTls};

use super::{Failure, process::yarrow_program};

/// A server, named by a directory of its socket and a user who may create databases.
pub struct PostgresServer {
    /// Such as `host=/run/postgresql user=yarrow`.
    address: String,
}

impl PostgresServer {
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned() }
    }

    /// Replaces a database by a copy of another.
    pub fn create(&self, name: &str, template: &str) -> Result<(), Failure> {
        let mut client = self.client("postgres")?;
        client.batch_execute(&format!("drop database if exists {name} with (force)"))?;
        Ok(client.batch_execute(&format!("create database {name} template {template}"))?)
    }

    /// Replaces a database by the rows of a data directory, which is marked as moved.
    pub fn fill(&self, name: &str, directory: &Path) -> Result<(), Failure> {
        self.create(name, "template0")?;
        let mut copy = std::process::Command::new(yarrow_program());
        copy.args(["database", "copy", "--from"]).arg(directory).arg("--to").arg(self.url(name)?);
        let output = copy.output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(())
    }

    /// Writes all pages and updates the statistics of the planner.
    pub fn settle(&self, name: &str) -> Result<(), Failure> {
        Ok(self.client(name)?.batch_execute("checkpoint; analyze")?)
    }

    /// Counts the rows of a table.
    pub fn count(&self, name: &str, table: &str) -> Result<u64, Failure> {
        let rows: i64 = self.client(name)?.query_one(&format!("select count(*) from {table}"), &[])?.get(0);
        Ok(u64::try_from(rows)?)
    }

    pub fn size(&self, name: &str) -> Result<u64, Failure> {
        let bytes: i64 = self.client(name)?.query_one("select pg_database_size(current_database())", &[])?.get(0);
        Ok(u64::try_from(bytes)?)
    }

    pub fn url(&self, name: &str) -> Result<String, Failure> {
        let part = |name: &str| self.address.split(' ').find_map(|part| part.strip_prefix(name));
        let (Some(host), Some(user)) = (part("host="), part("user=")) else {
            return Err("the address of PostgreSQL must be `host=DIRECTORY user=NAME`".into());
        };
        Ok(format!("postgres:///{name}?host={host}&user={user}"))
    }

    fn client(&self, name: &str) -> Result<Client, Failure> {
        Ok(Client::connect(&format!("{} dbname={name}", self.address), NoTls)?)
    }
}
