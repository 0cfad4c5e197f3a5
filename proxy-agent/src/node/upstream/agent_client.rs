//! The agent as itself: the same way to the API server, with the agent's own token. The token is read for each request, of which
//! there are few, so one that the kubelet has renewed is used at once.

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

const NAME: &str = concat!("proxy-agent/", env!("CARGO_PKG_VERSION"));

/// Why a request of the agent's own was not sent or not answered.
#[derive(Debug, Error)]
enum OwnError {
    #[error("cannot read the agent's own token {}: {source}; is it mounted there?", path.display())]
    Token { path: PathBuf, source: io::Error },
    #[error("the agent's own token {} cannot be sent as it is", path.display())]
    BadToken { path: PathBuf },
    #[error("the request has no path")]
    Path,
    #[error(transparent)]
    Body(#[from] Box<kube::Error>),
    #[error(transparent)]
    Ask(#[from] hyper_util::client::legacy::Error),
}

/// A client of the API server with the token in that file.
pub(crate) fn client(upstream: Upstream, token: &Path) -> kube::Client {
    kube::Client::new(Own { upstream, token: token.into() }, "default")
}

#[derive(Clone)]
struct Own {
    upstream: Upstream,
    token: Arc<Path>,
}

impl Own {
    async fn ask(self, request: Request<Body>) -> Result<Response<Incoming>, OwnError> {
        let path = || self.token.to_path_buf();
        let token = std::fs::read_to_string(&self.token)
            .map_err(|source| OwnError::Token { path: path(), source })?;
        let mut credentials = HeaderValue::try_from(format!("Bearer {}", token.trim()))
            .map_err(|_| OwnError::BadToken { path: path() })?;
        credentials.set_sensitive(true);
        let (head, body) = request.into_parts();
        let mut onward = Request::new(Full::new(body.collect_bytes().await.map_err(Box::new)?));
        *onward.method_mut() = head.method;
        *onward.headers_mut() = head.headers;
        onward.headers_mut().insert(AUTHORIZATION, credentials);
        onward.headers_mut().insert(USER_AGENT, HeaderValue::from_static(NAME));
        let path = head.uri.path_and_query().cloned().ok_or(OwnError::Path)?;
        Ok(self.upstream.ask(onward, path).await?)
    }
}

impl Service<Request<Body>> for Own {
    type Response = Response<Incoming>;
    type Error = OwnError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().ask(request))
    }
}
