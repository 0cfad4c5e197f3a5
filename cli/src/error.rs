//! What went wrong, and the way out of it.

use std::path::PathBuf;

use thiserror::Error;

/// Why a command has no answer.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CommandError {
    #[error(
        "no cluster is known: {0}; name a kubeconfig with --kubeconfig or in KUBECONFIG, or a context of it with --context"
    )]
    NoCluster(String),
    #[error(
        "the API server at {server} cannot be reached: {cause}; `kubectl cluster-info` tells whether the cluster answers, \
         --context chooses another"
    )]
    Unreachable { server: String, cause: String },
    #[error(
        "the API server at {server} does not know who you are: log in again, or choose another --context"
    )]
    Unauthorized { server: String },
    #[error(
        "this needs the right to {verb} {resource}: {said}; ask whoever grants it, and check with \
         `kubectl auth can-i {verb} {resource} --all-namespaces`"
    )]
    Forbidden { verb: &'static str, resource: String, said: String },
    #[error(
        "this cluster has no IngressSourcePreserves, its definition is missing: install the project with \
         `kubectl apply --server-side -k manifests/overlays/default`, or the definitions alone with `kubectl apply -f crds`"
    )]
    NotInstalled,
    #[error("cannot {verb} {resource}: {said}")]
    Refused { verb: &'static str, resource: String, said: String },
    #[error("there is no IngressSourcePreserve {name:?}; {}", there_are(.known))]
    NoObject { name: String, known: Vec<String> },
    #[error("there is no node {0:?}; `kubectl get nodes` lists them")]
    NoNode(String),
    #[error("there is no Service {0}; `kubectl get services -A` lists them")]
    NoService(isp_plan::Key),
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{place}: {problem}")]
    Document { place: String, problem: String },
    #[error("-o {0} and --watch do not go together: use `kubectl get isp --watch -o {0}`")]
    WatchedList(&'static str),
    #[error("cannot write: {0}")]
    Output(#[from] std::io::Error),
}

fn there_are(names: &[String]) -> String {
    match names {
        [] => "there is none at all".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    }
}
