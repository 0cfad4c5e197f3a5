//! Which writes are permitted, specified independently of the planner.

use std::collections::BTreeSet;

use isp_api::node::AgentMode;

use crate::action::{Action, Returned};
use crate::cluster::{Cluster, Key, Service};
use crate::own::OwnKind;
use crate::simulate::Simulation;

use super::objects::US;

/// Objects forged as the operator. All other objects besides the core are foreign.
#[derive(Default)]
pub(super) struct Forged {
    pub(super) daemon_sets: BTreeSet<Key>,
    pub(super) admission: BTreeSet<(OwnKind, String)>,
}

/// The namespaces of kube-proxies, where only administrators create DaemonSets.
fn is_home(cluster: &Cluster, namespace: &str) -> bool {
    let named = cluster.objects.values().any(|object| {
        let by_spec = object.spec.kube_proxy.as_ref().map(|named| named.namespace.as_str());
        let known = object.status.as_ref().and_then(|status| status.kube_proxy.as_ref());
        by_spec == Some(namespace) || known.is_some_and(|known| known.namespace == namespace)
    });
    named || namespace == "kube-system"
}

fn is_claimed(cluster: &Cluster, key: &Key, service: &Service) -> bool {
    let mut targets = cluster.objects.values().flat_map(|object| &object.spec.services);
    targets.any(|target| target.matches(&key.namespace, &key.name, &service.labels).unwrap_or(false))
}

/// Fails unless the write is to one of our objects, judged by the cluster that it was planned for.
pub(super) fn is_ours(world: &Simulation, forged: &Forged, action: &Action) {
    let cluster = &world.cluster;
    match action {
        Action::Finalizer { object, .. } | Action::Status { object, .. } => {
            assert!(cluster.objects.contains_key(object), "{action}");
        }
        Action::ShapeService { service: key, shape, .. } => {
            let Some(service) = cluster.services.get(key) else { return };
            assert!(is_claimed(cluster, key, service) || wrote(service), "{action}: nobody wants it");
            if let Some(label) = &shape.label {
                let of_object = cluster.objects.values().any(|object| object.service_label() == *label);
                let there = service.labels.get(&label.key) == Some(&label.value);
                assert!(of_object || there, "{action}: a label {label:?} of nobody");
            }
        }
        Action::ReturnFields { service, owner, fields, .. } => {
            returns_what_was_taken(cluster, action, service, owner, fields);
        }
        Action::ShapeNode { node: name, .. } => {
            let Some(node) = cluster.nodes.get(name) else { return };
            let marked = node.pool.is_some() || node.revision.is_some() || node.images.is_some();
            let written = marked || node.handover.is_some() || node.failure.is_some();
            let selects = |object: &isp_api::IngressSourcePreserve| {
                object.spec.ingress_nodes.contains(&node.labels).unwrap_or(false)
            };
            let needed = cluster.objects.values().any(|object| !selects(object));
            assert!(written || needed, "{action}: nobody needs an agent there");
        }
        Action::KeepOff { daemon_set, .. }
        | Action::ReturnTerms { daemon_set, .. }
        | Action::ReleaseKubeProxy { daemon_set, .. } => {
            assert!(is_home(cluster, &daemon_set.namespace), "{action}: not the cluster's kube-proxy");
            let Some(set) = cluster.daemon_sets.get(daemon_set) else { return };
            let containers = set.object.spec.template.spec.iter().flat_map(|pod| &pod.containers);
            let mut commands =
                containers.map(|container| (container.name.as_str(), container.command.iter().flatten()));
            let runs = commands.any(|(name, mut words)| {
                name == "kube-proxy" || words.any(|word| word.rsplit('/').next() == Some("kube-proxy"))
            });
            assert!(runs, "{action}: it runs no kube-proxy");
        }
        Action::ApplyPool { daemon_set, .. } => {
            let metadata = &daemon_set.metadata;
            assert!(is_home(cluster, metadata.namespace.as_deref().unwrap_or_default()), "{action}");
            assert!(
                metadata.name.as_deref().is_some_and(|name| name.starts_with("proxy-agent-")),
                "{action}"
            );
        }
        Action::DeletePool { daemon_set, .. } => {
            assert!(is_home(cluster, &daemon_set.namespace), "{action}: in a namespace of others");
            let made = daemon_set.name.starts_with("proxy-agent-") && !daemon_set.name.contains("hostile");
            assert!(made || forged.daemon_sets.contains(daemon_set), "{action}: somebody else made it");
        }
        Action::Forget { report, .. } => {
            let beside = cluster.reports.get(report).is_some_and(|report| report.mode == AgentMode::Beside);
            if let Some(node) = report.strip_suffix(".beside").filter(|_| beside) {
                let runs = |set: &Key| set.name == "proxy-agent-beside" && set.namespace == "kube-system";
                let agents = cluster.daemon_sets.iter().any(|(key, set)| runs(key) && set.made);
                assert!(
                    !agents || !cluster.nodes.contains_key(node),
                    "{action} while the node has its agent"
                );
                return;
            }
            let node = report;
            let stopped = |node: &crate::cluster::Node| {
                node.handover.as_ref().is_some_and(|handover| handover.restart) && node.revision.is_none()
            };
            let agent = cluster.nodes.get(node).is_some_and(|node| node.pool.is_some() && !stopped(node));
            assert!(!agent, "{action} while the node has its agent");
        }
        Action::ApplyOwn { kind, key, .. } | Action::DeleteOwn { kind, key, .. } => {
            let name = &key.name;
            let named = match kind {
                OwnKind::PodWebhook => name == "0-sourcepreserve.io",
                OwnKind::PodPolicy | OwnKind::PodPolicyBinding => name.starts_with("sourcepreserve."),
                // An account may be left in a namespace that no object names any more.
                OwnKind::Account => {
                    let is_deleted = matches!(action, Action::DeleteOwn { .. });
                    name == "proxy-agent" && (is_deleted || is_home(cluster, &key.namespace))
                }
                _ => name.starts_with("sourcepreserve-"),
            };
            assert!(named, "{action}: a name of others");
            let there = cluster.own.get(kind).and_then(|there| there.get(key));
            let theirs = there.is_some_and(|there| there.identity.uid == "theirs");
            assert!(
                !theirs || forged.admission.contains(&(*kind, name.clone())),
                "{action}: somebody else made it"
            );
        }
    }
}

fn returns_what_was_taken(cluster: &Cluster, action: &Action, key: &Key, owner: &str, fields: &Returned) {
    let Some(service) = cluster.services.get(key) else { return };
    let lists = |object: &isp_api::IngressSourcePreserve| {
        let listed = object.status.iter().flat_map(|status| &status.services);
        listed.into_iter().any(|known| known.namespace == key.namespace && known.name == key.name)
    };
    let told = service.record.as_ref().and_then(|record| cluster.objects.get(&record.object));
    let everything = matches!(fields, Returned::Everything { .. } | Returned::ToKubeProxy);
    if matches!(fields, Returned::ToKubeProxy) {
        let name = service.labels.get("service.kubernetes.io/service-proxy-name");
        assert_eq!(name.map(String::as_str), Some("ingress-source-preserve"), "{action}");
    }
    assert!(wrote(service) || everything && told.is_some_and(lists), "{action}: nothing was taken from it");
    assert!((owner != US || everything) && !owner.is_empty() && owner.len() <= 128, "{action} to {owner:?}");
    if let Returned::Label(label) = fields {
        let marks = |key: &str| cluster.objects.values().any(|object| object.service_label().key == key);
        assert!(label.key == "sourcepreserve.io/preserve" || marks(&label.key), "{action}: {label:?}");
        assert!(label.value.len() <= 63 && !label.value.contains(['\n', '\0', '/']), "{action}: {label:?}");
    }
}

/// Whether the operator's field manager has applied to it.
fn wrote(service: &Service) -> bool {
    service.owners.iter().any(|owner| owner.applies && owner.manager == US)
}
