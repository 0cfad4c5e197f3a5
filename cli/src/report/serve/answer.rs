//! The answers of the server.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};

use super::Shown;

#[cfg(test)]
mod tests;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A comment now and then tells whether the reader is still there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Answers a request for the page or for its events.
pub(super) async fn answer<B>(request: Request<B>, shown: Shown) -> Result<Response<Body>, Infallible> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let mut response = if !host.is_some_and(is_address) {
        refusal(StatusCode::MISDIRECTED_REQUEST, "ask for this server by its address or as localhost\n")
    } else if request.method() != Method::GET {
        refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed\n")
    } else {
        match request.uri().path() {
            "/" => page(&shown),
            "/events" => events(shown),
            _ => refusal(StatusCode::NOT_FOUND, "there is only / and /events\n"),
        }
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("frame-ancestors 'none'"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    Ok(response)
}

/// Whether a request names this server by an address. A site on the internet has a name, even if
/// the name leads here.
fn is_address(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok()
}

fn refusal(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(whole(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn page(shown: &Shown) -> Response<Body> {
    let page = shown.borrow().as_str().to_owned();
    let mut response = Response::new(whole(Bytes::from(page)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// One event for each new version of the page.
fn events(mut shown: Shown) -> Response<Body> {
    shown.mark_unchanged();
    let next = |mut shown: Shown| async move {
        let text = match tokio::time::timeout(HEARTBEAT, shown.changed()).await {
            Ok(Ok(())) => "data: changed\n\n",
            Ok(Err(_)) => return None,
            Err(_) => ": still here\n\n",
        };
        Some((text, shown))
    };
    // The first line makes the browser report that the connection is open.
    let first = stream::once(async { ": open\n\n" });
    let lines = first.chain(stream::unfold(shown, next));
    let frames = lines.map(|text| Ok(Frame::data(Bytes::from_static(text.as_bytes()))));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}
