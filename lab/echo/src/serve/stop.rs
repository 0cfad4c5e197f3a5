//! Tells every server and connection that the program is ending. `serve` holds the sender.

use tokio::sync::watch;

pub(super) struct End(watch::Sender<bool>);

/// Receives the request to end. Cheap to clone; every connection has its own.
#[derive(Clone)]
pub(super) struct Stop(watch::Receiver<bool>);

pub(super) fn channel() -> (End, Stop) {
    let (sender, receiver) = watch::channel(false);
    (End(sender), Stop(receiver))
}

impl End {
    pub(super) fn now(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Waits until the end is requested. A dropped sender means the same.
    pub(super) async fn requested(&mut self) {
        self.0.wait_for(|ended| *ended).await.ok();
    }
}
