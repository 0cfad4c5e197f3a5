//! The connection to the API server. Its address and CA are those in kube-proxy's kubeconfig. The
//! agent never uses the `kubernetes` Service, which works only after kube-proxy does.

mod agent_client;
mod api_server;
mod certificate;
mod connect;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::config::{Kubeconfig, KubeconfigError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

pub(crate) use self::agent_client::agent_client;
pub(crate) use self::api_server::ApiServer;
pub(crate) use self::certificate::ClientCertificate;
use self::connect::Connector;

/// How much the API server may send ahead of the reader, per response and per connection. The
/// limits bound the agent's memory, and a response that nobody reads does not block the others.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 2 * 1024 * 1024;
/// The agent notices a dead API server, or a dead path to it, within the sum of these two.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the agent cannot connect to the API server.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum UpstreamError {
    #[error("cannot read kube-proxy's kubeconfig {}: {source}; {}", path.display(), kubeconfig_hint(source))]
    Kubeconfig { path: PathBuf, source: Box<kube::config::KubeconfigError> },
    #[error("kube-proxy's kubeconfig {} names no cluster with an https server: {server:?}", path.display())]
    Server { path: PathBuf, server: String },
    #[error(
        "kube-proxy's kubeconfig {} has a proxy-url, which this agent does not support: \
         remove it, so that kube-proxy connects to the API server directly", path.display()
    )]
    Proxy { path: PathBuf },
    #[error("kube-proxy's kubeconfig {} has an invalid tls-server-name: {name:?}", path.display())]
    ServerName { path: PathBuf, name: String },
    #[error(
        "cannot read the CA file {}: {source}; the agent sees the directory of kube-proxy's kubeconfig and \
         its own ServiceAccount: put the file there, or embed it as certificate-authority-data", path.display()
    )]
    Authority { path: PathBuf, source: io::Error },
    #[error("cannot use the CA in kube-proxy's kubeconfig {}: {reason}", path.display())]
    BadAuthority { path: PathBuf, reason: String },
    #[error(
        "cannot read {field} {} of kube-proxy's user: {source}; mount it into the agent's container, too",
        path.display()
    )]
    Credential { field: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot use the client certificate of kube-proxy's user in {}: {reason}", path.display())]
    BadCredential { path: PathBuf, reason: String },
}

fn read_kubeconfig(path: &Path) -> Result<Kubeconfig, UpstreamError> {
    Kubeconfig::read_from(path)
        .map_err(|source| UpstreamError::Kubeconfig { path: path.to_owned(), source: Box::new(source) })
}

/// Says what to do about a kubeconfig that the agent cannot read.
pub(crate) fn kubeconfig_hint(error: &KubeconfigError) -> &'static str {
    match error {
        KubeconfigError::ReadConfig(error, _) if error.kind() == io::ErrorKind::PermissionDenied => {
            "the agent does not run as root: make the file readable for others, or provide it in a ConfigMap"
        }
        _ => "is its volume mounted there?",
    }
}

/// Decodes a kubeconfig field that ends in `-data`.
fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| error.to_string())
}

/// Parses a CA bundle or a certificate chain of at least one certificate.
pub(crate) fn parse_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(list) if !list.is_empty() => Ok(list),
        Ok(_) => Err("it contains no certificate".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// An HTTP client of the API server. All requests share a connection, as kube-proxy's do. Each
/// request has its own token; the connection presents a client certificate only if kube-proxy's
/// kubeconfig has one.
#[derive(Clone)]
pub(crate) struct Upstream {
    client: Arc<RwLock<HttpsClient>>,
    api_server: Arc<ApiServer>,
    authority: Authority,
    kubeconfig: Arc<Path>,
}

type HttpsClient = Client<Connector, Full<Bytes>>;

impl Upstream {
    /// Makes a client that presents no certificate.
    pub(crate) fn new(api_server: &ApiServer, kubeconfig: &Path) -> Result<Self, UpstreamError> {
        let bad =
            || UpstreamError::Server { path: kubeconfig.to_owned(), server: api_server.address.to_string() };
        Ok(Self {
            client: Arc::new(RwLock::new(https_client(api_server, kubeconfig, None)?)),
            api_server: Arc::new(api_server.clone()),
            authority: api_server.address.authority().cloned().ok_or_else(bad)?,
            kubeconfig: kubeconfig.into(),
        })
    }

    /// Makes new connections with this certificate. An open connection ends with its last request:
    /// the API server checks the certificate of a connection again for each request, and would
    /// reject one that has expired.
    pub(crate) fn present(&self, certificate: Option<&ClientCertificate>) -> Result<(), UpstreamError> {
        let client = https_client(&self.api_server, &self.kubeconfig, certificate)?;
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = client;
        Ok(())
    }

    /// Sends a request for a path to the API server.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        path: PathAndQuery,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut parts = http::uri::Parts::default();
        (parts.scheme, parts.authority, parts.path_and_query) =
            (Some(Scheme::HTTPS), Some(self.authority.clone()), Some(path));
        // It cannot fail: all three parts are present.
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        let client = self.client.read().unwrap_or_else(PoisonError::into_inner).clone();
        client.request(request).await
    }
}

fn https_client(
    api_server: &ApiServer,
    kubeconfig: &Path,
    certificate: Option<&ClientCertificate>,
) -> Result<HttpsClient, UpstreamError> {
    let bad = |reason: String| UpstreamError::BadAuthority { path: kubeconfig.to_owned(), reason };
    let mut roots = RootCertStore::empty();
    for certificate in parse_certificates(&api_server.ca_bundle).map_err(bad)? {
        roots.add(certificate).map_err(|error| bad(error.to_string()))?;
    }
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(error.to_string()))?
        .with_root_certificates(roots);
    let mut tls = match certificate {
        None => tls.with_no_client_auth(),
        Some(certificate) => {
            let bad = |reason: String| UpstreamError::BadCredential { path: kubeconfig.to_owned(), reason };
            let (chain, key) = certificate.parse().map_err(bad)?;
            tls.with_client_auth_cert(chain, key).map_err(|error| bad(error.to_string()))?
        }
    };
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build(Connector::new(tls, api_server.server_name.clone())))
}
