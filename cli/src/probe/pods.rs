//! The manifests of the pods: the target behind the canary, and the clients. Pure.
//!
//! They run as an ordinary user without capabilities, as Pod Security `restricted` wants it. Only a
//! client in the network of its node needs a namespace that admits `hostNetwork`.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, EnvVarSource, HTTPGetAction, ObjectFieldSelector, Pod, Probe,
    SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::helper::{self, Kind};

#[cfg(test)]
mod tests;

/// The helpers of `probe`: its pods, and its Service. They must outlive the longest run.
pub(crate) static KIND: Kind =
    Kind { name: "isp-probe", containers: &[TARGET, CLIENT], lifetime: Duration::from_mins(8) };

const TARGET: &str = "target";
const CLIENT: &str = "client";
/// The label by which a canary selects the targets of its own run.
const RUN_LABEL: &str = "sourcepreserve.io/probe";
const HTTP_PORT: u16 = 8080;
/// The ports of the echo program.
pub(crate) const TCP_PORT: u16 = 8081;
pub(crate) const UDP_PORT: u16 = 8082;
/// The user and group of the image.
const NOBODY: i64 = 65532;
const POD_LABELS: [(&str, &str); 2] =
    [("sidecar.istio.io/inject", "false"), ("linkerd.io/inject", "disabled")];

/// Which network a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Pod,
    Host,
}

/// The labels by which the canary finds the targets of a run.
pub(crate) fn selector(run: &str) -> BTreeMap<String, String> {
    let mut labels = KIND.labels();
    labels.insert(RUN_LABEL.to_owned(), run.to_owned());
    labels
}

/// A target, which answers every client with the address that it sees.
pub(crate) fn target(name: &str, run: &str, node: &str, image: &str) -> Pod {
    let field = |variable: &str, path: &str| EnvVar {
        name: variable.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: path.to_owned(),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    };
    let container = Container {
        name: TARGET.to_owned(),
        args: Some(vec!["serve".to_owned()]),
        env: Some(vec![field("POD_NAME", "metadata.name"), field("NODE_NAME", "spec.nodeName")]),
        readiness_probe: Some(Probe {
            http_get: Some(HTTPGetAction {
                path: Some("/healthz".to_owned()),
                port: IntOrString::Int(HTTP_PORT.into()),
                ..HTTPGetAction::default()
            }),
            period_seconds: Some(1),
            timeout_seconds: Some(10),
            ..Probe::default()
        }),
        ..Container::default()
    };
    let mut pod = pod(name, node, image, container);
    pod.metadata.labels.get_or_insert_default().extend(selector(run));
    pod
}

/// A client, which asks all destinations, prints the answers and ends.
pub(crate) fn client(name: &str, node: &str, network: Network, image: &str, arguments: Vec<String>) -> Pod {
    let container = Container { name: CLIENT.to_owned(), args: Some(arguments), ..Container::default() };
    let mut pod = pod(name, node, image, container);
    if network == Network::Host
        && let Some(spec) = &mut pod.spec
    {
        spec.host_network = Some(true);
    }
    pod
}

fn pod(name: &str, node: &str, image: &str, container: Container) -> Pod {
    let container = Container { security_context: Some(security()), ..container };
    let mut pod = helper::manifest::pod(&KIND, name, node, image, container);
    // A mesh's sidecar would send on its own behalf, and would keep the pod from ending.
    let labels = POD_LABELS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pod.metadata.labels.get_or_insert_default().extend(labels.clone());
    pod.metadata.annotations = Some(labels.into());
    pod
}

fn security() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        run_as_user: Some(NOBODY),
        run_as_group: Some(NOBODY),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
        ..SecurityContext::default()
    }
}
