//! The facts about a node.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use isp_dataplane::model::Node as NodeModel;
use isp_dataplane::nft::Family;
use isp_intake::node::{TrafficSettings, node, pod_cidrs};
use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::ResourceExt;

use crate::address::Address;

/// Load balancers send nothing to a node with this label.
const EXCLUDED_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it is Ready.
    pub ready: bool,
    /// The ranges of its pods.
    pub pod_cidrs: Vec<IpNet>,
    /// Its addresses of the type `ExternalIP`. A cloud translates them to the internal ones.
    pub external: Vec<IpAddr>,
    /// The node as the agent of mode Beside sees it, with the internal addresses.
    pub model: NodeModel,
}

impl Node {
    pub(super) fn of(object: &NodeObject) -> Self {
        let status = object.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
        let model = node(&object.name_any(), Some(object), &TrafficSettings::default());
        let addresses = status.and_then(|status| status.addresses.as_ref()).into_iter().flatten();
        let external = addresses.filter(|address| address.type_ == "ExternalIP");
        let external = external.filter_map(|address| address.address.parse().ok());
        Self {
            labels: object.labels().clone(),
            // A condition that is not there says nothing.
            ready: ready.all(|condition| condition.status == "True"),
            pod_cidrs: pod_cidrs(object),
            external: external.filter(|address| !model.addresses.contains(address)).collect(),
            model,
        }
    }

    /// Its internal address of a family.
    pub fn internal(&self, family: Family) -> Option<IpAddr> {
        self.model.primary(family)
    }

    /// Whether it has an address: one of its own, or the one of its pods' bridge.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.model.addresses.contains(&address) || self.bridges().contains(&address)
    }

    /// Whether load balancers may send traffic to it.
    pub(crate) fn takes_traffic(&self) -> bool {
        self.ready && !self.labels.contains_key(EXCLUDED_LABEL)
    }

    /// The addresses that the bridge of its pods has with most network plugins: the first of each
    /// range.
    pub(crate) fn bridges(&self) -> Vec<IpAddr> {
        self.pod_cidrs.iter().filter(|range| range.prefix_len() < range.max_prefix_len()).map(first).collect()
    }

    /// The source that it gives packets towards a pod of its own, or towards another host.
    pub(crate) fn masquerade(&self, family: Family, to_own_pod: bool) -> Option<Address> {
        let of_family = |address: &IpAddr| Family::of(*address) == family;
        let bridge = self.bridges().into_iter().find(of_family);
        let internal = self.internal(family);
        // Overlay networks use the address of the range itself for traffic between nodes.
        let overlay = self.pod_cidrs.iter().map(IpNet::network).find(of_family);
        let order = if to_own_pod { [bridge, internal, overlay] } else { [internal, overlay, bridge] };
        let mut likely = order.into_iter().flatten();
        let first = likely.next()?;
        Some(Address::of_node(&self.model.name, first, likely.collect()))
    }
}

/// The address after the network's own.
fn first(range: &IpNet) -> IpAddr {
    match range.network() {
        IpAddr::V4(address) => IpAddr::V4((u32::from(address) + 1).into()),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) + 1).into()),
    }
}
