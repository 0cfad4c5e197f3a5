//! The ingress nodes, and the Services to preserve.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{KubeSchema, core::SelectorExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    rules,
    selector::{self, BadSelector},
};

/// The nodes that receive the external traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressNodes {
    /// Selects the ingress nodes by their labels. It must not be empty: if all nodes were ingress
    /// nodes, there would be nothing to preserve.
    #[schemars(schema_with = "selector::schema::non_empty")]
    pub selector: LabelSelector,
}

impl IngressNodes {
    /// Whether a node with these labels is an ingress node.
    pub fn contains(&self, node_labels: &BTreeMap<String, String>) -> Result<bool, BadSelector> {
        Ok(selector::matcher(&self.selector)?.matches(node_labels))
    }
}

/// One Service, or the Services of one namespace that a selector matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = rules::rule(
    "has(self.name) != has(self.selector)",
    "has(self.name) \
     ? 'the entry for namespace \"' + self.__namespace__ + '\" has a name and a selector: remove one of them' \
     : 'the entry for namespace \"' + self.__namespace__ + '\" has neither a name nor a selector: give one of them'",
))]
#[serde(rename_all = "camelCase")]
pub struct ServiceTarget {
    /// The namespace of the Service or Services.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = rules::dns_label())]
    pub namespace: String,

    /// The name of one Service. It need not exist yet. Either this or `selector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = rules::dns_label())]
    pub name: Option<String>,

    /// Selects Services of the namespace by their labels, including Services that are created
    /// later. It must not be empty: it would match all Services of the namespace. Either this or
    /// `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector::schema::non_empty")]
    pub selector: Option<LabelSelector>,
}

impl ServiceTarget {
    /// Whether this entry means the Service. An entry with neither a name nor a selector means
    /// none.
    pub fn matches(
        &self,
        namespace: &str,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<bool, BadSelector> {
        if self.namespace != namespace {
            return Ok(false);
        }
        match (&self.name, &self.selector) {
            (Some(wanted), _) => Ok(wanted == name),
            (None, Some(selector)) => Ok(selector::matcher(selector)?.matches(labels)),
            (None, None) => Ok(false),
        }
    }
}
