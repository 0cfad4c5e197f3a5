//! The admission webhook: API servers ask it about pods and about IngressSourcePreserves.
//!
//! | module | knows |
//! |---|---|
//! | `admission` | what is answered |
//! | `certs` | the authorities that the replicas share, and the certificate that this one serves with |
//! | `bundle` | how API servers come to trust it: the `caBundle` that it publishes |
//! | `serve` | TLS and HTTP, with a bound on everything |
//! | `metrics` | what is counted |
//! | `run`, `cli`, `one` | the program; one object, followed by its name |

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
