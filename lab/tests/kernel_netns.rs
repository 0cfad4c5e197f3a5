//! Bare network namespaces: rules in the real kernel, and real connections through them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::io::{BufRead, BufReader};
use std::process::{Child, ExitStatus, Stdio};

use isp_lab::{End, NetNs};

/// A client and a server with a router between them.
fn world() -> NetNs {
    let world = NetNs::new(&["client", "router", "server"]).unwrap();
    world
        .cable(
            End { place: "client", interface: "eth0", addresses: &["198.51.100.10/24", "2001:db8:1::10/64"] },
            End {
                place: "router",
                interface: "outside",
                addresses: &["198.51.100.1/24", "2001:db8:1::1/64"],
            },
        )
        .unwrap();
    world
        .cable(
            End { place: "router", interface: "inside", addresses: &["192.0.2.1/24", "2001:db8::1/64"] },
            End { place: "server", interface: "eth0", addresses: &["192.0.2.10/24", "2001:db8::10/64"] },
        )
        .unwrap();
    for (place, v4, v6) in
        [("client", "198.51.100.1", "2001:db8:1::1"), ("server", "192.0.2.1", "2001:db8::1")]
    {
        world.check(place, &["ip", "route", "add", "default", "via", v4], "").unwrap();
        world.check(place, &["ip", "route", "add", "default", "via", v6], "").unwrap();
    }
    for setting in ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"] {
        world.check("router", &["sysctl", "-qw", setting], "").unwrap();
    }
    world
}

/// The `echo` application in the server's namespace.
struct Server(Child);

impl Server {
    fn how_it_ends(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(world: &NetNs) -> Server {
    let echo = isp_lab::echo_program().unwrap();
    let mut server = world.command("server", &[echo.to_str().unwrap(), "serve"]);
    let mut server = server.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    // It prints one line once all its sockets are open.
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("listening"), "{line}");
    Server(server)
}

fn ask(world: &NetNs, target: &str) -> String {
    let echo = isp_lab::echo_program().unwrap();
    let output = world.exec("client", &[echo.to_str().unwrap(), "ask", "http", target], "").unwrap();
    output.stdout
}

#[test]
fn a_routed_connection_keeps_the_clients_address_in_both_families() {
    let world = world();
    let _server = serve(&world);
    for (target, client) in [("192.0.2.10:8080", "198.51.100.10"), ("[2001:db8::10]:8080", "2001:db8:1::10")]
    {
        let answer = ask(&world, target);
        assert!(answer.contains(&format!("\"peerIp\":\"{client}\"")), "{answer}");
    }
}

#[test]
fn a_masquerading_router_takes_it_away() {
    let world = world();
    let _server = serve(&world);
    let rules = "table ip t { chain c { type nat hook postrouting priority srcnat; oifname \"inside\" masquerade; }; }";
    world.check("router", &["nft", "-f", "-"], rules).unwrap();
    assert!(ask(&world, "192.0.2.10:8080").contains("\"peerIp\":\"192.0.2.1\""));
}

#[test]
fn rules_that_the_kernel_refuses_are_an_error_with_its_reason() {
    let world = NetNs::new(&["one"]).unwrap();
    let error = world.check("one", &["nft", "-f", "-"], "add rule ip t c drop").unwrap_err().to_string();
    assert!(error.contains("No such file or directory"), "{error}");
    assert!(world.check("nowhere", &["true"], "").is_err());
}

#[test]
fn what_runs_in_the_namespaces_ends_with_them() {
    let world = world();
    let mut server = serve(&world);
    drop(world);
    assert!(!server.how_it_ends().success());
}
