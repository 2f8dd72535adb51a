//! Durability: acknowledged writes survive kills and power failures, and are synced before they are acknowledged.

mod disk;
mod kills;
mod oracle;
mod power;
mod slow_disk;
mod workload;
