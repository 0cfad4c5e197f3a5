//! Requests from outside the cluster, from another node and from the pod itself, in both families.

use std::net::{IpAddr, SocketAddr};

use isp_lab::{Answer, Place, Protocol};
use isp_testkit::answers;

use crate::harness::{Proxy, World};

const HTTP: u16 = 8080;
const TCP: u16 = 8081;
const UDP: u16 = 8082;

/// The header that the proxies of the docs add.
fn via(answer: &Answer) -> Option<&str> {
    match answer {
        Answer::Seen(seen) => seen.headers.get("x-via").map(String::as_str),
        Answer::Silent(_) => None,
    }
}

async fn expect(
    world: &World,
    place: &Place,
    (protocol, address, port): (Protocol, IpAddr, u16),
    (peer, proxy): (IpAddr, Option<&str>),
) {
    let target = SocketAddr::new(address, port).to_string();
    let what = format!("the server sees {peer}, by {proxy:?}");
    let is_so = |answer: &Answer| answer.peer() == Some(peer) && via(answer) == proxy;
    answers::until(&world.lab, &what, place, (protocol, &target), is_so).await;
}

/// The application sees every client, and every request passes the proxy.
pub(crate) async fn passes(world: &World, proxy: &Proxy) {
    for (client, node) in World::client().into_iter().zip(world.ingress()) {
        let target = (Protocol::Http, node, proxy.node_port);
        expect(world, &Place::Client, target, (client, Some(proxy.name))).await;
    }
    let (other, addresses) = world.other().await;
    for (own, pod) in addresses.into_iter().zip(World::addresses(&world.pod(proxy).await)) {
        expect(world, &other, (Protocol::Http, pod, HTTP), (own, Some(proxy.name))).await;
        // The entry does not name this port, and UDP is never redirected.
        expect(world, &other, (Protocol::Tcp, pod, TCP), (own, None)).await;
        expect(world, &other, (Protocol::Udp, pod, UDP), (own, None)).await;
    }
}

/// Without the init container requests reach the application past the proxy.
pub(crate) async fn does_not_pass(world: &World, proxy: &Proxy) {
    let (other, addresses) = world.other().await;
    for (own, pod) in addresses.into_iter().zip(World::addresses(&world.pod(proxy).await)) {
        expect(world, &other, (Protocol::Http, pod, HTTP), (own, None)).await;
    }
}

/// Requests pass the proxy, but the application sees the pod instead of the client.
pub(crate) async fn passes_with_the_pods_address(world: &World, proxy: &Proxy) {
    let (other, _) = world.other().await;
    for pod in World::addresses(&world.pod(proxy).await) {
        expect(world, &other, (Protocol::Http, pod, HTTP), (pod, Some(proxy.name))).await;
    }
}

/// The proxy gets what its application asks for, if the entry says so, and once: its own
/// connections do not return to it. Other ports and UDP pass it by.
pub(crate) async fn passes_on_the_way_out(world: &World, proxy: &Proxy) {
    let (_, others) = world.other().await;
    let place = world.place(proxy).await;
    let own = World::addresses(&world.pod(proxy).await);
    for ((own, other), header) in own.into_iter().zip(others).zip(proxy.outbound) {
        expect(world, &place, (Protocol::Http, other, HTTP), (own, header)).await;
        expect(world, &place, (Protocol::Tcp, other, TCP), (own, None)).await;
        expect(world, &place, (Protocol::Udp, other, UDP), (own, None)).await;
    }
}
