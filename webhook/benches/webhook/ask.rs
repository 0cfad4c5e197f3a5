//! Single requests by a client that verifies the server, like an API server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio_rustls::TlsConnector;

use crate::review;

/// The patch in the response to a review. None without a response, or with another one.
pub(crate) async fn patch(
    address: SocketAddr,
    name: &'static str,
    path: &str,
    trust: &[u8],
) -> Option<Value> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(trust).filter_map(Result::ok));
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(address).await.ok()?;
    let server = ServerName::try_from(name).unwrap();
    let stream = TlsConnector::from(Arc::new(tls)).connect(server, stream).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    let request = Request::post(path)
        .header(header::HOST, name)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(review::review().to_string())))
        .unwrap();
    let response = sender.send_request(request).await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }
    let body = response.into_body().collect().await.ok()?.to_bytes();
    let answer: Value = serde_json::from_slice(&body).ok()?;
    assert_eq!(answer["response"]["uid"], review::UID);
    if answer["response"]["allowed"] != true {
        return None;
    }
    serde_json::from_slice(&STANDARD.decode(answer["response"]["patch"].as_str()?).ok()?).ok()
}

/// The metrics of a program, by line. Empty while it does not answer.
pub(crate) fn metrics(address: SocketAddr) -> Vec<String> {
    let read = || {
        let mut stream = TcpStream::connect(address)?;
        // In HTTP/1.0 the response is not chunked and ends with the connection.
        write!(stream, "GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text)
    };
    let text: std::io::Result<String> = read();
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}
