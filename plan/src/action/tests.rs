#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use isp_api::names::OPERATOR_FIELD_MANAGER;
use isp_api::preserve::TrafficPolicy;
use serde_json::json;

use super::*;

fn identity() -> Identity {
    Identity { uid: "u".to_owned(), version: "7".to_owned() }
}

#[test]
fn a_service_gets_exactly_the_fields_that_are_ours_and_only_if_it_has_not_changed() {
    let record = ServiceRecord {
        object: "web".to_owned(),
        policy: TrafficPolicy::Cluster,
        policy_owner: Some("kubectl-create".to_owned()),
        health_check_node_port: None,
        label: None,
        generation: 1,
        labelled: 1,
        localised: 1,
        taken_over: 0,
        skipped: false,
        opened: false,
        fell_back: false,
        retained: false,
    };
    let label = ServiceLabel { key: "sourcepreserve.io/preserve".to_owned(), value: "web".to_owned() };
    let shape = Shape { label: Some(label), taken_over: false, local: true, record: Some(record.clone()) };
    let action = Action::ShapeService {
        service: Key::new("shop", "frontend"),
        identity: identity(),
        shape: Box::new(shape),
        step: ServiceStep::Localise,
    };
    let Write { target, request } = action.write();
    assert_eq!(target.to_string(), "service/shop/frontend");
    let Request::Apply { manager: "sourcepreserve-operator", body } = request else { panic!("{request:?}") };
    let annotation = body["metadata"]["annotations"]["sourcepreserve.io/original"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<ServiceRecord>(annotation).unwrap(), record);
    assert_eq!(
        body,
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "frontend",
                "namespace": "shop",
                "uid": "u",
                "resourceVersion": "7",
                "labels": {"sourcepreserve.io/preserve": "web"},
                "annotations": {"sourcepreserve.io/original": annotation},
            },
            "spec": {"externalTrafficPolicy": "Local"},
        })
    );
}

#[test]
fn giving_everything_up_is_an_apply_of_nothing() {
    let bare = json!({"name": "frontend", "namespace": "shop", "uid": "u", "resourceVersion": "7"});
    let action = Action::ShapeService {
        service: Key::new("shop", "frontend"),
        identity: identity(),
        shape: Box::default(),
        step: ServiceStep::Release,
    };
    let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": bare});
    assert_eq!(action.write().request, Request::Apply { manager: "sourcepreserve-operator", body });
}

#[test]
fn a_field_is_returned_in_the_name_of_its_owner() {
    let action = Action::ReturnFields {
        service: Key::new("shop", "frontend"),
        identity: identity(),
        owner: "helm".to_owned(),
        fields: Returned::Policy,
    };
    let body = json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"externalTrafficPolicy": "Cluster"}});
    assert_eq!(action.write().request, Request::Merge { manager: "helm".to_owned(), body });
}

#[test]
fn a_deletion_is_of_just_this_object() {
    let action = Action::Forget { report: "n".to_owned(), identity: identity() };
    let Write { target, request } = action.write();
    assert_eq!(target, Target { resource: Resource::NodeReport, key: Key::new("", "n") });
    assert_eq!(request, Request::Delete(identity()));
}

#[test]
fn a_service_is_taken_over_with_the_label_and_given_back_whoever_owns_it() {
    let taken = Action::ShapeService {
        service: Key::new("shop", "frontend"),
        identity: identity(),
        shape: Box::new(Shape { taken_over: true, ..Shape::default() }),
        step: ServiceStep::TakeOver,
    };
    let Request::Apply { body, .. } = taken.write().request else { panic!("an apply") };
    let label = "service.kubernetes.io/service-proxy-name";
    assert_eq!(body["metadata"]["labels"], json!({label: "ingress-source-preserve"}));
    let given_back = Action::ReturnFields {
        service: Key::new("shop", "frontend"),
        identity: identity(),
        owner: OPERATOR_FIELD_MANAGER.to_owned(),
        fields: Returned::ToKubeProxy,
    };
    let body = json!({"metadata": {"uid": "u", "resourceVersion": "7", "labels": {label: null}}});
    let manager = "sourcepreserve-operator".to_owned();
    assert_eq!(given_back.write().request, Request::Merge { manager, body });
}
