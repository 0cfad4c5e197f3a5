//! A client with the requests of kube-proxy: HTTP/2 over TLS, protobuf, the same parameters and
//! headers, and Go's window sizes.

use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use flate2::write::MultiGzDecoder;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const ACCEPT: &str = "application/vnd.kubernetes.protobuf, */*";
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// The address of a server, and the credentials for it.
#[derive(Clone)]
pub(crate) struct End {
    pub(crate) address: SocketAddr,
    name: ServerName<'static>,
    tls: Arc<ClientConfig>,
    token: String,
}

/// Whether the client accepts compression, as kube-proxy does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Gzip,
}

impl Encoding {
    pub(crate) const ALL: [Self; 2] = [Self::Gzip, Self::Plain];
}

impl fmt::Display for Encoding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip accepted",
        })
    }
}

impl End {
    /// Authenticates with a token, and on the loopback address also with a certificate and key in
    /// PEM.
    pub(crate) fn new(
        address: SocketAddr,
        name: Option<String>,
        authority: &[u8],
        certificate: Option<(Vec<u8>, Vec<u8>)>,
        token: String,
    ) -> Self {
        let certificates = |pem: &[u8]| -> Vec<CertificateDer<'static>> {
            CertificateDer::pem_slice_iter(pem).map(Result::unwrap).collect()
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(authority));
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut tls = match certificate {
            None => tls.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::from_pem_slice(&key).unwrap();
                tls.with_client_auth_cert(certificates(&certificate), key).unwrap()
            }
        };
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let name = name.map(|name| ServerName::try_from(name).unwrap());
        Self { address, name: name.unwrap_or_else(|| address.ip().into()), tls: Arc::new(tls), token }
    }

    pub(crate) async fn connect(&self) -> Connection {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let stream = TlsConnector::from(self.tls.clone()).connect(self.name.clone(), stream).await.unwrap();
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        Connection { sender, token: self.token.clone(), authority: self.address.to_string() }
    }
}

/// One connection that all requests share, as kube-proxy's do.
#[derive(Clone)]
pub(crate) struct Connection {
    sender: http2::SendRequest<Empty<Bytes>>,
    token: String,
    authority: String,
}

impl Connection {
    pub(crate) async fn get(&mut self, path: &str, encoding: Encoding) -> Response<Incoming> {
        let mut request = Request::get(format!("https://{}{path}", self.authority))
            .header(header::ACCEPT, ACCEPT)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::USER_AGENT, "kube-proxy/bench");
        if encoding == Encoding::Gzip {
            request = request.header(header::ACCEPT_ENCODING, "gzip");
        }
        self.sender.ready().await.unwrap();
        let answer = self.sender.send_request(request.body(Empty::new()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer
    }

    /// Reads a watch until the callback stops it. Passes each event with the time of its last byte.
    pub(crate) async fn watch(
        &mut self,
        path: &str,
        encoding: Encoding,
        mut event: impl FnMut(&[u8], Instant) -> ControlFlow<()>,
    ) {
        let mut body = Decoded::new(self.get(path, encoding).await);
        let mut buffer = Vec::new();
        while body.read(&mut buffer).await {
            let now = Instant::now();
            let mut rest = &buffer[..];
            while let Some((length, behind)) = rest.split_first_chunk::<4>() {
                let length = usize::try_from(u32::from_be_bytes(*length)).unwrap();
                let Some((whole, others)) = behind.split_at_checked(length) else { break };
                if event(whole, now).is_break() {
                    return;
                }
                rest = others;
            }
            let taken = buffer.len() - rest.len();
            buffer.drain(..taken);
        }
    }

    /// Reads a list page by page, and returns the number of bytes and pages.
    pub(crate) async fn list(&mut self, path: &str, encoding: Encoding) -> (usize, usize) {
        let (mut bytes, mut pages, mut next) = (0, 0, String::new());
        loop {
            let mut body = Decoded::new(self.get(&format!("{path}{next}"), encoding).await);
            let mut page = Vec::new();
            while body.read(&mut page).await {}
            bytes += page.len();
            pages += 1;
            match continuation(&page) {
                Some(token) => next = format!("&continue={token}"),
                None => return (bytes, pages),
            }
        }
    }
}

/// A decompressed body, as kube-proxy's client returns it.
struct Decoded {
    body: Incoming,
    gzip: Option<MultiGzDecoder<Vec<u8>>>,
}

impl Decoded {
    fn new(answer: Response<Incoming>) -> Self {
        let gzip = answer.headers().get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip");
        Self { body: answer.into_body(), gzip: gzip.then(|| MultiGzDecoder::new(Vec::new())) }
    }

    /// Appends the next bytes, and says whether there were any.
    async fn read(&mut self, to: &mut Vec<u8>) -> bool {
        let Some(Ok(frame)) = self.body.frame().await else { return false };
        let data = frame.into_data().unwrap_or_default();
        match &mut self.gzip {
            None => to.extend_from_slice(&data),
            Some(gzip) => {
                gzip.write_all(&data).unwrap();
                gzip.flush().unwrap();
                to.append(gzip.get_mut());
            }
        }
        true
    }
}

pub(crate) fn holds(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// Returns the token of the next page: field 3 of the list's metadata, inside the envelope.
fn continuation(page: &[u8]) -> Option<String> {
    let list = field(page.strip_prefix(b"k8s\0")?, 2)?;
    let token = field(field(list, 1)?, 3).filter(|token| !token.is_empty())?;
    String::from_utf8(token.to_vec()).ok()
}

/// Returns the first field with this number in a message.
fn field(mut message: &[u8], wanted: u64) -> Option<&[u8]> {
    fn number(bytes: &mut &[u8]) -> Option<u64> {
        let mut value = 0;
        for bits in (0..64).step_by(7) {
            let (byte, rest) = bytes.split_first()?;
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << bits;
            if *byte < 0x80 {
                break;
            }
        }
        Some(value)
    }
    loop {
        let tag = number(&mut message)?;
        let length = number(&mut message)?;
        if tag & 7 != 2 {
            continue;
        }
        let (content, rest) = message.split_at_checked(usize::try_from(length).ok()?)?;
        if tag >> 3 == wanted {
            return Some(content);
        }
        message = rest;
    }
}
