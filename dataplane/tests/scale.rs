//! Rules do not grow with Services, and a change costs what its Service costs.

mod common;

use std::{net::IpAddr, sync::Arc};

use isp_dataplane::{
    compile::compile,
    model::{Endpoint, Service, ServicePort, Target, View},
    nft::{Element, Family, Operation},
    plane::Plane,
    rules::count_rules,
    text::render,
};

/// A Service with five endpoints on other nodes.
fn service(number: u32) -> Service {
    let [_, high, middle, low] = number.to_be_bytes();
    let endpoints = (1..=5).map(|last| Endpoint {
        target: Target { address: [10, 200 + high, middle, low].into(), port: 8000 + last },
        ..common::endpoint("10.244.2.5", "n2")
    });
    let port = ServicePort { node_port: None, ..common::port(endpoints.collect()) };
    Service {
        cluster_ips: vec![IpAddr::from([10, 96 + high, middle, low])],
        ports: vec![port],
        ..Service::default()
    }
}

fn plane(services: u32) -> Plane {
    let node = common::node();
    let mut plane = Plane::new(common::settings(Family::Ip), node.clone());
    for number in 0..services {
        let plan = compile(&service(number), &node, View::Full, Family::Ip);
        plane.set(&common::name(&format!("s{number}")), plan);
    }
    plane
}

/// The steps of changing the first Service.
fn steps(plane: &mut Plane, change: impl FnOnce(&mut Vec<Endpoint>)) -> (usize, usize) {
    let mut service = service(0);
    change(&mut service.ports[0].endpoints);
    let plan = compile(&service, &common::node(), View::Full, Family::Ip);
    let name = Arc::clone(&common::name("s0"));
    let now = plane.set(&name, plan).now;
    let elements = |operation: &&Operation| {
        matches!(operation, Operation::AddElement(Element { .. }) | Operation::DeleteElement(_))
    };
    (now.iter().filter(elements).count(), plane.sweep().len())
}

#[test]
fn ten_and_fifty_thousand_services_have_the_same_rules_and_the_same_cost_of_a_change() {
    let mut few = plane(10);
    let mut many = plane(50_000);
    assert_eq!(render(&few.table(), &[]), render(&many.table(), &[]));
    assert_eq!(few.table().chains.len(), many.table().chains.len());
    assert_eq!(count_rules(&few.table()), count_rules(&many.table()));
    assert!(count_rules(&many.table()) < 80, "{} rules", count_rules(&many.table()));

    for plane in [&mut few, &mut many] {
        let replace = |endpoints: &mut Vec<Endpoint>| endpoints[2].target.port = 9000;
        assert_eq!(steps(plane, replace), (2, 0), "one deleted, one added");
        assert_eq!(steps(plane, |_| ()), (2, 0), "and back");
        assert_eq!(steps(plane, |_| ()), (0, 0), "nothing changed");
        // A count that occurs for the first time costs an element that leads to its chain.
        let add = |endpoints: &mut Vec<Endpoint>| {
            let mut sixth = endpoints[0].clone();
            sixth.target.port = 9000;
            endpoints.push(sixth);
        };
        assert_eq!(steps(plane, add), (2 + 1 + 1, 0), "its size, its endpoint, a new count");
        assert_eq!(steps(plane, |_| ()), (2, 1), "its size; the endpoint when no packet needs it");
        let remove = |endpoints: &mut Vec<Endpoint>| {
            endpoints.remove(1);
        };
        assert_eq!(steps(plane, remove), (2 + 2 + 1, 1), "its size, the moved endpoint, a new count");
    }
}
