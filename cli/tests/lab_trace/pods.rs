//! The pods of all nodes: endpoints and clients at once. Each node has two with an address of their
//! own, and one on the host network.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use isp_lab::{ECHO_IMAGE, Lab, Place};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::services::NAMESPACE;

/// The first one is the ingress node.
pub(crate) const NODES: [&str; 3] = ["edge-1", "work-1", "work-2"];
const WITH_OWN_ADDRESS: [&str; 2] = ["a", "b"];
const ON_HOST_NETWORK: &str = "host";

/// A pod, by its node and its name on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodRef {
    pub(crate) node: &'static str,
    pub(crate) name: &'static str,
}

impl PodRef {
    pub(crate) fn with_own_address() -> Vec<Self> {
        NODES.into_iter().flat_map(|node| WITH_OWN_ADDRESS.map(|name| Self { node, name })).collect()
    }

    pub(crate) fn on_host_network() -> Vec<Self> {
        NODES.into_iter().map(|node| Self { node, name: ON_HOST_NETWORK }).collect()
    }

    pub(crate) fn is_on_host_network(self) -> bool {
        self.name == ON_HOST_NETWORK
    }

    pub(crate) fn full_name(self) -> String {
        format!("{}-{}", self.node, self.name)
    }

    pub(crate) fn place(self) -> Place {
        Place::Pod(NAMESPACE.to_owned(), self.full_name())
    }

    fn object(self) -> Value {
        let field = |variable: &str, path: &str| json!({"name": variable, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.full_name(), "namespace": NAMESPACE},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": self.node},
                "hostNetwork": self.is_on_host_network(),
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "echo",
                    "image": ECHO_IMAGE,
                    "imagePullPolicy": "Never",
                    "env": [field("POD_NAME", "metadata.name"), field("NODE_NAME", "spec.nodeName")],
                    "ports": [{"containerPort": 8081}, {"containerPort": 8082, "protocol": "UDP"}],
                    "readinessProbe": {
                        "httpGet": {"path": "/healthz", "port": 8080},
                        "periodSeconds": 1,
                        "timeoutSeconds": 30,
                    },
                }],
            },
        })
    }
}

/// Runs the pods and returns their addresses once all are ready.
pub(crate) async fn run(lab: &Lab) -> BTreeMap<PodRef, Ipv4Addr> {
    let all: Vec<PodRef> = [PodRef::with_own_address(), PodRef::on_host_network()].concat();
    let items: Vec<Value> = all.iter().map(|pod| pod.object()).collect();
    lab.kubectl(["create", "namespace", NAMESPACE]).await.unwrap();
    lab.apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).await.unwrap();
    let ready = ["-n", NAMESPACE, "wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s"];
    lab.kubectl(ready).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(lab.client(), NAMESPACE);
    let known: BTreeMap<String, Ipv4Addr> = pods
        .list(&ListParams::default())
        .await
        .unwrap()
        .into_iter()
        .map(|pod| (pod.metadata.name.unwrap(), pod.status.unwrap().pod_ip.unwrap().parse().unwrap()))
        .collect();
    all.into_iter().map(|pod| (pod, known[&pod.full_name()])).collect()
}
