use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::*;

/// An object of the given age; `spec` is added to ingress nodes that are irrelevant here.
fn object(name: &str, age: i64, spec: &str) -> IngressSourcePreserve {
    let spec = format!("ingressNodes: {{selector: {{matchLabels: {{role: edge}}}}}}\n{spec}");
    let mut object = IngressSourcePreserve::new(name, serde_yaml::from_str(&spec).unwrap());
    object.metadata.creation_timestamp = Some(Time(Timestamp::from_second(1_000_000 - age).unwrap()));
    object
}

/// An object with its own Service, for cases about other conflicts.
fn apart(name: &str, age: i64, spec: &str) -> IngressSourcePreserve {
    object(name, age, &format!("services: [{{namespace: {name}, name: web}}]\n{spec}"))
}

fn messages(
    objects: &[IngressSourcePreserve],
    services: &[(&str, &str, &str)],
    nodes: &[(&str, &str)],
) -> Vec<String> {
    let labels = |value: &str| BTreeMap::from([("group".to_owned(), value.to_owned())]);
    let service_labels: Vec<_> = services.iter().map(|(_, _, group)| labels(group)).collect();
    let node_labels: Vec<_> = nodes.iter().map(|(_, group)| labels(group)).collect();
    let services: Vec<_> = services
        .iter()
        .zip(&service_labels)
        .map(|((namespace, name, _), labels)| ServiceIdentity { namespace, name, labels })
        .collect();
    let nodes: Vec<_> =
        nodes.iter().zip(&node_labels).map(|((name, _), labels)| NodeIdentity { name, labels }).collect();
    conflicts(objects, &services, &nodes)
        .into_iter()
        .map(|conflict| format!("{} {} {conflict}", conflict.object, conflict.reason()))
        .collect()
}

#[test]
fn objects_that_share_nothing_do_not_conflict() {
    let objects =
        [apart("x", 1, ""), apart("y", 1, ""), apart("z", 1, "nodePools: [{name: all, selector: {}}]")];
    assert_eq!(messages(&objects, &[("x", "web", "a"), ("y", "web", "a")], &[("n1", "a")]), [""; 0]);
}

#[test]
fn a_service_that_is_named_twice_belongs_to_the_older_object() {
    let objects = [
        object("new", 1, "services: [{namespace: a, name: other}, {namespace: a, name: web}]"),
        object("old", 2, "services: [{namespace: a, name: web}]"),
    ];
    assert_eq!(
        messages(&objects, &[], &[]),
        [
            "new ServiceClaimed spec.services[1]: Service a/web already belongs to the older IngressSourcePreserve old; \
          remove it from one of the two"
        ]
    );
}

#[test]
fn selected_services_clash_once_they_exist() {
    let objects = [
        object("old", 2, "services: [{namespace: a, selector: {matchLabels: {group: g}}}]"),
        object(
            "new",
            1,
            "services: [{namespace: a, selector: {matchExpressions: [{key: group, operator: Exists}]}}]",
        ),
    ];
    assert_eq!(messages(&objects, &[("a", "one", "h"), ("b", "two", "g")], &[]), [""; 0]);
    assert_eq!(
        messages(&objects, &[("a", "one", "g"), ("a", "three", "h"), ("a", "two", "g")], &[]),
        ["new ServiceClaimed spec.services[0]: Service a/one (and 1 more) already belongs to the older \
          IngressSourcePreserve old; remove it from one of the two"]
    );
}

#[test]
fn a_selected_service_clashes_with_the_same_one_named_elsewhere() {
    let objects = [
        object("old", 2, "services: [{namespace: a, selector: {matchLabels: {group: g}}}]"),
        object("new", 1, "services: [{namespace: a, name: one}]"),
    ];
    assert_eq!(messages(&objects, &[("a", "one", "g")], &[]).len(), 1);
}

#[test]
fn one_object_may_reach_a_service_in_two_ways() {
    let both = "services: [{namespace: a, name: one}, {namespace: a, selector: {matchLabels: {group: g}}}]";
    assert_eq!(messages(&[object("x", 1, both)], &[("a", "one", "g")], &[]), [""; 0]);
}

#[test]
fn a_selector_that_cannot_be_read_claims_nothing() {
    let objects = [
        object(
            "odd",
            2,
            "services: [{namespace: a, selector: {matchExpressions: [{key: k, operator: Gt}]}}]",
        ),
        object("new", 1, "services: [{namespace: a, name: one}]"),
    ];
    assert_eq!(messages(&objects, &[("a", "one", "g")], &[]), [""; 0]);
}

#[test]
fn a_label_marks_the_services_of_one_object() {
    let objects = [apart("mesh", 1, ""), apart("old", 2, "serviceLabel: {value: mesh}")];
    assert_eq!(
        messages(&objects, &[], &[]),
        [
            "mesh ServiceLabelClaimed spec.serviceLabel: sourcepreserve.io/preserve=mesh already marks the Services of the \
          older IngressSourcePreserve old, and nodes could not distinguish them; give this one another value"
        ]
    );
}

#[test]
fn a_pool_of_one_name_is_the_same_everywhere() {
    let pool =
        |group: &str| format!("nodePools: [{{name: p, selector: {{matchLabels: {{group: {group}}}}}}}]");
    let proxy =
        |name: &str| format!("{}\nkubeProxy: {{namespace: kube-system, daemonSet: {name}}}", pool("g"));
    assert_eq!(messages(&[apart("x", 1, &pool("g")), apart("y", 1, &pool("g"))], &[], &[]), [""; 0]);
    assert_eq!(
        messages(&[apart("new", 1, &pool("h")), apart("old", 2, &pool("g"))], &[], &[]),
        [
            "new PoolDiffers spec.nodePools[0]: pool \"p\" has a different selector in the older IngressSourcePreserve old; \
          make them equal or choose another name"
        ]
    );
    assert_eq!(
        messages(&[apart("new", 1, &proxy("b")), apart("old", 2, &proxy("a"))], &[], &[]),
        [
            "new PoolDiffers spec.nodePools[0]: pool \"p\" has a different spec.kubeProxy in the older IngressSourcePreserve old; \
          make them equal or choose another name"
        ]
    );
}

#[test]
fn a_kube_proxy_that_is_found_by_itself_agrees_with_a_named_one() {
    let named = apart("new", 1, "kubeProxy: {namespace: kube-system, daemonSet: kube-proxy}");
    assert_eq!(messages(&[apart("old", 2, ""), named], &[], &[("n1", "a")]), [""; 0]);
}

#[test]
fn pools_that_overlap_must_have_the_same_settings() {
    let spec = |pool: &str, selector: &str, proxy: &str| {
        format!(
            "nodePools: [{{name: {pool}, selector: {selector}}}]\nkubeProxy: {{namespace: kube-system, daemonSet: {proxy}}}"
        )
    };
    let old = apart("old", 2, &spec("all", "{}", "a"));
    let same = apart("new", 1, &spec("some", "{matchLabels: {group: g}}", "a"));
    let other = apart("new", 1, &spec("some", "{matchLabels: {group: g}}", "b"));
    let nodes = [("n1", "h"), ("n2", "g")];
    assert_eq!(messages(&[old.clone(), same], &[], &nodes), [""; 0]);
    assert_eq!(messages(&[old.clone(), other.clone()], &[], &nodes[..1]), [""; 0]);
    assert_eq!(
        messages(&[old, other], &[], &nodes),
        [
            "new PoolOverlaps spec.nodePools[0]: pool \"some\" and pool \"all\" of the older IngressSourcePreserve old both \
          select node n2, but with a different spec.kubeProxy; make the settings equal or the selectors disjoint"
        ]
    );
}

#[test]
fn of_one_age_the_first_by_name_stands_and_one_that_does_not_exist_yet_is_the_newest() {
    let claim = "services: [{namespace: a, name: web}]";
    let mut draft = object("a-draft", 9, claim);
    draft.metadata.creation_timestamp = None;
    let found = conflicts(&[object("y", 1, claim), draft, object("x", 1, claim)], &[], &[]);
    let pairs: Vec<_> = found.iter().map(|found| (found.object.as_str(), found.older.as_str())).collect();
    assert_eq!(pairs, [("y", "x"), ("a-draft", "x")]);
}
