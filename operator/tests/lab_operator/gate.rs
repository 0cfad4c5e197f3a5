//! The way from an operator to the API server, on which every write is counted and the operator can be killed right after
//! the API server has carried one out.

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

/// How long an operator that has been answered lives on.
const LAST_MOMENT: Duration = Duration::from_millis(15);

/// When the operator is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kills {
    Never,
    /// After each write, in turns without and with an answer; the first one so.
    Always(Hears),
    /// After the write of that number.
    After(usize, Hears),
}

/// Whether the operator hears what became of its last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hears {
    Nothing,
    TheAnswer,
}

/// The gate. Writes pass it one at a time.
#[derive(Clone)]
pub(crate) struct Gate {
    upstream: Client,
    turn: Arc<Mutex<Turn>>,
    address: SocketAddr,
}

struct Turn {
    kills: Kills,
    /// How many operators have been killed. What comes from one of them is refused.
    life: usize,
    operator: Option<Pid>,
    writes: Vec<String>,
    killed: usize,
}

impl Gate {
    /// Opens it on the loopback. Whoever comes has the rights of `upstream`.
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

    /// Begins counting anew.
    pub(crate) async fn begin(&self, kills: Kills) {
        let mut turn = self.turn.lock().await;
        (turn.kills, turn.killed) = (kills, 0);
        turn.writes.clear();
    }

    /// Says who uses it from now on.
    pub(crate) async fn admit(&self, operator: Option<Pid>) {
        self.turn.lock().await.operator = operator;
    }

    /// The writes so far, in words, and after how many of them the operator was killed.
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
                // Connections end with the operator at their other end.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }

    async fn pass(&self, life: usize, request: Request<Incoming>) -> Response<Body> {
        if is_counted(&request) {
            // It is carried out and counted even if the one who asked for it is gone meanwhile.
            let written = tokio::spawn(self.clone().pass_write(life, request));
            return written.await.unwrap();
        }
        self.forward(request).await.unwrap_or_else(|_| closed())
    }

    async fn pass_write(self, life: usize, request: Request<Incoming>) -> Response<Body> {
        let mut turn = self.turn.clone().lock_owned().await;
        // A connection that the last operator had just made when it was killed may have been taken after its end.
        if turn.life != life || turn.operator.is_none() {
            return closed();
        }
        let described = format!("{} {}", request.method(), request.uri().path());
        let (head, body) = self.forward(request).await.unwrap().into_parts();
        let body = body.collect_bytes().await.unwrap();
        if !head.status.is_success() {
            // Nothing was written: what it was decided on has changed.
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
        // The client behind the gate has its own idea of these.
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

/// A change of anything but the Lease, and no Event: what the operator's way consists of.
fn is_counted(request: &Request<Incoming>) -> bool {
    let path = request.uri().path();
    let aside = path.contains("/leases") || path.contains("/events");
    !aside && [Method::PATCH, Method::POST, Method::PUT, Method::DELETE].contains(request.method())
}

/// For an operator that is dead, or will be before it reads this.
fn closed() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}
