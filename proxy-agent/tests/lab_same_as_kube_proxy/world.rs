//! One node with everything around it, as network namespaces. Both proxies get a world of their
//! own, with the same addresses: what they do can be compared literally.
//!
//! ```text
//!   outside ──── eth0 ┐        ┌ cni0 ──── pods         clients that are pods of this node
//!   router  ──── up0  ┤  node  ├ cni5, 6, 7 ── pod-5 …  endpoints on this node
//!                     └────────┼ far0 ──── remote       endpoints on other nodes
//!                              └ far1 ──── elsewhere    clients that are pods of another node
//! ```
//!
//! The router answers everything that the node does not redirect with "administratively
//! prohibited", so that a packet that no rule wanted looks different from one that was dropped.
//! Endpoints are threads of this process with sockets in the namespaces; they tell which address
//! they have and which one they see.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use isp_dataplane::nft::Family;
use isp_lab::{End, NetNs};

use crate::addresses::{
    CROWD, FAMILIES, OTHER_NODE, PODS, PRIMARY, SECOND, UNLISTED, link, only, outside, pod, range,
};
use crate::clients::{CLIENT_PODS, PARTNERS, STRANGERS};
use crate::endpoints::Endpoints;

const PLACES: [&str; 9] =
    ["node", "outside", "router", "pods", "pod-5", "pod-6", "pod-7", "remote", "elsewhere"];

/// This bounds a failing test only.
const ADDRESSES_USABLE: Duration = Duration::from_mins(2);

/// Unlike a route, a rule has no limit of errors per second.
const ROUTER: &str = "table inet router {
    chain forward {
        type filter hook forward priority 0
        reject with icmpx admin-prohibited
    }
}";

/// A node, its clients and its endpoints. Dropping it ends everything in it.
pub(crate) struct World {
    pub(crate) netns: NetNs,
    _endpoints: Vec<Endpoints>,
}

impl World {
    pub(crate) fn new() -> Self {
        let netns = NetNs::new(&PLACES).unwrap();
        join(
            &netns,
            ("outside", "eth0"),
            &[PRIMARY, SECOND, UNLISTED],
            &crowd(&[PARTNERS, STRANGERS]),
            &|family, last| range(outside(family, last), 24, 64),
        );
        join(&netns, ("router", "up0"), &[1], &[2], &|family, last| range(link(family, 0, last), 24, 64));
        join(&netns, ("remote", "far0"), &[1], &[2], &|family, last| range(link(family, 1, last), 24, 64));
        join(&netns, ("elsewhere", "far1"), &[1], &[2], &|family, last| range(link(family, 2, last), 24, 64));
        // Point to point, so that replies of a pod to another pod of the node pass through the
        // node.
        join(&netns, ("pods", "cni0"), &[1], &crowd(&[CLIENT_PODS]), &|family, last| {
            only(pod(family, 1, last))
        });
        for last in PODS {
            let (place, interface) = (format!("pod-{last}"), format!("cni{last}"));
            join(&netns, (&place, &interface), &[1], &[last], &|family, last| only(pod(family, 1, last)));
        }
        for place in PLACES {
            for (family, option) in [(Family::Ip, "-4"), (Family::Ip6, "-6")] {
                let lines = lines(place, family).join("\n");
                netns.check(place, &["ip", option, "-batch", "-"], &lines).unwrap();
            }
            settings(&netns, place);
        }
        netns.check("router", &["nft", "-f", "-"], ROUTER).unwrap();
        for place in PLACES {
            wait_for_addresses(&netns, place);
        }
        let endpoints = ["node", "pod-5", "pod-6", "pod-7", "remote"]
            .map(|place| Endpoints::start(netns.entrance(place).unwrap(), addresses_of(place)))
            .into();
        Self { netns, _endpoints: endpoints }
    }

    /// Forgets all tracked connections. Both proxies keep the UDP flows of an endpoint that serves
    /// one of the port's frontends; a later client with the same source port would join one.
    pub(crate) fn forget_connections(&self) {
        self.netns.check("node", &["conntrack", "--flush"], "").unwrap();
    }
}

/// The addresses that endpoints of a place have.
fn addresses_of(place: &str) -> Vec<IpAddr> {
    let both = |address: &dyn Fn(Family) -> IpAddr| FAMILIES.map(address).to_vec();
    match place {
        "node" => both(&|family| outside(family, PRIMARY)),
        "pod-5" => both(&|family| pod(family, 1, 5)),
        "pod-6" => both(&|family| pod(family, 1, 6)),
        "pod-7" => both(&|family| pod(family, 1, 7)),
        _ => [
            both(&|family| pod(family, 2, 5)),
            both(&|family| pod(family, 2, 6)),
            both(&|family| pod(family, 3, 5)),
            both(&|family| outside(family, OTHER_NODE)),
        ]
        .concat(),
    }
}

fn crowd(firsts: &[u8]) -> Vec<u8> {
    firsts.iter().flat_map(|first| *first..*first + CROWD).collect()
}

/// Joins a place to the node; both ends get addresses with these last numbers in both families.
fn join(
    netns: &NetNs,
    (place, interface): (&str, &str),
    of_node: &[u8],
    of_place: &[u8],
    address: &dyn Fn(Family, u8) -> String,
) {
    let both = |lasts: &[u8]| -> Vec<String> {
        FAMILIES.iter().flat_map(|family| lasts.iter().map(|last| address(*family, *last))).collect()
    };
    let (ours, theirs) = (both(of_node), both(of_place));
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        (ours.iter().map(String::as_str).collect(), theirs.iter().map(String::as_str).collect());
    let ours = End { place: "node", interface, addresses: &ours };
    netns.cable(ours, End { place, interface: "eth0", addresses: &theirs }).unwrap();
}

/// The routes of a place in a family, and addresses beside those of its link.
fn lines(place: &str, family: Family) -> Vec<String> {
    let route = |to: &str, via: IpAddr, rest: &str| format!("route add {to} via {via} {rest}");
    let pods = |node| range(pod(family, node, 0), 24, 64);
    let add = |address| format!("address add {} dev lo", only(address));
    match place {
        "node" => {
            let source = format!("src {}", outside(family, PRIMARY));
            let others = [pods(2), pods(3), only(outside(family, OTHER_NODE))];
            let mut lines = vec![
                route("default", link(family, 0, 2), &source),
                route(&pods(4), link(family, 2, 2), &source),
            ];
            lines.extend(others.map(|to| route(&to, link(family, 1, 2), &source)));
            let to_pod =
                |last: u8, interface: &str| format!("route add {} dev {interface}", pod(family, 1, last));
            lines.extend(crowd(&[CLIENT_PODS]).into_iter().map(|last| to_pod(last, "cni0")));
            lines.extend(PODS.map(|last| to_pod(last, &format!("cni{last}"))));
            lines
        }
        "outside" => vec![route("default", outside(family, PRIMARY), "")],
        "router" => vec![route("default", link(family, 0, 1), "")],
        "remote" => {
            let own = addresses_of("remote").into_iter().filter(|each| Family::of(*each) == family);
            own.map(add).chain([route("default", link(family, 1, 1), "")]).collect()
        }
        "elsewhere" => {
            let own = crowd(&[CLIENT_PODS]).into_iter().map(|last| pod(family, 4, last));
            own.map(add).chain([route("default", link(family, 2, 1), "")]).collect()
        }
        _ => vec![route("default", pod(family, 1, 1), "dev eth0 onlink")],
    }
}

/// The kernel makes IPv6 addresses usable a moment after they were added, on a busy machine later.
fn wait_for_addresses(netns: &NetNs, place: &str) {
    let started = Instant::now();
    let tentative = ["ip", "-6", "-oneline", "address", "show", "tentative"];
    while !netns.check(place, &tentative, "").unwrap().stdout.trim().is_empty() {
        assert!(started.elapsed() < ADDRESSES_USABLE, "{place} has tentative addresses");
        thread::sleep(Duration::from_millis(50));
    }
}

fn settings(netns: &NetNs, place: &str) {
    let mut settings = vec![
        "net.ipv4.conf.all.rp_filter=0",
        "net.ipv4.conf.default.rp_filter=0",
        // Every rejected connection is to be told so. A datagram is sent only once.
        "net.ipv4.icmp_ratelimit=0",
        "net.ipv4.icmp_msgs_per_sec=1000000",
        "net.ipv4.icmp_msgs_burst=1000000",
        "net.ipv6.icmp.ratelimit=0",
    ];
    if matches!(place, "node" | "router") {
        settings.extend(["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]);
    }
    let command: Vec<&str> = ["sysctl", "-qw"].into_iter().chain(settings).collect();
    netns.check(place, &command, "").unwrap();
}
