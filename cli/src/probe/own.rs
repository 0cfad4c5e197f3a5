//! The user's own Service as the target: what its access log says.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ServicePort};
use kube::Api;
use kube::api::LogParams;

use super::access_log;
use super::question::How;
use super::table::{Observed, Seen, Whose};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::read;

#[cfg(test)]
mod tests;

/// The container of a gateway or sidecar.
const PROXY: &str = "istio-proxy";
/// So many bytes of a log are read.
const LARGEST_LOG: i64 = 8 << 20;

/// How a port is asked. Only requests over HTTP leave a path in a log.
pub(crate) fn how(port: &ServicePort, path: &str) -> How {
    let name = port.name.as_deref().unwrap_or_default();
    let protocol = port.app_protocol.as_deref().unwrap_or_default();
    let is_tls = |text: &str| text.starts_with("https") || text.starts_with("tls") || text.contains("wss");
    let is_http = protocol.contains("http") || name.starts_with("http") || matches!(port.port, 80 | 8080);
    if port.protocol.as_deref() == Some("UDP") {
        How::Udp
    } else if is_http && !is_tls(name) && !is_tls(protocol) {
        How::Http { path: path.to_owned() }
    } else {
        How::Connect
    }
}

/// A path that only one cell requests.
pub(crate) fn path(run: &str, client: usize, question: usize) -> String {
    format!("/isp-probe-{run}-{client}-{question}")
}

/// The logs of the pods of a Service since the run began, with the node of each.
pub(crate) async fn logs(
    connection: &Connection,
    namespace: &str,
    names: &BTreeSet<String>,
    seconds: i64,
) -> Result<Vec<(Option<String>, String)>, CommandError> {
    let pods: Api<Pod> = Api::namespaced(connection.client.clone(), namespace);
    let mut logs = Vec::new();
    for name in names {
        let pod = pods.get_opt(name).await;
        let pod = pod.map_err(|error| connection.problem("get", &read::resource::<Pod>(), error))?;
        // It ended meanwhile.
        let Some(spec) = pod.and_then(|pod| pod.spec) else { continue };
        let parameters = LogParams {
            container: logger(&spec).map(|container| container.name.clone()),
            since_seconds: Some(seconds.max(1)),
            limit_bytes: Some(LARGEST_LOG),
            ..LogParams::default()
        };
        let log = pods.logs(name, &parameters).await;
        logs.push((spec.node_name, log.map_err(|error| connection.problem("get", "pods/log", error))?));
    }
    Ok(logs)
}

/// The container whose log tells what clients are seen as: the application, not its sidecar, which
/// may see another address. A gateway is a proxy alone.
fn logger(pod: &PodSpec) -> Option<&Container> {
    pod.containers.iter().find(|each| each.name != PROXY).or_else(|| pod.containers.first())
}

/// What the log says about a path, else what the client has seen.
pub(crate) fn observed(logs: &[(Option<String>, String)], path: &str, client: Observed) -> Observed {
    let mut seen = BTreeSet::new();
    for (node, log) in logs {
        // The end of the path, so that /1 is not taken for /10.
        for marker in [format!("{path} "), format!("{path}\"")] {
            let sources = access_log::sources(log, &marker);
            seen.extend(sources.into_iter().map(|source| Seen {
                source,
                whose: Whose::Unknown,
                target_node: node.clone(),
            }));
        }
    }
    if seen.is_empty() { client } else { Observed::Seen(seen) }
}
