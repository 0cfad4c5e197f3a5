//! The client for the agent's own requests: the same connection, with the agent's token. The agent
//! reads the token for each request, so that it uses a renewed one at once. It sends few requests.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{AUTHORIZATION, HeaderValue, USER_AGENT};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use kube::client::Body;
use thiserror::Error;
use tower_service::Service;

use super::Upstream;

const AGENT_NAME: &str = concat!("proxy-agent/", env!("CARGO_PKG_VERSION"));

/// Why one of the agent's own requests failed.
#[derive(Debug, Error)]
enum AgentRequestError {
    #[error("cannot read the agent's token {}: {source}; is it mounted there?", path.display())]
    Token { path: PathBuf, source: io::Error },
    #[error("the agent's token {} is not a valid header value", path.display())]
    BadToken { path: PathBuf },
    #[error("the request has no path")]
    Path,
    #[error(transparent)]
    Body(#[from] Box<kube::Error>),
    #[error(transparent)]
    Send(#[from] hyper_util::client::legacy::Error),
}

/// Makes a client that sends the token in that file.
pub(crate) fn agent_client(upstream: Upstream, token: &Path) -> kube::Client {
    kube::Client::new(AgentService { upstream, token: token.into() }, "default")
}

#[derive(Clone)]
struct AgentService {
    upstream: Upstream,
    token: Arc<Path>,
}

impl AgentService {
    async fn send(self, request: Request<Body>) -> Result<Response<Incoming>, AgentRequestError> {
        let path = || self.token.to_path_buf();
        let token = std::fs::read_to_string(&self.token)
            .map_err(|source| AgentRequestError::Token { path: path(), source })?;
        let mut credentials = HeaderValue::try_from(format!("Bearer {}", token.trim()))
            .map_err(|_| AgentRequestError::BadToken { path: path() })?;
        credentials.set_sensitive(true);
        let (head, body) = request.into_parts();
        let mut upstream_request = Request::new(Full::new(body.collect_bytes().await.map_err(Box::new)?));
        *upstream_request.method_mut() = head.method;
        *upstream_request.headers_mut() = head.headers;
        upstream_request.headers_mut().insert(AUTHORIZATION, credentials);
        upstream_request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT_NAME));
        let path = head.uri.path_and_query().cloned().ok_or(AgentRequestError::Path)?;
        Ok(self.upstream.send(upstream_request, path).await?)
    }
}

impl Service<Request<Body>> for AgentService {
    type Response = Response<Incoming>;
    type Error = AgentRequestError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
