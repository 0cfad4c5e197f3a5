//! The way to the API server: where kube-proxy's own kubeconfig says it is, with the authority it names. Never
//! through the `kubernetes` Service, which works only once kube-proxy does.

mod agent_client;
mod certificate;
mod connect;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::config::{Kubeconfig, KubeconfigError};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

pub(crate) use self::agent_client::client;
pub(crate) use self::certificate::ClientCertificate;
use self::connect::Connector;

/// What the API server may send ahead of kube-proxy, in one answer and in all. It bounds what the agent holds, and an answer that
/// nobody reads leaves room for others.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 2 * 1024 * 1024;
/// A dead API server, or a dead way to it, is noticed within these two together.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the API server cannot be asked.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum UpstreamError {
    #[error("cannot read kube-proxy's kubeconfig {}: {source}; {}", path.display(), way_out(source))]
    Kubeconfig { path: PathBuf, source: Box<kube::config::KubeconfigError> },
    #[error("kube-proxy's kubeconfig {} names no cluster with an https server: {server:?}", path.display())]
    Server { path: PathBuf, server: String },
    #[error("kube-proxy's kubeconfig {} has a proxy-url, which this agent cannot follow: give kube-proxy a direct way to the API server", path.display())]
    Proxy { path: PathBuf },
    #[error("kube-proxy's kubeconfig {} has a tls-server-name that is no name: {name:?}", path.display())]
    ServerName { path: PathBuf, name: String },
    #[error(
        "cannot read the authority {}: {source}; the agent sees the directory of kube-proxy's kubeconfig and its own ServiceAccount: name \
         the authority there, or put it in as certificate-authority-data", path.display()
    )]
    Authority { path: PathBuf, source: io::Error },
    #[error("the authority in kube-proxy's kubeconfig {} cannot be used: {reason}", path.display())]
    BadAuthority { path: PathBuf, reason: String },
    #[error("cannot read {field} {} of kube-proxy's user: {source}; mount it into the agent's container, too", path.display())]
    Credential { field: &'static str, path: PathBuf, source: io::Error },
    #[error("the client certificate of kube-proxy's user in {} cannot be used: {reason}", path.display())]
    BadCredential { path: PathBuf, reason: String },
}

/// Where the API server is, and by which authority it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) server: Uri,
    /// The name that its certificate is for, where that is not the one in the address.
    server_name: Option<ServerName<'static>>,
    /// In PEM.
    authority: Vec<u8>,
}

impl Place {
    /// Reads a kubeconfig as kube-proxy does: the current context's cluster.
    pub(crate) fn read(path: &Path) -> Result<Self, UpstreamError> {
        let config = Kubeconfig::read_from(path).map_err(|source| UpstreamError::Kubeconfig {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        let context =
            config.contexts.iter().find(|named| Some(&named.name) == config.current_context.as_ref());
        let context = context.and_then(|named| named.context.as_ref());
        let cluster_name = context.map(|context| &context.cluster);
        let cluster = config.clusters.iter().find(|named| Some(&named.name) == cluster_name);
        let cluster = cluster.and_then(|named| named.cluster.as_ref());
        let server = cluster.and_then(|cluster| cluster.server.clone()).unwrap_or_default();
        let bad = || UpstreamError::Server { path: path.to_owned(), server: server.clone() };
        let (cluster, uri) = (cluster.ok_or_else(bad)?, server.parse::<Uri>().map_err(|_| bad())?);
        if uri.scheme() != Some(&Scheme::HTTPS) || uri.authority().is_none() {
            return Err(bad());
        }
        if cluster.proxy_url.is_some() {
            return Err(UpstreamError::Proxy { path: path.to_owned() });
        }
        let server_name = cluster.tls_server_name.clone().map(|name| {
            ServerName::try_from(name.clone())
                .map_err(|_| UpstreamError::ServerName { path: path.to_owned(), name })
        });
        let reason =
            |reason: &str| UpstreamError::BadAuthority { path: path.to_owned(), reason: reason.to_owned() };
        let authority = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
            (Some(data), _) => decoded(data).map_err(|error| reason(&error))?,
            (None, Some(file)) => {
                let file = path.parent().unwrap_or(path).join(file);
                fs::read(&file).map_err(|source| UpstreamError::Authority { path: file, source })?
            }
            (None, None) => {
                return Err(reason("it names none, and the system's are not trusted with a node"));
            }
        };
        Ok(Self { server: uri, server_name: server_name.transpose()?, authority })
    }
}

/// The bytes of a field that ends in `-data`.
fn decoded(base64: &str) -> Result<Vec<u8>, String> {
    let bytes: Result<k8s_openapi::ByteString, _> = serde_json::from_value(base64.into());
    bytes.map(|bytes| bytes.0).map_err(|error| error.to_string())
}

/// What to do about a kubeconfig that cannot be read.
pub(crate) fn way_out(error: &KubeconfigError) -> &'static str {
    match error {
        KubeconfigError::ReadConfig(error, _) if error.kind() == io::ErrorKind::PermissionDenied => {
            "the agent does not run as root: have the node's installer let others read it, or take it from a ConfigMap"
        }
        _ => "is its volume mounted there?",
    }
}

/// The certificates of an authority, or of a chain; at least one.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(list) if !list.is_empty() => Ok(list),
        Ok(_) => Err("it holds no certificate".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A client of the API server. Requests bring their own token; a client certificate is presented only where kube-proxy's own kubeconfig
/// has one. All requests share a connection, as kube-proxy's do.
#[derive(Clone)]
pub(crate) struct Upstream {
    client: Arc<RwLock<HttpsClient>>,
    place: Arc<Place>,
    authority: Authority,
    kubeconfig: Arc<Path>,
}

type HttpsClient = Client<Connector, Full<Bytes>>;

impl Upstream {
    /// Without a certificate.
    pub(crate) fn new(place: &Place, kubeconfig: &Path) -> Result<Self, UpstreamError> {
        let bad = || UpstreamError::Server { path: kubeconfig.to_owned(), server: place.server.to_string() };
        Ok(Self {
            client: Arc::new(RwLock::new(connecting(place, kubeconfig, None)?)),
            place: Arc::new(place.clone()),
            authority: place.server.authority().cloned().ok_or_else(bad)?,
            kubeconfig: kubeconfig.into(),
        })
    }

    /// From now on connections are made with this certificate. Those that are open end with what is under way on them: the API server
    /// looks at the certificate of a connection again for each request, and would refuse one that has ended.
    pub(crate) fn present(&self, certificate: Option<&ClientCertificate>) -> Result<(), UpstreamError> {
        let client = connecting(&self.place, &self.kubeconfig, certificate)?;
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = client;
        Ok(())
    }

    /// Asks the API server for a path.
    pub(crate) async fn ask(
        &self,
        mut request: Request<Full<Bytes>>,
        path: PathAndQuery,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut parts = http::uri::Parts::default();
        (parts.scheme, parts.authority, parts.path_and_query) =
            (Some(Scheme::HTTPS), Some(self.authority.clone()), Some(path));
        // All three are there, which is all that can be wrong.
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        let client = self.client.read().unwrap_or_else(PoisonError::into_inner).clone();
        client.request(request).await
    }
}

fn connecting(
    place: &Place,
    kubeconfig: &Path,
    certificate: Option<&ClientCertificate>,
) -> Result<HttpsClient, UpstreamError> {
    let bad = |reason: String| UpstreamError::BadAuthority { path: kubeconfig.to_owned(), reason };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&place.authority).map_err(bad)? {
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
            let (chain, key) = certificate.parsed().map_err(bad)?;
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
        .build(Connector::new(tls, place.server_name.clone())))
}
