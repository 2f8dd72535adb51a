//! The peers, as `benches/load/run` installs them.
//!
//! Fastify and FastAPI serve copies of the service's own file over the same endpoints; their programs are beside this
//! file. PocketBase has its own tables and endpoints ([`crate::pocketbase`]). Peers that are not installed are reported
//! as missing.

use std::path::{Path, PathBuf};

use crate::{
    pocketbase::PocketBase,
    report::Contestant,
    support::{
        Failure,
        process::{Machine, Server},
    },
};

pub struct Peers {
    directory: Option<PathBuf>,
    pub pocketbase: Option<PocketBase>,
}

impl Peers {
    /// Finds the installed peers and seeds their data.
    pub fn prepare(directory: Option<&Path>, temporary: &Path) -> Result<Self, Failure> {
        let mut peers = Self { directory: directory.map(Path::to_owned), pocketbase: None };
        if let Some(directory) = directory {
            for (name, file) in [("Fastify", FASTIFY), ("FastAPI", FASTAPI), ("PocketBase", POCKETBASE)] {
                if !directory.join(file).exists() {
                    println!("missing: {name}");
                }
            }
            let program = directory.join(POCKETBASE);
            if program.exists() {
                peers.pocketbase = Some(PocketBase::prepare(&program, &temporary.join("pocketbase"))?);
            }
        }
        Ok(peers)
    }

    pub fn has(&self, contestant: Contestant) -> bool {
        let is_there = |file: &str| self.directory.as_ref().is_some_and(|directory| directory.join(file).exists());
        match contestant {
            Contestant::Bare | Contestant::Yarrow | Contestant::YarrowEachCommits | Contestant::EachCommits => true,
            Contestant::AnotherBuild | Contestant::OnPostgres | Contestant::OnDistantPostgres => false,
            Contestant::Fastify | Contestant::FastifyNormal => is_there(FASTIFY),
            Contestant::FastApi | Contestant::FastApiNormal => is_there(FASTAPI),
            Contestant::PocketBase => self.pocketbase.is_some(),
        }
    }

    pub fn start_fastify(&self, data: &Path, synchronous: &str, machine: &Machine) -> Result<Server, Failure> {
        let directory = self.directory.as_ref().ok_or("no peers")?;
        let mut command = machine.command(Path::new("node"));
        command.env("NODE_PATH", directory.join("node_modules")).env("NODE_ENV", "production");
        command.arg(program("fastify.cjs")).arg(data.join("yarrow.db")).arg(synchronous);
        Server::spawn(command)
    }

    pub fn start_fastapi(&self, data: &Path, synchronous: &str, machine: &Machine) -> Result<Server, Failure> {
        let directory = self.directory.as_ref().ok_or("no peers")?;
        let mut command = machine.command(&directory.join("python/bin/python3"));
        command.arg(program("fastapi_server.py")).arg(data.join("yarrow.db")).arg(synchronous);
        Server::spawn(command)
    }
}

const FASTIFY: &str = "node_modules/better-sqlite3/build/Release/better_sqlite3.node";
const FASTAPI: &str = "python/bin/uvicorn";
const POCKETBASE: &str = "python/bin/pocketbase";

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/load/peers").join(name)
}
