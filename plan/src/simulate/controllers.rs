//! Simulates the DaemonSet controller, the kubelets and the agents, without delay.

use std::collections::BTreeSet;
use std::sync::Arc;

use isp_api::names::AGENT_POOL_LABEL;
use isp_api::node::AgentMode;
use isp_api::validate::NodeIdentity;
use isp_api::view::{NodeView, ObjectView, view};

use super::Simulation;
use crate::cluster::{Acknowledged, Acknowledgements, Key, Pod, PodRole, Report, Service};
use crate::observe::{made, role};
use crate::placement::{admits, is_virtual, tolerates};

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
                // A virtual kubelet runs no program on a node's network.
                if role.is_some() && is_virtual(node) {
                    continue;
                }
                if !(lingers || admits(template, name, node) && tolerates(template, node)) {
                    continue;
                }
                let trouble = match &role {
                    Some(PodRole::Agent { .. } | PodRole::Beside) => self.broken.get(name),
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
        let own: BTreeSet<&Key> = made(&self.cluster).map(|(key, _)| key).collect();
        let ready = self.cluster.pods.values().filter(|pod| pod.ready && own.contains(&pod.daemon_set));
        let agents: Vec<(String, PodRole)> =
            ready.filter_map(|pod| Some((pod.node.clone(), pod.role.clone()?))).collect();
        for (name, role) in agents {
            let (mode, pool, revision) = match role {
                PodRole::Agent { pool, revision } => (AgentMode::Filter, pool, revision),
                PodRole::Beside => (AgentMode::Beside, String::new(), String::new()),
                PodRole::Images { .. } => continue,
            };
            let Some(node) = self.cluster.nodes.get(&name) else { continue };
            let node = NodeIdentity { name: &name, labels: &node.labels };
            let views = view(node, self.cluster.objects.values());
            let acknowledged = self.acknowledge(mode, &views);
            let served = if mode == AgentMode::Beside { self.served(&acknowledged) } else { 0 };
            let says = |report: &Report| {
                report.mode == mode
                    && report.pool == pool
                    && report.revision == revision
                    && report.active
                    && report.served == served
                    && *report.acknowledged == acknowledged
            };
            if self.cluster.report(&name, mode).is_some_and(says) {
                continue;
            }
            let identity = self.identity();
            let acknowledged = Arc::new(acknowledged);
            let report = Report { identity, mode, pool, revision, active: true, served, acknowledged };
            self.cluster.reports.insert(mode.report_name(&name), report);
        }
    }

    /// What an agent has applied at once.
    fn acknowledge(&self, mode: AgentMode, views: &NodeView) -> Acknowledgements {
        let vouched = views.objects.iter().filter(|object| object.doubt.is_none());
        let served = |object: &ObjectView| {
            let written = self.cluster.objects.get(&object.object);
            let listed = |key: &Key| {
                let known = written.iter().filter_map(|object| object.status.as_ref());
                let mut known = known.flat_map(|status| &status.services);
                known.any(|known| known.namespace == key.namespace && known.name == key.name)
            };
            let serves =
                |(key, service): &(&Key, &Service)| object.served(&service.labels, listed(key)).is_some();
            let services = self.cluster.services.iter().filter(|_| mode == AgentMode::Beside);
            services.filter(serves).map(|(key, _)| key.clone()).collect()
        };
        let acknowledged = |object: &ObjectView| {
            let (generation, view, services) = (object.generation, object.view, served(object));
            (object.uid.clone(), Acknowledged { generation, view, services })
        };
        vouched.map(acknowledged).collect()
    }

    /// How many Services an agent of mode Beside serves: those of objects, and those that depend on
    /// it.
    fn served(&self, acknowledged: &Acknowledgements) -> u32 {
        let serves = |(key, service): &(&Key, &Service)| {
            service.depends_on_beside() || acknowledged.values().any(|said| said.services.contains(*key))
        };
        u32::try_from(self.cluster.services.iter().filter(serves).count()).unwrap_or(u32::MAX)
    }

    /// Makes the present failures of agents and image pulls permanent. Returns the affected nodes.
    pub fn keep_trouble(&mut self) -> Vec<String> {
        for pod in self.cluster.pods.values() {
            let there = self.cluster.nodes.get(&pod.node);
            let wanted = pod.role == Some(PodRole::Beside)
                || there
                    .is_some_and(|node| node.labels.contains_key(AGENT_POOL_LABEL) || node.images.is_some());
            let Some(trouble) = pod.trouble.as_ref().filter(|_| wanted) else { continue };
            let troubled = match &pod.role {
                Some(PodRole::Agent { .. } | PodRole::Beside) => &mut self.broken,
                Some(PodRole::Images { .. }) => &mut self.unpullable,
                None => continue,
            };
            troubled.insert(pod.node.clone(), trouble.clone());
        }
        self.broken.keys().chain(self.unpullable.keys()).cloned().collect()
    }
}
