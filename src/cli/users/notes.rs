//! `yarrow users notes`: notes of the staff about a user.

use clap::Subcommand;
use serde_json::json;

use crate::cli::{Common, cli_authority, find_user, name_missing, record_audit, row, table};
use crate::{
    app::App,
    domain::{
        identity::staff_notes::{self, MAX_LENGTH, StaffNote},
        operations::idempotency::IdempotentRequest,
    },
    error::{Error, Result},
    types::clean,
};

#[derive(Debug, Subcommand)]
pub enum NotesAction {
    /// Print the notes about a user, newest first
    List {
        /// User: id, phone number or email address
        who: String,
    },
    /// Add a note, which the user's data export contains
    Add {
        /// User: id, phone number or email address
        who: String,
        /// The note
        text: String,
    },
    /// Remove a note
    Remove {
        /// User: id, phone number or email address
        who: String,
        /// Id of the note
        id: i64,
    },
}

pub fn run(common: &Common, app: &App, action: NotesAction) -> Result<()> {
    match action {
        NotesAction::List { who } => {
            let user = find_user(app, &who)?.id;
            let notes = staff_notes::list(&app.core, user)?;
            record_audit(app, "users notes list", Some(user), cli_authority(None))?;
            print(common, &notes)
        }
        NotesAction::Add { who, text } => {
            let (user, by) = (find_user(app, &who)?.id, cli_authority(None));
            let content = clean(&text, MAX_LENGTH).map_err(|fault| Error::field("text", fault))?;
            let once = IdempotentRequest::without_key(None);
            let note = staff_notes::add(&app.core, user, by.actor.clone(), content, once).wait()?.fresh()?;
            record_audit(app, "users notes add", Some(user), by)?;
            print(common, &[note])
        }
        NotesAction::Remove { who, id } => {
            let user = find_user(app, &who)?.id;
            staff_notes::remove(&app.core, user, id, None).wait().map_err(name_missing("Note", id))?;
            record_audit(app, "users notes remove", Some(user), cli_authority(None))?;
            common.output(&json!({ "id": id.to_string(), "removed": true }), || format!("removed note {id}"))
        }
    }
}

fn print(common: &Common, notes: &[StaffNote]) -> Result<()> {
    common.output(&json!({ "items": notes }), || {
        let rows = notes.iter().map(|note| row![note.id, note.created_at, note.author, note.content]);
        table(["id", "at", "author", "note"], rows)
    })
}
