//! A response with Services: forwarded piece by piece as fast as kube-proxy reads, decompressed and
//! narrowed on the way. A watch ends when the view changes. The body records how much the client
//! has received.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Instant, SystemTime};

use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use tracing::{debug, error};

use super::super::gunzip::Gunzip;
use super::super::headers::Encoding;
use super::upstream_body::UpstreamBody;
use super::{PolledFrame, ResponseBodyError};
use crate::filter::connections::ClientHandle;
use crate::filter::metrics::FilterMetrics;
use crate::filter::readers::Readers;
use crate::filter::session::Delivery;
use crate::filter::wire::{BodyKind, Narrower, StreamSummary, WireError};
use crate::node::view::{EpochView, ViewStore};

/// The read of Services that a body answers.
pub(crate) struct ServicesRead {
    pub(crate) kind: BodyKind,
    pub(crate) rewrite: bool,
    pub(crate) current: EpochView,
    /// `None` if the agent cannot read the body, or need not.
    pub(crate) encoding: Option<Encoding>,
}

pub(super) struct ServicesBody {
    upstream: UpstreamBody,
    read: ServicesRead,
    gunzip: Option<Gunzip>,
    narrower: Option<Narrower>,
    /// When the agent received the first byte that it has not forwarded yet.
    held_since: Option<Instant>,
    recorded: StreamSummary,
    view_changed: Pin<Box<dyn Future<Output = ()> + Send>>,
    client: ClientHandle,
    metrics: Arc<FilterMetrics>,
}

impl ServicesBody {
    pub(super) fn new(
        inner: Incoming,
        read: ServicesRead,
        client: ClientHandle,
        view: &ViewStore,
        metrics: Arc<FilterMetrics>,
    ) -> Self {
        let (mut views, epoch) = (view.subscribe(), read.current.epoch);
        let view_changed = Box::pin(async move {
            let differs =
                |current: &Option<EpochView>| current.as_ref().is_some_and(|now| now.epoch != epoch);
            if views.wait_for(differs).await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        let is_watch = read.kind == BodyKind::Watch;
        if is_watch {
            client.update(Readers::watch_opened);
            metrics.watch_opened();
        }
        let narrower = read.encoding.map(|encoding| {
            let narrowing = read.current.narrowing.clone();
            Narrower::new(encoding.format, read.kind, narrowing, read.rewrite)
        });
        let gunzip = read.encoding.filter(|encoding| encoding.compressed).map(|_| Gunzip::default());
        Self {
            upstream: UpstreamBody::new(inner, is_watch),
            read,
            gunzip,
            narrower,
            held_since: None,
            recorded: StreamSummary::default(),
            view_changed,
            client,
            metrics,
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        if self.read.rewrite { SizeHint::default() } else { self.upstream.size_hint() }
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> PolledFrame {
        // hyper polls again only after the client has taken the bytes before.
        self.record_progress();
        if self.is_watch() && self.view_changed.as_mut().poll(context).is_ready() {
            debug!("the view changed; ending a watch of Services");
            self.metrics.watch_ended_by_view();
            return Poll::Ready(None);
        }
        let polled = ready!(self.next(context));
        match &polled {
            // Connections end, and kube-proxy reconnects.
            Err(error @ ResponseBodyError::Upstream(_)) => {
                debug!(%error, "a response with Services ended early");
            }
            Err(error) => error!(%error, "cut a response with Services"),
            Ok(_) => {}
        }
        Poll::Ready(polled.transpose().map(|data| data.map(Frame::data)))
    }

    /// Returns the next bytes to forward, or `None` at the end.
    fn next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ResponseBodyError>> {
        loop {
            if let Some(plain) = self.gunzip.as_mut().map(Gunzip::take).transpose()?.flatten() {
                let narrowed = self.narrow(plain)?;
                if !narrowed.is_empty() {
                    return Poll::Ready(Ok(Some(narrowed)));
                }
                continue;
            }
            let Some(frame) = ready!(self.upstream.poll(context)).transpose()? else {
                self.finish()?;
                return Poll::Ready(Ok(None));
            };
            let Ok(data) = frame.into_data() else { continue };
            self.held_since.get_or_insert_with(Instant::now);
            if let Some(gunzip) = &mut self.gunzip {
                gunzip.put(data);
                continue;
            }
            let narrowed = self.narrow(data)?;
            if !narrowed.is_empty() {
                return Poll::Ready(Ok(Some(narrowed)));
            }
        }
    }

    fn narrow(&mut self, data: Bytes) -> Result<Bytes, WireError> {
        let narrowed = match &mut self.narrower {
            Some(narrower) => narrower.feed(data.clone()),
            None => Ok(data.clone()),
        };
        let forwarded = match narrowed {
            Ok(narrowed) => narrowed,
            Err(error) if self.read.rewrite => return Err(error),
            Err(error) => {
                // The response need not change, so the agent forwards it without reading it.
                debug!(%error, "cannot follow a response");
                self.narrower = None;
                data
            }
        };
        self.metrics.bytes_forwarded(forwarded.len());
        if let Some(since) = self.held_since.take_if(|_| !forwarded.is_empty())
            && self.is_watch()
        {
            self.metrics.watch_delayed(since.elapsed());
        }
        Ok(forwarded)
    }

    /// Checks that the API server's response is complete, and records it.
    fn finish(&mut self) -> Result<(), ResponseBodyError> {
        if let Some(gunzip) = &mut self.gunzip {
            gunzip.finish()?;
        }
        if let Some(narrower) = self.narrower.as_ref().filter(|_| self.read.rewrite) {
            narrower.finish()?;
        }
        if !self.is_watch() {
            let sent = self.delivery();
            self.client.update(|readers, client| readers.list_sent(client, sent));
        }
        Ok(())
    }

    fn record_progress(&mut self) {
        let summary = self.narrower.as_ref().map(Narrower::summary);
        let Some(summary) = summary.filter(|summary| *summary != self.recorded) else { return };
        debug!(?summary, "forwarded Services");
        self.metrics.services_narrowed(summary.narrowed - self.recorded.narrowed);
        if summary.initial_events_end && !self.recorded.initial_events_end {
            let sent = self.delivery();
            self.client.update(|readers, client| readers.initial_events_sent(client, sent));
        }
        self.recorded = summary;
    }

    /// Returns the delivery that is complete now.
    fn delivery(&self) -> Delivery {
        Delivery { epoch: self.read.current.epoch, at: SystemTime::now() }
    }

    fn is_watch(&self) -> bool {
        self.read.kind == BodyKind::Watch
    }
}

impl Drop for ServicesBody {
    fn drop(&mut self) {
        self.record_progress();
        if self.is_watch() {
            self.client.update(Readers::watch_closed);
            self.metrics.watch_closed();
        }
    }
}
