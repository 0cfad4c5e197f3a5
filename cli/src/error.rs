//! Errors of commands. Each message names the way out.

use std::path::PathBuf;

use thiserror::Error;

/// Why a command failed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages explain each variant")]
pub enum CommandError {
    #[error(
        "no cluster is configured: {0}; name a kubeconfig with --kubeconfig or KUBECONFIG, or one of its contexts with --context"
    )]
    NoCluster(String),
    #[error(
        "the API server at {server} cannot be reached: {cause}; check with `kubectl cluster-info`, or choose another cluster \
         with --context"
    )]
    Unreachable { server: String, cause: String },
    #[error(
        "the API server at {server} rejects your credentials: log in again, or choose another context with --context"
    )]
    Unauthorized { server: String },
    #[error(
        "this needs the right to {verb} {resource}: {answer}; ask a cluster administrator for it, and check with \
         `kubectl auth can-i {verb} {resource} --all-namespaces`"
    )]
    Forbidden { verb: &'static str, resource: String, answer: String },
    #[error(
        "this cluster does not have the CustomResourceDefinition of IngressSourcePreserve: install the project with \
         `kubectl apply --server-side -k manifests/overlays/default`, or only the definitions with `kubectl apply -f crds`"
    )]
    NotInstalled,
    #[error("cannot {verb} {resource}: {answer}")]
    Refused { verb: &'static str, resource: String, answer: String },
    #[error("there is no IngressSourcePreserve {name:?}; {}", existing(.known))]
    NoObject { name: String, known: Vec<String> },
    #[error("there is no node {0:?}; `kubectl get nodes` lists them")]
    NoNode(String),
    #[error("there is no Service {0}; `kubectl get services -A` lists them")]
    NoService(isp_plan::Key),
    #[error(transparent)]
    Trace(#[from] crate::trace::TraceError),
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("cannot write {}: {source}; choose another file", path.display())]
    NotWritten { path: PathBuf, source: std::io::Error },
    #[error("{} exists already: name another file, or replace it with --force", .0.display())]
    FileExists(PathBuf),
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen { address: std::net::SocketAddr, source: std::io::Error },
    #[error(
        "--listen {0} is no loopback address, and the server asks nobody who they are: use 127.0.0.1, or confirm with \
         --insecure-listen"
    )]
    OpenListen(std::net::SocketAddr),
    #[error("{place}: {problem}")]
    Document { place: String, problem: String },
    #[error("the dump {} lacks what the plan depends on; add it with {commands}", dump.display())]
    DumpLacks { dump: PathBuf, commands: String },
    #[error("-o {0} and --watch cannot be combined: use `kubectl get isp --watch -o {0}`")]
    WatchedList(&'static str),
    #[error(transparent)]
    Helper(#[from] crate::helper::HelperError),
    #[error(transparent)]
    Rules(#[from] crate::rules::RulesError),
    #[error(transparent)]
    Probe(#[from] crate::probe::ProbeError),
    #[error("cannot write: {0}")]
    Output(#[from] std::io::Error),
}

fn existing(names: &[String]) -> String {
    match names {
        [] => "this cluster has none".to_owned(),
        names => format!("this cluster has: {}", names.join(", ")),
    }
}
