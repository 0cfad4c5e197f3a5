//! Handles one request of kube-proxy: the agent refuses it, answers it, or forwards it and narrows
//! the response.

mod error;
mod gunzip;
mod headers;
mod request_body;
mod response_body;
mod status;

use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use isp_api::view::Narrowing;
use isp_client::chain;
use tokio::time::timeout;
use tracing::{debug, warn};

use self::error::ProxyError;
use self::headers::BodyHandling;
use self::request_body::RequestBodies;
pub(crate) use self::response_body::ResponseBody;
use self::response_body::ServicesRead;
use super::connections::{ClientConnection, ClientConnections};
use super::metrics::{FilterMetrics, RequestOutcome};
use super::readers::{ClientId, Readers, UserAgent};
use super::request::{Forward, Refusal, RequestHead, ServiceRead, ServicesRequest, decide};
use super::session::Admission;
use super::wire;
use crate::filter::upstream::Upstream;
use crate::node::view::{EpochView, ViewStore};

/// How long the API server may take to begin its response. A list of all Services takes a while.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

/// Serves kube-proxy's requests.
pub(crate) struct Proxy {
    node: String,
    view: Arc<ViewStore>,
    connections: Arc<ClientConnections>,
    upstream: Upstream,
    request_bodies: RequestBodies,
    metrics: Arc<FilterMetrics>,
}

type Reply = Response<ResponseBody>;

impl Proxy {
    pub(crate) fn new(
        node: String,
        view: Arc<ViewStore>,
        connections: Arc<ClientConnections>,
        upstream: Upstream,
        metrics: Arc<FilterMetrics>,
    ) -> Self {
        Self { node, view, connections, upstream, request_bodies: RequestBodies::default(), metrics }
    }

    pub(crate) fn open_connection(&self) -> Arc<ClientConnection> {
        self.connections.open()
    }

    pub(crate) async fn serve(
        &self,
        request: Request<Incoming>,
        connection: &Arc<ClientConnection>,
    ) -> Reply {
        let (outcome, reply) = match self.try_serve(request, connection).await {
            Ok(reply) => (RequestOutcome::Forwarded, reply),
            Err(error) => {
                debug!(%error, "did not forward a request");
                (error.outcome(), error.reply())
            }
        };
        self.metrics.request(outcome);
        reply
    }

    async fn try_serve(
        &self,
        request: Request<Incoming>,
        connection: &Arc<ClientConnection>,
    ) -> Result<Reply, ProxyError> {
        if request.headers().contains_key(header::UPGRADE) {
            return Err(ProxyError::Upgrade);
        }
        let current = self.view.current();
        let narrowing = current.as_ref().map(|current| current.narrowing.clone()).unwrap_or_default();
        let forward = match self.decide(&request, &narrowing) {
            Ok(forward) => forward,
            Err(refusal) => {
                request_body::drain(request.into_body()).await;
                return Err(refusal.into());
            }
        };
        match forward {
            Forward::Unchanged { watch } => {
                let path = request.uri().path_and_query().cloned().ok_or(ProxyError::Path)?;
                let response = self.forward(request, path, BodyHandling::Pass).await?;
                Ok(response.map(|body| ResponseBody::forwarded(body, watch, self.metrics.clone())))
            }
            Forward::Services(services) => {
                // The agent shows no Service before the view is known.
                self.services(request, services, current.ok_or(ProxyError::NoView)?, connection).await
            }
        }
    }

    fn decide(&self, request: &Request<Incoming>, narrowing: &Narrowing) -> Result<Forward, Refusal> {
        let accept = request.headers().get_all(header::ACCEPT).iter();
        let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
        let head = RequestHead {
            method: request.method(),
            path: request.uri().path(),
            query: request.uri().query().unwrap_or_default(),
            accept: &accept.join(","),
            has_body: !request.body().is_end_stream(),
        };
        decide(head, &self.node, narrowing)
    }

    async fn services(
        &self,
        request: Request<Incoming>,
        services: ServicesRequest,
        current: EpochView,
        connection: &Arc<ClientConnection>,
    ) -> Result<Reply, ProxyError> {
        let user_agent = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let client = connection.client(UserAgent::parse(user_agent));
        let admit =
            |readers: &mut Readers, client: ClientId| readers.admit(client, services.read, current.epoch);
        if client.update(admit) == Admission::Expired {
            self.metrics.relist_forced();
            return Err(ProxyError::Expired);
        }
        debug!(read = ?services.read, rewrite = ?services.rewrite, query = services.query, "forwarding a read of Services");
        let path = format!("{}?{}", request.uri().path(), services.query);
        let path = PathAndQuery::try_from(path).map_err(|_| ProxyError::Path)?;
        let kind = match services.read {
            ServiceRead::List | ServiceRead::NextPage => wire::BodyKind::List,
            ServiceRead::WatchFromStart | ServiceRead::WatchFromVersion => wire::BodyKind::Watch,
        };
        let handling = match (services.rewrite, kind) {
            (Some(format), wire::BodyKind::List) => BodyHandling::RewriteList(format),
            (Some(format), wire::BodyKind::Watch) => BodyHandling::RewriteWatch(format),
            (None, wire::BodyKind::Watch) => BodyHandling::Follow,
            (None, wire::BodyKind::List) => BodyHandling::Pass,
        };
        let mut response = self.forward(request, path, handling).await?;
        if response.status() != StatusCode::OK {
            // The body is a Status, without a Service.
            return Ok(response.map(|body| ResponseBody::forwarded(body, false, self.metrics.clone())));
        }
        let rewrite = services.rewrite.is_some();
        // The agent need not read a list that it does not change.
        let encoding = headers::encoding(response.headers()).filter(|_| handling != BodyHandling::Pass);
        if rewrite && encoding.map(|encoding| encoding.format) != services.rewrite {
            return Err(ProxyError::Unreadable);
        }
        if rewrite {
            headers::remove_body_headers(response.headers_mut());
        }
        let read = ServicesRead { kind, rewrite, current, encoding };
        let metrics = self.metrics.clone();
        Ok(response.map(|body| ResponseBody::services(body, read, client, &self.view, metrics)))
    }

    /// Forwards a request with the client's credentials and the few headers that are known to be
    /// needed.
    async fn forward(
        &self,
        request: Request<Incoming>,
        path: PathAndQuery,
        handling: BodyHandling,
    ) -> Result<Response<Incoming>, ProxyError> {
        let (head, body) = request.into_parts();
        // The permit is held until the API server has the body.
        let (body, _permit) = self.request_bodies.read(body).await?;
        let mut upstream_request = Request::new(Full::new(body));
        *upstream_request.method_mut() = head.method;
        *upstream_request.headers_mut() = headers::upstream_headers(&head.headers, handling);
        let sent = timeout(RESPONSE_TIMEOUT, self.upstream.send(upstream_request, path)).await;
        let mut response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                warn!(error = %chain(&error), "cannot reach the API server");
                return Err(ProxyError::Upstream);
            }
            Err(_) => return Err(ProxyError::Timeout),
        };
        headers::remove_connection_headers(response.headers_mut());
        Ok(response)
    }
}
