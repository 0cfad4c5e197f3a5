//! A caller that sends reviews, with or without a client certificate.

use isp_testkit::webhook::SERVER;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(crate) type Authority = CertifiedIssuer<'static, KeyPair>;

pub(crate) fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate with its key, in PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Identity {
    pub(crate) fn new(authority: &Authority, common_name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        let certificate = params.signed_by(&key, authority).unwrap().pem();
        Self { certificate, key: key.serialize_pem() }
    }
}

/// A caller of one replica.
pub(crate) struct Caller {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
}

impl Caller {
    /// A caller that trusts this bundle, with or without a client certificate.
    pub(crate) fn new(address: SocketAddr, bundle: &[u8], identity: Option<&Identity>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(bundle).map(Result::unwrap));
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let tls = match identity {
            None => builder.with_no_client_auth(),
            Some(Identity { certificate, key }) => {
                let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).map(Result::unwrap);
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain.collect(), key).unwrap()
            }
        };
        Self { address, tls: Arc::new(tls) }
    }

    /// Sends a review over its own connection and returns the response.
    pub(crate) async fn ask(&self, path: &str, request: &Value) -> Result<Value, String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        let stream = TcpStream::connect(self.address).await.map_err(|error| text(&error))?;
        let stream =
            TlsConnector::from(self.tls.clone()).connect(ServerName::try_from(SERVER).unwrap(), stream);
        let stream = TokioIo::new(stream.await.map_err(|error| text(&error))?);
        let (mut sender, connection) = http1::handshake(stream).await.map_err(|error| text(&error))?;
        let connection = tokio::spawn(connection);
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let request = http::Request::post(path)
            .header("host", SERVER)
            .body(Full::<Bytes>::from(review.to_string()))
            .unwrap();
        let response = sender.send_request(request).await.map_err(|error| text(&error))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| text(&error))?.to_bytes();
        drop(sender);
        let _ = connection.await;
        if !status.is_success() {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&body)));
        }
        Ok(serde_json::from_slice::<Value>(&body).unwrap()["response"].take())
    }
}

pub(crate) const OBJECTS: &str = "/validate/ingresssourcepreserves";
pub(crate) const PODS: &str = "/mutate/pods";

/// An object that names these namespaces, and whose selector matches no node.
pub(crate) fn object(name: &str, namespaces: &[String]) -> Value {
    let services: Vec<_> =
        namespaces.iter().map(|namespace| json!({"namespace": namespace, "name": "web"})).collect();
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": name},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"ingress": "yes"}}},
            "services": services,
            "sidecars": [{"namespaceSelector": {"matchLabels": {"team": "shop"}}}],
        },
    })
}
