//! The Kubernetes objects of generated Services, and writing them.

use isp_dataplane::model::{Endpoint, TrafficPolicy};
use isp_dataplane::nft::{Family, Protocol};
use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::addresses::{FAMILIES, NODE, PRIMARY, SECOND, ZONE, outside, pod, range};
use crate::services::{Generated, NAMESPACE, Slice, Type};

const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// The objects of the cluster that a test writes.
pub(crate) struct Objects {
    client: Client,
    services: Api<Service>,
    slices: Api<EndpointSlice>,
}

impl Objects {
    pub(crate) fn new(client: Client) -> Self {
        let services = Api::namespaced(client.clone(), NAMESPACE);
        Self { services, slices: Api::namespaced(client.clone(), NAMESPACE), client }
    }

    /// Creates the Node anew, with or without pod CIDRs.
    pub(crate) async fn replace_node(&self, has_pod_ranges: bool) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let _ = nodes.delete(NODE, &DeleteParams::default()).await;
        let ranges = FAMILIES.map(|family| range(pod(family, 1, 0), 24, 64));
        let ranges = if has_pod_ranges { ranges.to_vec() } else { Vec::new() };
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": NODE, "labels": {"topology.kubernetes.io/zone": ZONE}},
            "spec": {"podCIDRs": ranges, "podCIDR": ranges.first()},
        });
        nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
        let listed = FAMILIES.map(|family| [PRIMARY, SECOND].map(|last| outside(family, last))).concat();
        let addresses: Vec<Value> =
            listed.iter().map(|address| json!({"type": "InternalIP", "address": address})).collect();
        let status = json!({"status": {"addresses": addresses}});
        nodes.patch_status(NODE, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Sets the zone of the Node, or removes it.
    pub(crate) async fn set_zone(&self, zone: Option<&str>) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let labels = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
        nodes.patch(NODE, &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
    }

    /// Writes a Service and its slices. A Service that exists is changed where the API server
    /// allows it, else replaced.
    pub(crate) async fn write(&self, generated: &Generated) {
        let force = PatchParams::apply("same-as-kube-proxy").force();
        let name = &generated.name;
        let object = Patch::Apply(service(generated));
        if let Err(refused) = self.services.patch(name, &force, &object).await {
            let exists = self.services.delete(name, &DeleteParams::default()).await;
            assert!(exists.is_ok(), "{name} was refused: {refused}\n{generated:#?}");
            self.services.patch(name, &force, &object).await.unwrap();
        }
        let ingress = generated.service.load_balancer_ips.iter().map(|ip| json!({"ip": ip, "ipMode": "VIP"}));
        let proxied = generated.proxied_ips.iter().map(|ip| json!({"ip": ip, "ipMode": "Proxy"}));
        if generated.kind == Type::LoadBalancer {
            let ingress: Vec<Value> = ingress.chain(proxied).collect();
            let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
            let merge = Patch::Merge(status);
            self.services.patch_status(name, &PatchParams::default(), &merge).await.unwrap();
        }
        let named: Vec<(String, &Slice)> = generated
            .slices
            .iter()
            .enumerate()
            .map(|(place, slice)| (slice_name(name, place, slice), slice))
            .collect();
        self.delete_slices(name, |slice| named.iter().any(|(name, _)| *name == slice.name_any())).await;
        for (slice_name, slice) in named {
            let object = Patch::Apply(endpoint_slice(generated, &slice_name, slice));
            self.slices.patch(&slice_name, &force, &object).await.unwrap();
        }
    }

    /// Deletes a Service and its slices.
    pub(crate) async fn delete(&self, name: &str) {
        self.services.delete(name, &DeleteParams::default()).await.unwrap();
        self.delete_slices(name, |_| false).await;
    }

    /// Deletes everything.
    pub(crate) async fn clear(&self) {
        for service in self.services.list(&ListParams::default()).await.unwrap() {
            self.delete(&service.name_any()).await;
        }
    }

    async fn delete_slices(&self, service: &str, keep: impl Fn(&EndpointSlice) -> bool) {
        let of_service = ListParams::default().labels(&format!("{SERVICE_LABEL}={service}"));
        for slice in self.slices.list(&of_service).await.unwrap().into_iter().filter(|each| !keep(each)) {
            self.slices.delete(&slice.name_any(), &DeleteParams::default()).await.unwrap();
        }
    }
}

/// The address type of a slice cannot change, so its name has it.
fn slice_name(service: &str, place: usize, slice: &Slice) -> String {
    format!("{service}-{place}-{}", if slice.family == Family::Ip { "v4" } else { "v6" })
}

fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    }
}

fn policy(policy: TrafficPolicy) -> &'static str {
    match policy {
        TrafficPolicy::Cluster => "Cluster",
        TrafficPolicy::Local => "Local",
    }
}

fn service(generated: &Generated) -> Value {
    let Generated { name, kind, service, .. } = generated;
    let ports: Vec<Value> = (0..)
        .zip(&service.ports)
        .map(|(place, port)| {
            let mut value =
                json!({"name": format!("p{place}"), "protocol": protocol(port.protocol), "port": port.port});
            if let Some(node_port) = port.node_port {
                value["nodePort"] = json!(node_port);
            }
            value
        })
        .collect();
    let families: Vec<&str> =
        service.cluster_ips.iter().map(|ip| if ip.is_ipv4() { "IPv4" } else { "IPv6" }).collect();
    let mut spec = json!({
        "type": match kind {
            Type::ClusterIp => "ClusterIP",
            Type::NodePort => "NodePort",
            Type::LoadBalancer => "LoadBalancer",
        },
        "ipFamilyPolicy": if families.len() > 1 { "RequireDualStack" } else { "SingleStack" },
        "ipFamilies": families,
        "clusterIP": service.cluster_ips[0],
        "clusterIPs": service.cluster_ips,
        "externalIPs": service.external_ips,
        "internalTrafficPolicy": policy(service.internal_policy),
        "publishNotReadyAddresses": generated.publish_not_ready,
        "trafficDistribution": generated.traffic_distribution,
        "ports": ports,
    });
    if *kind != Type::ClusterIp || !service.external_ips.is_empty() {
        spec["externalTrafficPolicy"] = json!(policy(service.external_policy));
    }
    if *kind == Type::LoadBalancer {
        spec["loadBalancerSourceRanges"] = json!(generated.written_ranges);
        spec["allocateLoadBalancerNodePorts"] = json!(service.ports[0].node_port.is_some());
    }
    if let Some(port) = generated.health_check_node_port {
        spec["healthCheckNodePort"] = json!(port);
    }
    if let Some(seconds) = service.affinity {
        spec["sessionAffinity"] = json!("ClientIP");
        spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": seconds}});
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn endpoint_slice(generated: &Generated, name: &str, slice: &Slice) -> Value {
    let port = |(place, number): &(usize, u16)| {
        let kind = protocol(generated.service.ports[*place].protocol);
        json!({"name": format!("p{place}"), "protocol": kind, "port": number})
    };
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": {SERVICE_LABEL: generated.name}},
        "addressType": if slice.family == Family::Ip { "IPv4" } else { "IPv6" },
        "ports": slice.ports.iter().map(port).collect::<Vec<_>>(),
        "endpoints": slice.endpoints.iter().map(endpoint).collect::<Vec<_>>(),
    })
}

/// Conditions that are unknown count as ready and serving, so these two are left out.
fn endpoint(endpoint: &Endpoint) -> Value {
    let mut conditions = json!({});
    let stated = [
        ("ready", endpoint.ready, true),
        ("serving", endpoint.serving, true),
        ("terminating", endpoint.terminating, false),
    ];
    for (name, value, _) in stated.into_iter().filter(|(_, value, unknown)| value != unknown) {
        conditions[name] = json!(value);
    }
    let named = |names: &[std::sync::Arc<str>]| -> Vec<Value> {
        names.iter().map(|name| json!({"name": &**name})).collect()
    };
    let mut value = json!({"addresses": [endpoint.target.address], "conditions": conditions});
    if let Some(node) = &endpoint.node {
        value["nodeName"] = json!(&**node);
    }
    if !endpoint.zone_hints.is_empty() || !endpoint.node_hints.is_empty() {
        value["hints"] =
            json!({"forZones": named(&endpoint.zone_hints), "forNodes": named(&endpoint.node_hints)});
    }
    value
}
