//! Builds every resource that the operator writes as a whole, and what the webhook adds to pods,
//! one file each. Pure: the plan decides whether and when to write them.
//!
//! | file | resource |
//! |---|---|
//! | `account` | the agents' ServiceAccount, RBAC and admission policy |
//! | `agents` | the agents' DaemonSets, one file per mode |
//! | `images` | the DaemonSet that prepulls the images of agents |
//! | `pod_redirect` | the init container of pods with a proxy of their own |
//! | `pod_policy` | the MutatingAdmissionPolicies for pods |
//! | `pod_webhook` | the webhook configuration for pods |

pub(crate) mod account;
pub mod agents;
#[cfg(test)]
mod fixtures;
pub(crate) mod images;
pub mod pod_policy;
pub mod pod_redirect;
pub mod pod_webhook;

use isp_api::names::{NAME_LABEL, OPERATOR_FIELD_MANAGER};
use serde_json::{Value, json};

/// The labels of the operator's admission and RBAC objects.
pub(crate) fn labels() -> Value {
    json!({NAME_LABEL: OPERATOR_FIELD_MANAGER, "app.kubernetes.io/part-of": "ingress-source-preserve"})
}
