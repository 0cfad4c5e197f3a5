//! Simulates the DaemonSet controller, the kubelets and the agents, without delay.

use std::collections::BTreeSet;
use std::sync::Arc;

use isp_api::names::AGENT_POOL_LABEL;
use isp_api::validate::NodeIdentity;
use isp_api::view::view;

use super::Simulation;
use crate::cluster::{Acknowledged, Acknowledgements, Key, Pod, PodRole, Report};
use crate::observe::{made, role};
use crate::placement::{admits, tolerates};

impl Simulation {
    /// Runs a pod of each DaemonSet on each admitted node, and lets each ready agent acknowledge.
    pub fn controllers(&mut self) {
        self.cluster.pods.clear();
        for (key, set) in &self.cluster.daemon_sets {
            let Some(template) = set.object.spec.template.spec.as_ref() else { continue };
            let role = set.object.spec.template.metadata.as_ref().and_then(role);
            for (name, node) in &self.cluster.nodes {
                // A lingering pod is already terminating.
                let lingers = role.is_none() && self.lingering.contains(name);
                if !(lingers || admits(template, name, node) && tolerates(template, node)) {
                    continue;
                }
                let trouble = match &role {
                    Some(PodRole::Agent { .. }) => self.broken.get(name),
                    Some(PodRole::Images { .. }) => self.unpullable.get(name),
                    None => None,
                };
                let pod = Pod {
                    daemon_set: key.clone(),
                    role: role.clone(),
                    node: name.clone(),
                    ready: node.ready && !lingers && trouble.is_none(),
                    trouble: trouble.cloned(),
                };
                self.cluster.pods.insert(Key::new(&*key.namespace, format!("{}-{name}", key.name)), pod);
            }
        }
        self.agents();
    }

    /// Lets each ready agent acknowledge. Foreign pods may carry the same labels but have no right
    /// to report.
    fn agents(&mut self) {
        let made: BTreeSet<&Key> = made(&self.cluster).map(|(key, _)| key).collect();
        let ready = self.cluster.pods.values().filter(|pod| pod.ready && made.contains(&pod.daemon_set));
        let agents: Vec<(String, String, String)> = ready
            .filter_map(|pod| match &pod.role {
                Some(PodRole::Agent { pool, revision }) => {
                    Some((pod.node.clone(), pool.clone(), revision.clone()))
                }
                _ => None,
            })
            .collect();
        for (name, pool, revision) in agents {
            let Some(node) = self.cluster.nodes.get(&name) else { continue };
            let node = NodeIdentity { name: &name, labels: &node.labels };
            let views = view(node, self.cluster.objects.values()).objects.into_iter();
            let vouched = views.filter(|object| object.doubt.is_none());
            let acknowledged: Acknowledgements = vouched
                .map(|object| (object.uid, Acknowledged { generation: object.generation, view: object.view }))
                .collect();
            let says = |report: &Report| {
                report.pool == pool
                    && report.revision == revision
                    && report.connected
                    && *report.acknowledged == acknowledged
            };
            if self.cluster.reports.get(&name).is_some_and(says) {
                continue;
            }
            let identity = self.identity();
            let acknowledged = Arc::new(acknowledged);
            let report = Report { identity, pool, revision, connected: true, acknowledged };
            self.cluster.reports.insert(name, report);
        }
    }

    /// Makes the present failures of agents and image pulls permanent. Returns the affected nodes.
    pub fn keep_trouble(&mut self) -> Vec<String> {
        for pod in self.cluster.pods.values() {
            let there = self.cluster.nodes.get(&pod.node);
            let wanted =
                there.is_some_and(|node| node.labels.contains_key(AGENT_POOL_LABEL) || node.images.is_some());
            let Some(trouble) = pod.trouble.as_ref().filter(|_| wanted) else { continue };
            let troubled = match &pod.role {
                Some(PodRole::Agent { .. }) => &mut self.broken,
                Some(PodRole::Images { .. }) => &mut self.unpullable,
                None => continue,
            };
            troubled.insert(pod.node.clone(), trouble.clone());
        }
        self.broken.keys().chain(self.unpullable.keys()).cloned().collect()
    }
}
