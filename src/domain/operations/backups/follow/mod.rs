//! Continuous backup: pages changed since the newest uploaded backup go to the bucket, seconds after each commit.
//!
//! The database and the writer know nothing of it: one thread reads all pages in a snapshot, compares their sums with
//! those of the state in the bucket, and uploads what differs. Nothing but the machine's id is stored on this machine.
//! Terms fence machines: only the holder of the last term ships and takes writes. Order is (term, number), never the
//! clock.

mod changes_object;
mod latest;
mod machine_files;
mod shipper;
mod standby;
mod status;
mod term_holder;
mod terms;

pub use changes_object::ChangesObject;
pub use latest::{LatestRestore, LatestState, LatestTest, restore_latest, test_latest, verify_if_due};
pub use machine_files::MachineFiles;
pub use shipper::Shipper;
pub use standby::{PulledChanges, Standby};
pub use status::{FollowMonitor, FollowStatus};
pub use term_holder::{TermClaim, TermHolder};
pub use terms::{last_term, take_over};
