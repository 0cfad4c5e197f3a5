//! Decides which requests the agent forwards, and how it changes a request for Services. Pure.
//!
//! The agent forwards kube-proxy's own token, so the API server allows no more than kube-proxy may
//! do. But every process of the node can connect to the loopback address, and a token can be
//! stolen. So the agent refuses requests that kube-proxy never sends, and says why. It compares
//! paths literally: a path in another spelling does not match.

use std::borrow::Cow;

use form_urlencoded::{Serializer, parse};
use http::Method;
use isp_api::view::{Narrowing, View};
use thiserror::Error;

use super::wire::Format;

#[cfg(test)]
mod tests;

const SERVICES: &str = "/api/v1/services";
const NODES: &str = "/api/v1/nodes";
/// Lists and watches that the agent forwards unchanged.
const READS: [&str; 2] =
    ["/apis/discovery.k8s.io/v1/endpointslices", "/apis/networking.k8s.io/v1/servicecidrs"];
/// Requests with which clients learn about the API server.
const DISCOVERY: [&str; 10] = [
    "/version",
    "/healthz",
    "/livez",
    "/readyz",
    "/api",
    "/apis",
    "/api/v1",
    "/apis/discovery.k8s.io/v1",
    "/apis/networking.k8s.io/v1",
    "/apis/events.k8s.io/v1",
];
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/";

/// How a request is forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Forward {
    /// Without a change.
    Unchanged {
        /// Whether the response is a watch, which does not end by itself.
        watch: bool,
    },
    /// As a narrowed read of Services.
    Services(ServicesRequest),
}

/// A list or a watch of Services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServicesRequest {
    /// The query, with a label selector that excludes hidden Services.
    pub(crate) query: String,
    pub(crate) read: ServiceRead,
    /// The format to request if the agent has to remove external addresses from the response.
    pub(crate) rewrite: Option<Format>,
}

/// The kinds of reads of Services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceRead {
    /// All Services, or the first page of them.
    List,
    /// The next page of a list.
    NextPage,
    /// All Services, then changes.
    WatchFromStart,
    /// Changes since the resource version of an earlier read.
    WatchFromVersion,
}

/// Why a request is not forwarded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    #[error("this agent does not forward {method} {path}, because kube-proxy does not send such requests")]
    NotKubeProxys { method: Method, path: String },
    #[error("this agent forwards requests for the node {own} only, not for {asked}")]
    OtherNode { own: String, asked: String },
    #[error("this agent does not forward a GET with a body, because kube-proxy sends none")]
    Body,
    #[error("the query contains {0} more than once")]
    Twice(&'static str),
    #[error(
        "this agent hides external IPs from this node, which it supports in {} and {} only: accept one of them besides {accepted:?}",
        Format::Protobuf.media_type(),
        Format::Json.media_type()
    )]
    Encoding { accepted: String },
}

/// The parts of a request on which the decision depends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestHead<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) accept: &'a str,
    pub(crate) has_body: bool,
}

/// Decides about a request to the agent of the node `own`.
pub(crate) fn decide(head: RequestHead<'_>, own: &str, narrowing: &Narrowing) -> Result<Forward, Refusal> {
    let unknown = || Refusal::NotKubeProxys { method: head.method.clone(), path: head.path.to_owned() };
    if let Some(rest) = head.path.strip_prefix(EVENTS) {
        let event = is_event_write(head.method, rest);
        return if event { Ok(Forward::Unchanged { watch: false }) } else { Err(unknown()) };
    }
    if head.method != Method::GET {
        return Err(unknown());
    }
    if head.has_body {
        return Err(Refusal::Body);
    }
    match head.path {
        SERVICES => services(head, narrowing).map(Forward::Services),
        NODES => own_node(head.query, &parameter(head.query, "fieldSelector")?, own),
        path if READS.contains(&path) => Ok(Forward::Unchanged { watch: flag(head.query, "watch")? }),
        path if DISCOVERY.contains(&path) => Ok(Forward::Unchanged { watch: false }),
        path => match path.strip_prefix(NODES).and_then(|rest| rest.strip_prefix('/')) {
            Some(name) => own_node(head.query, &format!("metadata.name={name}"), own),
            None => Err(unknown()),
        },
    }
}

/// Says whether the request creates an Event or updates its series.
fn is_event_write(method: &Method, path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    // Accepts names, and no part that leads to another path.
    let plain = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    match parts[..] {
        [namespace, "events"] => *method == Method::POST && plain(namespace),
        [namespace, "events", name] => *method == Method::PATCH && plain(namespace) && plain(name),
        _ => false,
    }
}

fn own_node(query: &str, selector: &str, own: &str) -> Result<Forward, Refusal> {
    match selector.strip_prefix("metadata.name=") {
        Some(name) if name == own => Ok(Forward::Unchanged { watch: flag(query, "watch")? }),
        asked => {
            let asked = asked.filter(|name| !name.is_empty()).unwrap_or("all nodes").to_owned();
            Err(Refusal::OtherNode { own: own.to_owned(), asked })
        }
    }
}

fn services(head: RequestHead<'_>, narrowing: &Narrowing) -> Result<ServicesRequest, Refusal> {
    let hidden = narrowing.without_hidden().to_string();
    let selector = parameter(head.query, "labelSelector")?;
    let selector = [selector.as_str(), &hidden]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(",");
    let mut query = Serializer::new(String::new());
    for (name, value) in parse(head.query.as_bytes()).filter(|(name, _)| name != "labelSelector") {
        query.append_pair(&name, &value);
    }
    if !selector.is_empty() {
        query.append_pair("labelSelector", &selector);
    }
    let narrowed = narrowing.iter().any(|(_, view)| view == View::ClusterOnly);
    let rewrite = if narrowed { Some(format(head.accept)?) } else { None };
    Ok(ServicesRequest { query: query.finish(), read: read(head.query)?, rewrite })
}

/// Chooses a format that the client accepts: protobuf if possible.
fn format(accept: &str) -> Result<Format, Refusal> {
    let accepts = |format: Format| {
        let mut types = accept.split(',').map(|part| part.split(';').next().unwrap_or_default().trim());
        types.any(|part| part == format.media_type())
    };
    let accepts_anything =
        accept.trim().is_empty() || accept.contains("*/*") || accept.contains("application/*");
    match (accepts(Format::Protobuf), accepts(Format::Json) || accepts_anything) {
        (true, _) => Ok(Format::Protobuf),
        // The API server's own choice for a client that accepts anything.
        (false, true) => Ok(Format::Json),
        (false, false) => Err(Refusal::Encoding { accepted: accept.to_owned() }),
    }
}

fn read(query: &str) -> Result<ServiceRead, Refusal> {
    if !flag(query, "watch")? {
        let first = parameter(query, "continue")?.is_empty();
        return Ok(if first { ServiceRead::List } else { ServiceRead::NextPage });
    }
    let version = parameter(query, "resourceVersion")?;
    let from_start = flag(query, "sendInitialEvents")? || version.is_empty() || version == "0";
    Ok(if from_start { ServiceRead::WatchFromStart } else { ServiceRead::WatchFromVersion })
}

/// Parses a boolean parameter as the API server does: every value but two is true.
fn flag(query: &str, name: &'static str) -> Result<bool, Refusal> {
    let value = value(query, name)?;
    Ok(value.is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false")))
}

/// Returns the value of a parameter, or an empty text if it is absent.
fn parameter(query: &str, name: &'static str) -> Result<String, Refusal> {
    Ok(value(query, name)?.unwrap_or_default())
}

fn value(query: &str, name: &'static str) -> Result<Option<String>, Refusal> {
    let mut values = parse(query.as_bytes()).filter(|(found, _)| found == name).map(|(_, value)| value);
    let first = values.next().map(Cow::into_owned);
    if values.next().is_some() { Err(Refusal::Twice(name)) } else { Ok(first) }
}
