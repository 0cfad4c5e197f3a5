//! Connections of the pod.

use crate::proxies::{PROXY, haproxy_outbound};
use crate::relay::{self, Relay};
use crate::world::{APPLICATION, HTTP, OUTSIDE, POD, TCP, UDP, World, seen};

const PORT: u16 = 15001;

/// Debian's HAProxy knows the original destination of IPv4 only; the relay stands in for IPv6.
#[test]
fn outbound_connections_pass_the_proxy_once_and_its_own_do_not() {
    let proxy = ["setpriv".to_owned(), format!("--reuid={PROXY}"), "--clear-groups".to_owned()];
    let proxy = proxy.each_ref().map(String::as_str);
    for (family, name) in [(0, "haproxy"), (1, "relay")] {
        let (pod, servers) = (POD[family], OUTSIDE[family]);
        let mut world = World::new();
        world.redirect(&format!("--outbound-port={PORT} --exempt-uids={PROXY}")).unwrap();
        if name == "haproxy" {
            haproxy_outbound(&mut world, PORT);
        } else {
            relay::start(&mut world, &proxy, PORT, &Relay::default());
        }
        for server in servers {
            let found = world.ask_from_pod(APPLICATION, "http", (server, HTTP));
            assert_eq!(found, seen(pod, (server, HTTP), Some(name)));
            let own = world.ask_from_pod(&proxy, "http", (server, HTTP));
            assert_eq!(own, seen(pod, (server, HTTP), None));
            let udp = world.ask_from_pod(APPLICATION, "udp", (server, UDP));
            assert_eq!(udp, seen(pod, (server, UDP), None));
        }
        let within = world.ask_from_pod(APPLICATION, "http", (pod, HTTP));
        assert_eq!(within, seen(pod, (pod, HTTP), None));
        // Connections to the pod are not affected, and neither are the answers to them.
        let [client, _] = servers;
        assert_eq!(world.ask_pod("http", client, (pod, HTTP)), seen(client, (pod, HTTP), None));
        let loopback = world.ask_from_pod(APPLICATION, "http", ("127.0.0.1", HTTP));
        assert_eq!(loopback, seen("127.0.0.1", ("127.0.0.1", HTTP), None));
    }
}

/// The request comes back to the relay until that gives up.
#[test]
fn a_proxy_that_is_not_exempt_loops() {
    let mut world = World::new();
    world.redirect(&format!("--outbound-port={PORT} --exempt-uids=4242")).unwrap();
    relay::start(&mut world, &[], PORT, &Relay::default());
    for server in [OUTSIDE[0][0], OUTSIDE[1][0]] {
        let found = world.ask_from_pod(APPLICATION, "http", (server, HTTP));
        assert!(found.is_err(), "{found:?}");
    }
}

#[test]
fn named_destinations_and_ports_are_redirected_and_excepted_ones_are_not() {
    let [[near4, far4], [near6, far6]] = OUTSIDE;
    let user = format!("--reuid={PROXY}");
    // Whether connections to the near and the far addresses are redirected.
    for (options, near, far) in [
        (format!("--outbound-destinations={far4},{far6}"), false, true),
        (
            format!("--outbound-destinations=198.51.100.0/24,2001:db8::/32 --outbound-ports={HTTP}"),
            false,
            true,
        ),
        (format!("--exempt-uids={PROXY} --outbound-except-destinations={near4},{near6}"), false, true),
        (format!("--exempt-uids={PROXY} --outbound-ports=1-1000,{TCP}"), false, false),
        (format!("--exempt-uids={PROXY} --outbound-ports=8000-9000"), true, true),
        (format!("--exempt-uids={PROXY} --outbound-except-ports={HTTP}"), false, false),
    ] {
        let mut world = World::new();
        world.redirect(&format!("--outbound-port={PORT} {options}")).unwrap();
        relay::start(&mut world, &["setpriv", &user, "--clear-groups"], PORT, &Relay::default());
        for (pod, server, redirected) in
            [(POD[0], near4, near), (POD[1], near6, near), (POD[0], far4, far), (POD[1], far6, far)]
        {
            let found = world.ask_from_pod(APPLICATION, "http", (server, HTTP));
            // Without an exemption the proxy cannot reach a destination that is redirected to it.
            if redirected && !options.contains("exempt") {
                assert!(found.is_err(), "{options}: {found:?}");
                continue;
            }
            assert_eq!(found, seen(pod, (server, HTTP), redirected.then_some("relay")), "{options}");
        }
    }
}
