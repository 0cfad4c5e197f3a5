//! The admission webhook: reviews new pods and IngressSourcePreserves for the API servers.
//!
//! | module | responsibility |
//! |---|---|
//! | `admission` | the admission decisions |
//! | `certs` | the CAs that the replicas share, and the serving certificate of this replica |
//! | `bundle` | publishing the `caBundle`, so that API servers trust the webhook |
//! | `serve` | TLS and HTTP, with limits on everything |
//! | `metrics` | the metrics |
//! | `run`, `cli`, `named_object` | the program; a watch of one object by name |

mod admission;
mod bundle;
mod certs;
mod cli;
mod metrics;
mod named_object;
mod run;
mod serve;

pub use certs::LifetimesError;
pub use cli::{Cli, Command, RunArgs};
pub use isp_client::ClientError;
pub use run::{RunError, run};
pub use serve::{ServeError, TlsError};
