//! The reference servers. This program starts itself again as one of them.
//!
//! `bare` returns a constant: the cost of tokio, hyper and axum alone. `each-commits` saves castings in the usual way:
//! one connection behind a mutex, blocking calls on the blocking pool, one durable commit per request. It does less
//! than the service: no parameter rules, request ids, limits or log.

use std::{
    future::IntoFuture,
    path::Path,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::ListenerExt,
};
use futures_util::future::{Either, select};
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::signal::unix::{SignalKind, signal};
use yarrow::types::sha256;

use crate::support::Failure;

/// Serves until SIGTERM. With a database it commits every request on its own.
pub fn serve(database: Option<&Path>) -> Result<(), Failure> {
    let router = match database {
        None => Router::new().route("/hello", get(hello)),
        Some(path) => {
            Router::new().route("/divination-history/save", post(save)).with_state(Arc::new(Mutex::new(open(path)?)))
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening on http://{}", listener.local_addr()?);
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let mut stop = signal(SignalKind::terminate())?;
        // Exits normally, so that a profiled build writes its counters.
        match select(pin!(stop.recv()), pin!(axum::serve(listener, router).into_future())).await {
            Either::Left(_) => Ok(()),
            Either::Right((ended, _)) => Ok(ended?),
        }
    })
}

#[derive(Serialize)]
struct Hello {
    message: &'static str,
}

async fn hello() -> Response {
    json(StatusCode::OK, &Hello { message: "hello" })
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_vec(value).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

pub fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Casting {
    local_record_id: String,
    question_type: String,
    question: String,
    json_data: Box<RawValue>,
    timestamp: i64,
}

async fn save(
    State(database): State<Arc<Mutex<Connection>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, StatusCode> {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let Some(token) = token.map(ToOwned::to_owned) else { return Err(StatusCode::UNAUTHORIZED) };
    let Ok(casting) = serde_json::from_slice::<Casting>(&body) else { return Err(StatusCode::BAD_REQUEST) };
    let saved = tokio::task::spawn_blocking(move || {
        let connection = database.lock().unwrap_or_else(PoisonError::into_inner);
        let user = find_user(&connection, &token)?;
        user.map(|user| insert(&connection, user, &casting).map(|()| casting)).transpose()
    });
    match saved.await {
        Ok(Ok(Some(casting))) => Ok(json(StatusCode::CREATED, &casting)),
        Ok(Ok(None)) => Err(StatusCode::UNAUTHORIZED),
        Ok(Err(_)) | Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// Returns the token's user.
fn find_user(connection: &Connection, token: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("select user_id from tokens where token_sha256 = ?1")?
        .query_row([sha256(token)], |row| row.get(0))
        .optional()
}

fn insert(connection: &Connection, user: i64, casting: &Casting) -> rusqlite::Result<()> {
    insert_row(
        connection,
        user,
        (&casting.local_record_id, &casting.question_type, &casting.question),
        casting.json_data.get(),
        casting.timestamp,
    )
}

/// Inserts one casting in a commit of its own.
pub fn insert_row(
    connection: &Connection,
    user: i64,
    (local_record_id, question_type, question): (&str, &str, &str),
    json_data: &str,
    timestamp: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "insert into history (user_id, sequence, local_record_id, question_type, question, json_data, \
             client_timestamp, created_at, updated_at) values (?1, \
             (select coalesce(max(sequence), 0) + 1 from history where user_id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
        )?
        .execute((user, local_record_id, question_type, question, json_data, timestamp.to_string(), timestamp))
        .map(drop)
}
