//! The source IPs of a real connection, captured by the kernel at each place on its way.
//!
//! A set of nftables collects the sources of packets that carry data, in the hook `ingress`: it
//! sees them as the wire delivers them, before any rule of the node, the mesh or this project. The
//! packet that opens a connection does not suffice: a sidecar keeps connections to its application
//! open.

use std::net::IpAddr;

use isp_lab::{Lab, Place, Protocol};
use isp_testkit::web_lab::{CLIENT, EDGE};
use isp_testkit::{answers, until};
use serde_json::Value;

use crate::told::Hop;
use crate::world::{Service, World};

/// The port of the gateway, and of the application.
const POD_PORT: u16 = 8080;

/// Which source a connection from outside had.
#[derive(Debug)]
pub(crate) struct Captured {
    /// On the interface of the first node.
    pub(crate) at_node: IpAddr,
    /// On the interface of the pod.
    at_pod: IpAddr,
    /// In the end: at the application or, if the pod is a gateway, at the gateway.
    pub(crate) seen: IpAddr,
}

impl Captured {
    /// The hop that replaced the client's address, if one did.
    pub(crate) fn lost(&self) -> Option<Hop> {
        [(self.at_node, Hop::BeforeFirstNode), (self.at_pod, Hop::Node), (self.seen, Hop::Sidecar)]
            .into_iter()
            .find_map(|(source, hop)| (source != CLIENT).then_some(hop))
    }
}

/// Connects from the client, and collects the sources on the way. Rules and proxies follow a change
/// of the cluster within seconds, so it connects until the address is lost where it should be.
pub(crate) async fn capture(world: &World, service: &Service, lost: Option<Hop>) -> Captured {
    let lab = &world.lab;
    let pod = world.pod(service).await;
    until("the connection goes the expected way", async || {
        let node = Sources::collect(lab, Place::Node(EDGE.to_owned()), "eth0", 80).await;
        let arrived = Sources::collect(lab, pod.clone(), "eth0", POD_PORT).await;
        let inside = Sources::collect(lab, pod.clone(), "lo", POD_PORT).await;
        let target = (Protocol::Http, service.external);
        let answer =
            answers::until(lab, "it answers", &Place::Client, target, |answer| answer.peer().is_some()).await;
        let (at_node, at_pod) = (node.only().await?, arrived.only().await?);
        let seen = if service.is_gateway {
            answer.forwarded_for().unwrap()
        } else {
            // What the sidecar sends to the application is what the application says it saw.
            let seen = inside.only().await?;
            assert_eq!(answer.peer(), Some(seen), "{answer:?}");
            seen
        };
        let captured = Captured { at_node, at_pod, seen };
        if captured.lost() == lost { Ok(captured) } else { Err(format!("{captured:?}")) }
    })
    .await
}

/// A set of sources in the kernel.
struct Sources<'a> {
    lab: &'a Lab,
    place: Place,
    table: String,
}

impl<'a> Sources<'a> {
    /// Collects the sources of requests to a port from now on.
    async fn collect(lab: &'a Lab, place: Place, device: &str, port: u16) -> Self {
        let table = format!("capture-{device}");
        let script = format!(
            "add table inet {table}; delete table inet {table}; add table inet {table}; \
             add set inet {table} sources {{ type ipv4_addr; size 1024; flags dynamic; }}; \
             add chain inet {table} arriving {{ type filter hook ingress device {device} priority -500; }}; \
             add rule inet {table} arriving tcp dport {port} tcp flags & psh == psh update @sources {{ ip saddr }}"
        );
        let output = lab.exec(&place, &["nft", &script]).await.unwrap();
        assert!(output.success, "{place}: {}", output.stderr);
        Self { lab, place, table }
    }

    /// The only source so far, else what there is.
    async fn only(&self) -> Result<IpAddr, String> {
        let list = ["nft", "--json", "list", "set", "inet", &self.table, "sources"];
        let output = self.lab.exec(&self.place, &list).await.unwrap();
        let listed: Value = serde_json::from_str(&output.stdout).unwrap();
        let set = listed["nftables"].as_array().unwrap().iter().find_map(|each| each.get("set")).unwrap();
        let elements = set["elem"].as_array().map(Vec::as_slice).unwrap_or_default();
        let [only] = elements else { return Err(format!("{}, {}: {elements:?}", self.place, self.table)) };
        Ok(only["elem"]["val"].as_str().or_else(|| only.as_str()).unwrap().parse().unwrap())
    }
}
