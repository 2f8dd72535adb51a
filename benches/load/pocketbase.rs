//! PocketBase with the same work: users, a balance each, and castings, behind rules that give users only their own.
//!
//! Its users present signed tokens instead of looked-up ones: the token names the user, whose row is then read. Users
//! are written straight into its file, because hashing a password for each would take minutes. Its request log is off,
//! and its `synchronous` is NORMAL, because it has no setting for it.

use std::{
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::hmac;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    seed::{self, Size},
    support::{
        Failure,
        process::{Machine, Server},
        requests::{Kind, NUMBER, Requests, request},
    },
    workload::{Casting, Workload},
};

const EMAIL: &str = "operator@example.com";
const PASSWORD: &str = "correct horse";

pub struct PocketBase {
    program: PathBuf,
    directory: PathBuf,
    tokens: Vec<String>,
}

impl PocketBase {
    pub fn prepare(program: &Path, directory: &Path) -> Result<Self, Failure> {
        let mut upsert = std::process::Command::new(program);
        upsert.args(["superuser", "upsert", EMAIL, PASSWORD, "--dir"]).arg(directory);
        if !upsert.output()?.status.success() {
            return Err("PocketBase does not work".into());
        }
        let mut prepared = Self { program: program.to_owned(), directory: directory.to_owned(), tokens: Vec::new() };
        let server = prepared.start_in(directory, &Machine::unpinned())?;
        make_collections(server.address())?;
        server.stop()?;
        prepared.tokens = fill(&directory.join("data.db"))?;
        Ok(prepared)
    }

    /// Serves a copy of the prepared data.
    pub fn start(&self, data: &Path, machine: &Machine) -> Result<Server, Failure> {
        std::fs::create_dir_all(data)?;
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                std::fs::copy(entry.path(), data.join(entry.file_name()))?;
                std::fs::File::open(data.join(entry.file_name()))?.sync_all()?;
            }
        }
        self.start_in(data, machine)
    }

    /// Returns None for workloads without an equivalent.
    pub fn requests(&self, workload: Workload) -> Option<Requests> {
        let of_all = |make: fn(usize, &str) -> Vec<u8>| {
            self.tokens.iter().enumerate().map(|(user, token)| make(user, token)).collect::<Vec<_>>()
        };
        match workload {
            Workload::Balance => Some(Requests::reading(of_all(balance))),
            Workload::Profile => Some(Requests::reading(of_all(profile))),
            Workload::Save | Workload::SaveAlone => Some(Requests::writing(Kind::Save, of_all(save))),
            Workload::Mix => Some(Requests::mixed(of_all(profile), 10, Kind::Save, of_all(save))),
            Workload::List => {
                let readers = self.tokens[..Size::LARGE.readers as usize].iter();
                Some(Requests::reading(readers.map(|token| list(token)).collect()))
            }
            _ => None,
        }
    }

    fn start_in(&self, data: &Path, machine: &Machine) -> Result<Server, Failure> {
        // PocketBase does not report its port, so it gets one that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = machine.command(&self.program);
        command.arg("serve").arg(format!("--http={address}")).arg("--dir").arg(data);
        Server::spawn_at(command, address)
    }
}

/// Counts the castings of a stopped PocketBase.
pub fn count_saved(data: &Path) -> Result<u64, Failure> {
    let connection = Connection::open(data.join("data.db"))?;
    let rows: i64 = connection.query_row("select count(*) from history", (), |row| row.get(0))?;
    Ok(u64::try_from(rows)?)
}

fn make_collections(address: SocketAddr) -> Result<(), Failure> {
    let url = |path: &str| format!("http://{address}/api/{path}");
    let signed_in: Value = ureq::post(url("collections/_superusers/auth-with-password"))
        .send_json(json!({ "identity": EMAIL, "password": PASSWORD }))?
        .body_mut()
        .read_json()?;
    let token = signed_in["token"].as_str().ok_or("PocketBase gave no token")?;
    let own = "user = @request.auth.id";
    let field = |name: &str, kind: &str| json!({ "name": name, "type": kind });
    let user = json!({ "name": "user", "type": "relation", "collectionId": "_pb_users_auth_", "maxSelect": 1, "required": true });
    let time = json!({ "name": "created", "type": "autodate", "onCreate": true });
    let collections = [
        json!({ "name": "balances", "type": "base", "viewRule": own, "fields": [user, field("balance", "number")] }),
        json!({ "name": "history", "type": "base", "createRule": own, "listRule": own, "viewRule": own,
            "fields": [user, field("localRecordId", "text"), field("questionType", "text"), field("question", "text"),
                field("jsonData", "json"), field("timestamp", "number"), time],
            "indexes": ["create index history_by_user on history (user, created)",
                "create unique index history_by_record on history (localRecordId, user)"] }),
    ];
    for collection in collections {
        ureq::post(url("collections")).header("authorization", token).send_json(collection)?;
    }
    let no_log = json!({ "logs": { "maxDays": 0 } });
    ureq::patch(url("settings")).header("authorization", token).send_json(no_log)?;
    Ok(())
}

/// Writes users, their balances and the readers' castings, and creates tokens.
fn fill(database: &Path) -> Result<Vec<String>, Failure> {
    let mut connection = Connection::open(database)?;
    let secret: String = connection.query_row(
        "select json_extract(options, '$.authToken.secret') from _collections where name = 'users'",
        (),
        |row| row.get(0),
    )?;
    let casting = Casting::sample();
    let transaction = connection.transaction()?;
    let mut tokens = Vec::new();
    for user in 0..Size::LARGE.users {
        let (id, key) = (id_of(user as usize), format!("{user:050}"));
        transaction
            .prepare_cached("insert into users (id, email, tokenKey, verified) values (?1, ?2, ?3, true)")?
            .execute((&id, format!("{user}@example.com"), &key))?;
        transaction
            .prepare_cached("insert into balances (id, user, balance) values (?1, ?1, 1000000000)")?
            .execute([&id])?;
        let records = if user < Size::LARGE.readers { seed::RECORDS_OF_READER } else { 0 };
        for record in 0..records {
            transaction
                .prepare_cached(
                    "insert into history (user, localRecordId, questionType, question, jsonData, timestamp, created) \
                 values (?1, ?2, ?3, ?4, ?5, ?6, strftime('%Y-%m-%d %H:%M:%fZ', 'now', ?7))",
                )?
                .execute((
                    &id,
                    format!("seeded-{record}"),
                    casting.question_type,
                    casting.question,
                    &casting.json_data,
                    casting.timestamp,
                    format!("-{record} minutes"),
                ))?;
        }
        tokens.push(token(&id, &(key + &secret))?);
    }
    transaction.commit()?;
    Ok(tokens)
}

fn id_of(user: usize) -> String {
    format!("{user:015}")
}

fn token(id: &str, key: &str) -> Result<String, Failure> {
    let expiry = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() + 24 * 60 * 60;
    let claims =
        json!({ "collectionId": "_pb_users_auth_", "exp": expiry, "id": id, "refreshable": true, "type": "auth" });
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let text = format!("{}.{}", encode(br#"{"alg":"HS256","typ":"JWT"}"#), encode(claims.to_string().as_bytes()));
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()), text.as_bytes());
    Ok(format!("{text}.{}", encode(signature.as_ref())))
}

fn authorization(token: &str) -> String {
    format!("authorization: {token}\r\n")
}

fn balance(user: usize, token: &str) -> Vec<u8> {
    request("GET", &format!("/api/collections/balances/records/{}", id_of(user)), &authorization(token), "")
}

fn profile(user: usize, token: &str) -> Vec<u8> {
    request("GET", &format!("/api/collections/users/records/{}", id_of(user)), &authorization(token), "")
}

fn list(token: &str) -> Vec<u8> {
    let path = "/api/collections/history/records?page=1&perPage=20&sort=-created";
    request("GET", path, &authorization(token), "")
}

fn save(user: usize, token: &str) -> Vec<u8> {
    let casting = Casting::sample();
    let body = format!(
        r#"{{"user":"{}","questionType":"{}","question":"{}","jsonData":{},"timestamp":{},"localRecordId":"{NUMBER}"}}"#,
        id_of(user),
        casting.question_type,
        casting.question,
        casting.json_data,
        casting.timestamp,
    );
    request("POST", "/api/collections/history/records", &authorization(token), &body)
}
