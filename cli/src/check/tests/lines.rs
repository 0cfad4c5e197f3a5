//! The words of the lines, and what decides the marks.

use isp_plan::Key;
use serde_json::json;

use super::world::{World, checked, lines, of_service, sound};
use crate::check::line::State;
use crate::check::report;
use crate::output::Symbols;

#[test]
fn a_service_says_where_the_source_ip_is_lost_and_what_is_in_front() {
    let check = checked(&World::of("untouched"));
    let gateway = check.lines().find(|line| line.text.starts_with("Service istio-system/")).unwrap();
    assert_eq!(
        gateway.text,
        "Service istio-system/istio-ingressgateway loses the source IP at every node that a client connects to: externalTrafficPolicy \
         Cluster, so the node replaces it by its own (SNAT)"
    );
    assert_eq!(
        gateway.details,
        [
            "ready endpoints on edge-1",
            "in front: a load balancer, at 192.0.2.10",
            "once it is Local, it has a healthCheckNodePort; whether the balancer follows it is not visible in the cluster",
        ]
    );
    let address = gateway.runbook.as_deref().unwrap();
    assert!(address.ends_with("/docs/doctor.md#isp307-no-object-names-the-service"), "{address}");
}

#[test]
fn a_service_that_keeps_the_source_ip_names_the_nodes_that_answer() {
    let check = checked(&sound());
    assert_eq!(
        lines(&check, "service"),
        [
            "Service istio-system/istio-ingressgateway keeps the source IP on edge-1, preserved by IngressSourcePreserve shop",
            "Service plain/echo keeps the source IP on work-1",
        ]
    );
    let echo = check.lines().find(|line| line.text.contains("plain/echo")).unwrap();
    let unseen =
        "whether NAT or a proxy before the first node replaces the source IP is not visible in the cluster; ";
    assert!(echo.details.last().unwrap().starts_with(unseen), "{:?}", echo.details);
    assert_eq!(
        echo.details[0],
        "the other nodes drop the traffic of clients, and serve its external addresses to their own pods: edge-1, work-2"
    );
}

#[test]
fn one_service_can_be_asked_about() {
    let world = World::of("healthy");
    let gateway = Key::new("istio-system", "istio-ingressgateway");
    let check = of_service(&world, Some(&gateway));
    assert!(check.is_fine(), "{check:#?}");
    assert_eq!(lines(&check, "service").len(), 1);
    assert_eq!(check.proposal, None);
    let echo = of_service(&world, Some(&Key::new("plain", "echo")));
    assert!(!echo.is_fine());
    assert_eq!(echo.proposal.unwrap().object["metadata"]["name"], "echo");
    let cart = of_service(&world, Some(&Key::new("shop", "cart")));
    assert_eq!(
        lines(&cart, "service"),
        ["Service shop/cart is not exposed: it has no NodePort, no load balancer and no externalIPs"]
    );
}

#[test]
fn missing_kinds_come_first_with_what_they_hide() {
    let mut world = sound();
    world.remove("Node", "");
    let check = checked(&world);
    let first = &check.sections[0].checks[0];
    assert_eq!(
        first.text,
        "nodes were not read (the dump has none): kernels, architectures and ingress nodes cannot be told, and mode Beside is not judged"
    );
    assert_eq!((first.state, check.is_fine()), (State::Notice, true));
    // Without pods no policy is judged, and that must not pass for a sound cluster.
    let mut world = World::of("untouched");
    world.remove("Pod", "");
    let check = checked(&world);
    assert_eq!(check.sections[0].checks[0].state, State::Failed, "{check:#?}");
    assert_eq!(lines(&check, "policy"), Vec::<String>::new(), "nothing is said about policies");
}

#[test]
fn text_from_the_cluster_cannot_control_the_terminal() {
    let mut world = sound();
    let service = world.the("Service", "echo");
    service["spec"]["externalTrafficPolicy"] = json!("Cluster");
    service["spec"]["externalIPs"] = json!(["\u{1b}[31m192.0.2.99"]);
    let check = checked(&world);
    let text = report::text(&check, None, Symbols::Ascii, Some(80));
    assert!(text.contains("192.0.2.99") && !text.contains('\u{1b}'), "{text}");
    assert!(text.contains("\nx Service plain/echo loses"), "{text}");
    assert!(text.is_ascii() || text.contains(char::REPLACEMENT_CHARACTER));
}

#[test]
fn prose_fits_the_terminal_and_long_lists_are_cut() {
    let mut world = World::of("untouched");
    for number in 0..5000 {
        world.add(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("many-{number}"), "namespace": "many"},
            "spec": {"type": "NodePort", "externalTrafficPolicy": "Cluster", "ports": [{"port": 80}]},
        }));
    }
    let check = checked(&world);
    let text = report::text(&check, None, Symbols::Unicode, Some(80));
    assert!(text.contains("✖ the same for 4992 more (-o json lists all)\n"), "{text}");
    assert!(text.len() < 20_000, "{}", text.len());
    let prose =
        |line: &&str| !line.contains("https://") && !line.contains("kubectl ") && !line.starts_with('#');
    for line in text.lines().filter(prose) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
