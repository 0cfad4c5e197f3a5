//! A Service with its endpoints, as the churn creates and changes it. Pure.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};

use super::{Label, Setting};
use crate::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    ClusterIp,
    NodePort,
    LoadBalancer,
}

#[derive(Debug, Clone, Copy)]
struct Endpoint {
    address: Ipv4Addr,
    here: bool,
    ready: bool,
    serving: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) name: String,
    kind: Kind,
    /// One or two ports; the second one has the other protocol.
    ports: Vec<u16>,
    first_is_udp: bool,
    external: Vec<Ipv4Addr>,
    balanced: Vec<Ipv4Addr>,
    local: bool,
    sticky: bool,
    setting: Setting,
    /// The label of an object, and a label without meaning.
    label: Option<Label>,
    other: usize,
    endpoints: Vec<Endpoint>,
}

/// The part of a Service that has to be written after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Changed {
    Labels,
    Addresses,
    Ports,
    Policy,
    LoadBalancer,
    Endpoints,
}

/// Hands out addresses, each once. So a rule shows to which Service it belongs, and whether it is
/// stale.
#[derive(Debug, Default)]
pub(super) struct Addresses(u32);

impl Addresses {
    /// Uses the range for benchmarks between networks, which nobody routes.
    fn next(&mut self) -> Ipv4Addr {
        self.0 += 1;
        assert!(self.0 < 1 << 17, "198.18.0.0/15 is used up");
        Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + self.0)
    }

    fn some(&mut self, count: usize) -> Vec<Ipv4Addr> {
        (0..count).map(|_| self.next()).collect()
    }
}

impl Shape {
    pub(super) fn random(
        number: usize,
        setting: Setting,
        random: &mut Random,
        addresses: &mut Addresses,
    ) -> Self {
        let kind = random.pick(&[Kind::ClusterIp, Kind::ClusterIp, Kind::NodePort, Kind::LoadBalancer]);
        let mut shape = Self {
            name: format!("churn-{number}"),
            kind,
            ports: Vec::new(),
            first_is_udp: random.chance(30),
            external: if random.chance(30) { addresses.some(1) } else { Vec::new() },
            balanced: if kind == Kind::LoadBalancer { addresses.some(1) } else { Vec::new() },
            local: kind != Kind::ClusterIp && random.chance(40),
            sticky: random.chance(15),
            setting,
            label: random.chance(40).then(|| random.pick(setting.labels)),
            other: 0,
            endpoints: Vec::new(),
        };
        shape.change_ports(random);
        let endpoints = random.below(3) + 1;
        shape.endpoints = (0..endpoints).map(|_| endpoint(random)).collect();
        shape
    }

    /// Makes a Service that does not change, with a ClusterIP and an external address.
    pub(super) fn steady(
        name: String,
        setting: Setting,
        label: Option<Label>,
        addresses: &mut Addresses,
    ) -> Self {
        let address = Ipv4Addr::new(10, 200, 0, 1);
        Self {
            name,
            kind: Kind::ClusterIp,
            ports: vec![80],
            first_is_udp: false,
            external: addresses.some(1),
            balanced: Vec::new(),
            local: false,
            sticky: false,
            setting,
            label,
            other: 0,
            endpoints: vec![Endpoint { address, here: false, ready: true, serving: true }],
        }
    }

    /// Changes one field and returns which part to write.
    pub(super) fn change(&mut self, random: &mut Random, addresses: &mut Addresses) -> Changed {
        match random.below(100) {
            0..20 => {
                self.label = random.chance(60).then(|| random.pick(self.setting.labels));
                Changed::Labels
            }
            20..25 => {
                self.other += 1;
                Changed::Labels
            }
            25..40 => {
                let count = random.below(3);
                self.external = addresses.some(count);
                Changed::Addresses
            }
            40..50 => {
                self.change_ports(random);
                Changed::Ports
            }
            50..55 if self.kind != Kind::ClusterIp => {
                self.local = !self.local;
                Changed::Policy
            }
            50..65 if self.kind == Kind::LoadBalancer => {
                let count = random.below(3);
                self.balanced = addresses.some(count);
                Changed::LoadBalancer
            }
            50..80 if !self.endpoints.is_empty() => {
                let position = random.below(self.endpoints.len());
                let endpoint = &mut self.endpoints[position];
                (endpoint.ready, endpoint.serving) =
                    random.pick(&[(true, true), (true, true), (false, true), (false, false)]);
                Changed::Endpoints
            }
            _ => {
                if self.endpoints.is_empty() || self.endpoints.len() < 3 && random.chance(60) {
                    self.endpoints.push(endpoint(random));
                } else {
                    self.endpoints.remove(0);
                }
                Changed::Endpoints
            }
        }
    }

    fn change_ports(&mut self, random: &mut Random) {
        let count = random.pick(&[1, 1, 2]);
        self.ports =
            (0..count).map(|port| port * 1000 + u16::try_from(random.below(1000)).unwrap() + 1).collect();
    }

    fn protocol(&self, port: usize) -> &'static str {
        if (port == 0) == self.first_is_udp { "UDP" } else { "TCP" }
    }

    pub(super) fn service(&self) -> Service {
        let kind = match self.kind {
            Kind::ClusterIp => "ClusterIP",
            Kind::NodePort => "NodePort",
            Kind::LoadBalancer => "LoadBalancer",
        };
        let mut service = json!({
            "metadata": {"name": self.name},
            "spec": {"type": kind, "sessionAffinity": if self.sticky { "ClientIP" } else { "None" }},
        });
        let parts = [Changed::Labels, Changed::Addresses, Changed::Ports, Changed::Policy];
        for part in parts.into_iter().filter(|part| self.has(*part)) {
            merge(&mut service, self.patch(part));
        }
        serde_json::from_value(service).unwrap()
    }

    fn has(&self, part: Changed) -> bool {
        part != Changed::Policy || self.kind != Kind::ClusterIp
    }

    /// Returns the changed part as a merge patch of the Service, its status or its EndpointSlice.
    pub(super) fn patch(&self, part: Changed) -> Value {
        match part {
            Changed::Labels => {
                let mut labels = json!({"churn.example/other": self.other.to_string()});
                for (key, _) in self.setting.labels {
                    labels[key] = self.label.filter(|(own, _)| own == key).map(|(_, value)| value).into();
                }
                json!({"metadata": {"labels": labels}})
            }
            Changed::Addresses => json!({"spec": {"externalIPs": self.external}}),
            Changed::Ports => {
                let described = |(place, number): (usize, &u16)| {
                    let protocol = self.protocol(place);
                    json!({"name": format!("p{place}"), "port": number, "protocol": protocol})
                };
                json!({"spec": {"ports": self.ports.iter().enumerate().map(described).collect::<Vec<_>>()}})
            }
            Changed::Policy => {
                json!({"spec": {"externalTrafficPolicy": if self.local { "Local" } else { "Cluster" }}})
            }
            Changed::LoadBalancer => {
                let ingress: Vec<Value> = self.balanced.iter().map(|ip| json!({"ip": ip})).collect();
                json!({"status": {"loadBalancer": {"ingress": ingress}}})
            }
            Changed::Endpoints => json!({"endpoints": self.endpoints()}),
        }
    }

    pub(super) fn has_status(&self) -> bool {
        !self.balanced.is_empty()
    }

    pub(super) fn slice(&self) -> EndpointSlice {
        let port = |place: usize| json!({"name": format!("p{place}"), "port": 8080, "protocol": self.protocol(place)});
        serde_json::from_value(json!({
            "metadata": {"name": self.name, "labels": {
                "kubernetes.io/service-name": self.name,
                "endpointslice.kubernetes.io/managed-by": "churn.example",
            }},
            "addressType": "IPv4",
            "ports": [port(0), port(1)],
            "endpoints": self.endpoints(),
        }))
        .unwrap()
    }

    fn endpoints(&self) -> Vec<Value> {
        let endpoint = |endpoint: &Endpoint| {
            let terminating = endpoint.serving && !endpoint.ready;
            json!({
                "addresses": [endpoint.address],
                "conditions": {"ready": endpoint.ready, "serving": endpoint.serving, "terminating": terminating},
                "nodeName": if endpoint.here { self.setting.node } else { "somewhere" },
            })
        };
        self.endpoints.iter().map(endpoint).collect()
    }
}

fn endpoint(random: &mut Random) -> Endpoint {
    let number = u32::try_from(random.below(1 << 16)).unwrap();
    let address = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 201, 0, 0)) + number);
    Endpoint { address, here: random.chance(30), ready: random.chance(90), serving: true }
}

/// Applies a merge patch as the API server does.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch.into_iter().filter(|(_, value)| !value.is_null()) {
        merge(&mut target[key], value);
    }
}
