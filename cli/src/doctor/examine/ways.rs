//! The paths on which clients outside reach an enforcer of policies: through an exposed Service to
//! a gateway, a sidecar or an ingress controller, and from there to the pods behind it.

mod path;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Deref;

use isp_plan::Key;

pub(super) use self::path::Whose;
use super::{Scope, gateways};
use crate::doctor::cluster::{Cluster, Pod, Service};
use crate::doctor::finding::{Code, Subject};
use crate::doctor::judgement::{Arrival, Field, Front, Place};
use crate::doctor::lists::Ingress;
use crate::doctor::mesh::Reach;
use crate::doctor::policy::AuthorizationPolicy;

/// The kind of enforcer that compares addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Enforcer {
    /// An Istio gateway.
    Gateway,
    Sidecar,
    /// Istio's proxy of a node. It sees only the peer.
    Ztunnel,
    /// Istio's proxy before a Service.
    Waypoint,
    /// An ingress controller.
    Controller,
    /// The network of the pod itself.
    Pod,
}

/// A Service that leads clients to enforcers of one kind.
pub(super) struct Entry<'a> {
    pub(super) service: &'a Key,
    pub(super) facts: &'a Service,
    pub(super) arrival: Arrival,
    kind: Enforcer,
    /// Where it ends.
    place: Place,
    /// The pods that the Service leads to.
    pods: Vec<(&'a Key, &'a Pod)>,
    /// The addresses of these pods.
    pub(super) addresses: Vec<IpAddr>,
    /// The Services to which they forward requests, as far as routes say.
    behind: BTreeSet<Key>,
    /// The pods of these Services that are in the mesh.
    reached: BTreeMap<&'a Key, &'a Pod>,
}

impl<'a> Entry<'a> {
    fn new(service: &'a Key, facts: &'a Service, kind: Enforcer, place: Place) -> Self {
        Self {
            service,
            facts,
            arrival: facts.arrival(),
            kind,
            place,
            pods: Vec::new(),
            addresses: Vec::new(),
            behind: BTreeSet::new(),
            reached: BTreeMap::new(),
        }
    }

    /// The path of a Service to its pods.
    pub(super) fn to_pods(service: &'a Key, facts: &'a Service, pods: Vec<(&'a Key, &'a Pod)>) -> Self {
        Self { pods, ..Self::new(service, facts, Enforcer::Pod, Place::Exposed) }
    }

    /// The path that ends here.
    pub(super) fn direct(&self) -> Way<'_, 'a> {
        Way { entry: self, place: self.place, enforcer: self.kind }
    }

    /// The path to the pods behind the gateway or the controller.
    fn further(&self, enforcer: Enforcer) -> Option<Way<'_, 'a>> {
        let Place::Gateway(front) = self.place else { return None };
        Some(Way { entry: self, place: Place::BehindGateway(front), enforcer })
    }
}

/// A path through an entry to the place where an address is compared.
#[derive(Clone, Copy)]
pub(super) struct Way<'w, 'a> {
    entry: &'w Entry<'a>,
    pub(super) place: Place,
    pub(super) enforcer: Enforcer,
}

impl<'a> Deref for Way<'_, 'a> {
    type Target = Entry<'a>;

    fn deref(&self) -> &Self::Target {
        self.entry
    }
}

impl Way<'_, '_> {
    /// The setting on the path that replaces the client's address.
    pub(super) fn cause(&self) -> Option<(Code, Subject)> {
        let front = match self.place {
            Place::Gateway(front) | Place::BehindGateway(front) => front,
            Place::Exposed => Front::Network,
        };
        let code = match (front, self.arrival) {
            (Front::Network, Arrival::Balancer) => Code::IpModeProxy,
            (Front::Network, _) => return None,
            (Front::TrustedProxies, _) => Code::TrustedProxies,
            (Front::ProxyProtocol, _) => Code::ProxyProtocol,
        };
        Some((code, Subject::new("Service", self.service)))
    }

    /// Whether the visible address depends on the Service keeping the source IP.
    pub(super) fn is_direct(&self, field: Field) -> bool {
        matches!(
            (self.place, field),
            (Place::Gateway(Front::Network) | Place::Exposed, _)
                | (Place::BehindGateway(Front::Network), Field::Remote)
        )
    }
}

pub(super) struct Ways<'a> {
    cluster: &'a Cluster,
    entries: Vec<Entry<'a>>,
    /// The pods of the mesh to which a Service leads.
    exposed: BTreeSet<&'a Key>,
}

/// The enforcers in a pod of an exposed Service. A controller may have a sidecar.
fn enforcers(cluster: &Cluster, key: &Key, pod: &Pod) -> impl Iterator<Item = (Enforcer, Place)> {
    let of_mesh = if pod.gateway {
        Some((Enforcer::Gateway, Place::Gateway(gateways::front(cluster, key, pod))))
    } else if pod.sidecar.is_some() {
        Some((Enforcer::Sidecar, Place::Exposed))
    } else {
        pod.ambient.then_some((Enforcer::Ztunnel, Place::Exposed))
    };
    let controller = pod.controller.as_ref().filter(|_| !pod.gateway).map(|controller| {
        let settings = controller.settings.as_ref().and_then(|key| cluster.controllers.get(key));
        let front = match settings {
            Some(settings) if settings.proxy_protocol => Front::ProxyProtocol,
            Some(settings) if settings.forwarded_headers => Front::TrustedProxies,
            _ => Front::Network,
        };
        (Enforcer::Controller, Place::Gateway(front))
    });
    of_mesh.into_iter().chain(controller)
}

impl<'a> Ways<'a> {
    pub(super) fn of(scope: &Scope<'a>) -> Self {
        let cluster = scope.cluster;
        let mut found: BTreeMap<(&'a Key, Enforcer, Place), Entry<'a>> = BTreeMap::new();
        for (service, facts, _) in scope.exposed() {
            for (key, pod) in scope.pods.of(service) {
                for (kind, place) in enforcers(cluster, key, pod) {
                    let entry = found
                        .entry((service, kind, place))
                        .or_insert_with(|| Entry::new(service, facts, kind, place));
                    entry.pods.push((key, pod));
                    entry.addresses.extend(&pod.addresses);
                    if kind == Enforcer::Gateway {
                        entry.behind.extend(cluster.routes.behind(&scope.pods, key, pod));
                    }
                }
            }
        }
        let entries = found.into_values().collect();
        let mut ways = Self { cluster, entries, exposed: BTreeSet::new() };
        for ingress in cluster.ingresses.values() {
            for place in ways.controllers_of(ingress) {
                ways.entries[place].behind.extend(ingress.backends.iter().cloned());
            }
        }
        for entry in &mut ways.entries {
            let pods = entry.behind.iter().flat_map(|service| scope.pods.of(service));
            entry.reached = pods.filter(|(_, pod)| pod.is_in_mesh() && !pod.gateway).collect();
        }
        let exposed = ways.entries.iter().filter(|entry| entry.place == Place::Exposed);
        ways.exposed = exposed.flat_map(|entry| entry.pods.iter().map(|(key, _)| *key)).collect();
        ways
    }

    /// The controllers that serve an Ingress: those behind the addresses that it has, else all.
    fn controllers_of(&self, ingress: &Ingress) -> Vec<usize> {
        let all = || self.entries.iter().enumerate().filter(|(_, entry)| entry.kind == Enforcer::Controller);
        let has_address =
            |entry: &Entry<'a>| entry.facts.facts.addresses.iter().any(|own| ingress.addresses.contains(own));
        let known: Vec<usize> =
            all().filter(|(_, entry)| has_address(entry)).map(|(place, _)| place).collect();
        if known.is_empty() { all().map(|(place, _)| place).collect() } else { known }
    }

    /// The paths to the controllers that serve an Ingress.
    pub(super) fn to_ingress(&self, ingress: &Ingress) -> Vec<Way<'_, 'a>> {
        self.controllers_of(ingress).into_iter().map(|place| self.entries[place].direct()).collect()
    }

    /// The paths to the controllers that have these settings.
    pub(super) fn to_controllers(&self, settings: &Key) -> Vec<Way<'_, 'a>> {
        let has =
            |pod: &Pod| pod.controller.as_ref().is_some_and(|own| own.settings.as_ref() == Some(settings));
        let entries = self.entries.iter().filter(|entry| entry.kind == Enforcer::Controller);
        entries.filter(|entry| entry.pods.iter().any(|(_, pod)| has(pod))).map(Entry::direct).collect()
    }

    /// The paths to the enforcers of a policy. None: no proxy enforces it.
    pub(super) fn to_policy(&self, key: &Key, policy: &AuthorizationPolicy) -> Option<Vec<Way<'_, 'a>>> {
        let of_mesh = self.cluster.is_root(&key.namespace);
        let targets = policy.targets();
        let services: Vec<Key> = targets
            .iter()
            .filter(|target| target.kind == "Service")
            .map(|target| Key::new(&*key.namespace, &*target.name))
            .collect();
        let reach = Reach { namespace: &key.namespace, of_mesh, selector: policy.selector.as_ref(), targets };
        let meets = |(pod, facts): (&Key, &Pod)| reach.meets(&pod.namespace, facts);
        let direct = |entry: &&Entry<'a>| {
            entry.kind != Enforcer::Controller && entry.pods.iter().any(|pod| meets(*pod))
        };
        let mut ways: Vec<Way<'_, 'a>> = self.entries.iter().filter(direct).map(Entry::direct).collect();
        let led = self.entries.iter().filter_map(|entry| {
            let waypoint = services.iter().any(|service| entry.behind.contains(service));
            let pods = entry.reached.iter().filter(|(pod, facts)| meets((pod, facts))).map(|(_, pod)| *pod);
            entry.further(if waypoint { Enforcer::Waypoint } else { enforcer_of(pods)? })
        });
        let led: Vec<Way<'_, 'a>> = led.collect();
        if !led.is_empty() {
            ways.extend(led);
            return Some(ways);
        }
        let met = || self.pods_of(of_mesh, &key.namespace).filter(|pod| meets(*pod));
        let inside = met().filter(|(pod, facts)| !facts.gateway && !self.exposed.contains(pod));
        let waypoint = services.iter().any(|service| self.cluster.services.contains_key(service));
        let inside =
            if waypoint { Some(Enforcer::Waypoint) } else { enforcer_of(inside.map(|(_, pod)| pod)) };
        if let Some(enforcer) = inside {
            // No route names the gateway, so every gateway may lead there.
            let gateways = self.entries.iter().filter(|entry| entry.kind == Enforcer::Gateway);
            ways.extend(gateways.filter_map(|entry| entry.further(enforcer)));
        }
        let enforced = || met().any(|(_, facts)| facts.is_in_mesh());
        (inside.is_some() || !ways.is_empty() || enforced()).then_some(ways)
    }

    /// The pods of the mesh, or of a namespace.
    fn pods_of(&self, of_mesh: bool, namespace: &str) -> impl Iterator<Item = (&'a Key, &'a Pod)> {
        let own = (!of_mesh).then(|| self.cluster.pods_in(namespace));
        let all = of_mesh.then(|| self.cluster.pods.iter());
        own.into_iter().flatten().chain(all.into_iter().flatten())
    }
}

/// Which proxy enforces a policy for these pods: a sidecar, if one of them has one.
fn enforcer_of<'p>(pods: impl Iterator<Item = &'p Pod>) -> Option<Enforcer> {
    let enforcers = pods.filter_map(|pod| match pod {
        pod if pod.sidecar.is_some() => Some(Enforcer::Sidecar),
        pod => pod.ambient.then_some(Enforcer::Ztunnel),
    });
    enforcers.min()
}
