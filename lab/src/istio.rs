//! Istio on the lab: istiod from Istio's own manifests, an ingress gateway on the ingress nodes,
//! and sidecar injection for namespaces labelled `istio-injection=enabled`.
//!
//! The proxy is Envoy as its own project publishes it, without the filters of Istio's build. istiod
//! is configured not to use them. None of them concerns addresses.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::addons::INGRESS_ROLE;
use crate::command;
use crate::lab::{Lab, LabError, wait_until};
use crate::topology::EXTERNAL_RANGE;

/// The namespace of istiod and of the gateway.
pub const NAMESPACE: &str = "istio-system";
/// The name of the gateway's Service and Deployment.
pub const GATEWAY: &str = "istio-ingressgateway";
const DEADLINE: Duration = Duration::from_mins(3);
const GATEWAY_ADDRESS: u8 = 10;

/// Differences from Istio's minimal profile.
const SETTINGS: [&str; 14] = [
    "profile=minimal",
    "hub=lab.local/istio",
    "tag=lab",
    "values.global.imagePullPolicy=IfNotPresent",
    // Disables the filters of Istio's own Envoy build.
    "values.telemetry.enabled=false",
    "values.pilot.env.PILOT_ENABLE_METADATA_EXCHANGE=false",
    "values.pilot.env.PILOT_ENABLE_ALPN_FILTER=false",
    "values.pilot.env.PILOT_DISABLE_MX_ALPN=true",
    // All nodes share one small machine.
    "values.pilot.autoscaleEnabled=false",
    "values.pilot.resources.requests.cpu=10m",
    "values.pilot.resources.requests.memory=64Mi",
    "values.global.proxy.resources.requests.cpu=10m",
    "values.global.proxy.resources.requests.memory=32Mi",
    "meshConfig.accessLogFile=/dev/stdout",
];

/// Installs Istio and waits until istiod and the gateway are available.
pub(crate) async fn install(lab: &Lab, istioctl: &Path) -> Result<(), LabError> {
    lab.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}).to_string())
        .await?;
    let manifests = manifests(istioctl)?;
    lab.apply(&manifests).await?;
    available(lab, "istiod").await?;

    let ingress_nodes: Vec<&str> =
        lab.topology().nodes.iter().filter(|node| node.ingress).map(|node| node.name.as_str()).collect();
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": gateway(ingress_nodes.len())});
    lab.apply(&objects.to_string()).await?;
    let address = EXTERNAL_RANGE.host4(GATEWAY_ADDRESS);
    give_address(lab, &address.to_string()).await?;
    lab.route(address.into(), &ingress_nodes).await?;
    if ingress_nodes.is_empty() { Ok(()) } else { available(lab, GATEWAY).await }
}

/// All objects of the lab's Istio except the gateway.
pub fn manifests(istioctl: &Path) -> Result<String, LabError> {
    let mut generate = Command::new(istioctl);
    generate.args(["manifest", "generate"]);
    for setting in SETTINGS {
        generate.args(["--set", setting]);
    }
    Ok(command::run(&mut generate)?.stdout)
}

/// Gives the gateway's Service an external IP, as a cloud provider would.
async fn give_address(lab: &Lab, address: &str) -> Result<(), LabError> {
    let services: Api<Service> = Api::namespaced(lab.client(), NAMESPACE);
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": address, "ipMode": "VIP"}]}}});
    services.patch_status(GATEWAY, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

async fn available(lab: &Lab, deployment: &'static str) -> Result<(), LabError> {
    let api: Api<Deployment> = Api::namespaced(lab.client(), NAMESPACE);
    wait_until(deployment, DEADLINE, || async {
        let status = api.get(deployment).await?.status.unwrap_or_default();
        let (wanted, there) = (status.replicas.unwrap_or(0), status.available_replicas.unwrap_or(0));
        if wanted > 0 && there >= wanted {
            return Ok(None);
        }
        let waiting = waiting_for(lab).await?;
        Ok(Some(format!("{there} of {wanted} pods are available{waiting}")))
    })
    .await
}

/// Why Istio's containers are not running.
async fn waiting_for(lab: &Lab) -> Result<String, LabError> {
    let pods = Api::<Pod>::namespaced(lab.client(), NAMESPACE).list(&ListParams::default()).await?;
    let containers = pods.items.into_iter().filter_map(|pod| pod.status).flat_map(|status| {
        status.init_container_statuses.into_iter().chain(status.container_statuses).flatten()
    });
    let reasons = containers.filter_map(|container| {
        let waiting = container.state?.waiting?;
        Some(format!("; {}: {} {}", container.name, waiting.reason?, waiting.message.unwrap_or_default()))
    });
    Ok(reasons.collect())
}

/// A gateway as in Istio's documentation: a pod that the injector completes.
fn gateway(replicas: usize) -> Vec<Value> {
    let labels = json!({"app": GATEWAY, "istio": "ingressgateway"});
    vec![
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": GATEWAY, "namespace": NAMESPACE},
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": GATEWAY, "namespace": NAMESPACE, "labels": labels},
            "spec": {
                "type": "LoadBalancer",
                "selector": labels,
                "ports": [
                    {"name": "http2", "port": 80, "targetPort": 8080},
                    {"name": "https", "port": 443, "targetPort": 8443},
                ],
            },
        }),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": GATEWAY, "namespace": NAMESPACE, "labels": labels},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {
                        "labels": {"app": GATEWAY, "istio": "ingressgateway", "sidecar.istio.io/inject": "true"},
                        "annotations": {"inject.istio.io/templates": "gateway"},
                    },
                    "spec": {
                        "serviceAccountName": GATEWAY,
                        "nodeSelector": {INGRESS_ROLE: ""},
                        "topologySpreadConstraints": [{
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "DoNotSchedule",
                            "labelSelector": {"matchLabels": labels},
                        }],
                        // Without an explicit policy, the image `auto` counts as `auto:latest` and
                        // would always be pulled.
                        "containers": [
                            {"name": "istio-proxy", "image": "auto", "imagePullPolicy": "IfNotPresent"},
                        ],
                    },
                },
            },
        }),
    ]
}
