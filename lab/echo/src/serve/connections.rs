//! Accepts connections, limits their number to stay below the limit of open files, and drains them
//! at the end.
//!
//! Knows nothing of the protocols; `http` and `tcp` implement them.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::stop::Stop;
use crate::answer::Ends;

/// The limit of open connections. Two servers of this size stay below the usual limit of 1024 open
/// files. Further callers wait in the listen backlog.
const MOST: usize = 448;

/// How long open connections may continue after the end was requested; less than a pod's usual 30
/// s.
const GRACE: Duration = Duration::from_secs(5);

/// The pause after accept fails for lack of files or memory.
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

/// Serves every connection until the end is requested, then lets open ones finish within a grace
/// period.
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
                    // Fails if the peer has already disconnected.
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
