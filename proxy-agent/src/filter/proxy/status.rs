//! Answers of the agent itself. They are Status objects, as the API server's errors are, so that
//! clients can interpret them.

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::json;

use super::response_body::ResponseBody;

pub(super) fn reply(code: StatusCode, message: &str) -> Response<ResponseBody> {
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
    let mut reply = Response::new(ResponseBody::agent(status.to_string()));
    *reply.status_mut() = code;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if code.is_server_error() || code == StatusCode::TOO_MANY_REQUESTS {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    reply
}
