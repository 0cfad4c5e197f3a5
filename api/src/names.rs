//! Every name that the programs agree on: labels, annotations, the finalizer, managers, conditions, reasons.
//!
//! A name that is written here once cannot be spelled in two ways. Nothing here has behaviour.

/// Key of the label that marks a preserved Service, unless `spec.serviceLabel.key` names another. Its value is
/// the name of the object that preserves the Service.
pub const SERVICE_LABEL: &str = "sourcepreserve.io/preserve";

/// Node label with the name of the pool whose agent serves the node. The pool's DaemonSet selects on it, the
/// cluster's own kube-proxy is kept off nodes that carry it.
pub const AGENT_POOL_LABEL: &str = "sourcepreserve.io/agent-pool";

/// Node label with the revision of the agent that serves the node. The DaemonSet of each revision of a pool selects on it.
pub const AGENT_REVISION_LABEL: &str = "sourcepreserve.io/agent-revision";

/// Node label with the revision whose images are pulled before the node goes over to it.
pub const AGENT_IMAGES_LABEL: &str = "sourcepreserve.io/agent-images";

/// The pool of an object that lists none.
pub const DEFAULT_POOL: &str = "default";

/// Held on an IngressSourcePreserve until everything it changed is back as it was.
pub const FINALIZER: &str = "sourcepreserve.io/restore";

/// The one field manager of all server-side applies of the operator. It owns exactly the fields that the operator
/// means to own, so that giving them up restores them.
pub const OPERATOR_FIELD_MANAGER: &str = "sourcepreserve-operator";

/// The field manager with which an agent writes the status of its own IngressSourceNode.
pub const AGENT_FIELD_MANAGER: &str = "sourcepreserve-agent";

/// The field manager with which the webhook keeps the `caBundle` of its configuration.
pub const WEBHOOK_FIELD_MANAGER: &str = "sourcepreserve-webhook";

/// The MutatingWebhookConfiguration for pods, all of which is the operator's: it copies the `caBundle` from the other one. API servers
/// call webhooks in the order of these names, and this one has to be called before Istio's injector, `istio-…`.
pub const POD_WEBHOOK_CONFIGURATION: &str = "0-sourcepreserve.io";

/// The Service by which API servers reach the webhook.
pub const WEBHOOK_SERVICE: &str = "sourcepreserve-webhook";

/// The ValidatingWebhookConfiguration for IngressSourcePreserves, installed with the webhook, which keeps its `caBundle`. The
/// operator reads it there.
pub const OBJECT_WEBHOOK_CONFIGURATION: &str = "sourcepreserve.io";

/// The one webhook in it.
pub const OBJECT_WEBHOOK: &str = "objects.sourcepreserve.io";

/// On the Secret of the webhook's authorities: since when the authority that signs does so.
pub const SIGNS_SINCE_ANNOTATION: &str = "sourcepreserve.io/signs-since";

/// On the same Secret: since when the authority that will sign next has been in it.
pub const NEXT_SINCE_ANNOTATION: &str = "sourcepreserve.io/next-since";

/// The name of the agents' ServiceAccount and container, and the beginning of their DaemonSets' names.
pub const AGENT_NAME: &str = "proxy-agent";

/// The agents' ClusterRole, and the ClusterRoleBinding that gives it to their account.
pub const AGENT_ROLE: &str = "sourcepreserve-proxy-agent";

/// The ClusterRoleBinding that gives the agents' account the rights of a kube-proxy, which runs in their pods.
pub const NODE_PROXIER_BINDING: &str = "sourcepreserve-node-proxier";

/// The ValidatingAdmissionPolicy, and its binding, that let an agent write the IngressSourceNode of its own node alone.
pub const AGENT_POLICY: &str = "sourcepreserve-agent-own-node";

/// On the pods of agents: the UID of the account that they run with. The tokens of a pod belong to that account, so one that was deleted and
/// made again needs other pods.
pub const ACCOUNT_ANNOTATION: &str = "sourcepreserve.io/account-uid";

/// The name of the pods that pull the agents' images ahead.
pub const IMAGES_NAME: &str = "proxy-agent-images";

/// On a pool's DaemonSet: the name of the kube-proxy's DaemonSet that it was made from.
pub const KUBE_PROXY_ANNOTATION: &str = "sourcepreserve.io/kube-proxy";

/// On a Service and on the cluster's kube-proxy: what the fields that were changed were like before, as JSON.
pub const ORIGINAL_ANNOTATION: &str = "sourcepreserve.io/original";

/// On a node that is going over to the agent or back: the pool and when it began, as JSON. Gone when that is done.
pub const HANDOVER_ANNOTATION: &str = "sourcepreserve.io/handover";

/// On a node whose agent missed its deadline: with which settings and why, as JSON. Removing it makes the operator try again.
pub const FAILURE_ANNOTATION: &str = "sourcepreserve.io/agent-failed";

/// On the DaemonSet of a pool whose last object was deleted with `deletionPolicy: Retain`: its nodes keep their agents.
pub const RETAINED_ANNOTATION: &str = "sourcepreserve.io/retained";

/// The recommended label for the name of a program.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";

/// Istio's pod annotation that chooses how the sidecar intercepts traffic.
pub const INTERCEPTION_MODE_ANNOTATION: &str = "sidecar.istio.io/interceptionMode";

/// Upstream's label that makes every kube-proxy skip a Service, ingress nodes included.
pub const SERVICE_PROXY_NAME_LABEL: &str = "service.kubernetes.io/service-proxy-name";

/// Upstream's label for headless Services; kube-proxy skips these as well.
pub const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";

/// Types of the conditions in `status.conditions`.
pub mod condition {
    /// On an IngressSourcePreserve: the client address is preserved for every listed Service. On an
    /// IngressSourceNode: kube-proxy is connected and works with the current view.
    pub const READY: &str = "Ready";
    /// Something is being changed towards the current generation.
    pub const PROGRESSING: &str = "Progressing";
    /// Something that worked does not any more, or a step failed.
    pub const DEGRADED: &str = "Degraded";
    /// Another object or another field manager claims the same thing.
    pub const CONFLICT: &str = "Conflict";
    /// Step 1: targets exist, and each has a ready endpoint on an ingress node.
    pub const CHECKED: &str = "Checked";
    /// Step 2: every node that needs an agent has one that is ready.
    pub const AGENTS_READY: &str = "AgentsReady";
    /// Step 3: the Services carry the label.
    pub const LABELLED: &str = "Labelled";
    /// Step 4: every agent has acknowledged the current generation.
    pub const ACKNOWLEDGED: &str = "Acknowledged";
    /// Every pod that an entry of `spec.sidecars` selects has a sidecar that hands the address on. There only where there is such
    /// an entry; `Ready` does not wait for it, because pods are restarted by those who own them.
    pub const SIDECARS_CONSISTENT: &str = "SidecarsConsistent";
    /// Step 5: `externalTrafficPolicy` is `Local` on every Service.
    pub const LOCAL_POLICY_SET: &str = "LocalPolicySet";
}
