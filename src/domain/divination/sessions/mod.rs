//! Sessions: castings of the current API generation, made and stored by the service.
//!
//! The lines come from the system's random source with the exact odds of the method. Points are charged in the
//! transaction that stores the session. A deleted session leaves an anonymous [`snapshot`] that cannot be linked to the
//! session, the ledger entry or the user.

mod casting;
mod record;
pub mod snapshot;
mod operations;
pub mod interpretation;
mod search;

pub use casting::{Casting, Method};
pub use operations::{
    NewSession, SessionAnnotation, SessionDraft, annotate, cast, delete, erase_user_in, export_in, list, search,
};
pub use record::{Session, SessionInterpretation, find, last_change_in, list_changed_in};
pub use search::SessionSearch;
