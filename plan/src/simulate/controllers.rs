//! What the DaemonSet controller, the kubelets and the agents do, all of it at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use isp_api::names::{AGENT_NAME, AGENT_POOL_LABEL};

use super::Simulation;
use super::placement::admits;
use crate::cluster::{Key, Pod, Report};
use crate::observe::is_pool;

impl Simulation {
    /// Each DaemonSet has a pod on each node that it admits, and each agent that runs acknowledges what there is.
    pub fn controllers(&mut self) {
        self.cluster.pods.clear();
        for (key, set) in &self.cluster.daemon_sets {
            let Some(template) = set.object.spec.template.spec.as_ref() else { continue };
            let agents = is_pool(set);
            for (name, node) in &self.cluster.nodes {
                // One that lingers is on its way out already.
                let lingers = !agents && self.lingering.contains(name);
                if !lingers && !admits(template, name, node) {
                    continue;
                }
                let trouble = self.broken.get(name).filter(|_| agents).cloned();
                let pod = Pod {
                    daemon_set: key.name.clone(),
                    node: name.clone(),
                    ready: node.ready && !lingers && trouble.is_none(),
                    trouble,
                };
                self.cluster.pods.insert(Key::new(&*key.namespace, format!("{}-{name}", key.name)), pod);
            }
        }
        self.agents();
    }

    /// Each agent that runs acknowledges what there is.
    fn agents(&mut self) {
        let objects = self.cluster.objects.values();
        let all: BTreeMap<String, i64> = objects
            .map(|object| {
                let metadata = &object.metadata;
                (metadata.uid.clone().unwrap_or_default(), metadata.generation.unwrap_or_default())
            })
            .collect();
        let all = Arc::new(all);
        let agents: Vec<(String, String)> = self
            .cluster
            .pods
            .values()
            .filter(|pod| pod.ready)
            .filter_map(|pod| {
                let pool = pod.daemon_set.strip_prefix(AGENT_NAME)?.strip_prefix('-')?;
                Some((pod.node.clone(), pool.to_owned()))
            })
            .collect();
        for (node, pool) in agents {
            let current = self.cluster.reports.get(&node);
            let says =
                |report: &Report| report.pool == pool && report.connected && report.acknowledged == all;
            if current.is_some_and(says) {
                continue;
            }
            let identity = self.identity();
            let report = Report { identity, pool, connected: true, acknowledged: all.clone() };
            self.cluster.reports.insert(node, report);
        }
    }

    /// From now on an agent that is in trouble stays in it. Gives the nodes of those.
    pub fn keep_trouble(&mut self) -> Vec<String> {
        for pod in self.cluster.pods.values().filter(|pod| pod.daemon_set.starts_with(AGENT_NAME)) {
            let there = self.cluster.nodes.get(&pod.node);
            let wanted = there.is_some_and(|node| node.labels.contains_key(AGENT_POOL_LABEL));
            if let Some(trouble) = pod.trouble.as_ref().filter(|_| wanted) {
                self.broken.insert(pod.node.clone(), trouble.clone());
            }
        }
        self.broken.keys().cloned().collect()
    }
}
