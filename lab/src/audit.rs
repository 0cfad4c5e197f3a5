//! The API server's audit log, which records only the requests of the project's own programs
//! (`lab/audit/policy.yaml`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// One request to the API server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// The user that sent it.
    pub user: String,
    /// The verb, such as `list`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, with the subresource if there is one.
    pub resource: String,
    /// The namespace, for namespaced requests.
    pub namespace: Option<String>,
    /// The object's name, for requests about one object.
    pub name: Option<String>,
    /// The HTTP status code of the response.
    pub code: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    user: User,
    object_ref: Option<Reference>,
    response_status: Option<Status>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    #[serde(default)]
    api_group: String,
    #[serde(default)]
    resource: String,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    code: Option<u16>,
}

/// The name of the log among a lab's logs.
pub(crate) const LOG: &str = "audit";

pub(crate) fn policy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("audit/policy.yaml")
}

/// The requests about resources, in order. Skips lines that are still being written.
pub(crate) fn read(log: &Path) -> io::Result<Vec<Request>> {
    let text = fs::read_to_string(log)?;
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    Ok(lines.filter_map(request).collect())
}

fn request(line: Line) -> Option<Request> {
    let about = line.object_ref?;
    let resource = match about.subresource {
        Some(subresource) => format!("{}/{subresource}", about.resource),
        None => about.resource,
    };
    Some(Request {
        user: line.user.username,
        verb: line.verb,
        group: about.api_group,
        resource,
        namespace: about.namespace,
        name: about.name,
        code: line.response_status.and_then(|status| status.code).unwrap_or_default(),
    })
}
