//! SIGINT, SIGTERM and SIGHUP, from the moment of [`Interrupt::listen`] on. They no longer end the
//! program, so that it can delete its helper pods.

use std::future;
use std::io;

use tokio::sync::watch;

use super::HelperError;
use crate::error::CommandError;

/// Whether a signal has come.
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    pub(crate) fn listen() -> Result<Self, HelperError> {
        let signal = signals().map_err(HelperError::Signals)?;
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            signal.await;
            sender.send_replace(true);
            // Without a sender, the receiver would take its end for a signal.
            future::pending::<()>().await;
        });
        Ok(Self(receiver))
    }

    /// Fails if a signal has come.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        if *self.0.borrow() { Err(HelperError::Interrupted.into()) } else { Ok(()) }
    }

    /// Gives up what is waited for when a signal comes.
    pub(crate) async fn or<T>(
        &self,
        work: impl Future<Output = Result<T, CommandError>>,
    ) -> Result<T, CommandError> {
        tokio::select! {
            result = work => result,
            () = self.come() => Err(HelperError::Interrupted.into()),
        }
    }

    /// Waits for a signal; returns at once if it has come already.
    async fn come(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|come| *come).await.is_err() {
            future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
fn signals() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // The terminal was closed.
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn signals() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
