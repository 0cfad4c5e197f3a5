//! The images of helper pods: those of the installed programs, else those that the manifests name,
//! which are loaded on the nodes.

use isp_api::names::OPERATOR_FIELD_MANAGER;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;

use crate::connection::Connection;

const WEBHOOK: &str = "sourcepreserve-webhook";
const FLAG: &str = "--redirect-image=";
const VARIABLE: &str = "REDIRECT_IMAGE";
/// The images of this version in the manifests.
const POD_REDIRECT: &str =
    concat!("localhost/ingress-source-preserve/pod-redirect:", env!("CARGO_PKG_VERSION"));
const PROBE: &str = concat!("localhost/ingress-source-preserve/probe:", env!("CARGO_PKG_VERSION"));

/// The image `pod-redirect` that the installed webhook gives to pods.
pub(crate) async fn pod_redirect(connection: &Connection, namespace: &str) -> String {
    let webhook = deployment(connection, namespace, WEBHOOK).await;
    webhook.as_ref().and_then(of_webhook).unwrap_or_else(|| POD_REDIRECT.to_owned())
}

/// The image `probe` next to that of the installed operator.
pub(crate) async fn probe(connection: &Connection, namespace: &str) -> String {
    let operator = deployment(connection, namespace, OPERATOR_FIELD_MANAGER).await;
    let pod = operator.as_ref().and_then(|operator| operator.spec.template.spec.as_ref());
    let images = pod.into_iter().flat_map(|pod| &pod.containers).filter_map(|each| each.image.as_deref());
    images.into_iter().find_map(beside).unwrap_or_else(|| PROBE.to_owned())
}

/// Without the right to read it, the default may still do.
async fn deployment(connection: &Connection, namespace: &str, name: &str) -> Option<Deployment> {
    let deployments: Api<Deployment> = Api::namespaced(connection.client.clone(), namespace);
    deployments.get_opt(name).await.ok().flatten()
}

fn of_webhook(webhook: &Deployment) -> Option<String> {
    let pod = webhook.spec.template.spec.as_ref()?;
    pod.containers.iter().find_map(|container| {
        let flag = container.args.iter().flatten().find_map(|word| word.strip_prefix(FLAG));
        let variable = container.env.iter().flatten().find(|variable| variable.name == VARIABLE);
        flag.map(str::to_owned).or_else(|| variable.and_then(|variable| variable.value.clone()))
    })
}

/// The image `probe` with the registry and the tag of the image `operator`. A digest belongs to one
/// image only, so with one there is no answer.
fn beside(operator: &str) -> Option<String> {
    let (registry, name) = operator.rsplit_once('/')?;
    let tag = name.strip_prefix("operator")?;
    (tag.starts_with(':') && !tag.contains('@')).then(|| format!("{registry}/probe{tag}"))
}

#[test]
fn the_image_is_next_to_the_operators() {
    for (operator, probe) in [
        ("registry.example:5000/team/isp/operator:1.2.3", Some("registry.example:5000/team/isp/probe:1.2.3")),
        ("lab.local/operator:1", Some("lab.local/probe:1")),
        ("registry.example/isp/operator@sha256:0a", None),
        ("registry.example/isp/operator:1@sha256:0a", None),
        ("registry.example/isp/own-build:1", None),
        ("operator:1", None),
        ("registry.example/isp/operator", None),
    ] {
        assert_eq!(beside(operator).as_deref(), probe, "{operator}");
    }
}
