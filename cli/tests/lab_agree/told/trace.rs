use std::net::IpAddr;

use isp_testkit::web_lab::EDGE;
use serde_json::Value;

use super::{BEFORE_FIRST_NODE, Hop, parsed};
use crate::capture::Captured;
use crate::world::{Service, World};

/// The trace of the packet that was captured at the node: it ends with the source that was seen.
pub(crate) async fn expect(world: &World, service: &Service, lost: Option<Hop>, captured: &Captured) {
    let from = captured.at_node.to_string();
    let arguments = ["trace", "--from", &from, "--to", service.external, "--via", EDGE, "-o", "json"];
    let (told, fine) = parsed("trace", &world.run(&arguments).await);
    let [path] = told["paths"].as_array().unwrap().as_slice() else { panic!("{told:#}") };
    assert_eq!((fine, told["fine"].as_bool()), (lost.is_none(), Some(lost.is_none())), "{told:#}");
    assert_eq!((&path["outcome"]["result"], &path["outcome"]["kept"]), (&"delivered".into(), &fine.into()));
    let changed =
        path["hops"].as_array().unwrap().iter().find(|hop| hop["before"]["source"] != hop["after"]["source"]);
    assert_eq!(changed.map(hop), lost, "{path:#}");
    let seen = &path["outcome"][if service.is_gateway { "proxy" } else { "application" }];
    assert!(addresses(seen).contains(&captured.seen), "{seen} is not {}", captured.seen);
    let admits = told["gaps"].to_string().contains(BEFORE_FIRST_NODE);
    assert_eq!(admits, fine, "what it says that it cannot tell: {}", told["gaps"]);
}

fn hop(hop: &Value) -> Hop {
    match hop["actor"].as_str() {
        Some("sidecar") => Hop::Sidecar,
        Some("loadBalancer") => Hop::BeforeFirstNode,
        _ => {
            assert_eq!(hop["place"], format!("node {EDGE}"), "{hop:#}");
            Hop::Node
        }
    }
}

/// The addresses that a node may choose.
fn addresses(source: &Value) -> Vec<IpAddr> {
    let others = source["others"].as_array().into_iter().flatten();
    others.chain([&source["address"]]).map(|address| address.as_str().unwrap().parse().unwrap()).collect()
}
