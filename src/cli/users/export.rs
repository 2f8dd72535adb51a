//! `yarrow users export`: all data of a user who cannot export it in the app.

use std::{
    io::{self, Write},
    path::Path,
};

use serde_json::json;

use crate::cli::{Common, cli_authority, record_audit, terminal_escape::EscapingWriter};
use crate::{
    app::App,
    domain::identity::accounts,
    error::{Error, Result},
    store::unnamed_file::UnnamedFile,
    types::UserId,
};

/// Writes the export to the file, or to standard output.
pub fn export(common: &Common, app: &App, user: UserId, file: Option<&Path>) -> Result<()> {
    let by = cli_authority(None);
    let Some(path) = file else {
        let mut output = EscapingWriter::new(IgnoreBrokenPipe(common.streams.output()));
        let written = accounts::export(&app.exports, user, &mut output);
        let written = written.and_then(|()| output.flush().map_err(Error::internal));
        record_audit(app, "users export", Some(user), by)?;
        return written;
    };
    // It gets its name when it is complete, so that not even a signal leaves a part of it.
    let file = UnnamedFile::create_beside(path)?;
    accounts::export(&app.exports, user, &mut &file.file)?;
    let file = file.publish(path)?;
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
