//! Connections to the pod.

use crate::proxies::{Binds, PROXY, haproxy_inbound, nginx_inbound};
use crate::world::{APPLICATION, HTTP, OUTSIDE, POD, TCP, UDP, World, seen};

const PORT: u16 = 15006;

/// Every client reaches the application through this proxy, which connects with its address or the
/// pod's.
fn expect_proxy(world: &World, name: &str, binds: Binds) {
    for (pod, clients) in POD.into_iter().zip(OUTSIDE) {
        for client in clients {
            let peer = if binds == Binds::Client { client } else { pod };
            let found = world.ask_pod("http", client, (pod, HTTP));
            assert_eq!(found, seen(peer, (pod, HTTP), Some(name)), "{client}");
        }
    }
}

/// Other traffic of the pod does not pass the proxy.
fn expect_others_untouched(world: &World) {
    for (pod, [client, other]) in POD.into_iter().zip(OUTSIDE) {
        assert_eq!(world.ask_pod("udp", client, (pod, UDP)), seen(client, (pod, UDP), None));
        let within = world.ask_from_pod(APPLICATION, "http", (pod, HTTP));
        assert_eq!(within, seen(pod, (pod, HTTP), None), "within the pod");
        let out = world.ask_from_pod(APPLICATION, "http", (other, HTTP));
        assert_eq!(out, seen(pod, (other, HTTP), None), "out of the pod");
    }
    let loopback = world.ask_from_pod(APPLICATION, "http", ("127.0.0.1", HTTP));
    assert_eq!(loopback, seen("127.0.0.1", ("127.0.0.1", HTTP), None));
}

#[test]
fn the_application_behind_haproxy_sees_the_client_by_tproxy() {
    let mut world = World::new();
    world.redirect(&format!("--inbound-method=TPROXY --inbound-port={PORT} --exempt-uids={PROXY}")).unwrap();
    haproxy_inbound(&mut world, PORT, Binds::Client);
    expect_proxy(&world, "haproxy", Binds::Client);
    expect_others_untouched(&world);
}

#[test]
fn the_application_behind_nginx_sees_the_client_by_redirect() {
    let mut world = World::new();
    world.redirect(&format!("--inbound-method=REDIRECT --inbound-port={PORT}")).unwrap();
    nginx_inbound(&mut world, PORT, Binds::Client);
    expect_proxy(&world, "nginx", Binds::Client);
    expect_others_untouched(&world);
}

#[test]
fn the_application_sees_the_pod_where_the_proxy_does_not_bind_the_clients_address() {
    let mut world = World::new();
    world.redirect(&format!("--inbound-method=TPROXY --inbound-port={PORT}")).unwrap();
    haproxy_inbound(&mut world, PORT, Binds::Nothing);
    expect_proxy(&world, "haproxy", Binds::Nothing);

    let mut world = World::new();
    world.redirect(&format!("--inbound-method=REDIRECT --inbound-port={PORT}")).unwrap();
    nginx_inbound(&mut world, PORT, Binds::Nothing);
    expect_proxy(&world, "nginx", Binds::Nothing);
}

/// With marks on packets that arrive, each of these would drop them silently.
#[test]
fn strict_checks_of_the_source_do_not_break_it() {
    let settings = [
        "net.ipv4.conf.all.rp_filter=1",
        "net.ipv4.conf.all.src_valid_mark=1",
        "net.ipv4.conf.all.rp_filter=0",
        "net.ipv4.conf.eth0.rp_filter=1",
        "net.ipv4.conf.lo.rp_filter=1",
    ];
    for method in ["TPROXY", "REDIRECT"] {
        let mut world = World::new();
        world.redirect(&format!("--inbound-method={method} --inbound-port={PORT}")).unwrap();
        let name = if method == "TPROXY" {
            haproxy_inbound(&mut world, PORT, Binds::Client);
            "haproxy"
        } else {
            nginx_inbound(&mut world, PORT, Binds::Client);
            "nginx"
        };
        for setting in settings {
            world.sysctl(setting);
            expect_proxy(&world, name, Binds::Client);
        }
    }
}

#[test]
fn only_named_ports_are_redirected_and_excepted_ones_are_not() {
    for (method, options, redirected) in [
        ("REDIRECT", "--inbound-ports=8080", true),
        ("REDIRECT", "--inbound-ports=9000-9100", false),
        ("REDIRECT", "--inbound-except-ports=8000-8080", false),
        ("REDIRECT", "--inbound-ports=8080-8090 --inbound-except-ports=8081-8085", true),
        ("TPROXY", "--inbound-ports=8080", true),
        ("TPROXY", "--inbound-ports=9000-9100", false),
        ("TPROXY", "--inbound-except-ports=8080", false),
    ] {
        let mut world = World::new();
        world.redirect(&format!("--inbound-method={method} --inbound-port={PORT} {options}")).unwrap();
        haproxy_inbound(&mut world, PORT, Binds::Client);
        let via = redirected.then_some("haproxy");
        for (pod, [client, _]) in POD.into_iter().zip(OUTSIDE) {
            let found = world.ask_pod("http", client, (pod, HTTP));
            assert_eq!(found, seen(client, (pod, HTTP), via), "{method} {options}");
        }
        // A port that is not named, or excepted, in all of these but the third.
        if !options.contains("8000-8080") && options != "--inbound-except-ports=8080" {
            let found = world.ask_pod("tcp", OUTSIDE[0][0], (POD[0], TCP));
            assert_eq!(found, seen(OUTSIDE[0][0], (POD[0], TCP), None), "{method} {options}");
        }
    }
}

/// nginx cannot listen transparently. The application must not be reached past it.
#[test]
fn nothing_passes_a_proxy_that_does_not_listen() {
    for (method, error) in [("TPROXY", "timed out"), ("REDIRECT", "refused")] {
        let world = World::new();
        world.redirect(&format!("--inbound-method={method} --inbound-port={PORT}")).unwrap();
        for (pod, [client, _]) in POD.into_iter().zip(OUTSIDE) {
            let found = world.ask_pod("http", client, (pod, HTTP)).unwrap_err();
            assert!(found.contains(error), "{method}: {found}");
        }
    }
    let mut world = World::new();
    world.redirect(&format!("--inbound-method=TPROXY --inbound-port={PORT}")).unwrap();
    nginx_inbound(&mut world, PORT, Binds::Client);
    let found = world.ask_pod("http", OUTSIDE[0][0], (POD[0], HTTP)).unwrap_err();
    assert!(found.contains("timed out"), "{found}");
}
