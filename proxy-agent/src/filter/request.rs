//! What a node's kube-proxy may ask through the agent, and what is asked of the API server instead. Pure.
//!
//! kube-proxy's own token goes along, and it may do no more than kube-proxy. But every process of the node can connect to the
//! loopback, and a token can be stolen; so what kube-proxy never asks is refused here already, with the reason. Paths
//! are compared as they are written: one that is spelled in another way is none of these.

use std::borrow::Cow;

use form_urlencoded::{Serializer, parse};
use http::Method;
use isp_api::view::{Narrowing, View};
use thiserror::Error;

use crate::filter::wire::Format;

#[cfg(test)]
mod tests;

const SERVICES: &str = "/api/v1/services";
const NODES: &str = "/api/v1/nodes";
/// Lists and watches that pass as they are.
const READS: [&str; 2] =
    ["/apis/discovery.k8s.io/v1/endpointslices", "/apis/networking.k8s.io/v1/servicecidrs"];
/// What a client asks to learn whom it talks to.
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

/// What is forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Forward {
    /// As it was asked.
    Unchanged {
        /// Whether the answer has no end of its own.
        watch: bool,
    },
    /// Services.
    Services(Services),
}

/// A list or a watch of Services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Services {
    /// The query that leaves hidden Services out.
    pub(crate) query: String,
    pub(crate) read: Read,
    /// The format in which to ask, where external addresses have to be taken out of what comes back.
    pub(crate) rewrite: Option<Format>,
}

/// How Services are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// All of them, now; or the first page.
    List,
    /// The next page of a list.
    NextPage,
    /// All of them first, then changes.
    WatchFromStart,
    /// Changes since an earlier read, with what that read had seen.
    WatchFromVersion,
}

/// Why a request is not forwarded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    #[error("{method} {path} is nothing that kube-proxy asks for, so this agent does not forward it")]
    NotKubeProxys { method: Method, path: String },
    #[error("this agent forwards requests about the node {own} only, not about {asked}")]
    OtherNode { own: String, asked: String },
    #[error("a GET with a body is nothing that kube-proxy sends")]
    Body,
    #[error("the query has {0} more than once")]
    Twice(&'static str),
    #[error(
        "external addresses are hidden from this node, which this agent can do in {} and {} only: accept one of them beside {accepted:?}",
        Format::Protobuf.media_type(),
        Format::Json.media_type()
    )]
    Encoding { accepted: String },
}

/// A request as far as it decides what is forwarded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) accept: &'a str,
    pub(crate) has_body: bool,
}

/// Decides about a request to the agent of node `own`.
pub(crate) fn decide(asked: Asked<'_>, own: &str, narrowing: &Narrowing) -> Result<Forward, Refusal> {
    let unknown = || Refusal::NotKubeProxys { method: asked.method.clone(), path: asked.path.to_owned() };
    if let Some(rest) = asked.path.strip_prefix(EVENTS) {
        let event = is_event(asked.method, rest);
        return if event { Ok(Forward::Unchanged { watch: false }) } else { Err(unknown()) };
    }
    if asked.method != Method::GET {
        return Err(unknown());
    }
    if asked.has_body {
        return Err(Refusal::Body);
    }
    match asked.path {
        SERVICES => services(asked, narrowing).map(Forward::Services),
        NODES => own_node(asked.query, &parameter(asked.query, "fieldSelector")?, own),
        path if READS.contains(&path) => Ok(Forward::Unchanged { watch: flag(asked.query, "watch")? }),
        path if DISCOVERY.contains(&path) => Ok(Forward::Unchanged { watch: false }),
        path => match path.strip_prefix(NODES).and_then(|rest| rest.strip_prefix('/')) {
            Some(name) => own_node(asked.query, &format!("metadata.name={name}"), own),
            None => Err(unknown()),
        },
    }
}

/// A new event, or more of the same.
fn is_event(method: &Method, path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    // What could be a name, and no way to another path.
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

fn services(asked: Asked<'_>, narrowing: &Narrowing) -> Result<Services, Refusal> {
    let hidden = narrowing.without_hidden().to_string();
    let selector = parameter(asked.query, "labelSelector")?;
    let selector = [selector.as_str(), &hidden]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(",");
    let mut query = Serializer::new(String::new());
    for (name, value) in parse(asked.query.as_bytes()).filter(|(name, _)| name != "labelSelector") {
        query.append_pair(&name, &value);
    }
    if !selector.is_empty() {
        query.append_pair("labelSelector", &selector);
    }
    let narrowed = narrowing.iter().any(|(_, view)| view == View::ClusterOnly);
    let rewrite = if narrowed { Some(format(asked.accept)?) } else { None };
    Ok(Services { query: query.finish(), read: read(asked.query)?, rewrite })
}

/// The format to ask for, of those that the caller takes: protobuf if it can be.
fn format(accept: &str) -> Result<Format, Refusal> {
    let takes = |format: Format| {
        let mut types = accept.split(',').map(|part| part.split(';').next().unwrap_or_default().trim());
        types.any(|part| part == format.media_type())
    };
    let takes_anything =
        accept.trim().is_empty() || accept.contains("*/*") || accept.contains("application/*");
    match (takes(Format::Protobuf), takes(Format::Json) || takes_anything) {
        (true, _) => Ok(Format::Protobuf),
        // What the API server answers whom everything is right.
        (false, true) => Ok(Format::Json),
        (false, false) => Err(Refusal::Encoding { accepted: accept.to_owned() }),
    }
}

fn read(query: &str) -> Result<Read, Refusal> {
    if !flag(query, "watch")? {
        let first = parameter(query, "continue")?.is_empty();
        return Ok(if first { Read::List } else { Read::NextPage });
    }
    let version = parameter(query, "resourceVersion")?;
    let from_start = flag(query, "sendInitialEvents")? || version.is_empty() || version == "0";
    Ok(if from_start { Read::WatchFromStart } else { Read::WatchFromVersion })
}

/// What the API server makes of a parameter that is true or false: whatever is there is true, but for two values.
fn flag(query: &str, name: &'static str) -> Result<bool, Refusal> {
    let value = value(query, name)?;
    Ok(value.is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false")))
}

/// The one value of a parameter; empty when it is not there.
fn parameter(query: &str, name: &'static str) -> Result<String, Refusal> {
    Ok(value(query, name)?.unwrap_or_default())
}

fn value(query: &str, name: &'static str) -> Result<Option<String>, Refusal> {
    let mut values = parse(query.as_bytes()).filter(|(found, _)| found == name).map(|(_, value)| value);
    let first = values.next().map(Cow::into_owned);
    if values.next().is_some() { Err(Refusal::Twice(name)) } else { Ok(first) }
}
