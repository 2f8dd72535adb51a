//! What was acknowledged is kept, whenever the process is killed or the power fails; and it is on the disk before it is
//! acknowledged.

mod disk;
mod kills;
mod oracle;
mod power;
mod workload;
