use std::net::{IpAddr, SocketAddr};

use isp_testkit::browser::report::data;
use isp_testkit::web_lab::{CLIENT, EDGE};
use serde_json::Value;

use super::{BEFORE_FIRST_NODE, Hop};
use crate::capture::Captured;
use crate::world::{Service, World};

/// The page shows how the path of a client through the ingress node ends. Its client is that of the
/// lab: what happens to the address before the first node is among the things that it cannot tell.
pub(crate) async fn expect(world: &World, service: &Service, lost: Option<Hop>, captured: &Captured) {
    let ended = world.run(&["report", "--service", service.name, "-o", "-"]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let told = data(&ended.stdout);
    let entry = |path: &Value| &told["sets"][usize::try_from(path["to"]["set"].as_u64().unwrap()).unwrap()];
    let is_asked = |path: &&Value| {
        let nodes = entry(path).as_array().unwrap();
        let (from, to) = (&path["from"], &path["to"]);
        from["kind"] == "outside"
            && ip(to["address"].as_str().unwrap()) == ip(service.external)
            && nodes.contains(&EDGE.into())
    };
    let paths: Vec<&Value> = told["paths"].as_array().unwrap().iter().filter(is_asked).collect();
    let [path] = paths[..] else { panic!("{:#}", told["paths"]) };
    assert_eq!(path["from"]["address"], CLIENT.to_string());
    let journey = &path["journeys"][0];
    assert_eq!(journey["outcome"], if lost.is_none() { "preserved" } else { "lost" }, "{journey:#}");
    let hops = journey["hops"].as_array().unwrap().iter();
    let changed = hops.filter(|hop| hop["before"]["source"] != hop["after"]["source"]).map(hop).next();
    assert_eq!(changed, lost, "{journey:#}");
    let seen = if captured.lost() == Some(Hop::BeforeFirstNode) { CLIENT } else { captured.seen };
    let arrives = journey["arrives"].as_str().unwrap();
    assert_eq!(arrives.split(' ').next(), Some(seen.to_string().as_str()), "{journey:#}");
    assert_eq!(ended.stdout.contains(BEFORE_FIRST_NODE), lost.is_none(), "what it says that it cannot tell");
}

/// The page follows one port of a Service, the usual one.
fn ip(address: &str) -> Option<IpAddr> {
    address.parse().ok().map(|address: SocketAddr| address.ip())
}

fn hop(hop: &Value) -> Hop {
    match (hop["actor"].as_str(), hop["place"].as_str()) {
        (Some("sidecar"), _) => Hop::Sidecar,
        (_, Some("outside")) => Hop::BeforeFirstNode,
        (_, place) => {
            assert_eq!(place, Some(format!("node {EDGE}").as_str()), "{hop:#}");
            Hop::Node
        }
    }
}
