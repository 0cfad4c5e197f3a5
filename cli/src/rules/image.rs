//! The helper's image: the one that the installed webhook gives to pods, else the one that the
//! manifests name, which is loaded on the nodes.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;

use crate::connection::Connection;

const WEBHOOK: &str = "sourcepreserve-webhook";
const FLAG: &str = "--redirect-image=";
const VARIABLE: &str = "REDIRECT_IMAGE";
/// The image of this version in the manifests.
const DEFAULT: &str = concat!("localhost/ingress-source-preserve/pod-redirect:", env!("CARGO_PKG_VERSION"));

pub(super) async fn find(connection: &Connection, namespace: &str) -> String {
    let deployments: Api<Deployment> = Api::namespaced(connection.client.clone(), namespace);
    // Without the right to read it, the default may still do.
    let webhook = deployments.get_opt(WEBHOOK).await.ok().flatten();
    webhook.as_ref().and_then(of_webhook).unwrap_or_else(|| DEFAULT.to_owned())
}

fn of_webhook(webhook: &Deployment) -> Option<String> {
    let pod = webhook.spec.template.spec.as_ref()?;
    pod.containers.iter().find_map(|container| {
        let flag = container.args.iter().flatten().find_map(|word| word.strip_prefix(FLAG));
        let variable = container.env.iter().flatten().find(|variable| variable.name == VARIABLE);
        flag.map(str::to_owned).or_else(|| variable.and_then(|variable| variable.value.clone()))
    })
}
