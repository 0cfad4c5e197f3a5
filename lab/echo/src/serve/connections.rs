//! Accepts connections, never more at once than a process may have files open, and drains them at the end.
//!
//! Knows nothing of what is said on a connection: `http` and `tcp` do.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::stop::Stop;
use crate::answer::Ends;

/// Connections open at once. Two servers of this size stay below the common limit of 1024 open files; further
/// callers wait in the listener's backlog.
const MOST: usize = 448;

/// How long a conversation may go on after the end was asked for; less than a pod's usual 30 s.
const GRACE: Duration = Duration::from_secs(5);

/// Accepting fails for lack of files or memory, which only waiting can mend.
const PAUSE: Duration = Duration::from_millis(50);

/// An accepted connection and its two ends.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) ends: Ends,
}

impl Connection {
    fn new(stream: TcpStream, peer: SocketAddr) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        let ends = Ends::new(peer, stream.local_addr()?);
        Ok(Self { stream, ends })
    }
}

/// Holds a conversation on every connection until the end; then lets those in progress finish, for a while.
pub(super) async fn serve<C>(listener: TcpListener, mut stop: Stop, converse: impl Fn(Connection) -> C)
where
    C: Future<Output = ()> + Send + 'static,
{
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.requested() => break,
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < MOST => match accepted {
                Ok((stream, peer)) => {
                    // A peer that is gone already has nobody to tell.
                    if let Ok(connection) = Connection::new(stream, peer) {
                        open.spawn(converse(connection));
                    }
                }
                Err(_) => sleep(PAUSE).await,
            },
        }
    }
    drop(listener);
    timeout(GRACE, async { while open.join_next().await.is_some() {} }).await.ok();
}
