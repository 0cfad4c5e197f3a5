//! The body of a response to kube-proxy, from any origin.

mod services_body;
mod upstream_body;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use isp_runtime::connection::InUse;
use thiserror::Error;

use self::services_body::ServicesBody;
pub(super) use self::services_body::ServicesRead;
use self::upstream_body::{LONGEST_SILENCE, UpstreamBody};
use crate::filter::connections::ClientHandle;
use crate::filter::metrics::FilterMetrics;
use crate::filter::wire::WireError;
use crate::node::view::ViewStore;

/// Why a body ends early. The connection or stream is reset, and the client starts over.
#[derive(Debug, Error)]
pub(crate) enum ResponseBodyError {
    #[error("the API server's response broke off: {0}")]
    Upstream(#[from] hyper::Error),
    #[error("the API server sent an unexpected response: {0}")]
    Wire(#[from] WireError),
    #[error("cannot decompress the API server's response: {0}")]
    Gzip(#[from] std::io::Error),
    #[error("the API server was silent for {} s in the middle of a response", LONGEST_SILENCE.as_secs())]
    Silent,
}

type PolledFrame = Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>>;

/// A body of any origin.
pub(crate) struct ResponseBody {
    origin: Origin,
    /// Marks the connection as used until the response has ended.
    _in_use: Option<InUse>,
}

enum Origin {
    Agent(Full<Bytes>),
    Forwarded(UpstreamBody, Arc<FilterMetrics>),
    Services(Box<ServicesBody>),
}

impl ResponseBody {
    /// Makes the body of an answer of the agent itself.
    pub(super) fn agent(text: String) -> Self {
        Self { origin: Origin::Agent(Full::new(text.into())), _in_use: None }
    }

    /// Forwards a body unchanged.
    pub(super) fn forwarded(inner: Incoming, watch: bool, metrics: Arc<FilterMetrics>) -> Self {
        Self { origin: Origin::Forwarded(UpstreamBody::new(inner, watch), metrics), _in_use: None }
    }

    /// Forwards a body with Services, and narrows it.
    pub(super) fn services(
        inner: Incoming,
        read: ServicesRead,
        client: ClientHandle,
        view: &ViewStore,
        metrics: Arc<FilterMetrics>,
    ) -> Self {
        let services = ServicesBody::new(inner, read, client, view, metrics);
        Self { origin: Origin::Services(Box::new(services)), _in_use: None }
    }

    /// Marks the connection as used until the response has ended.
    pub(crate) fn with(self, in_use: InUse) -> Self {
        Self { _in_use: Some(in_use), ..self }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ResponseBodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame {
        match &mut self.get_mut().origin {
            Origin::Agent(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Origin::Forwarded(body, metrics) => {
                let frame = ready!(body.poll(context));
                if let Some(Ok(data)) = frame.as_ref().map(|frame| frame.as_ref().map(Frame::data_ref)) {
                    metrics.bytes_forwarded(data.map_or(0, Bytes::len));
                }
                Poll::Ready(frame)
            }
            Origin::Services(body) => body.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.origin {
            Origin::Agent(body) => body.is_end_stream(),
            Origin::Forwarded(body, _) => body.is_end_stream(),
            // The body records its end, so hyper has to poll for it.
            Origin::Services(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.origin {
            Origin::Agent(body) => body.size_hint(),
            Origin::Forwarded(body, _) => body.size_hint(),
            Origin::Services(body) => body.size_hint(),
        }
    }
}
