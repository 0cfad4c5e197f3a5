//! The interlocks: what must hold at the time of each write, and what must hold once planning has
//! settled.

use isp_api::IngressSourcePreserve;
use isp_api::names::{BESIDE_NAME, SERVICE_PROXY_NAME_LABEL};
use isp_api::node::AgentMode;
use isp_api::preserve::{ConflictPolicy, Mode, TrafficPolicy};
use isp_api::view::View;

use super::world::World;
use crate::action::{Action, NodeStep, Returned, ServiceStep};
use crate::cluster::{Cluster, Key, Node, Pod, Service};
use crate::ownership::{ours, policy_declared};
use crate::plan::kube_proxy::is_kept_off;
use crate::record::Handover;
use crate::simulate::Simulation;

use super::properties::FORGED;

/// Checks the interlocks against the cluster at the time of the write.
#[allow(clippy::too_many_lines, reason = "one arm for each kind of action")]
pub(super) fn allowed(world: &Simulation, action: &Action) {
    let cluster = &world.cluster;
    // A tainted node with neither an agent nor the cluster's kube-proxy is left out.
    let left_out = |name: &str| {
        let node = &cluster.nodes[name];
        let runs = |pod: &Pod| pod.node == name && pod.daemon_set == World::kube_proxy_key();
        !node.taints.is_empty() && node.pool.is_none() && !cluster.pods.values().any(runs)
    };
    let elsewhere = |name: &str, node: &str| {
        cluster.objects.get(name).is_none_or(|object| {
            !object.spec.ingress_nodes.contains(&cluster.nodes[node].labels).unwrap()
                && !object.lists_ingress_node(node)
                && !left_out(node)
        })
    };
    match action {
        Action::ShapeService {
            service,
            identity,
            shape,
            step: step @ (ServiceStep::Label | ServiceStep::Localise),
        } => {
            let Some(now) = cluster.services.get(service).filter(|now| now.identity == *identity) else {
                return;
            };
            let record = shape.record.as_ref().unwrap();
            let object = &cluster.objects[&record.object];
            assert!(object.metadata.finalizers.is_some(), "{action} for an object that is not held");
            let new_label =
                shape.label.as_ref().is_some_and(|label| now.labels.get(&label.key) != Some(&label.value));
            let new_policy = shape.local && now.policy != Some(TrafficPolicy::Local);
            if object.spec.conflict_policy == ConflictPolicy::Report && new_policy {
                assert_eq!(policy_declared(now), None, "{action} over a declaration");
            }
            if !new_label && !new_policy {
                return;
            }
            let _ = step;
            let ready = cluster.ready_endpoints(service);
            assert!(
                ready.keys().any(|node| !elsewhere(&record.object, node)),
                "{action} without an endpoint on an ingress node"
            );
            if object.spec.mode == Mode::Beside {
                assert!(!new_policy || now.is_taken_over(), "{action} before kube-proxies skip it");
                return beside_agents_acknowledge(cluster, action, &record.object, None);
            }
            filter_agents_acknowledge(cluster, action, &record.object, elsewhere);
        }
        Action::ShapeService { service, identity, shape, step: ServiceStep::TakeOver } => {
            let Some(now) = cluster.services.get(service).filter(|now| now.identity == *identity) else {
                return;
            };
            assert_eq!(now.labels.get(SERVICE_PROXY_NAME_LABEL), None, "{action} over another value");
            let object = &shape.record.as_ref().unwrap().object;
            assert_eq!(cluster.objects[object].spec.mode, Mode::Beside, "{action}");
            beside_agents_acknowledge(cluster, action, object, Some(service));
        }
        Action::ReturnFields { service, identity, fields: Returned::ToKubeProxy, .. } => {
            let Some(now) = cluster.services.get(service).filter(|now| now.identity == *identity) else {
                return;
            };
            let Some(object) = now.record.as_ref().map(|record| &record.object) else { return };
            let lives = cluster.objects.get(object).filter(|object| {
                let deleted = object.metadata.deletion_timestamp.is_some() || world.settings.cleanup;
                !deleted && claims(object, service, now)
            });
            if let Some(lives) = lives {
                assert_eq!(lives.spec.mode, Mode::Filter, "{action} although it is to be served beside");
                assert!(lives.is_served_beside(), "{action} although the agents would stop serving it");
                filter_agents_acknowledge(cluster, action, object, elsewhere);
            }
        }
        Action::ShapeNode { node, identity, shape, step } => {
            if cluster.nodes.get(node).is_none_or(|now| now.identity != *identity) {
                return;
            }
            match step {
                NodeStep::HandOver => {
                    let (pool, revision) = (shape.pool.as_ref().unwrap(), shape.revision.as_ref().unwrap());
                    let key = Key::new("kube-system", format!("proxy-agent-{pool}-{revision}"));
                    assert!(cluster.daemon_sets.contains_key(&key), "{action} without a DaemonSet");
                    assert!(
                        is_kept_off(&cluster.daemon_sets[&World::kube_proxy_key()]),
                        "{action} beside kube-proxy"
                    );
                    for (key, service) in &cluster.services {
                        let serving: Vec<_> = living(cluster, service)
                            .filter(|name| elsewhere(name, node))
                            .map(|name| serving(cluster, name, key))
                            .collect();
                        let last = |serving: &Vec<&str>| *serving == [node.as_str()];
                        assert!(!serving.iter().any(last), "{action}, the last that serves {key}");
                    }
                }
                NodeStep::HandBack => {
                    for (key, service) in &cluster.services {
                        let Some(record) = service.record.as_ref().filter(|record| !record.retained) else {
                            continue;
                        };
                        // Services whose object no longer exists delay the hand-back only briefly.
                        if !cluster.objects.contains_key(&record.object) {
                            continue;
                        }
                        let is_filtered = !service.is_taken_over() && elsewhere(&record.object, node);
                        assert!(
                            !ours(&service.owners) || !is_filtered,
                            "{action} while {key} is still Local"
                        );
                    }
                }
                _ => {}
            }
        }
        Action::DeletePool { daemon_set, .. } if daemon_set.name == BESIDE_NAME => {
            for (key, service) in cluster.services.iter().filter(|(key, _)| key.namespace != FORGED) {
                let record = service.record.as_ref();
                let object = record.is_some_and(|record| cluster.objects.contains_key(&record.object));
                assert!(!object || !service.depends_on_beside(), "{action} while {key} depends on it");
            }
        }
        Action::DeletePool { daemon_set, .. } => {
            let labelled =
                cluster.nodes.values().filter_map(|node| node.pool.as_ref().zip(node.revision.as_ref()));
            let mut names = labelled.map(|(pool, revision)| format!("proxy-agent-{pool}-{revision}"));
            assert!(names.all(|name| name != daemon_set.name), "{action} while a node has its agent");
            let back = cluster.nodes.values().filter_map(|node| {
                node.pool.as_ref().zip(node.handover.as_ref().and_then(|handover| handover.from.as_ref()))
            });
            let mut names = back.map(|(pool, revision)| format!("proxy-agent-{pool}-{revision}"));
            assert!(names.all(|name| name != daemon_set.name), "{action} while a node may go back to it");
        }
        Action::ReleaseKubeProxy { .. } | Action::ReturnTerms { .. } => {
            assert!(
                cluster.nodes.values().all(|node| node.pool.is_none()),
                "{action} while a node has an agent"
            );
        }
        Action::Finalizer { object, held: false, .. } => {
            for (key, service) in cluster.services.iter().filter(|(key, _)| key.namespace != FORGED) {
                let record = service.record.as_ref().filter(|record| record.object == *object);
                assert!(record.is_none_or(|record| record.retained), "{action} while {key} is still changed");
            }
        }
        _ => {}
    }
}

/// Whether the object targets the Service.
fn claims(object: &IngressSourcePreserve, key: &Key, service: &Service) -> bool {
    let mut targets = object.spec.services.iter();
    targets.any(|target| target.matches(&key.namespace, &key.name, &service.labels).unwrap_or(false))
}

/// Every non-ingress node has an agent that has acknowledged the object.
fn filter_agents_acknowledge(
    cluster: &Cluster,
    action: &Action,
    object: &str,
    elsewhere: impl Fn(&str, &str) -> bool,
) {
    for name in cluster.nodes.keys().filter(|name| elsewhere(object, name)) {
        let node = &cluster.nodes[name];
        // During a change of revision, the kernel keeps the acknowledged state.
        let settled = |handover: &Handover| handover.from.is_some() && !handover.restart;
        let gone_over = node.handover.as_ref().is_none_or(settled);
        assert!(node.pool.is_some() && gone_over, "{action} while {name} has no agent");
        let stray = |pod: &Pod| pod.node == *name && pod.daemon_set.name == "kube-proxy";
        assert!(!cluster.pods.values().any(stray), "{action} while kube-proxy itself still runs on {name}");
        let object = &cluster.objects[object];
        let said = cluster.reports[name].acknowledged.get(object.metadata.uid.as_ref().unwrap());
        let wanted = (object.metadata.generation, object.spec.elsewhere.into());
        let said = said.map(|said| (Some(said.generation), said.view));
        assert_eq!(said, Some(wanted), "{action} while {name} has not acknowledged");
    }
}

/// Every node has an agent of mode Beside that has acknowledged the object, and serves the Service.
fn beside_agents_acknowledge(cluster: &Cluster, action: &Action, object: &str, service: Option<&Key>) {
    let object = &cluster.objects[object];
    for (name, node) in &cluster.nodes {
        let report = &cluster.reports[&format!("{name}.beside")];
        assert!(report.active && report.mode == AgentMode::Beside, "{action} while {name} has no agent");
        let said = report.acknowledged.get(object.metadata.uid.as_ref().unwrap());
        let said = said.unwrap_or_else(|| panic!("{action} while {name} has not acknowledged"));
        let ingress =
            object.spec.ingress_nodes.contains(&node.labels).unwrap() || object.lists_ingress_node(name);
        let view = if ingress { View::Full } else { object.spec.elsewhere.into() };
        assert_eq!(
            (Some(said.generation), said.view),
            (object.metadata.generation, view),
            "{action}: {name}"
        );
        let serves = service.is_none_or(|key| said.services.contains(key));
        assert!(serves, "{action} while {name} does not serve it");
    }
}

/// When settled, every node serves every Service that kube-proxies skip for our sake.
pub(super) fn skipped_services_are_served(cluster: &Cluster) {
    let skipped = |(key, service): &(&Key, &Service)| service.is_taken_over() && key.namespace != FORGED;
    for (key, _) in cluster.services.iter().filter(skipped) {
        for name in cluster.nodes.keys() {
            let report = cluster.reports.get(&format!("{name}.beside"));
            assert!(report.is_some_and(|report| report.active), "nobody serves {key} on {name}");
        }
    }
}

/// The objects that are not being deleted and whose label hides the Service.
fn living<'c>(cluster: &'c Cluster, service: &'c Service) -> impl Iterator<Item = &'c str> {
    cluster.objects.iter().filter_map(|(name, object)| {
        let label = object.service_label();
        let hides = service.labels.get(&label.key) == Some(&label.value);
        (hides && object.metadata.deletion_timestamp.is_none()).then_some(name.as_str())
    })
}

/// The nodes with a ready endpoint that show the Service in full: without an agent, or with one
/// that reports the full view.
fn serving<'c>(cluster: &'c Cluster, object: &str, service: &Key) -> Vec<&'c str> {
    let uid = cluster.objects[object].metadata.uid.as_deref().unwrap();
    let taken_over = cluster.services[service].is_taken_over();
    let shows = |name: &str, node: &Node| {
        let says = |report: &str| {
            let said = cluster.reports.get(report).and_then(|report| report.acknowledged.get(uid));
            said.is_some_and(|said| said.view == View::Full)
        };
        if taken_over { says(&format!("{name}.beside")) } else { node.pool.is_none() || says(name) }
    };
    let ready = cluster.ready_endpoints(service);
    let nodes = cluster
        .nodes
        .iter()
        .filter(|(name, node)| ready.get(name.as_str()).is_some_and(|count| *count > 0) && shows(name, node));
    nodes.map(|(name, _)| name.as_str()).collect()
}

/// Each node has either no agent, so that the cluster's kube-proxy may run there, or an existing
/// agent DaemonSet, unless its agent is restarting.
pub(super) fn one_kube_proxy_each(cluster: &Cluster) {
    for (name, node) in &cluster.nodes {
        let labelled = node.labels.contains_key("sourcepreserve.io/agent-pool");
        assert_eq!(labelled, node.pool.is_some(), "{name}: {node:?}");
        match (&node.pool, &node.revision) {
            (Some(pool), Some(revision)) => {
                let key = Key::new("kube-system", format!("proxy-agent-{pool}-{revision}"));
                assert!(cluster.daemon_sets.contains_key(&key), "{name} has no kube-proxy: {node:?}");
            }
            (Some(_), None) => {
                let restarts = node.handover.as_ref().is_some_and(|handover| handover.restart);
                assert!(restarts, "{name} has no kube-proxy, and gets none: {node:?}");
            }
            (None, _) => {}
        }
    }
}

/// When settled, some node serves every changed Service that has an endpoint.
pub(super) fn reachable(cluster: &Cluster) {
    for (key, service) in &cluster.services {
        let ready = cluster.ready_endpoints(key);
        let runs = cluster.nodes.keys().any(|name| ready.get(name.as_str()).is_some_and(|count| *count > 0));
        for object in living(cluster, service).filter(|_| runs) {
            assert!(!serving(cluster, object, key).is_empty(), "nobody answers for {key}: {service:?}");
        }
    }
}
