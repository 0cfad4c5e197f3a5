//! The responses of the admin server, independent of connections.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::{
    Method, Response, StatusCode,
    body::Bytes,
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
};
use prometheus_client::{encoding::text, registry::Registry};

use crate::{health::Health, readiness::Readiness};

const TEXT: &str = "text/plain; charset=utf-8";

/// The format that prometheus-client writes; Prometheus selects its parser by this header.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) type Reply = Response<Full<Bytes>>;

/// The data behind the pages.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) registry: Arc<Registry>,
    /// None if only the metrics are served.
    pub(super) program: Option<(Readiness, Health)>,
}

impl Pages {
    pub(super) fn answer(&self, method: &Method, path: &str) -> Reply {
        match (path, &self.program) {
            ("/metrics", _) | ("/readyz" | "/healthz", Some(_))
                if !matches!(*method, Method::GET | Method::HEAD) =>
            {
                let mut refusal = reply(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
                refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                refusal
            }
            ("/metrics", _) => metrics(&self.registry),
            ("/readyz", Some((readiness, _))) => ready(&readiness.pending()),
            ("/healthz", Some((_, health))) => healthy(&health.silent()),
            (_, Some(_)) => reply(StatusCode::NOT_FOUND, TEXT, "try /healthz, /readyz or /metrics\n"),
            (_, None) => reply(StatusCode::NOT_FOUND, TEXT, "try /metrics\n"),
        }
    }
}

fn ready(pending: &[&str]) -> Reply {
    if pending.is_empty() {
        reply(StatusCode::OK, TEXT, "ok\n")
    } else {
        reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, pending.join("\n") + "\n")
    }
}

fn healthy(silent: &[(&str, Duration)]) -> Reply {
    if silent.is_empty() {
        return reply(StatusCode::OK, TEXT, "ok\n");
    }
    let lines = silent.iter().map(|(name, since)| format!("{name}: silent for {} s\n", since.as_secs()));
    reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, lines.collect::<String>())
}

fn metrics(registry: &Registry) -> Reply {
    let mut body = String::new();
    match text::encode(&mut body, registry) {
        Ok(()) => reply(StatusCode::OK, OPEN_METRICS, body),
        Err(error) => reply(
            StatusCode::INTERNAL_SERVER_ERROR,
            TEXT,
            format!("cannot encode the metrics: {error}; this is a bug, please report it\n"),
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

    use super::*;

    fn pages() -> (Pages, Readiness, Health) {
        let (readiness, health) = (Readiness::default(), Health::default());
        (
            Pages { registry: Arc::default(), program: Some((readiness.clone(), health.clone())) },
            readiness,
            health,
        )
    }

    #[test]
    fn there_are_three_pages_and_two_methods() {
        let (pages, ..) = pages();
        let status = |method: &Method, path: &str| pages.answer(method, path).status().as_u16();
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
    fn where_only_metrics_are_served_nothing_else_is() {
        let pages = Pages { registry: Arc::default(), program: None };
        for (path, status) in [("/metrics", 200), ("/healthz", 404), ("/readyz", 404)] {
            assert_eq!(pages.answer(&Method::GET, path).status().as_u16(), status, "{path}");
        }
    }

    #[test]
    fn a_refused_method_is_told_which_ones_there_are() {
        let refusal = pages().0.answer(&Method::PUT, "/healthz");
        assert_eq!(refusal.headers()[ALLOW], "GET, HEAD");
    }

    #[derive(Debug, Default)]
    struct Counting(Arc<AtomicUsize>);

    impl Collector for Counting {
        fn encode(&self, _: DescriptorEncoder<'_>) -> std::fmt::Result {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn a_refused_method_does_not_make_the_program_encode_its_metrics() {
        let (mut registry, encoded) = (Registry::default(), Arc::<AtomicUsize>::default());
        registry.register_collector(Box::new(Counting(encoded.clone())));
        let pages = Pages { registry: Arc::new(registry), program: None };
        for (method, times) in [(Method::POST, 0), (Method::GET, 1), (Method::DELETE, 1)] {
            pages.answer(&method, "/metrics");
            assert_eq!(encoded.load(Ordering::Relaxed), times, "{method}");
        }
    }

    #[test]
    fn a_program_that_waits_is_alive_but_not_ready() {
        let (pages, readiness, _) = pages();
        let _view = readiness.register("view");
        let of = |path| pages.answer(&Method::GET, path).status();
        assert_eq!(of("/healthz"), StatusCode::OK);
        assert_eq!(of("/readyz"), StatusCode::SERVICE_UNAVAILABLE);
    }

    #[test]
    fn a_program_with_a_task_that_no_longer_turns_is_not_healthy() {
        let (pages, _, health) = pages();
        let _stuck = health.register("report", Duration::ZERO);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(pages.answer(&Method::GET, "/healthz").status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(pages.answer(&Method::GET, "/readyz").status(), StatusCode::OK);
    }
}
