//! Tells every server and connection that the program is ending. `serve` holds the sending end.

use tokio::sync::watch;

pub(super) struct End(watch::Sender<bool>);

/// Cheap to clone; every connection has its own.
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
    /// Waits until the end was asked for; a sender that is gone means the same.
    pub(super) async fn requested(&mut self) {
        self.0.wait_for(|ended| *ended).await.ok();
    }
}
