//! A proxy between the operator and the API server. It counts every write and can kill the operator
//! right after the API server has executed one.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// How long an operator lives after it has received a response.
const LAST_MOMENT: Duration = Duration::from_millis(15);

/// When to kill the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kills {
    Never,
    /// After each write, alternating without and with a response, starting with this.
    Always(Hears),
    /// After the write with this number.
    After(usize, Hears),
}

/// Whether the operator receives the response to its last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hears {
    Nothing,
    TheAnswer,
}

/// The proxy. Writes pass it one at a time.
#[derive(Clone)]
pub(crate) struct Gate {
    upstream: Client,
    turn: Arc<Mutex<Turn>>,
    address: SocketAddr,
}

struct Turn {
    kills: Kills,
    /// The number of killed operators. Requests of a killed one are rejected.
    life: usize,
    operator: Option<Pid>,
    writes: Vec<String>,
    killed: usize,
}

impl Gate {
    /// Listens on the loopback. All requests are sent with the credentials of `upstream`.
    pub(crate) async fn open(upstream: Client) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let turn = Turn { kills: Kills::Never, life: 0, operator: None, writes: Vec::new(), killed: 0 };
        let gate = Self { upstream, turn: Arc::new(Mutex::new(turn)), address };
        tokio::spawn(gate.clone().serve(listener));
        gate
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Resets the counters.
    pub(crate) async fn begin(&self, kills: Kills) {
        let mut turn = self.turn.lock().await;
        (turn.kills, turn.killed) = (kills, 0);
        turn.writes.clear();
    }

    /// Sets the operator that uses the proxy from now on.
    pub(crate) async fn admit(&self, operator: Option<Pid>) {
        self.turn.lock().await.operator = operator;
    }

    /// The writes so far, and after how many of them the operator was killed.
    pub(crate) async fn count(&self) -> (Vec<String>, usize) {
        let turn = self.turn.lock().await;
        (turn.writes.clone(), turn.killed)
    }

    async fn serve(self, listener: TcpListener) {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let gate = self.clone();
            tokio::spawn(async move {
                let life = gate.turn.lock().await.life;
                let service = service_fn(move |request| {
                    let gate = gate.clone();
                    async move { Ok::<_, Infallible>(gate.pass(life, request).await) }
                });
                // Connections end with their operator.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }

    async fn pass(&self, life: usize, request: Request<Incoming>) -> Response<Body> {
        if is_counted(&request) {
            // It is executed and counted even if the operator dies meanwhile.
            let written = tokio::spawn(self.clone().pass_write(life, request));
            return written.await.unwrap();
        }
        self.forward(request).await.unwrap_or_else(|_| closed())
    }

    async fn pass_write(self, life: usize, request: Request<Incoming>) -> Response<Body> {
        let mut turn = self.turn.clone().lock_owned().await;
        // The connection may belong to the previous operator, accepted only after its end.
        if turn.life != life || turn.operator.is_none() {
            return closed();
        }
        let described = format!("{} {}", request.method(), request.uri().path());
        let (head, body) = self.forward(request).await.unwrap().into_parts();
        let body = body.collect_bytes().await.unwrap();
        if !head.status.is_success() {
            // Nothing was written: a conflict.
            return Response::from_parts(head, Body::from(body));
        }
        turn.writes.push(described);
        let number = turn.writes.len();
        let hears = match turn.kills {
            Kills::Always(first) if number % 2 == 1 => Some(first),
            Kills::Always(Hears::Nothing) => Some(Hears::TheAnswer),
            Kills::Always(Hears::TheAnswer) => Some(Hears::Nothing),
            Kills::After(wanted, hears) if number == wanted => Some(hears),
            Kills::Never | Kills::After(..) => None,
        };
        match hears {
            None => {}
            Some(Hears::Nothing) => {
                end(&mut turn);
                return closed();
            }
            // Nothing else is written meanwhile.
            Some(Hears::TheAnswer) => drop(tokio::spawn(end_soon(turn))),
        }
        Response::from_parts(head, Body::from(body))
    }

    async fn forward(&self, request: Request<Incoming>) -> Result<Response<Body>, kube::Error> {
        let (mut head, body) = request.into_parts();
        // The upstream client sets these itself.
        for header in [http::header::HOST, http::header::AUTHORIZATION, http::header::CONTENT_LENGTH] {
            head.headers.remove(header);
        }
        let body = body.collect().await.map_err(kube::Error::HyperError)?.to_bytes();
        self.upstream.send(Request::from_parts(head, Body::from(body))).await
    }
}

async fn end_soon(mut turn: OwnedMutexGuard<Turn>) {
    tokio::time::sleep(LAST_MOMENT).await;
    end(&mut turn);
}

fn end(turn: &mut Turn) {
    turn.killed += 1;
    turn.life += 1;
    kill(turn.operator.take().unwrap(), Signal::SIGKILL).unwrap();
}

/// Whether this is a write to anything other than the Lease and Events.
fn is_counted(request: &Request<Incoming>) -> bool {
    let path = request.uri().path();
    let aside = path.contains("/leases") || path.contains("/events");
    !aside && [Method::PATCH, Method::POST, Method::PUT, Method::DELETE].contains(request.method())
}

/// The response for an operator that is dead, or will be before it reads this.
fn closed() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}
