//! What the admin server says to a request. Knows nothing of connections.

use http_body_util::Full;
use hyper::{
    Method, Response, StatusCode,
    body::Bytes,
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
};
use prometheus_client::{encoding::text, registry::Registry};

use crate::readiness::Readiness;

const TEXT: &str = "text/plain; charset=utf-8";

/// What prometheus-client writes; Prometheus parses by this header.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) type Reply = Response<Full<Bytes>>;

pub(super) fn answer(method: &Method, path: &str, registry: &Registry, readiness: &Readiness) -> Reply {
    if !matches!(path, "/healthz" | "/readyz" | "/metrics") {
        return reply(StatusCode::NOT_FOUND, TEXT, "here are /healthz, /readyz and /metrics\n");
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut refusal = reply(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    match path {
        "/readyz" => ready(&readiness.pending()),
        "/metrics" => metrics(registry),
        _ => reply(StatusCode::OK, TEXT, "ok\n"),
    }
}

fn ready(pending: &[&str]) -> Reply {
    if pending.is_empty() {
        reply(StatusCode::OK, TEXT, "ok\n")
    } else {
        reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, pending.join("\n") + "\n")
    }
}

fn metrics(registry: &Registry) -> Reply {
    let mut body = String::new();
    match text::encode(&mut body, registry) {
        Ok(()) => reply(StatusCode::OK, OPEN_METRICS, body),
        Err(error) => reply(
            StatusCode::INTERNAL_SERVER_ERROR,
            TEXT,
            format!("cannot encode the metrics: {error}; this is a defect, please report it\n"),
        ),
    }
}

fn reply(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &Method, path: &str) -> u16 {
        answer(method, path, &Registry::default(), &Readiness::default()).status().as_u16()
    }

    #[test]
    fn there_are_three_pages_and_two_methods() {
        for path in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(status(&Method::GET, path), 200, "{path}");
            assert_eq!(status(&Method::HEAD, path), 200, "{path}");
            assert_eq!(status(&Method::POST, path), 405, "{path}");
            assert_eq!(status(&Method::DELETE, path), 405, "{path}");
        }
        for path in ["/", "/healthz/", "/metrics/x", "*"] {
            assert_eq!(status(&Method::GET, path), 404, "{path}");
            assert_eq!(status(&Method::POST, path), 404, "{path}");
        }
    }

    #[test]
    fn a_refused_method_is_told_which_ones_there_are() {
        let refusal = answer(&Method::PUT, "/healthz", &Registry::default(), &Readiness::default());
        assert_eq!(refusal.headers()[ALLOW], "GET, HEAD");
    }

    #[test]
    fn a_program_that_waits_is_alive_but_not_ready() {
        let readiness = Readiness::default();
        let _view = readiness.register("view");
        let of = |path| answer(&Method::GET, path, &Registry::default(), &readiness).status();
        assert_eq!(of("/healthz"), StatusCode::OK);
        assert_eq!(of("/readyz"), StatusCode::SERVICE_UNAVAILABLE);
    }
}
