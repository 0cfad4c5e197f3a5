//! The requests of one HTTP/2 connection, driven by the connection's own task.
//!
//! With one task per request, the runtime would read everything that callers have sent before
//! answering the first request. Under load, that holds one whole request body in memory per
//! connection. This way a connection's requests are answered before the next connection is read.
//! The programs are single-threaded, so there is no loss of parallelism.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::rt::Executor;

type Request = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The requests in flight, and those that the connection has just started.
#[derive(Default)]
pub(super) struct Requests {
    under_way: FuturesUnordered<Request>,
    begun: Begun,
}

/// Executor through which the connection submits requests.
#[derive(Clone, Default)]
pub(super) struct Begun(Arc<Mutex<Vec<Request>>>);

impl<F> Executor<F> for Begun
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, request: F) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::pin(request));
    }
}

impl Requests {
    /// The executor for the connection. The connection submits requests only while it is polled;
    /// [`Self::poll`] must follow.
    pub(super) fn begin(&self) -> Begun {
        self.begun.clone()
    }

    /// Drives all requests. Never completes, since another request may always follow.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Infallible> {
        self.under_way.extend(self.begun.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..));
        while let Poll::Ready(Some(())) = self.under_way.poll_next_unpin(context) {}
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Waker;

    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn requests_end_each_in_its_own_time_and_are_dropped_with_the_connection() {
        let mut requests = Requests::default();
        let mut context = Context::from_waker(Waker::noop());
        let ended = Arc::new(AtomicUsize::new(0));
        let begin = |wait: oneshot::Receiver<()>| {
            let ended = ended.clone();
            requests.begin().execute(async move {
                // Ends when the test sends or drops the other end.
                let _ = wait.await;
                ended.fetch_add(1, Ordering::Relaxed);
            });
        };
        let (first, wait_for_first) = oneshot::channel();
        let (second, wait_for_second) = oneshot::channel();
        let (third, wait_for_third) = oneshot::channel();
        [wait_for_first, wait_for_second, wait_for_third].into_iter().for_each(begin);
        let mut go_on = || {
            assert!(requests.poll(&mut context).is_pending());
            ended.load(Ordering::Relaxed)
        };
        assert_eq!(go_on(), 0);
        second.send(()).unwrap();
        assert_eq!(go_on(), 1);
        first.send(()).unwrap();
        assert_eq!(go_on(), 2);
        drop(requests);
        assert!(third.is_closed(), "what is under way does not outlive its connection");
    }
}
