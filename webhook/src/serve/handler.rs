//! Handles one request within its limits: time, body size, and the bytes of all requests together.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Limited;
use hyper::body::{Body as _, Incoming};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower_service::Service as _;

use super::Limits;

/// The size of one part of a body.
const PART: usize = 64 * 1024;

#[derive(Clone)]
pub(super) struct RequestHandler {
    router: Router,
    limits: Limits,
    parts: Arc<Semaphore>,
}

impl RequestHandler {
    pub(super) fn new(router: Router, limits: Limits) -> Self {
        let parts = Arc::new(Semaphore::new(limits.parts as usize));
        // `answer` limits the body itself.
        Self { router: router.layer(DefaultBodyLimit::disable()), limits, parts }
    }

    pub(super) async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        let Self { mut router, limits, parts } = self;
        // A body of unknown length counts as the maximum.
        let length = request.body().size_hint().upper().unwrap_or(limits.body as u64);
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= limits.body) else {
            let largest = limits.body;
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, format_args!("the limit is {largest} bytes"));
        };
        let count = u32::try_from(length.div_ceil(PART).max(1)).unwrap_or(u32::MAX).min(limits.parts);
        let answer = async {
            // The semaphore is never closed.
            let _place = parts.acquire_many(count).await;
            router.call(request.map(|body| Body::new(Limited::new(body, limits.body)))).await
        };
        match timeout(limits.request, answer).await {
            Ok(Ok(answer)) => answer,
            Err(_) => {
                let limit = limits.request;
                refusal(StatusCode::GATEWAY_TIMEOUT, format_args!("not answered within {limit:?}"))
            }
        }
    }
}

fn refusal(status: StatusCode, why: fmt::Arguments<'_>) -> Response<Body> {
    let mut refusal = Response::new(Body::from(format!("{why}\n")));
    *refusal.status_mut() = status;
    refusal.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    refusal
}
