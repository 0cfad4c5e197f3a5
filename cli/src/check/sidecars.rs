//! Sidecars that hide the peer from the application: Istio's interception mode REDIRECT replaces it
//! by 127.0.0.6.

use std::collections::BTreeSet;

use isp_api::sidecar::Sidecar;
use isp_plan::Key;

use super::line::Line;
use crate::doctor::cluster::{Cluster, Pod};
use crate::doctor::finding::{Code, Subject};
use crate::doctor::kinds::Kind;
use crate::doctor::selection::PodIndex;
use crate::text::{count, few};

const CHECK: &str = "sidecar";

/// Whether the application behind the sidecar sees 127.0.0.6.
pub(super) fn hides(pod: &Pod) -> bool {
    pod.sidecar.as_ref().is_some_and(Sidecar::hides_peer)
}

pub(super) fn lines(cluster: &Cluster, asked: Option<&Key>) -> Vec<Line> {
    if !cluster.knows(Kind::Pod) {
        return vec![Line::notice(CHECK, "pods were not read, so sidecars are not known")];
    }
    let index = PodIndex::of_cluster(cluster);
    let mut lines = Vec::new();
    let mut exposed: BTreeSet<&Key> = BTreeSet::new();
    let mut has_gateway = false;
    for (service, _) in cluster.exposed(asked) {
        let pods = index.of(service);
        has_gateway |= pods.iter().any(|(_, pod)| pod.gateway);
        let hiding: Vec<&Key> = pods.iter().filter(|(_, pod)| hides(pod)).map(|(key, _)| *key).collect();
        if let Some(first) = hiding.first() {
            lines.push(direct(service, hiding.len(), first));
        }
        exposed.extend(hiding);
    }
    if has_gateway {
        let hiding = cluster.pods.iter().filter(|(key, pod)| hides(pod) && !exposed.contains(key));
        let owners: BTreeSet<String> =
            hiding.map(|(key, pod)| format!("{} {}/{}", pod.owner.0, key.namespace, pod.owner.1)).collect();
        lines.extend(behind_gateways(&owners.into_iter().collect::<Vec<_>>()));
    }
    if lines.is_empty() {
        lines.push(Line::passed(CHECK, "no sidecar hides the peer from an application that clients reach"));
    }
    lines
}

/// The application itself is reached from outside.
fn direct(service: &Key, pods: usize, first: &Key) -> Line {
    let pods = count(u64::try_from(pods).unwrap_or(u64::MAX), "pod");
    let line = format!(
        "Service {service} loses the source IP at the sidecar of {pods} ({first}): in mode REDIRECT, the application sees 127.0.0.6"
    );
    Line::failed(CHECK, line)
        .about(Subject::new("Service", service))
        .coded(Code::SidecarHides)
        .detail("spec.sidecars with interception mode TPROXY lets the application see its peer")
}

/// The peer of these is a gateway in any mode, so no client's address is lost here.
fn behind_gateways(owners: &[String]) -> Option<Line> {
    if owners.is_empty() {
        return None;
    }
    let line = format!(
        "behind gateways, these applications see 127.0.0.6 as their peer (sidecar in mode REDIRECT): {}",
        few(owners)
    );
    let line = Line::notice(CHECK, line).about(Subject::cluster()).coded(Code::SidecarHides);
    Some(line.detail("the client is in X-Forwarded-For; with spec.sidecars, their peer is the gateway"))
}
