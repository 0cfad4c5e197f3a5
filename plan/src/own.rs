//! The kinds of objects that the operator writes whole. A kind is added here: how it is called, where it is served and how it is found.
//! The rim reads, applies and deletes them all in one way.

use isp_api::names::{AGENT_NAME, AGENT_POLICY, AGENT_ROLE, NODE_PROXIER_BINDING, POD_WEBHOOK_CONFIGURATION};
use isp_api::sidecar::policy::API_VERSION;
use kube::core::ApiResource;
use serde_json::Value;

/// A kind of object that is written whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnKind {
    /// The configuration by which the webhook is asked about pods.
    PodWebhook,
    /// A policy that decides on pods without the webhook.
    PodPolicy,
    /// Its binding.
    PodPolicyBinding,
    /// The agents' account.
    Account,
    /// The agents' own role.
    Role,
    /// Binds a role to the agents' account.
    RoleBinding,
    /// The policy that lets an agent report for its own node alone.
    AgentPolicy,
    /// Its binding.
    AgentPolicyBinding,
}

/// Which objects of a kind the operator reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Those of these names, in any namespace. A right can be limited to them.
    ByName(&'static [&'static str]),
    /// Those whose names begin so, where the API server has the kind.
    ByPrefix(&'static str),
}

impl Found {
    /// Whether an object of this name is one of them.
    pub fn includes(self, name: &str) -> bool {
        match self {
            Self::ByName(names) => names.contains(&name),
            Self::ByPrefix(prefix) => name.starts_with(prefix),
        }
    }
}

/// How the names of pod policies and of their bindings begin.
pub(crate) const POD_POLICY_PREFIX: &str = "sourcepreserve.";

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const ADMISSION: &str = "admissionregistration.k8s.io/v1";

impl OwnKind {
    /// All of them.
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

    /// The kind, as the API server has it.
    pub fn kind(self) -> &'static str {
        self.api().1
    }

    /// Its version, its kind and its plural.
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

    /// Where it is served.
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

    /// The plural of its name.
    pub fn plural(self) -> &'static str {
        self.api().2
    }

    /// Which objects of it are read.
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

    /// The name of the action that applies one.
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

    /// The name of the action that deletes one.
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

/// The content of an object: everything but its name and its status.
pub fn content(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        for name in ["apiVersion", "kind", "metadata", "status"] {
            fields.remove(name);
        }
    }
    object
}
