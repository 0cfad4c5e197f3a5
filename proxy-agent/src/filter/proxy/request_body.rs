//! The bodies of requests: events are small, nothing else has a body, and all that are under way share one budget of bytes. A body that
//! does not fit waits unread, where HTTP's own windows bound it.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes};
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// An event of kube-proxy's has one or two kilobytes.
const LARGEST: u32 = 64 * 1024;
/// All of them together.
const BUDGET: usize = 512 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the body of a request that is refused anyway may take.
const DRAIN_PATIENCE: Duration = Duration::from_secs(1);

/// Why a body is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum BodyProblem {
    #[error("the body is larger than {LARGEST} bytes or broke off: kube-proxy sends small events only")]
    TooLarge,
    #[error("the body did not come within {} s", PATIENCE.as_secs())]
    Slow,
    #[error(
        "bodies of other requests, {BUDGET} bytes in all, are still on their way to the API server: try again"
    )]
    Full,
}

/// The room that all bodies share.
#[derive(Debug)]
pub(super) struct Bodies {
    free: Arc<Semaphore>,
    patience: Duration,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(BUDGET)), patience: PATIENCE }
    }
}

impl Bodies {
    /// The body and its room, which is to be held for as long as the body is.
    pub(super) async fn read<B: Body<Data = Bytes>>(
        &self,
        body: B,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), BodyProblem>
    where
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if body.is_end_stream() {
            return Ok((Bytes::new(), None));
        }
        let told = body.size_hint().exact().unwrap_or(LARGEST.into());
        let size = u32::try_from(told).ok().filter(|size| *size <= LARGEST).ok_or(BodyProblem::TooLarge)?;
        let room = timeout(self.patience, self.free.clone().acquire_many_owned(size)).await;
        // It is never closed.
        let room = room.ok().and_then(Result::ok).ok_or(BodyProblem::Full)?;
        let whole = Limited::new(body, size as usize).collect();
        let read = timeout(self.patience, whole).await.map_err(|_| BodyProblem::Slow)?;
        Ok((read.map_err(|_| BodyProblem::TooLarge)?.to_bytes(), Some(room)))
    }
}

/// Reads what comes with a refused request, within bounds, and keeps nothing of it: a caller whose stream is cut while it sends may not
/// see why.
pub(super) async fn drain(mut body: impl Body<Data = Bytes> + Unpin) {
    let read = async {
        let mut left = LARGEST as usize;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    // One that is not at its end by then is cut.
    let _ = timeout(DRAIN_PATIENCE, read).await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    use super::*;

    fn impatient() -> Bodies {
        Bodies { patience: Duration::from_millis(50), ..Bodies::default() }
    }

    fn body(size: u32) -> Full<Bytes> {
        Full::new(vec![b'x'; size as usize].into())
    }

    /// One that does not say how long it is.
    fn stream_of(parts: usize, size: usize) -> impl Body<Data = Bytes, Error = Infallible> {
        let parts = (0..parts).map(move |_| Ok(Frame::data(Bytes::from(vec![b'x'; size]))));
        StreamBody::new(stream::iter(parts))
    }

    #[tokio::test]
    async fn bodies_share_one_budget_and_wait_for_room_unread() {
        let bodies = impatient();
        let mut held = Vec::new();
        while let Ok((read, room)) = bodies.read(body(LARGEST)).await {
            assert_eq!(read.len(), LARGEST as usize);
            held.push(room.unwrap());
        }
        assert_eq!(held.len(), BUDGET / LARGEST as usize);
        assert_eq!(bodies.read(body(1)).await.unwrap_err(), BodyProblem::Full);
        assert!(bodies.read(body(0)).await.is_ok(), "a request without a body needs no room");
        held.pop();
        assert!(bodies.read(body(LARGEST)).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused_whether_it_says_so_or_not() {
        let bodies = impatient();
        assert_eq!(bodies.read(body(LARGEST + 1)).await.unwrap_err(), BodyProblem::TooLarge);
        assert_eq!(bodies.read(stream_of(5, 16 * 1024)).await.unwrap_err(), BodyProblem::TooLarge);
        assert_eq!(bodies.read(stream_of(4, 16 * 1024)).await.unwrap().0.len(), LARGEST as usize);
        assert_eq!(bodies.free.available_permits(), BUDGET, "its room is free again");
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_given_up() {
        let never = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let bodies = impatient();
        assert_eq!(bodies.read(never).await.unwrap_err(), BodyProblem::Slow);
        assert_eq!(bodies.free.available_permits(), BUDGET);
    }
}
