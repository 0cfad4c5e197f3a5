//! The kinds that could not be read, and what cannot be told without them.

use super::line::Line;
use crate::doctor::cluster::{Cluster, Missing};
use crate::doctor::finding::{Code, Subject};
use crate::doctor::kinds::Kind;

pub(super) fn lines(cluster: &Cluster) -> Vec<Line> {
    let mut lines: Vec<Line> = cluster.not_looked_at.iter().map(|(kind, why)| missing(*kind, why)).collect();
    lines.extend(cluster.unreadable.iter().map(|((kind, key), why)| {
        let line = format!("{} {key} cannot be parsed and was skipped: {why}", kind.as_str());
        let line =
            if kind.is_essential() { Line::failed("rights", line) } else { Line::notice("rights", line) };
        line.about(Subject::new(kind.as_str(), key)).coded(Code::NotLookedAt)
    }));
    if lines.is_empty() {
        lines.push(Line::passed("rights", "every kind that the checks need was read"));
    }
    lines
}

/// Policies are not judged without an essential kind, so nothing passes then.
fn missing(kind: Kind, why: &Missing) -> Line {
    let what = unknown(kind);
    let text = format!("{} were not read ({why}): {what}", kind.resource());
    let line = if kind.is_essential() && *why != Missing::PerhapsNotInDump {
        Line::failed("rights", text)
    } else {
        Line::notice("rights", text)
    };
    let line = line.about(Subject::new("Kind", kind.as_str())).coded(Code::NotLookedAt);
    match why {
        Missing::Forbidden => {
            line.detail(format!("kubectl auth can-i list {} --all-namespaces", kind.resource()))
        }
        Missing::Failed(_) => line.detail(format!("kubectl get {} -A", kind.resource())),
        Missing::NotInDump | Missing::PerhapsNotInDump => {
            line.detail(format!("kubectl get {} -A -o yaml   # add it to the dump", kind.resource()))
        }
    }
}

/// The answers that need a kind.
fn unknown(kind: Kind) -> &'static str {
    match kind {
        Kind::IngressSourcePreserve | Kind::IngressSourceNode => {
            "whether an object preserves a Service already cannot be told"
        }
        Kind::Service => "nothing can be told",
        Kind::EndpointSlice => "which nodes have endpoints cannot be told, and no object is proposed",
        Kind::Node => {
            "kernels, architectures and ingress nodes cannot be told, and mode Beside is not judged"
        }
        Kind::Namespace => "Pod Security of the agents' namespace cannot be told",
        Kind::Pod => "gateways, sidecars and ingress controllers cannot be told, and no policy is judged",
        Kind::ConfigMap => "the settings of kube-proxy, of Cilium and of meshes cannot be told",
        Kind::DaemonSet => "kube-proxy and the pod network cannot be told, and mode Filter is not judged",
        Kind::Deployment => "whether the project is installed cannot be told",
        Kind::MutatingWebhookConfiguration | Kind::ValidatingWebhookConfiguration => {
            "whether the project's webhook is in order cannot be told"
        }
        Kind::NetworkPolicy => "NetworkPolicies are not judged",
        Kind::Ingress => "allow lists of Ingresses are not judged",
        Kind::AuthorizationPolicy => "AuthorizationPolicies are not judged",
        Kind::EnvoyFilter => "whether a gateway takes addresses from headers may be missed",
        Kind::IstioGateway
        | Kind::VirtualService
        | Kind::Gateway
        | Kind::HttpRoute
        | Kind::GrpcRoute
        | Kind::TlsRoute
        | Kind::TcpRoute => "which applications are behind which gateway may be missed",
    }
}
