//! The reasons why the agent answers a request itself, and their responses.

use http::{Response, StatusCode};
use thiserror::Error;

use super::request_body::RequestBodyError;
use super::response_body::ResponseBody;
use super::{RESPONSE_TIMEOUT, status};
use crate::filter::metrics::RequestOutcome;
use crate::filter::request::Refusal;

/// Why the agent answers a request itself.
#[derive(Debug, Error)]
pub(super) enum ProxyError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("this agent does not forward upgrades, because kube-proxy requests none")]
    Upgrade,
    #[error(transparent)]
    Body(#[from] RequestBodyError),
    #[error("the request has no valid path")]
    Path,
    #[error("the view of this node changed since this was read: list again")]
    Expired,
    #[error("this agent does not know this node's view yet")]
    NoView,
    #[error("this agent cannot reach the API server")]
    Upstream,
    #[error("the API server did not answer within {} s", RESPONSE_TIMEOUT.as_secs())]
    Timeout,
    #[error("the API server answered in an encoding in which this agent cannot hide addresses")]
    Unreadable,
}

impl ProxyError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Refused(Refusal::Encoding { .. }) => StatusCode::NOT_ACCEPTABLE,
            Self::Refused(_) => StatusCode::FORBIDDEN,
            Self::Upgrade | Self::Path => StatusCode::BAD_REQUEST,
            Self::Body(RequestBodyError::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Body(RequestBodyError::Timeout) => StatusCode::REQUEST_TIMEOUT,
            Self::Body(RequestBodyError::BudgetExhausted) => StatusCode::TOO_MANY_REQUESTS,
            Self::Expired => StatusCode::GONE,
            Self::NoView => StatusCode::SERVICE_UNAVAILABLE,
            Self::Upstream | Self::Unreadable => StatusCode::BAD_GATEWAY,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    pub(super) fn outcome(&self) -> RequestOutcome {
        match self {
            Self::Expired => RequestOutcome::Expired,
            Self::NoView | Self::Upstream | Self::Unreadable | Self::Timeout => RequestOutcome::Failed,
            _ => RequestOutcome::Refused,
        }
    }

    /// Returns the response to the client, a Status object.
    pub(super) fn reply(&self) -> Response<ResponseBody> {
        status::reply(self.status(), &self.to_string())
    }
}
