//! Graceful shutdown: requested by a signal, passed to every task, bounded in time.
//!
//! Signals have no default action for process 1 of a container. Without handlers SIGTERM would be
//! ignored, and every pod would use up its whole grace period. So a program calls
//! [`Shutdown::on_signals`] before anything that takes time.

mod tasks;

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};
use tracing::info;

pub use self::tasks::{Tasks, TasksError};

/// Why a signal handler could not be installed.
#[derive(Debug, thiserror::Error)]
#[error("cannot install a handler for {name}: {source}")]
pub struct SignalError {
    name: &'static str,
    source: std::io::Error,
}

/// A shutdown request. Cheap to clone; all clones share the same state, and each can make the
/// request.
#[derive(Debug, Clone, Default)]
pub struct Shutdown(watch::Sender<bool>);

impl Shutdown {
    /// A shutdown that SIGTERM and SIGINT request. The handlers are installed on return; later
    /// signals have no effect. Must be called on a tokio runtime with I/O enabled.
    pub fn on_signals() -> Result<Self, SignalError> {
        let mut terminate = handler(SignalKind::terminate(), "SIGTERM")?;
        let mut interrupt = handler(SignalKind::interrupt(), "SIGINT")?;
        let shutdown = Self::default();
        let told = shutdown.clone();
        tokio::spawn(async move {
            let signal = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            info!(signal, "shutdown: received");
            told.request();
        });
        Ok(shutdown)
    }

    /// Requests the shutdown.
    pub fn request(&self) {
        self.0.send_replace(true);
    }

    /// Whether the shutdown was requested.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the request; returns at once if it was already made. Cancel-safe.
    pub async fn requested(&self) {
        // Fails only without a sender, and `self` is one.
        self.0.subscribe().wait_for(|requested| *requested).await.ok();
    }
}

fn handler(kind: SignalKind, name: &'static str) -> Result<Signal, SignalError> {
    signal(kind).map_err(|source| SignalError { name, source })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::sys::signal::{Signal::SIGINT, Signal::SIGTERM, raise};
    use tokio::time::timeout;

    use super::*;

    /// One test for both signals, since a signal reaches every handler in the process.
    #[tokio::test]
    async fn a_signal_requests_the_end() {
        for signal in [SIGTERM, SIGINT] {
            let shutdown = Shutdown::on_signals().unwrap();
            let task = shutdown.clone();
            assert!(!shutdown.is_requested());
            raise(signal).unwrap();
            timeout(Duration::from_secs(10), task.requested()).await.unwrap();
            assert!(shutdown.is_requested());
        }
    }

    #[tokio::test]
    async fn every_clone_sees_a_request_whether_it_waited_or_comes_later() {
        let shutdown = Shutdown::default();
        let early = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.requested().await }
        });
        tokio::task::yield_now().await;
        shutdown.clone().request();
        early.await.unwrap();
        shutdown.requested().await;
    }
}
