//! AdmissionReview v1, limited to the fields that are needed. The rest, possibly megabytes, is
//! skipped while parsing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Why a review cannot be answered.
#[derive(Debug, Error)]
pub(crate) enum BadReview {
    #[error("this is not an AdmissionReview of {API_VERSION}: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("this is a {kind:?} of {api_version:?}; only {KIND:?} of {API_VERSION:?} is supported")]
    Kind { api_version: String, kind: String },
    #[error("field request is missing; a review must have one")]
    NoRequest,
    #[error("field request.uid is empty; the response must repeat it")]
    NoUid,
    #[error("field request.{0} is missing; operation {1:?} requires it")]
    NoObject(&'static str, Operation),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<T> {
    api_version: String,
    kind: String,
    request: Option<Request<T>>,
}

/// The request of a review.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request<T> {
    pub(crate) uid: String,
    pub(crate) operation: Operation,
    pub(crate) namespace: Option<String>,
    pub(crate) sub_resource: Option<String>,
    pub(crate) object: Option<T>,
    pub(crate) old_object: Option<T>,
}

/// The operation on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// Parses a review.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<Request<T>, BadReview> {
    let Review { api_version, kind, request } = serde_json::from_slice::<Review<T>>(body)?;
    if api_version != API_VERSION || kind != KIND {
        return Err(BadReview::Kind { api_version, kind });
    }
    let request = request.ok_or(BadReview::NoRequest)?;
    if request.uid.is_empty() {
        return Err(BadReview::NoUid);
    }
    Ok(request)
}

/// The response, in an AdmissionReview of its own.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    api_version: &'static str,
    kind: &'static str,
    pub(crate) response: Response,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Response {
    uid: String,
    pub(crate) allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Refusal>,
    #[serde(flatten)]
    patch: Option<Patch>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Refusal {
    code: u16,
    reason: &'static str,
    message: String,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Patch {
    patch_type: &'static str,
    /// Base64-encoded.
    patch: String,
}

impl Answer {
    /// Allows the request.
    pub(crate) fn allow(uid: String) -> Self {
        let response = Response { uid, allowed: true, status: None, patch: None, warnings: Vec::new() };
        Self { api_version: API_VERSION, kind: KIND, response }
    }

    /// Allows the request with a JSON patch.
    pub(crate) fn patch(uid: String, operations: &json_patch::Patch) -> Self {
        let mut answer = Self::allow(uid);
        let patch = STANDARD.encode(operations.to_string());
        answer.response.patch = Some(Patch { patch_type: "JSONPatch", patch });
        answer
    }

    /// Denies the request.
    pub(crate) fn deny(uid: String, message: String) -> Self {
        let mut answer = Self::allow(uid);
        answer.response.allowed = false;
        answer.response.status = Some(Refusal { code: 422, reason: "Invalid", message });
        answer
    }

    /// Adds warnings for the user.
    pub(crate) fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.response.warnings.extend(warnings);
        self
    }
}
