//! The body of an answer on its way to kube-proxy: passed on piece by piece as kube-proxy takes it, Services read and
//! narrowed on the way, a watch ended when the view changes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use tracing::{debug, error};

use crate::metrics::Metrics;
use crate::state::{Current, State};
use crate::wire::{self, Broken, Scanner, Seen};

/// What goes wrong under way; the connection or stream is reset, and the client starts over.
type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A body of any origin.
pub(crate) struct ReplyBody(Origin);

enum Origin {
    Own(Full<Bytes>),
    Forwarded(Incoming, Arc<Metrics>),
    Services(Box<ServicesBody>),
}

/// Which read of Services a body belongs to.
pub(super) struct Reading {
    pub(super) body: wire::Body,
    pub(super) rewrite: bool,
    pub(super) current: Current,
}

/// An answer with Services.
struct ServicesBody {
    inner: Incoming,
    reading: Reading,
    /// None where the encoding cannot be read; then nothing has to be changed either.
    scanner: Option<Scanner>,
    noted: Seen,
    view_changed: Pin<Box<dyn Future<Output = ()> + Send>>,
    state: Arc<State>,
    metrics: Arc<Metrics>,
}

impl ReplyBody {
    pub(super) fn own(text: String) -> Self {
        Self(Origin::Own(Full::new(text.into())))
    }

    pub(super) fn forwarded(body: Incoming, metrics: Arc<Metrics>) -> Self {
        Self(Origin::Forwarded(body, metrics))
    }

    pub(super) fn services(
        inner: Incoming,
        reading: Reading,
        readable: bool,
        state: Arc<State>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let scanner =
            readable.then(|| Scanner::new(reading.body, reading.current.narrowing.clone(), reading.rewrite));
        let (mut views, epoch) = (state.views(), reading.current.epoch);
        let view_changed = Box::pin(async move {
            let differs = |current: &Option<Current>| current.as_ref().is_some_and(|now| now.epoch != epoch);
            if views.wait_for(differs).await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        if reading.body == wire::Body::Watch {
            state.change(|reading| reading.watches += 1);
            metrics.watch_opened();
        }
        Self(Origin::Services(Box::new(ServicesBody {
            inner,
            reading,
            scanner,
            noted: Seen::default(),
            view_changed,
            state,
            metrics,
        })))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Origin::Own(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Origin::Forwarded(body, metrics) => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                if let Some(Ok(data)) = frame.as_ref().map(|frame| frame.as_ref().map(Frame::data_ref)) {
                    metrics.bytes(data.map_or(0, Bytes::len));
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Origin::Services(body) => body.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Origin::Own(body) => body.is_end_stream(),
            Origin::Forwarded(body, _) => body.is_end_stream(),
            // Its end is something to note, so it has to be asked for.
            Origin::Services(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Origin::Own(body) => body.size_hint(),
            Origin::Forwarded(body, _) => body.size_hint(),
            Origin::Services(body) => body.inner.size_hint(),
        }
    }
}

impl ServicesBody {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        // What was handed over before has been taken, or nothing would be asked for now.
        self.note_progress();
        if self.reading.body == wire::Body::Watch && self.view_changed.as_mut().poll(context).is_ready() {
            debug!("the view changed; a watch of Services ends");
            self.metrics.watch_ended_by_view();
            return Poll::Ready(None);
        }
        let frame = match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
            None => {
                if self.reading.body == wire::Body::List {
                    let epoch = self.reading.current.epoch;
                    self.state.change(|reading| {
                        reading.session.list_sent(epoch);
                        reading.synced_at = Some(SystemTime::now());
                    });
                }
                return Poll::Ready(None);
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            Some(Ok(frame)) => frame,
        };
        let Ok(data) = frame.into_data() else { return Poll::Ready(None) };
        self.metrics.bytes(data.len());
        match self.scan(data) {
            Ok(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Err(broken) => {
                error!(reason = %broken, "the API server sent something unexpected; the answer is cut");
                Poll::Ready(Some(Err(broken.into())))
            }
        }
    }

    fn scan(&mut self, data: Bytes) -> Result<Bytes, Broken> {
        let Some(scanner) = &mut self.scanner else { return Ok(data) };
        let mut data = data.try_into_mut().unwrap_or_else(|shared| shared[..].into());
        match scanner.feed(&mut data) {
            Err(broken) if self.reading.rewrite => Err(broken),
            Err(broken) => {
                // Nothing has to be changed, so it only cannot be followed.
                debug!(reason = %broken, "an answer cannot be followed");
                self.scanner = None;
                Ok(data.freeze())
            }
            Ok(()) => Ok(data.freeze()),
        }
    }

    fn note_progress(&mut self) {
        let Some(seen) = self.scanner.as_ref().map(Scanner::seen).filter(|seen| *seen != self.noted) else {
            return;
        };
        debug!(?seen, "Services were passed on");
        self.metrics.narrowed(seen.narrowed - self.noted.narrowed);
        let (epoch, noted) = (self.reading.current.epoch, self.noted);
        self.state.change(|reading| {
            if seen.initial_events_end && !noted.initial_events_end {
                reading.session.initial_events_sent(epoch);
                reading.synced_at = Some(SystemTime::now());
            }
        });
        self.noted = seen;
    }
}

impl Drop for ServicesBody {
    fn drop(&mut self) {
        self.note_progress();
        if self.reading.body == wire::Body::Watch {
            self.state.change(|reading| reading.watches -= 1);
            self.metrics.watch_closed();
        }
    }
}
