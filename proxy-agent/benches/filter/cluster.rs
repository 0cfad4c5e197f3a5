//! The objects that the benchmark reads: Services with two endpoints each, some of them preserved.

use futures_util::{StreamExt, TryStreamExt, stream};
use isp_api::IngressSourcePreserve;
use isp_api::names::SERVICE_LABEL;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

const AT_ONCE: usize = 16;
/// One Service in this many is `ClusterOnly`, and one in this many is `Hidden`.
const NARROWED_EVERY: usize = 10;
const HIDDEN_EVERY: usize = 50;

pub(crate) const SEQUENCE: &str = "bench-sequence-";

/// The view of a Service once the objects exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ordinary,
    Narrowed,
    Hidden,
}

impl Kind {
    pub(crate) fn of(index: usize) -> Self {
        match index {
            _ if index % HIDDEN_EVERY == 1 => Self::Hidden,
            _ if index.is_multiple_of(NARROWED_EVERY) => Self::Narrowed,
            _ => Self::Ordinary,
        }
    }

    /// Returns the object that preserves the Service, and its view for other nodes.
    fn object(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Ordinary => None,
            Self::Narrowed => Some(("narrowed", "ClusterOnly")),
            Self::Hidden => Some(("hidden", "Hidden")),
        }
    }
}

pub(crate) fn count(services: usize, kind: Kind) -> usize {
    (0..services).filter(|index| Kind::of(*index) == kind).count()
}

pub(crate) fn name(index: usize) -> String {
    format!("service-{index:05}")
}

pub(crate) async fn fill(client: &Client, services: usize) {
    let one = |index| {
        let client = client.clone();
        async move {
            let (services, slices) = apis(&client);
            let mut service = services.create(&PostParams::default(), &service(index)).await?;
            if Kind::of(index) != Kind::Ordinary {
                service.status = serde_json::from_value(json!({"loadBalancer": {"ingress": [
                    {"ip": format!("192.0.2.{}", index % 250 + 1), "ipMode": "VIP"},
                ]}}))
                .unwrap();
                services.replace_status(&name(index), &PostParams::default(), &service).await?;
            }
            slices.create(&PostParams::default(), &slice(index)).await.map(drop)
        }
    };
    stream::iter(0..services).map(one).buffer_unordered(AT_ONCE).try_collect::<()>().await.unwrap();
}

fn apis(client: &Client) -> (Api<Service>, Api<EndpointSlice>) {
    (Api::namespaced(client.clone(), "default"), Api::namespaced(client.clone(), "default"))
}

fn service(index: usize) -> Service {
    let object = Kind::of(index).object();
    let mut value = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name(index),
            "labels": {"app": name(index), "team": "a-team", "version": "1"},
            "annotations": {"sequence": format!("{SEQUENCE}{:08}", 0)},
        },
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "https", "port": 443, "targetPort": 8443}]},
    });
    if let Some((object, _)) = object {
        value["metadata"]["labels"][SERVICE_LABEL] = object.into();
        value["spec"]["type"] = "LoadBalancer".into();
        value["spec"]["allocateLoadBalancerNodePorts"] = false.into();
        value["spec"]["externalIPs"] = json!([format!("192.0.2.{}", index % 250 + 1)]);
    }
    serde_json::from_value(value).unwrap()
}

fn slice(index: usize) -> EndpointSlice {
    let endpoint = |host: usize| {
        json!({
            "addresses": [format!("10.244.{}.{}", index / 120, index % 120 * 2 + host)],
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "nodeName": "edge-1",
        })
    };
    serde_json::from_value(json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name(index), "labels": {"kubernetes.io/service-name": name(index)}},
        "addressType": "IPv4",
        "endpoints": [endpoint(1), endpoint(2)],
        "ports": [{"name": "http", "port": 8080}, {"name": "https", "port": 8443}],
    }))
    .unwrap()
}

/// Writes the number of an event into a Service, to recognize the event later.
pub(crate) async fn update(client: &Client, index: usize, sequence: usize) {
    let marked = json!({"metadata": {"annotations": {"sequence": format!("{SEQUENCE}{sequence:08}")}}});
    let (services, _) = apis(client);
    services.patch(&name(index), &PatchParams::default(), &Patch::Merge(marked)).await.unwrap();
}

/// Returns the number in an event of a Service.
pub(crate) fn sequence(event: &[u8]) -> Option<usize> {
    let at = event.windows(SEQUENCE.len()).position(|window| window == SEQUENCE.as_bytes())?;
    let digits = event.get(at + SEQUENCE.len()..)?.get(..8)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

pub(crate) async fn preserve(client: &Client) {
    let objects: Api<IngressSourcePreserve> = Api::all(client.clone());
    for (object, elsewhere) in [Kind::Narrowed, Kind::Hidden].into_iter().filter_map(Kind::object) {
        let value = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1",
            "kind": "IngressSourcePreserve",
            "metadata": {"name": object},
            "spec": {
                "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
                "services": [{"namespace": "default", "name": name(0)}],
                "elsewhere": elsewhere,
            },
        });
        objects.create(&PostParams::default(), &serde_json::from_value(value).unwrap()).await.unwrap();
    }
}

pub(crate) async fn forget(client: &Client) {
    let objects: Api<IngressSourcePreserve> = Api::all(client.clone());
    for (object, _) in [Kind::Narrowed, Kind::Hidden].into_iter().filter_map(Kind::object) {
        objects.delete(object, &DeleteParams::default()).await.unwrap();
    }
}
