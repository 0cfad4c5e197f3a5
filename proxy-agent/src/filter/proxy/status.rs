//! Answers of the agent's own, in the form in which the API server gives its: clients know what to make of them.

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::json;

use super::response_body::ReplyBody;

pub(super) fn reply(code: StatusCode, message: &str) -> Response<ReplyBody> {
    let reason = match code {
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::GONE => "Expired",
        StatusCode::NOT_ACCEPTABLE => "NotAcceptable",
        StatusCode::PAYLOAD_TOO_LARGE => "RequestEntityTooLarge",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY => "ServiceUnavailable",
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => "Timeout",
        _ => "BadRequest",
    };
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code.as_u16(),
    });
    let mut reply = Response::new(ReplyBody::own(status.to_string()));
    *reply.status_mut() = code;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if code.is_server_error() || code == StatusCode::TOO_MANY_REQUESTS {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    reply
}
