//! The requests of a connection of HTTP/2, gone on with by the connection's own task.
//!
//! With a task for each, everything that callers have sent would be read before the first is answered, and be held meanwhile: under load
//! that is the whole body of a request for every connection. So one connection's requests are answered before the next connection is
//! read. The programs have one thread, so that nothing is lost by it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::rt::Executor;

type Request = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Those that are under way, and those that the connection has just begun.
#[derive(Default)]
pub(super) struct Requests {
    under_way: FuturesUnordered<Request>,
    begun: Begun,
}

/// Takes a request from the connection.
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
    /// Where the connection puts them. It does so only while it is polled, after which [`Self::poll`] has to follow.
    pub(super) fn begin(&self) -> Begun {
        self.begun.clone()
    }

    /// Goes on with all of them. It never ends: there may always be another.
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
                // The test keeps the other end, or says that it is time.
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
