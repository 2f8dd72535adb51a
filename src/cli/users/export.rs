//! `yarrow users export` and `erase`: what users can also do themselves.

use std::{
    io::{self, Write},
    path::Path,
};

use serde_json::json;

use crate::cli::{Common, cli_authority, confirm, record_audit};
use yarrow::{
    app::App,
    domain::identity::{
        accounts::{self, EraseBy},
        users::User,
    },
    error::{Code, Error, Result},
    store::{
        Pending,
        files::{create_private, file_error},
    },
    types::UserId,
};

/// Writes the export to the file, or to standard output.
pub fn export(common: &Common, app: &App, user: UserId, file: Option<&Path>) -> Result<()> {
    let by = cli_authority(None);
    let Some(path) = file else {
        let written = accounts::export(app, user, &mut IgnoreBrokenPipe(io::stdout().lock()));
        record_audit(app, "users export", Some(user), by)?;
        return written;
    };
    let file = create_private(path)?;
    let written = accounts::export(app, user, &mut &file);
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

/// Deletes the account.
pub fn erase(common: &Common, app: &App, user: &User, reason: Option<String>, yes: bool) -> Result<()> {
    let question = format!(
        "Delete user {} and all personal data? Existing backups keep their copy.",
        user.id
    );
    confirm(yes, &question)?;
    let by = cli_authority(reason);
    match accounts::erase(app, user.id, EraseBy::Operator).and_then(Pending::wait) {
        Err(error) if error.code == Code::AccountInconsistent => {
            return Err(error.detail(format!("The points balance disagrees with the ledger. Run `yarrow points repair {}` first.", user.id)));
        }
        erased => erased?,
    }
    record_audit(app, "users erase", Some(user.id), by)?;
    common.output(&json!({ "userId": user.id, "erased": true }), || format!("deleted user {}", user.id))
}
