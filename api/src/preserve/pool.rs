//! Pools of nodes, and the mode in which their agents work.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{KubeSchema, core::SelectorExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    names::DEFAULT_POOL,
    rules,
    selector::{self, BadSelector},
};

/// How non-ingress nodes stop intercepting traffic to the external IPs. It is chosen for a whole
/// object.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Mode {
    /// The node's stock kube-proxy reads the API through the agent, which removes the external IPs.
    #[default]
    Filter,
    /// Every kube-proxy skips the Services, because of upstream's own label, and agents on all
    /// nodes serve them. kube-proxy itself is not touched.
    Beside,
}

/// A named set of nodes that run the agent with the same settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePool {
    /// The name of the pool. It becomes a label value on the nodes and part of the name of the
    /// pool's DaemonSet, so it has at most 50 characters.
    #[schemars(length(min = 1, max = 50))]
    #[x_kube(validation = rules::dns_label())]
    pub name: String,

    /// Selects the nodes by their labels. An empty selector matches every node that no earlier pool
    /// matches.
    #[schemars(schema_with = "selector::schema::any")]
    pub selector: LabelSelector,

    /// How the agents of this pool work: as `spec.mode` says. Mode `Beside` has no pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Mode")]
    #[x_kube(validation = rules::rule(
        "self == 'Filter'",
        "'\"' + self + '\" is not a mode of a pool: the mode is chosen for the whole object, so remove it here and set spec.mode'",
    ))]
    pub mode: Option<Mode>,
}

impl NodePool {
    pub(super) fn resolve(&self) -> Pool<'_> {
        Pool { name: &self.name, selector: &self.selector }
    }
}

static EVERY_NODE: LabelSelector = LabelSelector { match_expressions: None, match_labels: None };

/// A pool with inherited values filled in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pool<'a> {
    /// The name of the pool.
    pub name: &'a str,
    /// The nodes that may belong to it.
    pub selector: &'a LabelSelector,
}

impl Pool<'_> {
    pub(super) fn of_all_nodes() -> Self {
        Self { name: DEFAULT_POOL, selector: &EVERY_NODE }
    }

    /// Whether a node with these labels may belong to the pool.
    pub fn contains(&self, node_labels: &BTreeMap<String, String>) -> Result<bool, BadSelector> {
        Ok(selector::matcher(self.selector)?.matches(node_labels))
    }
}
