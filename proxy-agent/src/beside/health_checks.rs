//! `healthCheckNodePort`: load balancers ask each node whether it has a ready endpoint of a Service
//! with `externalTrafficPolicy: Local`. The answers are kube-proxy's, and so are the addresses:
//! those that accept NodePort traffic, each for its own family.
//!
//! While kube-proxy still serves the Service, it holds the port; the agent takes it as soon as it
//! is free.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderName, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use isp_dataplane::model::ServiceName;
use isp_runtime::connection::accept;
use isp_runtime::listen::bind;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::committed::{Committed, HealthCheck};
use super::metrics::BesideMetrics;

#[cfg(test)]
mod tests;

/// How soon a port that is in use is tried again.
const AGAIN: Duration = Duration::from_millis(100);
/// How long one caller may take.
const REQUEST: Duration = Duration::from_secs(5);
/// The most callers of one port at a time.
const CALLERS: usize = 32;
const LARGEST_HEAD: usize = 8 * 1024;
const WEIGHT: HeaderName = HeaderName::from_static("x-load-balancing-endpoint-weight");

/// An address that answers, and its Service.
pub(crate) type Key = (SocketAddr, Arc<ServiceName>);

/// Addresses that another process holds, with the Services whose health checks they belong to.
pub(crate) type Blocked = BTreeSet<Key>;

/// Tells which addresses are blocked.
#[derive(Clone)]
pub(crate) struct BlockedPorts {
    pub(crate) blocked: Arc<watch::Sender<Blocked>>,
    pub(crate) metrics: Arc<BesideMetrics>,
}

impl BlockedPorts {
    fn change(&self, change: impl FnOnce(&mut Blocked) -> bool) {
        self.blocked.send_if_modified(|blocked| {
            let changed = change(blocked);
            self.metrics.health_check_ports_blocked(blocked.len());
            changed
        });
    }

    /// The address is blocked until the value is dropped.
    fn block(&self, key: Key) -> BlockedPort {
        self.change(|blocked| blocked.insert(key.clone()));
        BlockedPort { ports: self.clone(), key }
    }
}

struct BlockedPort {
    ports: BlockedPorts,
    key: Key,
}

impl Drop for BlockedPort {
    fn drop(&mut self) {
        self.ports.change(|blocked| blocked.remove(&self.key));
    }
}

/// Serves the health checks of all committed Services. Does not return.
pub(crate) async fn serve(mut committed: watch::Receiver<Committed>, ports: BlockedPorts) {
    let mut open: BTreeMap<Key, AbortHandle> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    loop {
        let wanted = keys(&committed.borrow_and_update());
        open.retain(|key, task| {
            let stays = wanted.contains(key);
            if !stays {
                task.abort();
            }
            stays
        });
        for key in wanted {
            open.entry(key.clone())
                .or_insert_with(|| tasks.spawn(answer_at(key, committed.clone(), ports.clone())));
        }
        tokio::select! {
            changed = committed.changed() => if changed.is_err() { return },
            Some(_) = tasks.join_next() => {}
        }
    }
}

fn keys(committed: &Committed) -> BTreeSet<Key> {
    let of_check = |(name, check): (&Arc<ServiceName>, &HealthCheck)| {
        let addresses = check.local_endpoints.keys();
        addresses.map(|ip| (SocketAddr::new(*ip, check.port), name.clone())).collect::<Vec<_>>()
    };
    committed.health_checks.iter().flat_map(of_check).collect()
}

/// Serves one address. Does not return.
async fn answer_at(key: Key, committed: watch::Receiver<Committed>, ports: BlockedPorts) {
    let listener = listen(&key, &ports).await;
    let (address, name) = key;
    info!(service = %name, %address, "answering health checks");
    let free = Arc::new(Semaphore::new(CALLERS));
    let mut callers = JoinSet::new();
    loop {
        let (stream, place) = accept(&listener, &free).await;
        let (name, committed) = (name.clone(), committed.clone());
        callers.spawn(async move {
            let _place = place;
            let answered = timeout(REQUEST, converse(stream, address, &name, &committed)).await;
            debug!(service = %name, in_time = answered.is_ok(), "a health check was answered");
        });
        while callers.try_join_next().is_some() {}
    }
}

async fn listen(key: &Key, ports: &BlockedPorts) -> TcpListener {
    let (address, name) = key;
    let mut blocked = None;
    loop {
        match bind(*address).await {
            Ok(listener) => return listener,
            Err(error) if blocked.is_none() => {
                warn!(service = %name, %address, %error, "cannot answer health checks yet; kube-proxy may still hold the port");
                blocked = Some(ports.block(key.clone()));
            }
            Err(_) => {}
        }
        sleep(AGAIN).await;
    }
}

async fn converse(
    stream: TcpStream,
    address: SocketAddr,
    name: &ServiceName,
    committed: &watch::Receiver<Committed>,
) {
    let service = service_fn(|_: Request<Incoming>| {
        let answer = {
            let now = committed.borrow();
            let check = now.health_checks.get(name);
            let local = check.and_then(|check| check.local_endpoints.get(&address.ip()).copied());
            answer(name, local.unwrap_or_default(), now.error.is_none())
        };
        async { Ok::<_, Infallible>(answer) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).max_buf_size(LARGEST_HEAD);
    // Errors concern only the caller.
    builder.serve_connection(TokioIo::new(stream), service).await.ok();
}

/// The answer of kube-proxy: 200 with a local endpoint, else 503.
fn answer(name: &ServiceName, local: usize, healthy: bool) -> Response<Full<Bytes>> {
    let body = json!({
        "service": {"namespace": name.namespace, "name": name.name},
        "localEndpoints": local,
        "serviceProxyHealthy": healthy,
    });
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    let serves = local > 0 && healthy;
    *response.status_mut() = if serves { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response.headers_mut().insert(WEIGHT, HeaderValue::from(local));
    response
}
