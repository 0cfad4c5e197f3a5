//! Sends one HTTP/1.1 request over its own connection.
//!
//! Uses hyper, as the server does: it supports every framing that a proxy on the path may choose.

use std::net::{IpAddr, SocketAddr};

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{
    Request,
    body::Bytes,
    client::conn::http1,
    header::{HOST, HeaderValue},
    http::uri::PathAndQuery,
};
use hyper_util::rt::TokioIo;

use super::{Answered, LARGEST_ANSWER, answered, failure::Failure, target::connect};

pub(super) async fn ask(
    address: SocketAddr,
    bind: Option<IpAddr>,
    path: &PathAndQuery,
    host: HeaderValue,
) -> Result<Answered, Failure> {
    let stream = connect(address, bind).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = path.clone().into();
    request.headers_mut().insert(HOST, host);
    let exchange = async move {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body =
            Limited::new(response.into_body(), LARGEST_ANSWER).collect().await.map_err(unread)?.to_bytes();
        if status.is_success() {
            return Ok(answered(&body));
        }
        Err(Failure::Status {
            status: status.as_u16(),
            body: String::from_utf8_lossy(&body).trim_end().to_owned(),
        })
    };
    // The connection ends when the exchange drops its sender. The exchange reports its errors.
    let (result, _) = tokio::join!(exchange, connection);
    result
}

fn unread(error: Box<dyn std::error::Error + Send + Sync>) -> Failure {
    match error.downcast::<hyper::Error>() {
        Ok(error) => (*error).into(),
        Err(_) => Failure::BadAnswer(format!("the body is larger than {LARGEST_ANSWER} bytes")),
    }
}
