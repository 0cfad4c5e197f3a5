//! The load balancer in front of the cluster: the lab's router, which sends each external address
//! to the nodes that a load balancer would choose.

use std::net::Ipv4Addr;

use isp_lab::Place;
use isp_testkit::web_lab::CLIENT;

use crate::cases::{CLIENT_2, Case, SourceKind, Target};
use crate::pods::NODES;
use crate::services::Exposure;
use crate::world::{World, Written};

/// The routing table of clients outside.
const OUTSIDE: &str = "77";

impl World {
    /// Routes the addresses of Services: to the ingress nodes if the object preserves the Service,
    /// else to every node; with a health check, only to nodes that pass it.
    pub(crate) async fn balance(&self, services: &[Written]) {
        for service in services {
            let nodes: &[&str] = if service.generated.owned { &NODES[..1] } else { &NODES };
            if let [routed, pinned] = service.generated.external_ips[..] {
                self.web.lab.route(routed.into(), nodes).await.unwrap();
                self.web.lab.route(pinned.into(), &[service.generated.pinned_to]).await.unwrap();
            }
            // A balancer with ipMode Proxy has its own connections, which the lab does not have.
            let is_proxying = service.generated.exposure == Exposure::ProxyingLoadBalancer;
            if let Some(address) = service.generated.balanced.filter(|_| !is_proxying) {
                self.balance_one(address, service, nodes).await;
            }
        }
    }

    async fn balance_one(&self, address: Ipv4Addr, service: &Written, nodes: &[&str]) {
        let mut healthy = Vec::new();
        for node in nodes {
            let passes = match service.health_check {
                Some(port) => self.passes(node, port).await,
                None => true,
            };
            healthy.extend(passes.then_some(*node));
        }
        if !healthy.is_empty() {
            return self.web.lab.route(address.into(), &healthy).await.unwrap();
        }
        // A balancer without a healthy target drops.
        self.on_router(&["ip", "route", "replace", "blackhole", &address.to_string()]).await;
    }

    async fn passes(&self, node: &str, port: u16) -> bool {
        let url = format!("http://{}:{port}/healthz", self.web.node_address(node));
        let arguments = ["-o", "/dev/null", "-w", "%{http_code}", url.as_str()];
        let output = self.web.lab.curl(&Place::Router, &arguments).await.unwrap();
        output.stdout.trim() == "200"
    }

    /// Gives clients outside a route to the ClusterIPs of their cases. Nobody else has it.
    pub(crate) async fn route_cluster_ips(&self, cases: &[Case]) {
        let is_pinned = |case: &&Case| case.target == Target::ExternalIpOfOneNode;
        for case in cases.iter().filter(|case| case.kind == SourceKind::Outside && !is_pinned(case)) {
            if let Some(node) = case.via {
                let (to, via) = (case.destination.ip().to_string(), self.web.node_address(node).to_string());
                let route = ["ip", "route", "replace", &to, "via", &via, "table", OUTSIDE];
                self.on_router(&route).await;
            }
        }
    }

    /// Lets clients outside have routes of their own.
    pub(crate) async fn separate_clients(&self) {
        for client in [CLIENT, CLIENT_2] {
            self.on_router(&["ip", "rule", "add", "from", &client.to_string(), "lookup", OUTSIDE]).await;
        }
    }

    async fn on_router(&self, command: &[&str]) {
        let done = self.web.lab.exec(&Place::Router, command).await.unwrap();
        assert!(done.success, "{command:?}: {}", done.stderr);
    }
}
