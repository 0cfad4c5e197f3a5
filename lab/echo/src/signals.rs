//! The signals that end the program.
//!
//! Signals have no default action for process 1 of a container: without handlers, SIGTERM would be
//! ignored and every pod would use its whole grace period. Every command installs the handlers
//! first.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Why the handlers could not be installed.
#[derive(Debug, thiserror::Error)]
#[error("cannot install a handler for {name}: {source}")]
pub(crate) struct Error {
    name: &'static str,
    source: std::io::Error,
}

/// Installed handlers for SIGTERM and SIGINT.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn install() -> Result<Self, Error> {
        let handler = |kind, name| signal(kind).map_err(|source| Error { name, source });
        Ok(Self {
            terminate: handler(SignalKind::terminate(), "SIGTERM")?,
            interrupt: handler(SignalKind::interrupt(), "SIGINT")?,
        })
    }

    /// Waits for SIGTERM or SIGINT.
    pub(crate) async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
