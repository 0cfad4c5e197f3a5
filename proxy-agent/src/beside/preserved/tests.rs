use isp_api::validate::NodeIdentity;
use isp_api::view::view;
use serde_json::{Value, json};

use super::*;
use crate::fixtures::preserve;
use crate::node::view::ViewStore;

const KEY: &str = "sourcepreserve.io/preserve";

fn web() -> Value {
    json!([{"namespace": "shop", "name": "web"}])
}

/// An object that targets these Services, created at this second.
fn object(name: &str, second: i64, services: &Value) -> IngressSourcePreserve {
    let mut object = preserve(name, json!({"mode": "Beside", "services": services}));
    let created = k8s_openapi::jiff::Timestamp::from_second(second).unwrap();
    object.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created));
    object
}

fn deleted(mut object: IngressSourcePreserve) -> IngressSourcePreserve {
    object.metadata.deletion_timestamp = object.metadata.creation_timestamp.clone();
    object
}

/// The object with a status that lists a Service.
fn listing(mut object: IngressSourcePreserve, name: &str) -> IngressSourcePreserve {
    let service = json!({"namespace": "shop", "name": name, "ingressEndpoints": 1, "state": "Restoring"});
    object.status = serde_json::from_value(json!({"services": [service]})).unwrap();
    object
}

fn with(mut object: IngressSourcePreserve, field: &str, value: &Value) -> IngressSourcePreserve {
    let mut whole = serde_json::to_value(&object).unwrap();
    whole["spec"][field] = value.clone();
    let metadata = object.metadata.clone();
    object = serde_json::from_value(whole).unwrap();
    object.metadata = metadata;
    object
}

/// Decides about `shop/web` with these labels. Returns view and objects as text.
fn decide(objects: &[IngressSourcePreserve], labels: &[(&str, &str)]) -> String {
    let store = ViewStore::default();
    let node = NodeIdentity { name: "n", labels: &BTreeMap::new() };
    store.publish(view(node, objects), objects);
    let preserved = Preserved::of(&store.current().unwrap());
    let service = ServiceName { namespace: "shop".to_owned(), name: "web".to_owned() };
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    match preserved.decide(&service, &labels) {
        None => "not served".to_owned(),
        Some(decision) => format!("{:?} for {}", decision.view, decision.objects.join(" ")),
    }
}

#[test]
fn a_service_needs_the_label_and_the_word_of_the_object() {
    let other = json!([{"namespace": "shop", "name": "other"}]);
    let elsewhere = json!([{"namespace": "bank", "name": "web"}]);
    let selected = json!([{"namespace": "shop", "selector": {"matchLabels": {"tier": "front"}}}]);
    let label = [(KEY, "a")];
    for (what, objects, labels, expected) in [
        ("named and labelled", vec![object("a", 1, &web())], &label[..], "ClusterOnly for a"),
        ("named, not labelled yet", vec![object("a", 1, &web())], &[], "not served"),
        ("the label of an object that does not exist", vec![], &label, "not served"),
        (
            "the label of an object that targets another Service",
            vec![object("a", 1, &other)],
            &label,
            "not served",
        ),
        (
            "the label of an object of another namespace",
            vec![object("a", 1, &elsewhere)],
            &label,
            "not served",
        ),
        ("selected", vec![object("a", 1, &selected)], &[(KEY, "a"), ("tier", "front")], "ClusterOnly for a"),
        ("not selected", vec![object("a", 1, &selected)], &label, "not served"),
        (
            "the label of one object, named by another",
            vec![object("a", 1, &other), object("b", 2, &web())],
            &label,
            "not served",
        ),
    ] {
        assert_eq!(decide(&objects, labels), expected, "{what}");
    }
}

#[test]
fn the_way_back_keeps_a_service_until_its_label_goes() {
    let other = json!([{"namespace": "shop", "name": "other"}]);
    let label = [(KEY, "a")];
    for (what, object, labels, expected) in [
        ("being deleted", listing(deleted(object("a", 1, &web())), "web"), &label[..], "ClusterOnly for a"),
        ("being deleted, restored", listing(deleted(object("a", 1, &web())), "web"), &[], "not served"),
        ("being deleted before anything was done", deleted(object("a", 1, &web())), &label, "not served"),
        ("edited", listing(object("a", 1, &other), "web"), &label, "ClusterOnly for a"),
        ("edited, and the operator is done", listing(object("a", 1, &other), "other"), &label, "not served"),
    ] {
        assert_eq!(decide(&[object], labels), expected, "{what}");
    }
}

#[test]
fn of_two_objects_the_older_one_owns_the_service() {
    let (old, new) = (object("old", 1, &web()), object("new", 2, &web()));
    let both = [old.clone(), new.clone()];
    assert_eq!(decide(&both, &[(KEY, "old")]), "ClusterOnly for old");
    assert_eq!(decide(&both, &[(KEY, "new")]), "not served", "its label was not written by the operator");
    let handing_over = [listing(deleted(old), "web"), new.clone()];
    assert_eq!(decide(&handing_over, &[(KEY, "old")]), "ClusterOnly for old", "it is not restored yet");
    assert_eq!(decide(&handing_over, &[(KEY, "new")]), "ClusterOnly for new");
    let taken = [object("older", 1, &web()), listing(new, "web")];
    assert_eq!(decide(&taken, &[(KEY, "new")]), "ClusterOnly for new", "until the operator moves it");
}

#[test]
fn with_the_labels_of_two_objects_the_narrowest_view_of_those_that_serve_it_counts() {
    let key = |key: &str, value: &str| json!({"key": key, "value": value});
    let hidden = with(object("b", 2, &web()), "serviceLabel", &key("b", "2"));
    let hidden = with(hidden, "elsewhere", &json!("Hidden"));
    let labels = [(KEY, "a"), ("b", "2")];
    let a = object("a", 1, &web());
    assert_eq!(decide(&[a.clone(), hidden.clone()], &labels), "ClusterOnly for a", "b does not own it");
    assert_eq!(decide(&[a, listing(hidden, "web")], &labels), "Hidden for a b");
}

#[test]
fn an_object_whose_label_an_older_one_has_serves_nothing() {
    let shared = json!({"value": "shared"});
    let other = json!([{"namespace": "shop", "name": "other"}]);
    let objects = [
        with(object("a", 1, &other), "serviceLabel", &shared),
        with(object("b", 2, &web()), "serviceLabel", &shared),
    ];
    assert_eq!(decide(&objects, &[(KEY, "shared")]), "not served");
}
