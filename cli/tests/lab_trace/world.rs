//! The lab with its pods: writes generated Services, and waits until every node serves them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use futures_util::future::join_all;
use isp_lab::{Place, Protocol};
use isp_testkit::answers;
use isp_testkit::web_lab::WebLab;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::pods::{self, NODES, PodRef};
use crate::services::{Generated, NAMESPACE, PORT};

pub(crate) const PLUGIN: &str = env!("CARGO_BIN_EXE_kubectl-isp");

pub(crate) struct World {
    pub(crate) web: WebLab,
    pub(crate) pods: BTreeMap<PodRef, Ipv4Addr>,
    services: Api<Service>,
    slices: Api<EndpointSlice>,
}

/// A Service with what the API server has given it.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) generated: Generated,
    pub(crate) cluster_ip: Ipv4Addr,
    pub(crate) node_port: Option<u16>,
    pub(crate) health_check: Option<u16>,
}

impl World {
    pub(crate) async fn up() -> Self {
        let operator = Path::new(PLUGIN).with_file_name("operator");
        let web = WebLab::up("trace", operator.to_str().unwrap()).await;
        let pods = pods::run(&web.lab).await;
        // Every rejected connection is to be told so.
        let limits = ["net.ipv4.icmp_ratelimit=0", "net.ipv4.icmp_msgs_per_sec=1000000"];
        for place in NODES.map(|node| Place::Node(node.to_owned())).iter().chain([&Place::Router]) {
            let command: Vec<&str> = ["sysctl", "-qw"].into_iter().chain(limits).collect();
            let done = web.lab.exec(place, &command).await.unwrap();
            assert!(done.success, "{place}: {}", done.stderr);
        }
        let (services, slices) =
            (Api::namespaced(web.lab.client(), NAMESPACE), Api::namespaced(web.lab.client(), NAMESPACE));
        Self { web, pods, services, slices }
    }

    /// Replaces all Services by these.
    pub(crate) async fn replace(&self, services: &[Generated]) {
        let all = ListParams::default();
        for service in self.services.list(&all).await.unwrap() {
            let name = service.metadata.name.unwrap();
            self.services.delete(&name, &DeleteParams::default()).await.unwrap();
        }
        self.slices.delete_collection(&DeleteParams::default(), &all).await.unwrap();
        join_all(services.iter().map(|generated| self.write(generated))).await;
    }

    async fn write(&self, generated: &Generated) {
        let post = PostParams::default();
        let service = serde_json::from_value(generated.service()).unwrap();
        self.services.create(&post, &service).await.unwrap();
        let slice = serde_json::from_value(generated.slice(|pod| self.pods[&pod])).unwrap();
        self.slices.create(&post, &slice).await.unwrap();
        if let Some(status) = generated.status() {
            let merge = PatchParams::default();
            self.services.patch_status(&generated.name, &merge, &Patch::Merge(status)).await.unwrap();
        }
    }

    /// What the API server has made of Services.
    pub(crate) async fn written(&self, services: &[Generated]) -> Vec<Written> {
        let read = async |generated: &Generated| {
            let spec = self.services.get(&generated.name).await.unwrap().spec.unwrap();
            let number =
                |port: Option<i32>| port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
            Written {
                generated: generated.clone(),
                cluster_ip: spec.cluster_ip.unwrap().parse().unwrap(),
                node_port: number(spec.ports.unwrap()[0].node_port),
                health_check: number(spec.health_check_node_port),
            }
        };
        join_all(services.iter().map(read)).await
    }

    /// Waits until every node serves what was written before. A marker is written last: watches are
    /// ordered, so a kube-proxy that serves it has read everything else.
    pub(crate) async fn wait_until_served(&self, number: usize) {
        let name = format!("marker-{number}");
        let service =
            json!({"metadata": {"name": name}, "spec": {"ports": [{"port": PORT, "targetPort": 8081}]}});
        let post = PostParams::default();
        let service = serde_json::from_value(service).unwrap();
        let created = self.services.create(&post, &service).await.unwrap();
        let first = PodRef::with_own_address()[0];
        let slice = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": [{"port": 8081}],
            "endpoints": [{"addresses": [self.pods[&first]], "nodeName": first.node, "conditions": {"ready": true}}],
        });
        self.slices.create(&post, &serde_json::from_value(slice).unwrap()).await.unwrap();
        let target = format!("{}:{PORT}", created.spec.unwrap().cluster_ip.unwrap());
        let wait = async |node: &str| {
            let place = Place::Node(node.to_owned());
            let answered = |answer: &isp_lab::Answer| answer.peer().is_some();
            let question = (Protocol::Tcp, target.as_str());
            answers::until(&self.web.lab, "kube-proxy serves the marker", &place, question, answered).await;
        };
        join_all(NODES.map(wait)).await;
    }
}
