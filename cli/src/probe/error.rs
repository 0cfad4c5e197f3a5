//! Errors of `probe`. Each message names the way out.

use isp_plan::Key;
use thiserror::Error;

/// Why the cluster could not be probed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages explain each variant")]
pub enum ProbeError {
    #[error("say which Service with --service NAMESPACE/NAME; {}", candidates(.0))]
    NoChoice(Vec<String>),
    #[error(
        "Service {0} has no TCP and no UDP port, or no ClusterIP, so it cannot be probed; choose another with --service"
    )]
    NoPort(Key),
    #[error(
        "Service {service} has no ready endpoint on a ready Linux node, so a canary has no node to be on; `kubectl get endpointslices \
         -n {} -l kubernetes.io/service-name={}` lists its endpoints", service.namespace, service.name
    )]
    NoEndpoints { service: Key },
    #[error("node {0} is not ready, or does not run Linux; choose others with --nodes")]
    NodeNotReady(String),
    #[error(
        "a canary of Service {service} would be served by nobody: IngressSourcePreserve {object} names the Service, and agents of \
         mode Beside serve only the Services of an object; probe the Service itself with --target own"
    )]
    NotServed { service: Key, object: String },
    #[error(
        "a canary of Service {service} would belong to IngressSourcePreserve {object}, which does not preserve the Service; probe \
         the Service itself with --target own"
    )]
    OfAnother { service: Key, object: String },
    #[error(
        "Service {0} selects the pods of a probe by their labels and would send its clients there; probe the Service itself with \
         --target own"
    )]
    Selected(Key),
    #[error(
        "pod {pod} of Service {service} has a sidecar in mode REDIRECT, so its application sees 127.0.0.6 instead of any client; a \
         canary has no sidecar and would not show it: probe the Service itself with --target own"
    )]
    Hidden { service: Key, pod: String },
    #[error("nothing was created: confirm with y, or with --yes where there is no terminal")]
    NoConsent,
    #[error(
        "the canary did not get {what} within {seconds} s; check whether the {who} runs, or probe the Service itself with \
         --target own"
    )]
    Late { what: &'static str, seconds: u64, who: &'static str },
    #[error("{file} is not a saved probe: {problem}; make one with --save")]
    Saved { file: String, problem: String },
    #[error("{file} is about Service {saved}, not {service}; compare runs of the same Service")]
    OtherService { file: String, saved: String, service: String },
    #[error("cannot save the table in {file}: {problem}; name another file with --save")]
    NotSaved { file: String, problem: String },
}

fn candidates(names: &[String]) -> String {
    match names {
        [] => "no Service of this cluster is exposed: none is of type LoadBalancer or NodePort, or has external IPs".to_owned(),
        names => format!("exposed are: {}", crate::text::few(names)),
    }
}
