//! What the project's own programs have asked of the API server: its audit log, which holds nobody else's requests
//! (`lab/audit/policy.yaml`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// Who asked.
    pub user: String,
    /// How, such as `list`.
    pub verb: String,
    /// The API group; empty for the core.
    pub group: String,
    /// The resource, with its subresource if it is about one.
    pub resource: String,
    /// The namespace, if it is about one.
    pub namespace: Option<String>,
    /// The name, if it is about one object.
    pub name: Option<String>,
    /// The answer's HTTP code.
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

/// The name of the log among a lab's.
pub(crate) const LOG: &str = "audit";

pub(crate) fn policy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("audit/policy.yaml")
}

/// The requests about resources, in their order. A line that is being written is left out.
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
