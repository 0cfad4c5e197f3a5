//! HTTP/1.1: answers every method and path with what the server saw, and `/healthz` with `ok`, for
//! probes.
//!
//! Uses hyper directly: there is nothing to route, and connections are limited and drained like
//! those of `tcp`. Idle connections are not closed: scenarios and proxies keep some open on
//! purpose.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;

use super::{connections::Connection, stop::Stop};
use crate::answer::{Answer, Ends, HttpRequest, Place};

/// The largest accepted request body. Its size is part of the answer.
const LARGEST_BODY: usize = 1024 * 1024;

/// The longest `?delay=`, in milliseconds.
const LONGEST_DELAY: u64 = 60_000;

type Reply = Response<Full<Bytes>>;

pub(super) async fn converse(connection: Connection, place: Arc<Place>, access_log: bool, mut stop: Stop) {
    let Connection { stream, ends } = connection;
    let service = service_fn(move |request| {
        let place = Arc::clone(&place);
        async move {
            let asked = access_log.then(|| request_line(&request));
            let reply = answer(request, ends, &place).await;
            if let Some(asked) = asked {
                println!("{} - - {asked} {}", ends.peer_ip(), reply.status().as_u16());
            }
            Ok::<_, Infallible>(reply)
        }
    });
    let mut conversation = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = conversation.as_mut() => return,
        () = stop.requested() => conversation.as_mut().graceful_shutdown(),
    }
    conversation.await.ok();
}

/// The first line of a request, quoted.
fn request_line(request: &Request<Incoming>) -> String {
    let path = request.uri().path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
    format!("\"{} {path} {:?}\"", request.method(), request.version())
}

async fn answer(request: Request<Incoming>, ends: Ends, place: &Place) -> Reply {
    if request.uri().path() == "/healthz" {
        return reply(StatusCode::OK, "text/plain", "ok");
    }
    let delay = match delay(request.uri().query()) {
        Ok(delay) => delay,
        Err(reason) => return reply(StatusCode::BAD_REQUEST, "text/plain", reason),
    };
    let (head, body) = request.into_parts();
    let body_bytes = match Limited::new(body, LARGEST_BODY).collect().await {
        Ok(body) => body.to_bytes().len(),
        Err(error) => {
            let reason = format!("cannot read the body: {error}; the limit is {LARGEST_BODY} bytes\n");
            return reply(StatusCode::PAYLOAD_TOO_LARGE, "text/plain", reason);
        }
    };
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let path = head.uri.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str);
    let seen = HttpRequest { method: head.method.as_str(), path, headers: &head.headers, body_bytes };
    match Answer::http(&seen, ends, place).line() {
        Ok(line) => reply(StatusCode::OK, "application/json", line),
        Err(error) => reply(
            StatusCode::INTERNAL_SERVER_ERROR,
            "text/plain",
            format!("cannot encode the answer: {error}\n"),
        ),
    }
}

fn reply(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// Parses the delay from a query such as `delay=500`.
fn delay(query: Option<&str>) -> Result<Duration, String> {
    let asked = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("delay="));
    let Some(asked) = asked else { return Ok(Duration::ZERO) };
    match asked.parse() {
        Ok(milliseconds) if milliseconds <= LONGEST_DELAY => Ok(Duration::from_millis(milliseconds)),
        _ => Err(format!("delay={asked} is not a number of milliseconds up to {LONGEST_DELAY}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_taken_from_the_query_and_bounded() {
        assert_eq!(delay(None), Ok(Duration::ZERO));
        assert_eq!(delay(Some("a=b&delay=250")), Ok(Duration::from_millis(250)));
        for bad in ["delay=60001", "delay=-1", "delay=", "delay=1s"] {
            assert!(delay(Some(bad)).unwrap_err().contains("up to 60000"), "{bad}");
        }
    }
}
