//! The names that all programs share: labels, annotations, finalizer, field managers and condition
//! types. Constants only.

/// Key of the label that marks a preserved Service, unless `spec.serviceLabel.key` overrides it.
/// Its value is the name of the object that preserves the Service.
pub const SERVICE_LABEL: &str = "sourcepreserve.io/preserve";

/// Node label: the pool whose agent serves the node. The pool's DaemonSets select on it, and the
/// cluster's kube-proxy is kept off nodes with it.
pub const AGENT_POOL_LABEL: &str = "sourcepreserve.io/agent-pool";

/// Node label: the revision of the agent that serves the node. The DaemonSet of each revision
/// selects on it.
pub const AGENT_REVISION_LABEL: &str = "sourcepreserve.io/agent-revision";

/// Node label: the revision whose images are pulled before the node is handed over to it.
pub const AGENT_IMAGES_LABEL: &str = "sourcepreserve.io/agent-images";

/// The pool of an object that lists no pools.
pub const DEFAULT_POOL: &str = "default";

/// On an IngressSourcePreserve until everything it changed is restored.
pub const FINALIZER: &str = "sourcepreserve.io/restore";

/// The field manager of all of the operator's server-side applies. It owns exactly the fields that
/// the operator sets, so that releasing them restores the object.
pub const OPERATOR_FIELD_MANAGER: &str = "sourcepreserve-operator";

/// The field manager of an agent, for its IngressSourceNode.
pub const AGENT_FIELD_MANAGER: &str = "sourcepreserve-agent";

/// The field manager of the webhook, for the `caBundle` of its configuration.
pub const WEBHOOK_FIELD_MANAGER: &str = "sourcepreserve-webhook";

/// The MutatingWebhookConfiguration for pods. The operator manages it entirely and copies the
/// `caBundle` from [`OBJECT_WEBHOOK_CONFIGURATION`]. API servers call webhooks in the order of
/// these names, and this one must precede Istio's injector, `istio-…`.
pub const POD_WEBHOOK_CONFIGURATION: &str = "0-sourcepreserve.io";

/// The Service through which API servers reach the webhook.
pub const WEBHOOK_SERVICE: &str = "sourcepreserve-webhook";

/// The ValidatingWebhookConfiguration for IngressSourcePreserves, installed with the webhook. The
/// webhook maintains its `caBundle`, and the operator reads it.
pub const OBJECT_WEBHOOK_CONFIGURATION: &str = "sourcepreserve.io";

/// The only webhook in [`OBJECT_WEBHOOK_CONFIGURATION`].
pub const OBJECT_WEBHOOK: &str = "objects.sourcepreserve.io";

/// On the Secret of the webhook's CAs: since when the current CA has been signing.
pub const SIGNS_SINCE_ANNOTATION: &str = "sourcepreserve.io/signs-since";

/// On the same Secret: since when it has contained the next CA.
pub const NEXT_SINCE_ANNOTATION: &str = "sourcepreserve.io/next-since";

/// The name of the agents' ServiceAccount and container, and the name prefix of their DaemonSets.
pub const AGENT_NAME: &str = "proxy-agent";

/// The agents' ClusterRole and its ClusterRoleBinding.
pub const AGENT_ROLE: &str = "sourcepreserve-proxy-agent";

/// The ClusterRoleBinding that grants the agents' ServiceAccount the rights of kube-proxy, which
/// runs in their pods.
pub const NODE_PROXIER_BINDING: &str = "sourcepreserve-node-proxier";

/// The ValidatingAdmissionPolicy and its binding that restrict an agent to the IngressSourceNode of
/// its own node.
pub const AGENT_POLICY: &str = "sourcepreserve-agent-own-node";

/// On the agents' pods: the UID of their ServiceAccount. A pod's token is bound to that UID, so
/// recreating the account requires new pods.
pub const ACCOUNT_ANNOTATION: &str = "sourcepreserve.io/account-uid";

/// The DaemonSet of the agents of mode Beside. It has no pool: its pods run on every node.
pub const BESIDE_NAME: &str = "proxy-agent-beside";

/// On that DaemonSet and its pods: [`BESIDE_MODE`].
pub const AGENT_MODE_LABEL: &str = "sourcepreserve.io/agent-mode";

/// The value of that label.
pub const BESIDE_MODE: &str = "beside";

/// The init container that redirects a pod's connections to a proxy of its own.
pub const REDIRECT_CONTAINER: &str = "pod-redirect";

/// The name of the pods that prepull the agents' images.
pub const IMAGES_NAME: &str = "proxy-agent-images";

/// On a pool's DaemonSet: the name of the kube-proxy DaemonSet it was derived from.
pub const KUBE_PROXY_ANNOTATION: &str = "sourcepreserve.io/kube-proxy";

/// On a Service and on the cluster's kube-proxy: the state needed to restore changed
/// fields, as JSON.
pub const ORIGINAL_ANNOTATION: &str = "sourcepreserve.io/original";

/// On a node that is being handed over or back: pool and start time, as JSON. Removed on
/// completion.
pub const HANDOVER_ANNOTATION: &str = "sourcepreserve.io/handover";

/// On a node whose agent failed: pool, revision and reason, as JSON. Remove it to make the operator
/// try again.
pub const FAILURE_ANNOTATION: &str = "sourcepreserve.io/agent-failed";

/// On the DaemonSet of a pool whose last object was deleted with `deletionPolicy: Retain`: its
/// nodes keep their agents.
pub const RETAINED_ANNOTATION: &str = "sourcepreserve.io/retained";

/// The recommended label for an application's name.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";

/// Istio's pod annotation that selects how the sidecar intercepts traffic.
pub const INTERCEPTION_MODE_ANNOTATION: &str = "sidecar.istio.io/interceptionMode";

/// Upstream's label that makes every kube-proxy skip a Service, also on ingress nodes.
pub const SERVICE_PROXY_NAME_LABEL: &str = "service.kubernetes.io/service-proxy-name";

/// The value of that label on Services that the agents of mode Beside serve.
pub const PROXY_NAME: &str = "ingress-source-preserve";

/// Upstream's label for headless Services; kube-proxy skips these as well.
pub const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";

/// Types of the conditions in `status.conditions`.
pub mod condition {
    /// On an IngressSourcePreserve: the client's IP is preserved for every listed Service. On an
    /// IngressSourceNode: kube-proxy is connected and has applied the current view.
    pub const READY: &str = "Ready";
    /// Changes towards the current generation are in progress.
    pub const PROGRESSING: &str = "Progressing";
    /// Something stopped working, or a step failed.
    pub const DEGRADED: &str = "Degraded";
    /// Another object or field manager claims the same Service, label, pool or field.
    pub const CONFLICT: &str = "Conflict";
    /// Step 1: all targets exist and have a ready endpoint on an ingress node.
    pub const CHECKED: &str = "Checked";
    /// Step 2: every node that needs an agent has a ready one.
    pub const AGENTS_READY: &str = "AgentsReady";
    /// Step 3: the Services carry the label.
    pub const LABELLED: &str = "Labelled";
    /// Step 4: every agent has acknowledged the current generation.
    pub const ACKNOWLEDGED: &str = "Acknowledged";
    /// Every pod that `spec.sidecars` selects has a sidecar that preserves the client's IP. Present
    /// only with such entries. `Ready` does not depend on it, because pods are restarted by their
    /// owners.
    pub const SIDECARS_CONSISTENT: &str = "SidecarsConsistent";
    /// Step 5: `externalTrafficPolicy` is `Local` on every Service.
    pub const LOCAL_POLICY_SET: &str = "LocalPolicySet";
}
