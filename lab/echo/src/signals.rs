//! The signals that end the program.
//!
//! As process 1 of a container nothing has a default action: without handlers a SIGTERM would be ignored and every
//! pod would take its whole grace period to go. Every command installs them before it does anything else.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Why the handlers could not be installed.
#[derive(Debug, thiserror::Error)]
#[error("cannot handle {name}: {source}; without it the program could not be ended")]
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

    /// Waits until the program is told to end.
    pub(crate) async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
