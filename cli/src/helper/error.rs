//! Errors of helper pods. Each message names the way out.

use thiserror::Error;

/// Why a helper pod did not do its work.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages explain each variant")]
pub enum HelperError {
    #[error(
        "{purpose}, and for that the right to {verb} {resource} in namespace {namespace}; ask a cluster administrator for it, \
         check with `kubectl auth can-i {verb} {resource} -n {namespace}`, or {way_out}"
    )]
    NoRight {
        purpose: &'static str,
        verb: &'static str,
        resource: &'static str,
        namespace: String,
        way_out: &'static str,
    },
    #[error("namespace {namespace} does not admit the helper pod: {answer}; {needs}")]
    NotAdmitted { namespace: String, answer: String, needs: &'static str },
    #[error(
        "the helper pod on node {node} did not start: {reason}; if the image is missing, name another with --image"
    )]
    NotStarted { node: String, reason: String },
    #[error(
        "the helper pod on node {node} did not finish within {seconds} s: {state}; check whether the node is ready"
    )]
    Late { node: String, seconds: u64, state: String },
    #[error("the helper pod on node {node} failed: {reason}")]
    Failed { node: String, reason: String },
    #[error("somebody deleted the helper pod {0} before it had finished; try again")]
    Deleted(String),
    #[error("interrupted; no helper pod is left")]
    Interrupted,
    #[error(
        "{kind} {namespace}/{name} could not be deleted: {cause}; delete it with `kubectl delete {kind} -n {namespace} {name}`"
    )]
    NotDeleted { kind: &'static str, namespace: String, name: String, cause: String },
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] std::io::Error),
}
