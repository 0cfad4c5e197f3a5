//! The Services of the benchmark, on a real API server. Most are written into its etcd, because
//! creating 50,000 takes an hour.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use isp_lab::{ControlPlane, StoredObject};
use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

pub(crate) const NODE: &str = "node-1";
pub(crate) const SERVER_PORT: u16 = 8080;
/// All addresses of endpoints.
pub(crate) const ENDPOINTS: &str = "10.128.0.0/9";

const AT_ONCE: usize = 64;
/// 10.96.16.0, in the range of ClusterIPs.
const FIRST_CLUSTER_IP: u32 = 0x0a60_1000;
const FIRST_ENDPOINT: u32 = 0x0a80_0000;
/// The room for endpoints of one Service, and for Services in one variant.
const ENDPOINTS_OF_A_SERVICE: u32 = 8;
const VARIANT: u32 = 1 << 19;
const VARIANTS: u32 = 15;

/// The Services that exist.
pub(crate) struct Cluster {
    client: Client,
    /// The ClusterIPs of all Services.
    pub(crate) targets: Vec<SocketAddr>,
    /// The number of endpoints of the first Services.
    endpoints: u32,
    changes: u32,
}

impl Cluster {
    pub(crate) async fn new(client: Client) -> Self {
        let node: Node = from(json!({"metadata": {"name": NODE}}));
        let nodes: Api<Node> = Api::all(client.clone());
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}});
        nodes.patch_status(NODE, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
        Self { client, targets: Vec::new(), endpoints: 0, changes: 0 }
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn slices(&self) -> Api<EndpointSlice> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Grows to this many Services with this many endpoints each.
    pub(crate) async fn grow(&mut self, control_plane: &ControlPlane, services: u32, endpoints: u32) {
        let before = u32::try_from(self.targets.len()).unwrap();
        if self.endpoints != endpoints {
            let all = stream::iter((0..before).map(|number| self.replace(number, endpoints, 0)));
            all.buffer_unordered(AT_ONCE).for_each(async |()| {}).await;
            self.endpoints = endpoints;
        }
        let objects: Vec<_> = (before..services).flat_map(|number| stored(number, endpoints)).collect();
        control_plane.store(&objects).await.unwrap();
        self.targets.extend((before..services).map(|number| SocketAddr::new(cluster_ip(number).into(), 80)));
        // The API server reads them from etcd meanwhile.
        let last = format!("metadata.name={}", name(services - 1));
        while self
            .slices()
            .list(&ListParams::default().fields(&last).match_any())
            .await
            .unwrap()
            .items
            .is_empty()
        {
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn create_service(&self, number: u32) -> SocketAddr {
        let service = from(json!({
            "metadata": {"name": name(number), "labels": {"app": name(number)}},
            // The API server would look for a free address for seconds.
            "spec": {
                "clusterIP": cluster_ip(number),
                "ports": [{"name": "http", "port": 80, "targetPort": SERVER_PORT}],
            },
        }));
        let made = self.services().create(&PostParams::default(), &service).await.unwrap();
        let address: IpAddr = made.spec.unwrap().cluster_ip.unwrap().parse().unwrap();
        SocketAddr::new(address, 80)
    }

    /// The variant moves the last endpoint to another address.
    async fn replace(&self, number: u32, count: u32, variant: u32) {
        let patch = Patch::Merge(json!({"endpoints": endpoints(number, count, variant)}));
        self.slices().patch(&name(number), &PatchParams::default(), &patch).await.unwrap();
    }

    /// Replaces one endpoint of one Service.
    pub(crate) async fn change(&mut self) {
        self.changes += 1;
        self.replace(0, self.endpoints, self.changes % VARIANTS + 1).await;
    }

    /// The times at which events of that Service's slice arrive.
    pub(crate) async fn watch_changes(&self) -> mpsc::UnboundedReceiver<Instant> {
        let slices = self.slices();
        let only = WatchParams::default().fields(&format!("metadata.name={}", name(0)));
        // From any version on: that of the slice may be too old for a watch.
        let mut events = slices.watch(&only, "0").await.unwrap().boxed();
        let (tell, told) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(event) = events.try_next().await.unwrap() {
                if matches!(event, WatchEvent::Modified(_)) && tell.send(Instant::now()).is_err() {
                    return;
                }
            }
        });
        told
    }

    /// Adds the slice of one more Service, which does not exist yet.
    pub(crate) async fn prepare_one(&self) {
        let slice = from(slice(u32::try_from(self.targets.len()).unwrap(), self.endpoints));
        self.slices().create(&PostParams::default(), &slice).await.unwrap();
    }

    /// Adds the Service.
    pub(crate) async fn add_one(&mut self) {
        let made = self.create_service(u32::try_from(self.targets.len()).unwrap()).await;
        self.targets.push(made);
    }
}

/// The address of a Service that is written into etcd. The first addresses are left to the cluster.
fn cluster_ip(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_CLUSTER_IP + number)
}

fn slice(number: u32, count: u32) -> Value {
    let name = name(number);
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": "IPv4",
        "endpoints": endpoints(number, count, 0),
        "ports": [{"name": "http", "port": SERVER_PORT, "protocol": "TCP"}],
    })
}

/// A Service, its slice, and the allocation of its address.
fn stored(number: u32, count: u32) -> [StoredObject; 3] {
    let (name, address) = (name(number), cluster_ip(number).to_string());
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {
            "type": "ClusterIP", "clusterIP": address, "clusterIPs": [address],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster", "sessionAffinity": "None",
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": SERVER_PORT}],
        },
        "status": {"loadBalancer": {}},
    });
    let labels = json!({
        "ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    });
    let allocation = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {"name": address, "labels": labels},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": name}},
    });
    [
        (format!("ipaddresses/{address}"), allocation, 0),
        (format!("services/specs/default/{name}"), service, 1),
        (format!("endpointslices/default/{name}"), slice(number, count), 2),
    ]
    .map(|(path, mut object, kind)| {
        object["metadata"]["uid"] = json!(format!("00000000-0000-4000-{kind:04x}-{number:012x}"));
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        StoredObject { path, object }
    })
}

fn name(number: u32) -> String {
    format!("service-{number:05}")
}

fn endpoints(number: u32, count: u32, variant: u32) -> Value {
    let endpoint = |index: u32| {
        let moved = if index + 1 == count { variant * VARIANT } else { 0 };
        let address = FIRST_ENDPOINT + number * ENDPOINTS_OF_A_SERVICE + index + 1 + moved;
        json!({"addresses": [Ipv4Addr::from_bits(address)], "conditions": {"ready": true}, "nodeName": "node-2"})
    };
    (0..count).map(endpoint).collect()
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}
