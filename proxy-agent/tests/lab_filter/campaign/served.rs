//! The ports that a node serves: read from the kernel, and computed from the API without the agent.

use std::collections::BTreeSet;

use isp_api::IngressSourcePreserve;
use isp_api::view::{View, view};
use isp_lab::{Lab, Place};
use k8s_openapi::api::core::v1::{Node, Service, ServicePort, ServiceSpec};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::Value;

use crate::harness::NODE;

/// A port at an address, or at the node's own addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Served {
    address: Option<String>,
    protocol: String,
    port: u64,
}

impl Served {
    pub(super) fn at(address: &str, port: &ServicePort) -> Self {
        let protocol = port.protocol.as_deref().unwrap_or("TCP").to_lowercase();
        Self { address: Some(address.to_owned()), protocol, port: u64::try_from(port.port).unwrap() }
    }
}

/// The maps of kube-proxy's nftables mode: those of ports with endpoints, then those without.
const MAPS: [&str; 4] = ["service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports"];

/// Returns all ports that the kernel knows, with endpoints or without.
pub(super) async fn in_kernel(lab: &Lab) -> BTreeSet<Served> {
    elements(lab, &MAPS).await
}

/// Returns the ports that the kernel forwards to endpoints.
pub(super) async fn with_endpoints(lab: &Lab) -> BTreeSet<Served> {
    elements(lab, &MAPS[..2]).await
}

async fn elements(lab: &Lab, maps: &[&str]) -> BTreeSet<Served> {
    let mut served = BTreeSet::new();
    for map in maps {
        let list = ["nft", "-j", "list", "map", "ip", "kube-proxy", map];
        let listed = lab.exec(&Place::Node(NODE.to_owned()), &list).await.unwrap().stdout;
        // The command fails if kube-proxy's table does not exist.
        let Ok(listed) = serde_json::from_str::<Value>(&listed) else { continue };
        let elements = &listed["nftables"][1]["map"]["elem"];
        served.extend(elements.as_array().into_iter().flatten().map(element));
    }
    served
}

/// Parses an element: a key and a verdict. The key is an address, a protocol and a port, or only
/// the last two.
fn element(element: &Value) -> Served {
    let key = element[0]["concat"].as_array().or_else(|| element[0]["elem"]["val"]["concat"].as_array());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    match key.map(Vec::as_slice) {
        Some([address, protocol, port]) => {
            Served { address: Some(text(address)), protocol: text(protocol), port: port.as_u64().unwrap() }
        }
        Some([protocol, port]) => {
            Served { address: None, protocol: text(protocol), port: port.as_u64().unwrap() }
        }
        _ => panic!("an element of kube-proxy's maps is {element}"),
    }
}

/// Returns the ports that the node has to serve according to its view of each Service.
pub(super) async fn by_api(lab: &Lab) -> BTreeSet<Served> {
    let all = ListParams::default();
    let services = Api::<Service>::all(lab.client()).list(&all).await.unwrap();
    let objects = Api::<IngressSourcePreserve>::all(lab.client()).list(&all).await.unwrap();
    let node = Api::<Node>::all(lab.client()).get(NODE).await.unwrap();
    let narrowing =
        view(isp_api::validate::NodeIdentity { name: NODE, labels: node.labels() }, &objects.items).narrowing;
    let mut served = BTreeSet::new();
    for service in services.items {
        let view = narrowing.of(service.labels());
        let addresses = external_addresses(&service);
        let spec = service.spec.unwrap();
        let cluster_ip = spec.cluster_ip.clone().unwrap();
        for port in spec.ports.iter().flatten().filter(|_| view != View::Hidden) {
            served.insert(Served::at(&cluster_ip, port));
            served.extend(node_port(&spec, port));
            if view == View::Full {
                served.extend(addresses.iter().map(|address| Served::at(address, port)));
            }
        }
    }
    served
}

fn node_port(spec: &ServiceSpec, port: &ServicePort) -> Option<Served> {
    let number =
        port.node_port.filter(|number| *number != 0 && spec.type_.as_deref() != Some("ClusterIP"))?;
    Some(Served { address: None, port: u64::try_from(number).unwrap(), ..Served::at("", port) })
}

pub(super) fn external_addresses(service: &Service) -> Vec<String> {
    let external = service.spec.iter().flat_map(|spec| spec.external_ips.iter().flatten()).cloned();
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let ingress = balancer.into_iter().flat_map(|balancer| balancer.ingress.iter().flatten());
    external.chain(ingress.filter_map(|ingress| ingress.ip.clone())).collect()
}
