//! The operator: watches the cluster, calls [`isp_plan`] to decide on the next actions, and
//! executes them.
//!
//! | module | responsibility |
//! |---|---|
//! | `observer`, `index` | watches, and folding their events into one snapshot of facts |
//! | `reconcile` | the loop; `pace` decides when to plan, `act` sends writes, `holds` and `backoff` delay retries |
//! | `lease` | leader election |
//! | `events`, `metrics` | Events for users, metrics for monitoring |
//! | `run`, `cleanup`, `cli`, `client` | the subcommands, the command line and the API client |
//!
//! This crate contains no planning logic: actions, their order and their preconditions come from
//! [`isp_plan`].

mod act;
mod backoff;
mod cleanup;
mod cli;
mod client;
mod events;
mod holds;
mod index;
mod lease;
mod metrics;
mod observer;
mod pace;
mod reconcile;
mod run;

pub use cleanup::{CleanupError, cleanup};
pub use cli::{CleanupArgs, Cli, Command, LeaseArgsError, RunArgs};
pub use isp_client::ClientError;
pub use run::{RunError, run};
