//! The elements of one planned port, once its identity and slots are known.

use std::{fmt, net::IpAddr};

use crate::{
    compile::{Frontend, Guard, PortPlan},
    layout::{self, Identity},
    model::{Target, TrafficPolicy},
    nft::{Data, Element, Handle, Key, Name, Protocol, Value},
};

/// A planned port with its identity and the places of its endpoints.
#[derive(Clone, Copy, Debug)]
pub struct PlacedPort<'a> {
    /// The plan.
    pub plan: &'a PortPlan,
    /// The identity.
    pub identity: Identity,
    /// The cluster set by index.
    pub cluster: &'a [Target],
    /// The local set by index.
    pub local: Option<&'a [Target]>,
}

impl<'a> PlacedPort<'a> {
    /// Returns the handle of the set that a policy uses.
    fn handle(&self, policy: TrafficPolicy) -> Handle {
        match policy {
            TrafficPolicy::Cluster => self.identity.cluster(),
            TrafficPolicy::Local => self.identity.local(),
        }
    }

    /// The sets of endpoints in use, with their handles.
    pub fn sets(&self) -> impl Iterator<Item = (Handle, &'a [Target])> + use<'a> {
        let local = self.local.map(|local| (self.identity.local(), local));
        [(self.identity.cluster(), self.cluster)].into_iter().chain(local)
    }

    /// Adds the elements of this port. Frontends besides the ClusterIP may be claimed by other
    /// Services as well; `owns` tells which of them this port has.
    pub fn elements(&self, elements: &mut Vec<Element>, owns: impl Fn(Claim) -> bool) {
        let plan = self.plan;
        let internal = self.handle(plan.internal);
        elements.push(frontend(layout::CLUSTER_IPS, plan.frontend, internal));
        let external = self.handle(plan.external);
        for address in &plan.external_ips {
            let each = Frontend { address: *address, ..plan.frontend };
            if owns(Claim::External(each)) {
                elements.push(frontend(layout::EXTERNAL_IPS, each, external));
                guard(elements, plan.guard.as_ref(), each);
            }
        }
        if let Some(port) = plan.node_port
            && owns(Claim::NodePort(plan.frontend.protocol, port))
        {
            let key = vec![Value::Protocol(plan.frontend.protocol), Value::Port(port)];
            elements.push(mapped(layout::NODE_PORTS, key, vec![Value::Handle(external)]));
        }
        for (handle, targets) in self.sets() {
            endpoints(elements, handle, targets);
            if let Some(timeout) = plan.affinity {
                affinity(elements, handle, targets, timeout);
            }
        }
        let handle = Value::Handle(self.identity.cluster());
        elements.extend(plan.hairpins.iter().map(|target| {
            let address = Value::Address(target.address);
            member(layout::HAIRPIN, vec![handle, address, address, Value::Port(target.port)])
        }));
    }
}

/// Something that at most one port of one Service can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Claim {
    /// A ClusterIP with protocol and port. A port without it is not programmed.
    Cluster(Frontend),
    /// A load balancer or external IP with protocol and port.
    External(Frontend),
    /// A NodePort.
    NodePort(Protocol, u16),
    /// A ClusterIP, whatever the port.
    Address(IpAddr),
}

impl fmt::Display for Claim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(frontend) => write!(out, "ClusterIP {frontend}"),
            Self::External(frontend) => write!(out, "external IP {frontend}"),
            Self::NodePort(protocol, port) => write!(out, "NodePort {} {port}", protocol.keyword()),
            Self::Address(address) => write!(out, "ClusterIP {address}"),
        }
    }
}

/// The element that has all other ports of a ClusterIP refused.
pub(crate) fn cluster_address(address: IpAddr) -> Element {
    member(layout::CLUSTER_ADDRESSES, vec![Value::Address(address)])
}

fn frontend_key(frontend: Frontend) -> Key {
    vec![Value::Address(frontend.address), Value::Protocol(frontend.protocol), Value::Port(frontend.port)]
}

fn frontend(map: Name, frontend: Frontend, handle: Handle) -> Element {
    mapped(map, frontend_key(frontend), vec![Value::Handle(handle)])
}

fn guard(elements: &mut Vec<Element>, guard: Option<&Guard>, frontend: Frontend) {
    let Some(guard) = guard.filter(|guard| guard.addresses.contains(&frontend.address)) else {
        return;
    };
    elements.push(member(layout::GUARDED, frontend_key(frontend)));
    elements.extend(guard.sources.iter().map(|range| {
        let with = |source| {
            let mut key = frontend_key(frontend);
            key.push(Value::Address(source));
            key
        };
        Element {
            set: layout::ALLOWED,
            key: with(range.network()),
            last: Some(with(range.broadcast())),
            data: Data::None,
        }
    }));
}

fn endpoints(elements: &mut Vec<Element>, handle: Handle, targets: &[Target]) {
    // `compile` keeps sets small enough for the bits that hold their size.
    let count = u16::try_from(targets.len()).unwrap_or(u16::MAX);
    if count > 0 {
        let size = Value::Handle(layout::sized(handle, count));
        elements.push(mapped(layout::SIZES, vec![Value::Handle(handle)], vec![size]));
    }
    elements.extend((0..u32::from(count)).zip(targets).map(|(index, target)| {
        let key = vec![Value::Handle(handle), Value::Index(index)];
        mapped(layout::ENDPOINTS, key, vec![Value::Address(target.address), Value::Port(target.port)])
    }));
}

fn affinity(elements: &mut Vec<Element>, handle: Handle, targets: &[Target], timeout: u32) {
    elements.push(member(layout::STICKY, vec![Value::Handle(handle)]));
    let set = layout::remembered(timeout);
    elements.extend(targets.iter().map(|target| {
        let key = vec![Value::Handle(handle), Value::Address(target.address), Value::Port(target.port)];
        member(set.clone(), key)
    }));
}

fn member(set: Name, key: Key) -> Element {
    Element { set, key, last: None, data: Data::None }
}

fn mapped(map: Name, key: Key, data: Vec<Value>) -> Element {
    Element { set: map, key, last: None, data: Data::Values(data) }
}
