//! The body of the API server's response, with a limit for its silence.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::{PolledFrame, ResponseBodyError};

/// How long the API server may be silent in the middle of a response that is not a watch.
pub(super) const LONGEST_SILENCE: Duration = Duration::from_secs(30);

pub(super) struct UpstreamBody {
    inner: Incoming,
    /// `None` for a watch, which is silent while nothing changes.
    silence: Option<Pin<Box<Sleep>>>,
    /// Whether the client waits for the API server. Only then does the silence count: a slow client
    /// is not the API server's fault.
    waiting: bool,
}

impl UpstreamBody {
    pub(super) fn new(inner: Incoming, watch: bool) -> Self {
        let silence = (!watch).then(|| Box::pin(sleep(LONGEST_SILENCE)));
        Self { inner, silence, waiting: false }
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> PolledFrame {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        let waited = std::mem::replace(&mut self.waiting, polled.is_pending());
        if let Some(silence) = self.silence.as_mut().filter(|_| polled.is_pending()) {
            if !waited {
                silence.as_mut().reset(Instant::now() + LONGEST_SILENCE);
            }
            ready!(silence.as_mut().poll(context));
            return Poll::Ready(Some(Err(ResponseBodyError::Silent)));
        }
        polled.map_err(Into::into)
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
