use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use serde_json::json;

use super::*;

fn object(name: &str, services: &serde_json::Value) -> IngressSourcePreserve {
    let spec = json!({"ingressNodes": {"selector": {"matchLabels": {"role": "edge"}}}, "services": services});
    IngressSourcePreserve::new(name, serde_json::from_value(spec).unwrap())
}

fn labels(group: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("group".to_owned(), group.to_owned())])
}

/// What each object owns and misses, as text.
fn owned(objects: &[&IngressSourcePreserve], services: &[(&str, &str)]) -> Vec<String> {
    let labels: Vec<_> = services.iter().map(|(_, group)| labels(group)).collect();
    let services: Vec<_> = services
        .iter()
        .zip(&labels)
        .map(|((name, _), labels)| ServiceIdentity { namespace: "a", name, labels })
        .collect();
    let text = |claimed: &Claimed<'_>| {
        let names: Vec<_> = claimed.services.iter().map(|index| services[*index].name).collect();
        let missing: Vec<_> = claimed.missing.iter().map(|(_, name)| format!("{name}?")).collect();
        [names.join(" "), missing.join(" ")].join("|")
    };
    claims(objects, &services).claimed.iter().map(text).collect()
}

#[test]
fn the_oldest_object_owns_a_service_and_an_object_that_is_being_deleted_owns_none() {
    let of_group = json!([{"namespace": "a", "selector": {"matchLabels": {"group": "g"}}}]);
    let mut old = object("old", &of_group);
    let new = object("new", &json!([{"namespace": "a", "name": "one"}, {"namespace": "a", "name": "two"}]));
    let services = [("two", "other"), ("one", "g"), ("three", "g")];
    assert_eq!(owned(&[&old, &new], &services), ["one three|", "two|"]);
    old.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    assert_eq!(owned(&[&old, &new], &services), ["|", "one two|"]);
}

#[test]
fn a_service_that_two_objects_name_is_missing_for_both_and_contested_by_the_newer() {
    let named = json!([{"namespace": "a", "name": "one"}, {"namespace": "a", "name": "one"}]);
    let (old, new) = (object("old", &named), object("new", &named));
    assert_eq!(owned(&[&old, &new], &[]), ["|one?", "|one?"]);
    let contests = claims(&[&old, &new], &[]).contests;
    let contests: Vec<_> = contests.iter().map(|each| (each.object, each.entry, each.owner)).collect();
    assert_eq!(contests, [(1, 0, 0), (1, 1, 0)]);
}
