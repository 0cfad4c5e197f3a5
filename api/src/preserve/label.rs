//! The label that marks preserved Services: as users write it, and resolved.

use std::fmt;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{names, rules};

/// The label as users write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceLabelSpec {
    /// The key of the label. Set it to control kube-proxies that are patched to skip Services with
    /// a label of their own, such as `service.kubernetes.io/istio-service-proxy-name`.
    #[serde(default = "default_key")]
    #[schemars(length(min = 1, max = 317))]
    #[x_kube(validation = rules::label_key())]
    #[x_kube(validation = rules::rule(
        &format!("!(self in ['{}', '{}'])", names::SERVICE_PROXY_NAME_LABEL, names::HEADLESS_LABEL),
        &format!(
            "'\"' + self + '\" makes every kube-proxy skip the Service, on the ingress nodes too, so nothing would \
             serve it: leave the key unset or use one of your own, for example {}'",
            names::SERVICE_LABEL,
        ),
    ))]
    pub key: String,

    /// The value of the label. Unset: the name of the object. Two objects must not use the same key
    /// and value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = rules::label_value())]
    pub value: Option<String>,
}

impl Default for ServiceLabelSpec {
    fn default() -> Self {
        Self { key: default_key(), value: None }
    }
}

fn default_key() -> String {
    names::SERVICE_LABEL.to_owned()
}

/// A label with its value, as agents and operator use it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceLabel {
    /// The key of the label.
    pub key: String,
    /// The value of the label.
    pub value: String,
}

impl fmt::Display for ServiceLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}
