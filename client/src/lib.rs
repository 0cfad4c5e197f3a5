//! The way to the API server, for programs that run beside it: a client that notices when nobody answers, watches that never give
//! up, and errors as a line to read.

mod collected;
mod connect;
mod error;
mod watch;

pub use collected::{Change, Collected, Listing};
pub use connect::{ClientError, config, connect};
pub use error::{chain, plain, plain_watch};
pub use watch::{Watched, events, named, watching};
