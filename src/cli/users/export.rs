//! `yarrow users export`: all data of a user, for somebody who cannot export it in the app.

use std::{
    io::{self, Write},
    path::Path,
};

use serde_json::json;

use crate::cli::{Common, cli_authority, record_audit};
use yarrow::{
    app::App,
    domain::identity::accounts,
    error::{Error, Result},
    store::files::{create_private, file_error},
    types::UserId,
};

/// Writes the export to the file, or to standard output.
pub fn export(common: &Common, app: &App, user: UserId, file: Option<&Path>) -> Result<()> {
    let by = cli_authority(None);
    let Some(path) = file else {
        let written = accounts::export(&app.exports, user, &mut IgnoreBrokenPipe(io::stdout().lock()));
        record_audit(app, "users export", Some(user), by)?;
        return written;
    };
    let file = create_private(path)?;
    let written = accounts::export(&app.exports, user, &mut &file);
    let synced = written.and_then(|()| file.sync_all().map_err(|error| file_error(path, error)));
    // An incomplete export must not be handed out.
    synced.inspect_err(|_| drop(std::fs::remove_file(path)))?;
    record_audit(app, "users export", Some(user), by)?;
    let bytes = file.metadata().map_err(Error::internal)?.len();
    common.output(&json!({ "userId": user, "path": path, "bytes": bytes }), || path.display().to_string())
}

/// A writer that ignores a closed pipe, as in `| head`.
struct IgnoreBrokenPipe<W: Write>(W);

impl<W: Write> Write for IgnoreBrokenPipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        ignore_broken_pipe(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        ignore_broken_pipe(self.0.flush(), ())
    }
}

fn ignore_broken_pipe<T>(outcome: io::Result<T>, fallback: T) -> io::Result<T> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(fallback),
        outcome => outcome,
    }
}
