//! Errors of `rules`. Each message names the way out.

use isp_plan::Key;
use isp_pod_rules::decode::DecodeError;
use thiserror::Error;

/// Why the rules of a pod could not be read.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages explain each variant")]
pub enum RulesError {
    #[error("there is no pod {0}; `kubectl get pods -A` lists them")]
    NoPod(Key),
    #[error(
        "pod {0} uses the network of its node, so it has no rules of its own; choose a pod without hostNetwork"
    )]
    HostNetwork(Key),
    #[error("pod {pod} is not running (phase {phase}); wait until it runs, `kubectl get pod -n {} {}` tells", pod.namespace, pod.name)]
    NotRunning { pod: Key, phase: String },
    #[error(
        "reading the rules of a pod takes a helper pod on its node, and for that the right to {verb} {resource} in namespace \
         {namespace}; ask a cluster administrator for it, check with `kubectl auth can-i {verb} {resource} -n {namespace}`, or \
         choose another namespace with --helper-namespace"
    )]
    NoRight { verb: &'static str, resource: &'static str, namespace: String },
    #[error(
        "namespace {namespace} does not admit the helper pod: {answer}; it needs a host path and the capability SYS_ADMIN, so \
         choose a namespace without a Pod Security level, or with level privileged, with --helper-namespace"
    )]
    NotAdmitted { namespace: String, answer: String },
    #[error(
        "the helper pod on node {node} did not start: {reason}; if the image is missing, name another with --image"
    )]
    NotStarted { node: String, reason: String },
    #[error(
        "the helper pod on node {node} did not finish within {seconds} s: {state}; check whether the node is ready"
    )]
    Late { node: String, seconds: u64, state: String },
    #[error("the helper pod on node {node} could not read the rules: {reason}")]
    Failed { node: String, reason: String },
    #[error("somebody deleted the helper pod {0} before it had finished; try again")]
    Deleted(String),
    #[error("interrupted; no helper pod is left")]
    Interrupted,
    #[error(
        "the helper pod {namespace}/{name} could not be deleted: {cause}; it ends by itself, delete it with \
         `kubectl delete pod -n {namespace} {name}`"
    )]
    NotDeleted { namespace: String, name: String, cause: String },
    #[error(
        "the helper pod printed something that is no list of rules: {0}; its image is another version than this program: \
         name the right one with --image"
    )]
    Document(#[source] serde_json::Error),
    #[error(
        "the rules of the pod cannot be decoded: {0}; please report this as a bug, with the output of the helper pod"
    )]
    Decode(#[source] DecodeError),
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] std::io::Error),
}
