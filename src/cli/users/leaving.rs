//! What a user may ask for and do alone, done by an operator for somebody who cannot: the export and the deletion.

use std::{
    io::{self, Write},
    path::Path,
};

use serde_json::json;

use crate::cli::{Common, authority, confirm, record};
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
    let by = authority(None);
    let Some(path) = file else {
        let written = accounts::export(app, user, &mut Patient(io::stdout().lock()));
        record(app, "users export", Some(user), by)?;
        return written;
    };
    let file = create_private(path)?;
    let written = accounts::export(app, user, &mut &file);
    let synced = written.and_then(|()| file.sync_all().map_err(|error| file_error(path, error)));
    // Half an export is worse than none: somebody might hand it out.
    synced.inspect_err(|_| drop(std::fs::remove_file(path)))?;
    record(app, "users export", Some(user), by)?;
    let bytes = file.metadata().map_err(Error::internal)?.len();
    common.answer(&json!({ "userId": user, "path": path, "bytes": bytes }), || path.display().to_string())
}

/// Standard output whose reader may go away, as in `| head`: that is no failure.
struct Patient<W: Write>(W);

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        forgiven(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        forgiven(self.0.flush(), ())
    }
}

fn forgiven<T>(outcome: io::Result<T>, instead: T) -> io::Result<T> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(instead),
        outcome => outcome,
    }
}

/// Deletes the account.
pub fn erase(common: &Common, app: &App, user: &User, reason: Option<String>, yes: bool) -> Result<()> {
    let question = format!(
        "Delete the account of user {} and everything that says whose it was? Backups keep what they hold.",
        user.id
    );
    confirm(yes, &question)?;
    let by = authority(reason);
    match accounts::erase(app, user.id, EraseBy::Operator).and_then(Pending::wait) {
        Err(error) if error.code == Code::AccountInconsistent => {
            return Err(error.detail(format!("Run `yarrow points repair {}` first.", user.id)));
        }
        erased => erased?,
    }
    record(app, "users erase", Some(user.id), by)?;
    common.answer(&json!({ "userId": user.id, "erased": true }), || format!("user {} is erased", user.id))
}
