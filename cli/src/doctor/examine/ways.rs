//! The ways on which clients outside come to Istio's proxies: through an exposed Service to a gateway or a sidecar, and from a gateway on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Deref;

use isp_plan::Key;

use super::{Scene, gateways};
use crate::doctor::cluster::{Cluster, Pod, Service};
use crate::doctor::finding::{Code, Subject};
use crate::doctor::judgement::{Arrival, Field, Front, Place, Seen};
use crate::doctor::mesh::Reach;
use crate::doctor::policy::AuthorizationPolicy;

/// A Service by which clients come to proxies of one kind.
pub(super) struct Entry<'a> {
    pub(super) service: &'a Key,
    pub(super) facts: &'a Service,
    pub(super) arrival: Arrival,
    /// Where it ends.
    place: Place,
    /// The pods whose proxies the Service leads to.
    proxies: Vec<(&'a Key, &'a Pod)>,
    /// The addresses of these pods.
    pub(super) addresses: Vec<IpAddr>,
    /// The Services that they hand requests on to, where that is written.
    behind: BTreeSet<Key>,
    /// The pods of these Services that have a sidecar.
    reached: BTreeMap<&'a Key, &'a Pod>,
}

/// A way in, through an entry to where a policy is enforced.
#[derive(Clone, Copy)]
pub(super) struct Way<'w, 'a> {
    entry: &'w Entry<'a>,
    pub(super) place: Place,
}

impl<'a> Deref for Way<'_, 'a> {
    type Target = Entry<'a>;

    fn deref(&self) -> &Self::Target {
        self.entry
    }
}

pub(super) struct Ways<'a> {
    cluster: &'a Cluster,
    entries: Vec<Entry<'a>>,
    /// The pods with a sidecar to which a Service leads.
    exposed: BTreeSet<&'a Key>,
}

impl<'a> Ways<'a> {
    pub(super) fn of(scene: &Scene<'a>) -> Self {
        let cluster = scene.cluster;
        let mut found: BTreeMap<(&'a Key, Place), Entry<'a>> = BTreeMap::new();
        for (service, facts, _) in scene.exposed() {
            let arrival = facts.arrival();
            for (key, pod) in scene.pods.of(service) {
                let place = if pod.gateway {
                    Place::Gateway(gateways::front(cluster, key, pod))
                } else if pod.sidecar.is_some() {
                    Place::Exposed
                } else {
                    continue;
                };
                let entry = found.entry((service, place)).or_insert_with(|| Entry {
                    service,
                    facts,
                    arrival,
                    place,
                    proxies: Vec::new(),
                    addresses: Vec::new(),
                    behind: BTreeSet::new(),
                    reached: BTreeMap::new(),
                });
                entry.proxies.push((key, pod));
                entry.addresses.extend(&pod.addresses);
                if pod.gateway {
                    entry.behind.extend(cluster.routes.behind(&scene.pods, key, pod));
                }
            }
        }
        let mut entries: Vec<Entry<'a>> = found.into_values().collect();
        for entry in &mut entries {
            let pods = entry.behind.iter().flat_map(|service| scene.pods.of(service));
            entry.reached = pods.filter(|(_, pod)| pod.sidecar.is_some()).collect();
        }
        let exposed = entries.iter().filter(|entry| entry.place == Place::Exposed);
        let exposed = exposed.flat_map(|entry| entry.proxies.iter().map(|(key, _)| *key)).collect();
        Self { cluster, entries, exposed }
    }

    /// The ways to where a policy is enforced. None: no proxy enforces it.
    pub(super) fn to(&self, key: &Key, policy: &AuthorizationPolicy) -> Option<Vec<Way<'_, 'a>>> {
        let of_mesh = self.cluster.is_root(&key.namespace);
        let targets = policy.targets();
        let services: Vec<Key> = targets
            .iter()
            .filter(|target| target.kind == "Service")
            .map(|target| Key::new(&*key.namespace, &*target.name))
            .collect();
        let reach = Reach { namespace: &key.namespace, of_mesh, selector: policy.selector.as_ref(), targets };
        let meets = |(pod, facts): (&Key, &Pod)| reach.meets(&pod.namespace, facts);
        let mut ways = Vec::new();
        for entry in &self.entries {
            if entry.proxies.iter().any(|proxy| meets(*proxy)) {
                ways.push(Way { entry, place: entry.place });
            }
        }
        let is_led = |entry: &&Entry<'a>| {
            entry.reached.iter().any(|(pod, facts)| meets((pod, facts)))
                || services.iter().any(|service| entry.behind.contains(service))
        };
        let led: Vec<Way<'_, 'a>> = self.entries.iter().filter(is_led).filter_map(Entry::further).collect();
        if !led.is_empty() {
            ways.extend(led);
            return Some(ways);
        }
        let met = || self.pods_of(of_mesh, &key.namespace).filter(|pod| meets(*pod));
        let inside = met().any(|(pod, facts)| facts.sidecar.is_some() && !self.exposed.contains(pod))
            || services.iter().any(|service| self.cluster.services.contains_key(service));
        if inside {
            // No route says which gateway leads there, so that any may.
            ways.extend(self.entries.iter().filter_map(Entry::further));
        }
        let enforced = || met().any(|(_, facts)| facts.gateway || facts.sidecar.is_some());
        (inside || !ways.is_empty() || enforced()).then_some(ways)
    }

    /// The pods of the mesh, or of a namespace.
    fn pods_of(&self, of_mesh: bool, namespace: &str) -> impl Iterator<Item = (&'a Key, &'a Pod)> {
        let own = (!of_mesh).then(|| self.cluster.pods_in(namespace));
        let all = of_mesh.then(|| self.cluster.pods.iter());
        own.into_iter().flatten().chain(all.into_iter().flatten())
    }
}

impl<'a> Entry<'a> {
    /// The way to what is behind the gateway.
    fn further(&self) -> Option<Way<'_, 'a>> {
        let Place::Gateway(front) = self.place else { return None };
        Some(Way { entry: self, place: Place::BehindGateway(front) })
    }
}

impl Way<'_, '_> {
    /// The setting on it that puts another address in the client's place.
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

    /// Whether the address that is seen depends on the Service keeping it.
    pub(super) fn is_direct(&self, field: Field) -> bool {
        matches!(
            (self.place, field),
            (Place::Gateway(Front::Network) | Place::Exposed, _)
                | (Place::BehindGateway(Front::Network), Field::Remote)
        )
    }

    pub(super) fn whose(&self, seen: Seen, field: Field) -> &'static str {
        match (seen, self.place) {
            (Seen::Client, _) => "the client's address",
            (Seen::Claimed, _) => "whatever address the client claims",
            (Seen::StandIn, Place::BehindGateway(_)) if field == Field::Peer => "the gateway's address",
            (Seen::StandIn, _) if self.is_direct(field) && self.arrival == Arrival::Node => {
                "a node's address"
            }
            (Seen::StandIn, _) if self.is_direct(field) => "the load balancer's address",
            (Seen::StandIn, _) => "the address of the proxy before the gateway",
        }
    }

    pub(super) fn through(&self) -> String {
        let place = match self.place {
            Place::Gateway(_) => "at the gateway",
            Place::BehindGateway(_) => "at the sidecars behind the gateway",
            Place::Exposed => "at the sidecar",
        };
        format!("{place} of Service {} (externalTrafficPolicy {})", self.service, self.facts.policy())
    }

    /// Hop by hop, whose address is where. `seen`: whose the policy compares in the end.
    pub(super) fn hops(&self, field: Field, seen: Seen) -> Vec<String> {
        let type_ = self.facts.spec.type_.as_deref().unwrap_or("ClusterIP");
        let kept = match self.arrival {
            Arrival::Client => "the source IP stays the client's",
            Arrival::Balancer => {
                "the load balancer opens connections of its own (ipMode Proxy), so the source IP is the balancer's"
            }
            Arrival::Node => "the node that receives the connection replaces the source IP by its own (SNAT)",
        };
        let mut hops = vec![format!(
            "Service {}, {type_}, externalTrafficPolicy {}: {kept}",
            self.service,
            self.facts.policy()
        )];
        let proxy = self.proxies.first().map(|(key, _)| key.to_string()).unwrap_or_default();
        let peer = match self.arrival {
            Arrival::Client => "the client",
            Arrival::Balancer => "the load balancer",
            Arrival::Node => "a node",
        };
        hops.push(match self.place {
            Place::Exposed => format!("sidecar of pod {proxy}: its peer is {peer}; X-Forwarded-For is as the client wrote it"),
            Place::Gateway(Front::Network) | Place::BehindGateway(Front::Network) => {
                format!("gateway pod {proxy}: its peer is {peer}, and it appends that to X-Forwarded-For")
            }
            Place::Gateway(Front::TrustedProxies) | Place::BehindGateway(Front::TrustedProxies) => {
                format!("gateway pod {proxy}: it takes the client from X-Forwarded-For, and appends its own peer ({peer})")
            }
            Place::Gateway(Front::ProxyProtocol) | Place::BehindGateway(Front::ProxyProtocol) => {
                format!("gateway pod {proxy}: it takes the client from the PROXY protocol; its peer is {peer}")
            }
        });
        if matches!(self.place, Place::BehindGateway(_)) {
            hops.push(match field {
                Field::Peer => "sidecar behind it: its peer is the gateway".to_owned(),
                Field::Remote => format!(
                    "sidecar behind it: it takes the rightmost address of X-Forwarded-For, which is {}",
                    self.whose(seen, field)
                ),
            });
        }
        hops
    }
}
