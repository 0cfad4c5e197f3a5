//! Reads the bodies of requests. Only Events have a body, and they are small. All bodies in
//! progress share one budget of bytes. A body that does not fit waits unread, bounded by HTTP flow
//! control.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes};
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The limit for one body. An Event of kube-proxy has one or two kilobytes.
const LARGEST: u32 = 64 * 1024;
/// The limit for all bodies in progress.
const BUDGET: usize = 512 * 1024;
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the agent reads the body of a refused request.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the agent does not forward a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum RequestBodyError {
    #[error("the body is larger than {LARGEST} bytes or incomplete; kube-proxy sends only small Events")]
    TooLarge,
    #[error("the body did not arrive within {} s", READ_TIMEOUT.as_secs())]
    Timeout,
    #[error("bodies of other requests use the whole budget of {BUDGET} bytes: try again")]
    BudgetExhausted,
}

/// Reads bodies within the budget that all of them share.
#[derive(Debug)]
pub(super) struct RequestBodies {
    free: Arc<Semaphore>,
    timeout: Duration,
}

impl Default for RequestBodies {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(BUDGET)), timeout: READ_TIMEOUT }
    }
}

impl RequestBodies {
    /// Reads a body. The caller holds the permit as long as it holds the body.
    pub(super) async fn read<B: Body<Data = Bytes>>(
        &self,
        body: B,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), RequestBodyError>
    where
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if body.is_end_stream() {
            return Ok((Bytes::new(), None));
        }
        let announced = body.size_hint().exact().unwrap_or(LARGEST.into());
        let size = u32::try_from(announced)
            .ok()
            .filter(|size| *size <= LARGEST)
            .ok_or(RequestBodyError::TooLarge)?;
        let permit = timeout(self.timeout, self.free.clone().acquire_many_owned(size)).await;
        // The semaphore is never closed.
        let permit = permit.ok().and_then(Result::ok).ok_or(RequestBodyError::BudgetExhausted)?;
        let whole = Limited::new(body, size as usize).collect();
        let read = timeout(self.timeout, whole).await.map_err(|_| RequestBodyError::Timeout)?;
        Ok((read.map_err(|_| RequestBodyError::TooLarge)?.to_bytes(), Some(permit)))
    }
}

/// Reads and discards the body of a refused request, within bounds. A client whose stream is reset
/// while it sends might not see the answer.
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
    // A body that takes longer is cut.
    let _ = timeout(DRAIN_TIMEOUT, read).await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    use super::*;

    fn impatient() -> RequestBodies {
        RequestBodies { timeout: Duration::from_millis(50), ..RequestBodies::default() }
    }

    fn body(size: u32) -> Full<Bytes> {
        Full::new(vec![b'x'; size as usize].into())
    }

    /// A body that does not announce its length.
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
        assert_eq!(bodies.read(body(1)).await.unwrap_err(), RequestBodyError::BudgetExhausted);
        assert!(bodies.read(body(0)).await.is_ok(), "a request without a body needs no room");
        held.pop();
        assert!(bodies.read(body(LARGEST)).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused_whether_it_says_so_or_not() {
        let bodies = impatient();
        assert_eq!(bodies.read(body(LARGEST + 1)).await.unwrap_err(), RequestBodyError::TooLarge);
        assert_eq!(bodies.read(stream_of(5, 16 * 1024)).await.unwrap_err(), RequestBodyError::TooLarge);
        assert_eq!(bodies.read(stream_of(4, 16 * 1024)).await.unwrap().0.len(), LARGEST as usize);
        assert_eq!(bodies.free.available_permits(), BUDGET, "its room is free again");
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_given_up() {
        let never = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let bodies = impatient();
        assert_eq!(bodies.read(never).await.unwrap_err(), RequestBodyError::Timeout);
        assert_eq!(bodies.free.available_permits(), BUDGET);
    }
}
