//! Access to the API server: a client with timeouts, watches that retry forever, and readable
//! errors.

mod collected;
mod connect;
mod error;
mod watch;

pub use collected::{Change, Collected, Listing};
pub use connect::{ClientError, config, connect};
pub use error::{chain, plain, plain_watch};
pub use watch::{Watched, events, named, watching};
