//! One stage of the cluster, ready to be asked.

use std::borrow::Cow;
use std::collections::BTreeMap;

use isp_api::IngressSourcePreserve;
use isp_api::claims::claims;
use isp_api::node::AgentMode;
use isp_plan::Key;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use crate::doctor::{Cluster, Examination, PathFacts, ServiceFacts, examine, path_facts_of};
use crate::error::CommandError;

/// A stage.
pub(super) struct State<'a> {
    pub(super) cluster: Cow<'a, Cluster>,
    pub(super) paths: PathFacts,
    pub(super) examination: Examination,
    /// The object of each preserved Service, by its name.
    owners: BTreeMap<Key, String>,
}

impl<'a> State<'a> {
    pub(super) fn new(cluster: Cow<'a, Cluster>, now: Timestamp) -> Result<Self, CommandError> {
        let paths = path_facts_of(&cluster)?;
        let examination = examine(&cluster, None, now);
        let owners = owners(&cluster);
        Ok(Self { cluster, paths, examination, owners })
    }

    /// The object that preserves a Service.
    pub(super) fn owner(&self, service: &Key) -> Option<&IngressSourcePreserve> {
        let name = self.owners.get(service)?;
        self.cluster.objects.iter().find(|object| object.name_any() == *name)
    }

    /// Whether a node is an ingress node of an object.
    pub(super) fn is_ingress_of(&self, node: &str, object: &IngressSourcePreserve) -> bool {
        let labels = self.cluster.nodes.get(node).map(|node| &node.labels);
        let selected =
            labels.is_some_and(|labels| object.spec.ingress_nodes.contains(labels).unwrap_or(false));
        selected || object.lists_ingress_node(node)
    }

    /// Whether a node is an ingress node of any object.
    pub(super) fn is_ingress(&self, node: &str) -> bool {
        self.cluster.objects.iter().any(|object| self.is_ingress_of(node, object))
    }

    /// The mode and pool of the agent on a node.
    pub(super) fn agent(&self, node: &str) -> Option<(AgentMode, &str)> {
        [AgentMode::Filter, AgentMode::Beside]
            .into_iter()
            .find_map(|mode| Some((mode, self.cluster.report(node, mode)?.pool.as_str())))
    }

    /// Whether nothing should arrive at a Service through a node.
    pub(super) fn is_closed(&self, service: &Key, node: &str) -> bool {
        if let Some(object) = self.owner(service) {
            return !self.is_ingress_of(node, object);
        }
        let is_local = self.cluster.services.get(service).is_some_and(ServiceFacts::is_local);
        is_local && !self.cluster.ready_endpoints(service).contains_key(node)
    }
}

fn owners(cluster: &Cluster) -> BTreeMap<Key, String> {
    let objects = isp_api::age::by_age(&cluster.objects);
    let standing = |object: &&IngressSourcePreserve| object.metadata.deletion_timestamp.is_none();
    let claimed = claims(&objects, &cluster.service_identities()).claimed;
    let keys: Vec<&Key> = cluster.services.keys().collect();
    let mut owners = BTreeMap::new();
    for (object, claimed) in objects.into_iter().zip(claimed).filter(|(object, _)| standing(object)) {
        for key in claimed.services.into_iter().filter_map(|place| keys.get(place)) {
            owners.insert((*key).clone(), object.name_any());
        }
    }
    owners
}
