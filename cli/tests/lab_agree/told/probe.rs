use std::net::IpAddr;

use isp_testkit::web_lab::{CLIENT, EDGE};
use serde_json::Value;

use super::{BEFORE_FIRST_NODE, Hop, parsed};
use crate::capture::Captured;
use crate::world::{Service, World};

const IMAGE: &str = "lab.local/probe:1";

/// Real connections, also from the client's machine, where the command runs. It compares them with
/// the expectation from the objects: only what happens outside is a surprise.
pub(crate) async fn expect(world: &World, service: &Service, lost: Option<Hop>, captured: &Captured) {
    let ended = world
        .run_at_client(&[
            "probe",
            "--service",
            service.name,
            "--target=own",
            "--from-here",
            "--nodes",
            EDGE,
            "--image",
            IMAGE,
            "--yes",
            "-o",
            "json",
        ])
        .await;
    let (told, fine) = parsed("probe", &ended);
    let is_surprise = lost == Some(Hop::BeforeFirstNode);
    assert_eq!((fine, told["preserved"].as_bool()), (lost.is_none(), Some(lost.is_none())), "{told:#}");
    assert_eq!(told["asExpected"].as_bool(), Some(!is_surprise), "{told:#}");
    for cell in told["cells"].as_array().unwrap() {
        let is_here = cell["from"]["kind"] == "this-machine";
        assert_eq!(cell["unexpected"].as_bool(), Some(is_surprise && is_here), "{cell:#}");
        if is_here {
            assert_eq!(cell["own"], CLIENT.to_string(), "{cell:#}");
            assert_eq!(sources(cell), [captured.seen], "{cell:#}");
            assert_eq!(cell["changedBy"].as_str().map(hop), lost, "{cell:#}");
        }
    }
}

fn sources(cell: &Value) -> Vec<IpAddr> {
    let seen = cell["observed"]["seen"].as_array().unwrap_or_else(|| panic!("{cell:#}"));
    seen.iter().map(|seen| seen["source"].as_str().unwrap().parse().unwrap()).collect()
}

fn hop(changed_by: &str) -> Hop {
    match changed_by {
        BEFORE_FIRST_NODE => Hop::BeforeFirstNode,
        hop if hop == format!("kube-proxy on node {EDGE}") => Hop::Node,
        hop if hop.starts_with("sidecar on pod ") => Hop::Sidecar,
        other => panic!("{other}"),
    }
}
