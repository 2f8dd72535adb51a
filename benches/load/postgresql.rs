//! The service on PostgreSQL: a database made from the seed, and a fresh copy of it for every start.

use std::path::Path;

use postgres::{Client, NoTls};

use crate::{
    seed::Seed,
    support::{Failure, process::yarrow_program},
};

/// The database that the others are copied from.
const TEMPLATE: &str = "yarrow_load_seed";
const COPY: &str = "yarrow_load";

/// A server for the databases, named by a directory of its socket and a user who may create databases.
pub struct PostgresServer {
    address: String,
}

impl PostgresServer {
    /// Connects to a server at an address such as `host=/run/postgresql user=yarrow` and fills the template.
    pub fn prepare(address: &str, seed: &Seed, directory: &Path) -> Result<Self, Failure> {
        let server = Self { address: address.to_owned() };
        server.create(TEMPLATE, "template0")?;
        // The copy marks its source as moved.
        let source = directory.join("to-postgresql");
        seed.copy_to(&source)?;
        let mut copy = std::process::Command::new(yarrow_program());
        copy.args(["database", "copy", "--from"]).arg(&source).arg("--to").arg(server.url(TEMPLATE)?);
        let output = copy.output()?;
        std::fs::remove_dir_all(source)?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(server)
    }

    /// Creates a fresh copy of the seed and returns its URL.
    pub fn fresh(&self) -> Result<String, Failure> {
        self.create(COPY, TEMPLATE)?;
        self.client(COPY)?.batch_execute("checkpoint; analyze")?;
        self.url(COPY)
    }

    /// Counts the rows of a table.
    pub fn count(&self, table: &str) -> Result<u64, Failure> {
        let rows: i64 = self.client(COPY)?.query_one(&format!("select count(*) from {table}"), &[])?.get(0);
        Ok(u64::try_from(rows)?)
    }

    fn create(&self, name: &str, template: &str) -> Result<(), Failure> {
        let mut client = self.client("postgres")?;
        client.batch_execute(&format!("drop database if exists {name} with (force)"))?;
        Ok(client.batch_execute(&format!("create database {name} template {template}"))?)
    }

    fn client(&self, database: &str) -> Result<Client, Failure> {
        Ok(Client::connect(&format!("{} dbname={database}", self.address), NoTls)?)
    }

    fn url(&self, database: &str) -> Result<String, Failure> {
        let part = |name: &str| self.address.split(' ').find_map(|part| part.strip_prefix(name));
        let (Some(host), Some(user)) = (part("host="), part("user=")) else {
            return Err("the address of PostgreSQL must be `host=DIRECTORY user=NAME`".into());
        };
        Ok(format!("postgres:///{database}?host={host}&user={user}"))
    }
}
