use axum::body::Bytes;
use axum::routing::{get, post};
use http_body_util::{BodyExt, Full};
use hyper::client::conn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;

/// Generous timeout for things that should happen at once, for busy machines.
const DEADLINE: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_mins(10);

/// No timeouts, and no linger on shutdown.
const PATIENT: Limits = Limits {
    connections: 8,
    handshake: LONG,
    connection: Settings {
        streams: 256,
        headers: LONG,
        largest_headers: 64 * 1024,
        largest_ahead: 256 * 1024,
        idle_look: LONG,
    },
    request: LONG,
    body: 200_000,
    parts: 4,
    linger: Duration::ZERO,
    drain: LONG,
};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate with a common name and DNS names.
fn pair(
    authority: &Authority,
    common: &str,
    dns: &[&str],
) -> (Vec<rustls::pki_types::CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let dns: Vec<String> = dns.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(dns).unwrap();
    params.distinguished_name.push(DnType::CommonName, common);
    let leaf = params.signed_by(&key, authority).unwrap();
    (vec![leaf.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
}

struct Running {
    address: SocketAddr,
    authority: Authority,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

impl Running {
    async fn start(limits: Limits, router: Router) -> Self {
        Self::start_with(limits, router, None).await
    }

    async fn start_with(limits: Limits, router: Router, callers: Option<Callers>) -> Self {
        let authority = authority();
        let (chain, key) = pair(&authority, "webhook", &["webhook"]);
        let key = CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider()).unwrap();
        let tls = tls(Arc::new(SingleCertAndKey::from(key)), callers.as_ref()).unwrap();
        let metrics = Arc::new(Metrics::default());
        let any = "127.0.0.1:0".parse().unwrap();
        let mut server = Server::bind(any, tls, router, metrics.clone()).await.unwrap();
        server.limits = limits;
        let address = server.listener.local_addr().unwrap();
        let shutdown = Shutdown::default();
        let task = tokio::spawn(server.run(shutdown.clone()));
        Self { address, authority, metrics, shutdown, task }
    }

    /// Opens a connection with this ALPN protocol.
    async fn connect(
        &self,
        protocol: &str,
        identity: Option<(&Authority, &str, &[&str])>,
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut tls = match identity.map(|(authority, common, dns)| pair(authority, common, dns)) {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
        };
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let stream = TcpStream::connect(self.address).await?;
        TlsConnector::from(Arc::new(tls)).connect(ServerName::try_from("webhook").unwrap(), stream).await
    }

    /// Sends a request on its own connection and returns the status and the body.
    async fn ask(&self, request: &str) -> String {
        let mut stream = self.connect("http/1.1", None).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        rest(&mut stream).await
    }

    fn metrics(&self) -> String {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    async fn end(self) {
        self.shutdown.request();
        timeout(DEADLINE, self.task).await.unwrap().unwrap();
    }
}

/// Reads until the server closes the connection. Cut connections have no closing alert of TLS.
async fn rest(stream: &mut TlsStream<TcpStream>) -> String {
    let mut text = Vec::new();
    let read = async {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut part).await {
            text.extend_from_slice(&part[..count]);
        }
    };
    timeout(DEADLINE, read).await.unwrap();
    String::from_utf8(text).unwrap()
}

fn get_request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: webhook\r\nConnection: close\r\n\r\n")
}

fn post_request(path: &str, body: usize) -> String {
    let body = "x".repeat(body);
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: webhook\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn router() -> Router {
    Router::new()
        .route("/hello", get(async || "hello"))
        .route("/length", post(async |body: Bytes| body.len().to_string()))
        .route("/never", post(async |_: Bytes| std::future::pending::<()>().await))
}

#[tokio::test]
async fn both_versions_of_http_are_spoken() {
    let server = Running::start(PATIENT, router()).await;
    let answer = server.ask(&get_request("/hello")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhello"), "{answer}");

    let stream = TokioIo::new(server.connect("h2", None).await.unwrap());
    let (mut sender, connection) =
        conn::http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = http::Request::post("https://webhook/length").body(Full::from(vec![0; 150_000])).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "150000");
    assert!(server.metrics().contains("isp_webhook_open_connections 1\n"), "{}", server.metrics());
    server.end().await;
    connection.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_whether_its_length_is_told_or_not() {
    let server = Running::start(PATIENT, router()).await;
    assert!(server.ask(&post_request("/length", 200_000)).await.ends_with("200000"));
    let head = "POST /length HTTP/1.1\r\nHost: webhook\r\nConnection: close\r\n";
    let told = server.ask(&format!("{head}Content-Length: 200001\r\n\r\n")).await;
    assert!(told.starts_with("HTTP/1.1 413 ") && told.contains("the limit is 200000 bytes"), "{told}");
    let chunk = format!("186a0\r\n{}\r\n", "x".repeat(100_000));
    let untold = format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunk}{chunk}1\r\nx\r\n0\r\n\r\n");
    let untold = server.ask(&untold).await;
    assert!(untold.starts_with("HTTP/1.1 413 "), "{untold}");
    server.end().await;
}

#[tokio::test]
async fn a_request_has_its_time_and_when_there_are_too_many_the_others_wait_within_it() {
    // The others come when half of the slow one's time is over, so each has half of its own left.
    let limits = Limits { request: Duration::from_secs(4), ..PATIENT };
    let server = Running::start(limits, router()).await;
    // Uses three of the four parts.
    let slow = post_request("/never", 3 * 64 * 1024);
    let (small, large) = (get_request("/hello"), post_request("/length", 2 * 64 * 1024));
    let later = async |request| {
        sleep(limits.request / 2).await;
        server.ask(request).await
    };
    let (slow, small, large) = tokio::join!(server.ask(&slow), later(&small), later(&large));
    assert!(slow.starts_with("HTTP/1.1 504 ") && slow.contains("within 4s"), "{slow}");
    assert!(small.ends_with("hello"), "{small}");
    // It proceeds once the first request has timed out.
    assert!(large.ends_with("131072"), "{large}");

    server.end().await;
}

#[tokio::test]
async fn a_caller_that_says_nothing_is_shown_out() {
    // Long enough for the handshake of a caller that goes on.
    let short = Duration::from_secs(1);
    let server = Running::start(
        Limits { handshake: short, connection: Settings { headers: short, ..PATIENT.connection }, ..PATIENT },
        router(),
    )
    .await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let read = timeout(DEADLINE, silent.read(&mut [0])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    let mut garbage = TcpStream::connect(server.address).await.unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    while timeout(DEADLINE, garbage.read(&mut [0; 64])).await.unwrap().is_ok_and(|count| count > 0) {}
    let mut half = server.connect("http/1.1", None).await.unwrap();
    half.write_all(b"GET /hello HTT").await.unwrap();
    rest(&mut half).await;
    let metrics = server.metrics();
    for reason in ["TimedOut", "Refused"] {
        let line = format!("isp_webhook_handshake_failures_total{{reason=\"{reason}\"}} 1\n");
        assert!(metrics.contains(&line), "{metrics}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_ended() {
    let connection = Settings { idle_look: Duration::from_millis(200), ..PATIENT.connection };
    let limits = Limits { connection, ..PATIENT };
    let server = Running::start(limits, router()).await;
    let stream = TokioIo::new(server.connect("h2", None).await.unwrap());
    let (sender, connection) =
        conn::http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), stream).await.unwrap();
    timeout(DEADLINE, connection).await.unwrap().unwrap();
    assert!(sender.is_closed());
    server.end().await;
}

#[tokio::test]
async fn callers_wait_for_a_place() {
    let server = Running::start(Limits { connections: 1, ..PATIENT }, router()).await;
    let mut first = server.connect("http/1.1", None).await.unwrap();
    let request = get_request("/hello");
    let mut second = Box::pin(server.ask(&request));
    assert!(timeout(Duration::from_millis(500), &mut second).await.is_err());
    first.write_all(request.as_bytes()).await.unwrap();
    assert!(rest(&mut first).await.ends_with("hello"));
    drop(first);
    assert!(timeout(DEADLINE, second).await.unwrap().ends_with("hello"));
    server.end().await;
}

#[tokio::test]
async fn at_the_end_calls_still_come_for_a_moment_and_none_is_cut() {
    let [begun, refused] = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
    let (told, may_end) = (begun.clone(), refused.clone());
    let slow = async move || {
        told.add_permits(1);
        drop(may_end.acquire().await);
        "slow"
    };
    let limits = Limits { linger: Duration::from_secs(4), ..PATIENT };
    let server = Running::start(limits, router().route("/slow", get(slow))).await;
    let mut kept = server.connect("http/1.1", None).await.unwrap();
    kept.write_all(b"GET /hello HTTP/1.1\r\nHost: webhook\r\n\r\n").await.unwrap();

    server.shutdown.request();
    let during = server.ask(&get_request("/hello")).await;
    assert!(during.ends_with("hello"), "{during}");
    let request = get_request("/slow");
    let slow = server.ask(&request);
    let calls_end = async {
        drop(begun.acquire().await);
        while TcpStream::connect(server.address).await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
        refused.add_permits(1);
    };
    let (slow, refused) = tokio::join!(slow, timeout(DEADLINE, calls_end));
    refused.expect("calls still come");
    assert!(slow.ends_with("slow"), "{slow}");
    assert!(rest(&mut kept).await.ends_with("hello"), "a kept connection ends by itself");
    timeout(DEADLINE, server.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn with_a_client_ca_only_callers_that_it_knows_are_served() {
    let (known, unknown) = (authority(), authority());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), known.pem()).unwrap();
    let served = async |names: &[&str], identity: Option<(&Authority, &str, &[&str])>| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let callers = Callers { authorities: file.path().to_owned(), names };
        let server = Running::start_with(PATIENT, router(), Some(callers)).await;
        // With TLS 1.3 a client learns of the rejection only after the handshake.
        let mut stream = server.connect("http/1.1", identity).await.unwrap();
        let _ = stream.write_all(get_request("/hello").as_bytes()).await;
        let answered = rest(&mut stream).await.ends_with("hello");
        let failed =
            server.metrics().contains("isp_webhook_handshake_failures_total{reason=\"Refused\"} 1\n");
        assert_eq!(answered, !failed, "those that are turned away are counted");
        server.end().await;
        answered
    };
    let (api, node) = ("kube-apiserver", "system:node:work-1");
    for identity in [Some((&unknown, api, &[][..])), None] {
        assert!(!served(&[], identity).await && !served(&[api], identity).await);
    }
    for name in [api, node] {
        assert!(served(&[], Some((&known, name, &[]))).await);
    }
    assert!(served(&["other", api], Some((&known, api, &[]))).await);
    assert!(served(&[api], Some((&known, "somebody", &["a.example", api]))).await);
    assert!(
        !served(&[api], Some((&known, node, &["a.example"]))).await,
        "the authority signs for others, too"
    );

    let nobody: Arc<dyn rustls::server::ResolvesServerCert> =
        Arc::new(rustls::server::ResolvesServerCertUsingSni::new());
    let nowhere = Callers { authorities: "/nowhere/ca.crt".into(), names: Vec::new() };
    let missing = tls(nobody, Some(&nowhere)).unwrap_err().to_string();
    assert!(missing.contains("--client-ca /nowhere/ca.crt"), "{missing}");
}
