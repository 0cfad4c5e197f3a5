//! A preserved Service without a selector: the test writes its slices. Its endpoints are real pods.

use futures_util::{StreamExt, TryStreamExt, stream};
use isp_lab::{Lab, Place};
use isp_testkit::beside::{Steps, TABLE};
use isp_testkit::until;
use isp_testkit::web_lab::WebLab;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

/// So many changes are written at a time.
const WRITERS: usize = 8;

/// The Service.
pub(crate) struct Written<'a> {
    lab: &'a Lab,
    name: &'static str,
    pub(crate) cluster_ip: String,
    /// The address and node of each pod that can be an endpoint.
    pods: Vec<(String, String)>,
}

impl<'a> Written<'a> {
    /// Creates the Service with the endpoints whose bit is set. No kube-proxy ever serves it.
    pub(crate) async fn create(web: &'a WebLab, name: &'static str, external: &str, bits: usize) -> Self {
        let lab = &web.lab;
        let mut pods = Vec::new();
        for namespace in ["web", "default"] {
            let found = Api::<Pod>::namespaced(lab.client(), namespace).list(&ListParams::default()).await;
            for pod in found.unwrap() {
                pods.push((pod.status.unwrap().pod_ip.unwrap(), pod.spec.unwrap().node_name.unwrap()));
            }
        }
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "web"},
            "spec": {"externalIPs": [external], "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        });
        lab.apply(&service.to_string()).await.unwrap();
        let steps = Steps { lab, namespace: "web", service: name };
        steps.ignore(true).await;
        steps.preserve(true).await;
        let services: Api<Service> = Api::namespaced(lab.client(), "web");
        let cluster_ip = services.get(name).await.unwrap().spec.unwrap().cluster_ip.unwrap();
        let written = Self { lab, name, cluster_ip, pods };
        for slice in 0..2 {
            let slice = json!({
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "name": format!("{name}-{slice}"),
                    "namespace": "web",
                    "labels": {"kubernetes.io/service-name": name},
                },
                "addressType": "IPv4",
                "endpoints": written.endpoints(bits),
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            });
            lab.apply(&slice.to_string()).await.unwrap();
        }
        written
    }

    /// The endpoints whose bit is set.
    fn endpoints(&self, bits: usize) -> Value {
        let chosen = self.pods.iter().enumerate().filter(|(place, _)| bits & (1 << place) != 0);
        chosen.map(|(_, (address, node))| json!({"addresses": [address], "nodeName": node})).collect()
    }

    /// Replaces the endpoints of one slice.
    pub(crate) async fn try_to_write(&self, slice: usize, bits: usize) -> Result<(), kube::Error> {
        let slices: Api<EndpointSlice> = Api::namespaced(self.lab.client(), "web");
        let patch = Patch::Merge(json!({"endpoints": self.endpoints(bits)}));
        slices.patch(&format!("{}-{slice}", self.name), &PatchParams::default(), &patch).await.map(drop)
    }

    /// Changes the endpoints so many times. There is always at least one.
    pub(crate) async fn change(&self, times: usize) {
        let write = |time: usize| {
            let bits = time.wrapping_mul(2_654_435_761) >> 7;
            // The first slice has an endpoint in every case.
            let (slice, bits) = if time.is_multiple_of(2) { (0, bits % 7 + 1) } else { (1, bits % 8) };
            self.try_to_write(slice, bits)
        };
        let writes = stream::iter(0..times).map(write).buffer_unordered(WRITERS);
        writes.try_collect::<()>().await.unwrap();
    }

    /// Makes one pod the only endpoint, and waits until every node's kernel has it so.
    pub(crate) async fn settle(&self, nodes: &[&str], pod: usize) {
        until("the endpoints are written", async || {
            self.try_to_write(0, 1 << pod).await?;
            self.try_to_write(1, 0).await
        })
        .await;
        for node in nodes {
            until(&format!("{node} has the last endpoints of {}", self.name), async || {
                let list = ["nft", "list", "map", "ip", TABLE, "endpoints"];
                let map = self.lab.exec(&Place::Node((*node).to_owned()), &list).await.unwrap().stdout;
                let is_so =
                    self.pods.iter().enumerate().skip(1).all(|(place, (address, _))| {
                        map.contains(&format!("{address} . ")) == (place == pod)
                    });
                if is_so { Ok(()) } else { Err(map) }
            })
            .await;
        }
    }
}
