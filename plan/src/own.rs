//! The kinds of objects that the operator manages entirely: their names, API resources and lookup.
//! To add a kind, add it here. The operator reads, applies and deletes them all by the same code.

use isp_api::names::{AGENT_NAME, AGENT_POLICY, AGENT_ROLE, NODE_PROXIER_BINDING, POD_WEBHOOK_CONFIGURATION};
use kube::core::ApiResource;
use serde_json::Value;

use crate::build::pod_policy::API_VERSION;

/// A kind of object that the operator manages entirely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnKind {
    /// The webhook configuration for pods.
    PodWebhook,
    /// A MutatingAdmissionPolicy for pods, which works without the webhook.
    PodPolicy,
    /// The binding of a pod policy.
    PodPolicyBinding,
    /// The agents' ServiceAccount.
    Account,
    /// The agents' ClusterRole.
    Role,
    /// A ClusterRoleBinding for the agents' ServiceAccount.
    RoleBinding,
    /// The ValidatingAdmissionPolicy that restricts an agent to reporting for its own node.
    AgentPolicy,
    /// The binding of the agents' policy.
    AgentPolicyBinding,
}

/// Which objects of a kind the operator reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Objects of these names, in any namespace. RBAC can be restricted to them.
    ByName(&'static [&'static str]),
    /// Objects with this name prefix, if the API server serves the kind.
    ByPrefix(&'static str),
}

impl Found {
    /// Whether an object of this name is included.
    pub fn includes(self, name: &str) -> bool {
        match self {
            Self::ByName(names) => names.contains(&name),
            Self::ByPrefix(prefix) => name.starts_with(prefix),
        }
    }
}

/// The name prefix of pod policies and their bindings.
pub(crate) const POD_POLICY_PREFIX: &str = "sourcepreserve.";

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const ADMISSION: &str = "admissionregistration.k8s.io/v1";

impl OwnKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::PodWebhook,
        Self::PodPolicy,
        Self::PodPolicyBinding,
        Self::Account,
        Self::Role,
        Self::RoleBinding,
        Self::AgentPolicy,
        Self::AgentPolicyBinding,
    ];

    /// The Kubernetes kind.
    pub fn kind(self) -> &'static str {
        self.api().1
    }

    /// API version, kind and plural.
    fn api(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::PodWebhook => (ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
            Self::PodPolicy => (API_VERSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
            Self::PodPolicyBinding => {
                (API_VERSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
            }
            Self::Account => ("v1", "ServiceAccount", "serviceaccounts"),
            Self::Role => (RBAC, "ClusterRole", "clusterroles"),
            Self::RoleBinding => (RBAC, "ClusterRoleBinding", "clusterrolebindings"),
            Self::AgentPolicy => (ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
            Self::AgentPolicyBinding => {
                (ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
            }
        }
    }

    /// Its API resource.
    pub fn resource(self) -> ApiResource {
        let (api_version, kind, plural) = self.api();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        }
    }

    /// Its plural, as used in API paths.
    pub fn plural(self) -> &'static str {
        self.api().2
    }

    /// Which objects of this kind the operator reads.
    pub fn found(self) -> Found {
        match self {
            Self::PodPolicy | Self::PodPolicyBinding => Found::ByPrefix(POD_POLICY_PREFIX),
            Self::PodWebhook => Found::ByName(&[POD_WEBHOOK_CONFIGURATION]),
            Self::Account => Found::ByName(&[AGENT_NAME]),
            Self::Role => Found::ByName(&[AGENT_ROLE]),
            Self::RoleBinding => Found::ByName(&[AGENT_ROLE, NODE_PROXIER_BINDING]),
            Self::AgentPolicy | Self::AgentPolicyBinding => Found::ByName(&[AGENT_POLICY]),
        }
    }

    /// The name of the action that applies an object.
    pub fn applying(self) -> &'static str {
        match self {
            Self::PodWebhook => "apply-pod-webhook",
            Self::PodPolicy => "apply-pod-policy",
            Self::PodPolicyBinding => "bind-pod-policy",
            Self::Account | Self::Role => "apply-agent-account",
            Self::RoleBinding => "bind-agent-account",
            Self::AgentPolicy => "apply-agent-policy",
            Self::AgentPolicyBinding => "bind-agent-policy",
        }
    }

    /// The name of the action that deletes an object.
    pub fn deleting(self) -> &'static str {
        match self {
            Self::PodWebhook => "delete-pod-webhook",
            Self::PodPolicy => "delete-pod-policy",
            Self::PodPolicyBinding => "unbind-pod-policy",
            Self::Account | Self::Role => "delete-agent-account",
            Self::RoleBinding => "unbind-agent-account",
            Self::AgentPolicy => "delete-agent-policy",
            Self::AgentPolicyBinding => "unbind-agent-policy",
        }
    }
}

/// The content of an object: everything except apiVersion, kind, metadata and status.
pub fn content(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        for name in ["apiVersion", "kind", "metadata", "status"] {
            fields.remove(name);
        }
    }
    object
}
