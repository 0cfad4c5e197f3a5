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
        "the helper pod printed something that is no list of rules: {0}; its image is another version than this program: \
         name the right one with --image"
    )]
    Document(#[source] serde_json::Error),
    #[error(
        "the rules of the pod cannot be decoded: {0}; please report this as a bug, with the output of the helper pod"
    )]
    Decode(#[source] DecodeError),
}
