//! The operator: reads the cluster, has [`isp_plan`] decide, and carries out what is decided.
//!
//! | module | knows |
//! |---|---|
//! | `observer`, `index` | watches, and how their events become one snapshot of facts |
//! | `reconcile` | the loop; `pace` when to plan, `act` how to write, `holds` and `backoff` what waits after a failure |
//! | `lease` | which replica acts |
//! | `events`, `metrics` | what is told to users and to whoever watches over them |
//! | `run`, `cleanup`, `cli`, `client` | the program, and its way to the API server |
//!
//! What is to be done, in which order and under which conditions is not known here.

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
