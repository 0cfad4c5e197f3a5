//! The body of an answer on its way to kube-proxy: passed on piece by piece as kube-proxy takes it, Services read and
//! narrowed on the way, a watch ended when the view changes, and one that has an end given up when it does not come.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use isp_runtime::connection::InUse;
use thiserror::Error;
use tokio::time::Sleep;
use tracing::{debug, error};

use super::gunzip::Gunzip;
use super::headers::Written;
use crate::filter::metrics::Metrics;
use crate::filter::readers::Readers;
use crate::filter::session::Had;
use crate::filter::wire::{self, Broken, Narrower, Seen};
use crate::node::view::{Caller, Current, State};

/// How long the API server may be silent in the middle of an answer that has an end.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// What goes wrong under way; the connection or stream is reset, and the client starts over.
#[derive(Debug, Error)]
pub(crate) enum BodyError {
    #[error("the API server's answer broke off: {0}")]
    Upstream(#[from] hyper::Error),
    #[error("the API server sent something unexpected: {0}")]
    Broken(#[from] Broken),
    #[error("the API server's answer cannot be unpacked: {0}")]
    Packed(#[from] std::io::Error),
    #[error("the API server was silent for {} s in the middle of an answer", LONGEST_SILENCE.as_secs())]
    Silent,
}

type Polled = Poll<Option<Result<Frame<Bytes>, BodyError>>>;

/// A body of any origin.
pub(crate) struct ReplyBody {
    origin: Origin,
    /// Something that lasts as long as the answer does.
    _with: Option<InUse>,
}

enum Origin {
    Own(Full<Bytes>),
    Forwarded(Answer, Arc<Metrics>),
    Services(Box<ServicesBody>),
}

/// What the API server sends.
struct Answer {
    inner: Incoming,
    /// None for a watch, which is silent while nothing happens.
    patience: Option<Pin<Box<Sleep>>>,
    /// Whether the caller waits for the API server. Its own slowness counts, not the caller's.
    waiting: bool,
}

/// Which read of Services a body belongs to.
pub(super) struct Reading {
    pub(super) body: wire::Body,
    pub(super) rewrite: bool,
    pub(super) current: Current,
    /// None where it cannot be read; then nothing has to be changed either.
    pub(super) written: Option<Written>,
}

/// An answer with Services.
struct ServicesBody {
    answer: Answer,
    reading: Reading,
    packed: Option<Gunzip>,
    narrower: Option<Narrower>,
    /// Since when there is something that has not been handed on.
    held_since: Option<Instant>,
    noted: Seen,
    view_changed: Pin<Box<dyn Future<Output = ()> + Send>>,
    caller: Caller,
    metrics: Arc<Metrics>,
}

impl ReplyBody {
    pub(super) fn own(text: String) -> Self {
        Self { origin: Origin::Own(Full::new(text.into())), _with: None }
    }

    pub(super) fn forwarded(inner: Incoming, watch: bool, metrics: Arc<Metrics>) -> Self {
        Self { origin: Origin::Forwarded(Answer::new(inner, watch), metrics), _with: None }
    }

    pub(super) fn services(
        inner: Incoming,
        reading: Reading,
        caller: Caller,
        state: &State,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (mut views, epoch) = (state.views(), reading.current.epoch);
        let view_changed = Box::pin(async move {
            let differs = |current: &Option<Current>| current.as_ref().is_some_and(|now| now.epoch != epoch);
            if views.wait_for(differs).await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        let is_watch = reading.body == wire::Body::Watch;
        if is_watch {
            caller.note(Readers::watch_opened);
            metrics.watch_opened();
        }
        let narrower = reading.written.map(|written| {
            let narrowing = reading.current.narrowing.clone();
            Narrower::new(written.format, reading.body, narrowing, reading.rewrite)
        });
        let packed = reading.written.filter(|written| written.compressed).map(|_| Gunzip::default());
        let services = ServicesBody {
            answer: Answer::new(inner, is_watch),
            reading,
            packed,
            narrower,
            held_since: None,
            noted: Seen::default(),
            view_changed,
            caller,
            metrics,
        };
        Self { origin: Origin::Services(Box::new(services)), _with: None }
    }

    /// Keeps something until the answer has been sent or given up.
    pub(crate) fn with(self, kept: InUse) -> Self {
        Self { _with: Some(kept), ..self }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        match &mut self.get_mut().origin {
            Origin::Own(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Origin::Forwarded(answer, metrics) => {
                let frame = ready!(answer.poll(context));
                if let Some(Ok(data)) = frame.as_ref().map(|frame| frame.as_ref().map(Frame::data_ref)) {
                    metrics.bytes(data.map_or(0, Bytes::len));
                }
                Poll::Ready(frame)
            }
            Origin::Services(body) => body.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.origin {
            Origin::Own(body) => body.is_end_stream(),
            Origin::Forwarded(answer, _) => answer.inner.is_end_stream(),
            // Its end is something to note, so it has to be asked for.
            Origin::Services(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.origin {
            Origin::Own(body) => body.size_hint(),
            Origin::Forwarded(answer, _) => answer.inner.size_hint(),
            Origin::Services(body) if body.reading.rewrite => SizeHint::default(),
            Origin::Services(body) => body.answer.inner.size_hint(),
        }
    }
}

impl Answer {
    fn new(inner: Incoming, watch: bool) -> Self {
        let patience = (!watch).then(|| Box::pin(tokio::time::sleep(LONGEST_SILENCE)));
        Self { inner, patience, waiting: false }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Polled {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        let waited = std::mem::replace(&mut self.waiting, polled.is_pending());
        if let Some(patience) = self.patience.as_mut().filter(|_| polled.is_pending()) {
            if !waited {
                patience.as_mut().reset(tokio::time::Instant::now() + LONGEST_SILENCE);
            }
            ready!(patience.as_mut().poll(context));
            return Poll::Ready(Some(Err(BodyError::Silent)));
        }
        polled.map_err(Into::into)
    }
}

impl ServicesBody {
    fn poll(&mut self, context: &mut Context<'_>) -> Polled {
        // What was handed over before has been taken, or nothing would be asked for now.
        self.note_progress();
        if self.is_watch() && self.view_changed.as_mut().poll(context).is_ready() {
            debug!("the view changed; a watch of Services ends");
            self.metrics.watch_ended_by_view();
            return Poll::Ready(None);
        }
        let polled = ready!(self.next(context));
        match &polled {
            // Connections end; kube-proxy comes back.
            Err(problem @ BodyError::Upstream(_)) => debug!(%problem, "an answer with Services ends early"),
            Err(problem) => error!(%problem, "an answer with Services is cut"),
            Ok(_) => {}
        }
        Poll::Ready(polled.transpose().map(|data| data.map(Frame::data)))
    }

    /// The next bytes that may be passed on; none at the end.
    fn next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        loop {
            if let Some(plain) = self.packed.as_mut().map(Gunzip::take).transpose()?.flatten() {
                let narrowed = self.narrow(plain)?;
                if !narrowed.is_empty() {
                    return Poll::Ready(Ok(Some(narrowed)));
                }
                continue;
            }
            let Some(frame) = ready!(self.answer.poll(context)).transpose()? else {
                self.end()?;
                return Poll::Ready(Ok(None));
            };
            let Ok(data) = frame.into_data() else { continue };
            self.held_since.get_or_insert_with(Instant::now);
            if let Some(packed) = &mut self.packed {
                packed.put(data);
                continue;
            }
            let narrowed = self.narrow(data)?;
            if !narrowed.is_empty() {
                return Poll::Ready(Ok(Some(narrowed)));
            }
        }
    }

    fn narrow(&mut self, data: Bytes) -> Result<Bytes, Broken> {
        let narrowed = match &mut self.narrower {
            Some(narrower) => narrower.feed(data.clone()),
            None => Ok(data.clone()),
        };
        let passed = match narrowed {
            Ok(narrowed) => narrowed,
            Err(broken) if self.reading.rewrite => return Err(broken),
            Err(broken) => {
                // Nothing has to be changed, so it only cannot be followed.
                debug!(reason = %broken, "an answer cannot be followed");
                self.narrower = None;
                data
            }
        };
        self.metrics.bytes(passed.len());
        if let Some(since) = self.held_since.take_if(|_| !passed.is_empty())
            && self.is_watch()
        {
            self.metrics.watch_delayed(since.elapsed());
        }
        Ok(passed)
    }

    /// The API server has sent everything.
    fn end(&mut self) -> Result<(), BodyError> {
        if let Some(packed) = &mut self.packed {
            packed.finish()?;
        }
        if let Some(narrower) = self.narrower.as_ref().filter(|_| self.reading.rewrite) {
            narrower.finish()?;
        }
        if !self.is_watch() {
            let sent = self.had_now();
            self.caller.note(|readers, client| readers.list_sent(client, sent));
        }
        Ok(())
    }

    fn note_progress(&mut self) {
        let Some(seen) = self.narrower.as_ref().map(Narrower::seen).filter(|seen| *seen != self.noted) else {
            return;
        };
        debug!(?seen, "Services were passed on");
        self.metrics.narrowed(seen.narrowed - self.noted.narrowed);
        if seen.initial_events_end && !self.noted.initial_events_end {
            let sent = self.had_now();
            self.caller.note(|readers, client| readers.initial_events_sent(client, sent));
        }
        self.noted = seen;
    }

    fn had_now(&self) -> Had {
        Had { epoch: self.reading.current.epoch, since: SystemTime::now() }
    }

    fn is_watch(&self) -> bool {
        self.reading.body == wire::Body::Watch
    }
}

impl Drop for ServicesBody {
    fn drop(&mut self) {
        self.note_progress();
        if self.is_watch() {
            self.caller.note(Readers::watch_closed);
            self.metrics.watch_closed();
        }
    }
}
