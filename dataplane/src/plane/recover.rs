//! Starting from what the kernel has: after a restart, a failed batch or somebody else's change.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;

use crate::{
    compile::Frontend,
    diff::diff,
    elements::Claim,
    layout::{self, Identity},
    model::Target,
    nft::{Data, Element, Handle, Operation, Value},
};

use super::Plane;

impl Plane {
    /// Takes over identities, slots and numbers of endpoints of elements that the kernel has. Call
    /// it before any Service is set.
    pub fn adopt(&mut self, dump: &[Element]) {
        self.in_use.adopt(dump);
        let mut slots: HashMap<Handle, Vec<(u32, Target)>> = HashMap::new();
        for element in dump {
            if let Some((frontend, identity)) = known_port(element) {
                self.identities.adopt(frontend, identity);
            }
            if let Some((handle, index, target)) = known_endpoint(element) {
                slots.entry(handle).or_default().push((index, target));
            }
        }
        let identities = dump.iter().filter(|each| each.set != layout::COUNTS).flat_map(handles);
        for identity in identities.filter_map(Identity::of) {
            self.identities.reserve(identity);
        }
        for (handle, mut found) in slots {
            found.sort_unstable();
            self.slots.insert(handle, found.into_iter().map(|(_, target)| target).collect());
        }
    }

    /// Returns the steps from a dump of the kernel's elements to those of this plane. The table
    /// itself must be there. Remembered clients are left alone; see [`Plane::forgettable`].
    pub fn repair(&mut self, dump: Vec<Element>) -> Vec<Operation> {
        let claims = &self.claims;
        let abandoned = self.identities.abandon(|frontend| claims.is_claimed(Claim::Cluster(frontend)));
        self.retired = abandoned;
        let retired: HashSet<Identity> = self.retired.iter().copied().collect();
        self.slots.retain(|handle, _| Identity::of(*handle).is_none_or(|each| !retired.contains(&each)));
        self.leftovers.clear();
        let have = dump.into_iter().filter(|element| element.set != layout::AFFINITY).collect();
        let changes = diff(have, self.elements());
        self.resolve(changes)
    }

    /// Returns those remembered clients that must be forgotten: the port has no session affinity
    /// any more, or the endpoint is gone.
    pub fn forgettable<'a>(&self, affinity: &'a [Element]) -> Vec<&'a Element> {
        let names: BTreeSet<_> = self.plans.keys().cloned().collect();
        let kept = self.remembered_by(&names);
        let is_kept = |each: &&Element| remembered(each).is_some_and(|pair| kept.contains_key(&pair));
        affinity.iter().filter(|each| !is_kept(each)).collect()
    }
}

impl Plane {
    /// The ClusterIPs that elements of the kernel serve.
    pub fn cluster_ips(dump: &[Element]) -> impl Iterator<Item = IpAddr> {
        dump.iter().filter_map(known_port).map(|(frontend, _)| frontend.address)
    }

    /// The handle and the endpoint of a remembered client, as in [`super::Update::forget`].
    pub fn remembered_endpoint(affinity: &Element) -> Option<(Handle, Target)> {
        remembered(affinity)
    }
}

/// The handles in an element's key and data.
fn handles(element: &Element) -> impl Iterator<Item = Handle> + '_ {
    let data = match &element.data {
        Data::Values(values) => values.as_slice(),
        Data::None | Data::Verdict(_) => &[],
    };
    element.key.iter().chain(data).filter_map(|value| match value {
        Value::Handle(handle) => Some(*handle),
        _ => None,
    })
}

/// The port of an element of `cluster-ips`, with its identity.
fn known_port(element: &Element) -> Option<(Frontend, Identity)> {
    let [Value::Address(address), Value::Protocol(protocol), Value::Port(port)] = element.key.as_slice()
    else {
        return None;
    };
    let frontend = Frontend { address: *address, protocol: *protocol, port: *port };
    let identity = Identity::of(handles(element).next()?)?;
    (element.set == layout::CLUSTER_IPS).then_some((frontend, identity))
}

/// The endpoint in an element of `endpoints`, with its place.
fn known_endpoint(element: &Element) -> Option<(Handle, u32, Target)> {
    let [Value::Handle(handle), Value::Index(index)] = element.key.as_slice() else {
        return None;
    };
    Some((*handle, *index, target(element)?)).filter(|_| element.set == layout::ENDPOINTS)
}

/// The handle and the endpoint of a remembered client.
fn remembered(element: &Element) -> Option<(Handle, Target)> {
    Some((handles(element).next()?, target(element)?))
}

/// The endpoint in the data of an element.
fn target(element: &Element) -> Option<Target> {
    let Data::Values(values) = &element.data else {
        return None;
    };
    match values.as_slice() {
        [Value::Address(address), Value::Port(port)] => Some(Target { address: *address, port: *port }),
        _ => None,
    }
}
