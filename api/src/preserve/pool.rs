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

/// How the non-ingress nodes come to leave the Services alone.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Mode {
    /// The node's stock kube-proxy reads the API through the agent, which narrows what it sees.
    #[default]
    Filter,
}

/// A named set of nodes that get the agent with the same settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePool {
    /// The name of the pool. It becomes a label value on the nodes and part of the name of the pool's DaemonSet, hence at
    /// most 50 characters.
    #[schemars(length(min = 1, max = 50))]
    #[x_kube(validation = rules::dns_label())]
    pub name: String,

    /// Selects the nodes by their labels. An empty selector takes every node that no pool before it has taken.
    #[schemars(schema_with = "selector::schema::any")]
    pub selector: LabelSelector,

    /// How the agents of this pool work. Unset: as `spec.mode` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Mode")]
    pub mode: Option<Mode>,
}

impl NodePool {
    pub(super) fn resolve(&self, default_mode: Mode) -> Pool<'_> {
        Pool { name: &self.name, selector: &self.selector, mode: self.mode.unwrap_or(default_mode) }
    }
}

static EVERY_NODE: LabelSelector = LabelSelector { match_expressions: None, match_labels: None };

/// A pool with everything it inherits filled in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pool<'a> {
    /// The name of the pool.
    pub name: &'a str,
    /// The nodes that may belong to it.
    pub selector: &'a LabelSelector,
    /// How its agents work.
    pub mode: Mode,
}

impl Pool<'_> {
    pub(super) fn of_all_nodes(mode: Mode) -> Self {
        Self { name: DEFAULT_POOL, selector: &EVERY_NODE, mode }
    }

    /// Whether a node with these labels may belong to the pool.
    pub fn contains(&self, node_labels: &BTreeMap<String, String>) -> Result<bool, BadSelector> {
        Ok(selector::matcher(self.selector)?.matches(node_labels))
    }
}
