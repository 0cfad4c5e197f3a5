//! The Services behind gateways: Istio's Gateways and `VirtualService`s, and the Gateway API.
//! Hosts, paths and weights are ignored.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::sidecar::Labels;
use isp_plan::Key;
use serde::Deserialize;

use super::cluster::Pod;
use super::kinds::Kind;
use super::mesh::GATEWAY_LABEL;
use super::selection::PodIndex;

#[cfg(test)]
mod tests;

/// All routes of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    pub(crate) istio_gateways: BTreeMap<Key, IstioGateway>,
    pub(crate) virtual_services: BTreeMap<Key, VirtualService>,
    pub(crate) gateways: BTreeMap<Key, Gateway>,
    pub(crate) of_gateway_api: BTreeMap<(Kind, Key), Route>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct IstioGateway {
    selector: Labels,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct VirtualService {
    gateways: Vec<String>,
    http: Vec<Hop>,
    tls: Vec<Hop>,
    tcp: Vec<Hop>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Hop {
    route: Vec<Weighted>,
    delegate: Option<Named>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Weighted {
    destination: Destination,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Destination {
    host: String,
}

/// An object, by its name and perhaps its namespace and kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    kind: Option<String>,
    namespace: Option<String>,
    name: String,
}

impl Named {
    fn key(&self, namespace: &str) -> Key {
        Key::new(self.namespace.as_deref().unwrap_or(namespace), &*self.name)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Gateway {
    addresses: Vec<Address>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Address {
    value: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Route {
    parent_refs: Vec<Named>,
    rules: Vec<Backends>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Backends {
    backend_refs: Vec<Named>,
}

/// The Service that a host is: `cart`, `cart.shop`, `cart.shop.svc.cluster.local`.
fn service_of(host: &str, namespace: &str) -> Key {
    let mut parts = host.split('.');
    let name = parts.next().unwrap_or_default();
    Key::new(parts.next().unwrap_or(namespace), name)
}

impl Routes {
    /// The Services to which the gateway in a pod forwards requests.
    pub(crate) fn behind(&self, pods: &PodIndex<'_>, key: &Key, pod: &Pod) -> BTreeSet<Key> {
        let mut found = BTreeSet::new();
        let own: BTreeSet<&Key> = self
            .istio_gateways
            .iter()
            .filter(|(_, gateway)| !gateway.selector.is_empty() && pod.has(&gateway.selector))
            .map(|(key, _)| key)
            .collect();
        for (key, service) in &self.virtual_services {
            let names = service.gateways.iter().map(|name| match name.split_once('/') {
                Some((namespace, name)) => Key::new(namespace, name),
                None => Key::new(&*key.namespace, &**name),
            });
            if names.into_iter().any(|name| own.contains(&name)) {
                self.destinations(key, service, true, &mut found);
            }
        }
        let own = |gateway: &Key| self.is_served_by(pods, gateway, key, pod);
        for ((_, key), route) in &self.of_gateway_api {
            let is_gateway = |parent: &&Named| parent.kind.as_deref().is_none_or(|kind| kind == "Gateway");
            if route.parent_refs.iter().filter(is_gateway).any(|parent| own(&parent.key(&key.namespace))) {
                let backends = route.rules.iter().flat_map(|rule| &rule.backend_refs);
                found.extend(backends.map(|backend| backend.key(&key.namespace)));
            }
        }
        found
    }

    fn destinations(&self, key: &Key, service: &VirtualService, delegates: bool, found: &mut BTreeSet<Key>) {
        for hop in service.http.iter().chain(&service.tls).chain(&service.tcp) {
            found.extend(hop.route.iter().map(|to| service_of(&to.destination.host, &key.namespace)));
            let delegate = hop.delegate.as_ref().filter(|_| delegates).map(|named| named.key(&key.namespace));
            // Istio follows one delegation.
            if let Some((key, service)) = delegate.and_then(|key| self.virtual_services.get_key_value(&key)) {
                self.destinations(key, service, false, found);
            }
        }
    }

    /// Whether a pod is the proxy of a Gateway: Istio deployed it for that, or the Gateway names
    /// one of its Services.
    fn is_served_by(&self, pods: &PodIndex<'_>, gateway: &Key, key: &Key, pod: &Pod) -> bool {
        let made = gateway.namespace == key.namespace && pod.labels.get(GATEWAY_LABEL) == Some(&gateway.name);
        let addresses = self.gateways.get(gateway).into_iter().flat_map(|gateway| &gateway.addresses);
        made || addresses
            .map(|address| service_of(&address.value, &gateway.namespace))
            .any(|service| pods.of(&service).iter().any(|(own, _)| *own == key))
    }
}
