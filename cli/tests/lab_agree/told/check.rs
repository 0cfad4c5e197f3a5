use serde_json::Value;

use super::{BEFORE_FIRST_NODE, Hop, parsed};
use crate::world::{Service, World};

/// The checks of all sections.
fn lines(told: &Value) -> Vec<&Value> {
    let sections = told["sections"].as_array().unwrap().iter();
    sections.flat_map(|section| section["checks"].as_array().unwrap()).collect()
}

/// The hop that a code is about.
fn hop(code: &str) -> Option<Hop> {
    match code {
        "ISP305" | "ISP307" => Some(Hop::Node),
        "ISP310" => Some(Hop::BeforeFirstNode),
        "ISP605" => Some(Hop::Sidecar),
        _ => None,
    }
}

pub(crate) async fn expect(world: &World, service: &Service, lost: Option<Hop>) {
    let ended = world.run(&["check", "--service", service.name, "-o", "json"]).await;
    let (told, fine) = parsed("check", &ended);
    let subject = format!("Service {}", service.name);
    let lines = lines(&told);
    let failed: Vec<&Value> = lines.iter().copied().filter(|line| line["state"] == "failed").collect();
    let hops: Vec<Option<Hop>> = failed.iter().map(|line| hop(line["code"].as_str().unwrap())).collect();
    assert_eq!(hops, lost.map(Some).into_iter().collect::<Vec<_>>(), "{failed:#?}");
    assert!(failed.iter().all(|line| line["subject"] == *subject), "{failed:#?}");
    assert_eq!(fine, lost.is_none());
    let own = lines.iter().find(|line| line["check"] == "service" && line["subject"] == *subject).unwrap();
    let admits = own["details"].to_string().contains(BEFORE_FIRST_NODE);
    assert_eq!(admits, lost != Some(Hop::Node), "what it says that it cannot tell: {own:#}");
}

/// On the sound cluster, nothing failed, and nothing is proposed.
pub(crate) async fn expect_no_fault(world: &World) {
    let (told, fine) = parsed("check", &world.run(&["check", "-o", "json"]).await);
    let coded: Vec<&Value> = lines(&told).into_iter().filter(|line| line.get("code").is_some()).collect();
    assert!(fine && coded.is_empty(), "{coded:#?}");
    assert_eq!(told["proposal"], Value::Null);
}
