use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::*;

mod properties;

/// An object of the given age, with the spec fields that views depend on, in YAML.
fn object(name: &str, age: i64, spec: &str) -> IngressSourcePreserve {
    let spec = serde_yaml::from_str(&format!("services: [{{namespace: a, name: b}}]\n{spec}")).unwrap();
    let mut object = IngressSourcePreserve::new(name, spec);
    object.metadata.uid = Some(format!("uid-of-{name}"));
    object.metadata.generation = Some(7);
    object.metadata.creation_timestamp = Some(Time(Timestamp::from_second(1_000_000 - age).unwrap()));
    object
}

const EDGE: &str = "ingressNodes: {selector: {matchLabels: {role: edge}}}\n";
const CORE: &str = "ingressNodes: {selector: {matchLabels: {role: core}}}\n";
const UNREADABLE: &str =
    "ingressNodes: {selector: {matchExpressions: [{key: role, operator: Gt, values: ['1']}]}}\n";

fn node(role: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("role".to_owned(), role.to_owned())])
}

fn on(labels: &BTreeMap<String, String>) -> NodeIdentity<'_> {
    NodeIdentity { name: "n", labels }
}

fn narrowed(view: &NodeView) -> Vec<String> {
    view.narrowing.iter().map(|(label, view)| format!("{label} {view:?}")).collect()
}

/// Description, objects, node labels, and the labels that the node does not see in full.
type Case<'a> = (&'a str, Vec<IngressSourcePreserve>, BTreeMap<String, String>, &'a [&'a str]);

#[test]
fn the_table_of_cases() {
    let hidden = format!("{EDGE}elsewhere: Hidden");
    let cases: [Case<'_>; 11] = [
        ("without objects a node sees everything", vec![], node("work"), &[]),
        ("an ingress node sees everything", vec![object("x", 1, EDGE)], node("edge"), &[]),
        (
            "elsewhere the external addresses are hidden by default",
            vec![object("x", 1, EDGE)],
            node("work"),
            &["sourcepreserve.io/preserve=x ClusterOnly"],
        ),
        (
            "elsewhere the Service is hidden where that is asked for",
            vec![object("x", 1, &hidden)],
            node("work"),
            &["sourcepreserve.io/preserve=x Hidden"],
        ),
        (
            "a node without labels is elsewhere",
            vec![object("x", 1, EDGE)],
            BTreeMap::new(),
            &["sourcepreserve.io/preserve=x ClusterOnly"],
        ),
        (
            "an ingress node of one object is elsewhere to another",
            vec![object("x", 1, EDGE), object("y", 1, CORE)],
            node("edge"),
            &["sourcepreserve.io/preserve=y ClusterOnly"],
        ),
        (
            "elsewhere to both, each as it asks",
            vec![object("y", 1, CORE), object("x", 1, &hidden)],
            node("work"),
            &["sourcepreserve.io/preserve=x Hidden", "sourcepreserve.io/preserve=y ClusterOnly"],
        ),
        (
            "another label is used where one is given",
            vec![object("x", 1, &format!("{EDGE}serviceLabel: {{key: example.com/skip, value: mesh}}"))],
            node("work"),
            &["example.com/skip=mesh ClusterOnly"],
        ),
        (
            "of two objects with one label the older stands, on its ingress node too",
            vec![
                object("new", 1, &format!("{CORE}elsewhere: Hidden\nserviceLabel: {{value: old}}")),
                object("old", 2, EDGE),
            ],
            node("edge"),
            &[],
        ),
        (
            "of two objects with one label the older stands, elsewhere too",
            vec![object("new", 1, &format!("{CORE}serviceLabel: {{value: old}}")), object("old", 2, &hidden)],
            node("core"),
            &["sourcepreserve.io/preserve=old Hidden"],
        ),
        (
            "an object whose selector cannot be read has no ingress nodes",
            vec![object("x", 1, UNREADABLE)],
            node("edge"),
            &["sourcepreserve.io/preserve=x ClusterOnly"],
        ),
    ];
    for (case, objects, labels, expected) in cases {
        assert_eq!(narrowed(&view(on(&labels), &objects)), expected, "{case}");
    }
}

#[test]
fn an_object_that_is_being_deleted_still_narrows() {
    let mut leaving = object("x", 1, EDGE);
    leaving.metadata.deletion_timestamp = leaving.metadata.creation_timestamp.clone();
    assert_eq!(
        view(on(&node("work")), [&leaving]).narrowing,
        view(on(&node("work")), [&object("x", 1, EDGE)]).narrowing
    );
}

#[test]
fn each_object_is_reported_with_what_an_acknowledgement_needs() {
    let objects = [object("y", 2, CORE), object("x", 1, EDGE)];
    let expected = |object: &str, view| ObjectView {
        object: object.to_owned(),
        uid: format!("uid-of-{object}"),
        generation: 7,
        beside: false,
        label: ServiceLabel { key: "sourcepreserve.io/preserve".to_owned(), value: object.to_owned() },
        view,
        doubt: None,
    };
    assert_eq!(
        view(on(&node("edge")), &objects).objects,
        [expected("x", View::Full), expected("y", View::ClusterOnly)]
    );
}

#[test]
fn what_cannot_be_vouched_for_is_reported_with_the_field() {
    let objects = [
        object("old", 2, EDGE),
        object("new", 1, &format!("{CORE}serviceLabel: {{value: old}}")),
        object("odd", 1, UNREADABLE),
    ];
    let doubts: Vec<_> = view(on(&node("edge")), &objects)
        .objects
        .iter()
        .map(|object| {
            (object.object.clone(), object.doubt.as_ref().map(ToString::to_string).unwrap_or_default())
        })
        .collect();
    let starts = [
        ("new", "spec.serviceLabel: sourcepreserve.io/preserve=old already marks the Services of the older"),
        ("odd", "spec.ingressNodes.selector: operator \"Gt\" on label \"role\" is unknown"),
        ("old", ""),
    ];
    for ((object, doubt), (name, start)) in doubts.iter().zip(starts) {
        assert!(
            object == name && doubt.starts_with(start) && doubt.is_empty() == start.is_empty(),
            "{doubts:?}"
        );
    }
}

#[test]
fn hidden_services_are_left_out_by_one_requirement_for_each_key() {
    let hidden = |label: &str| format!("{EDGE}elsewhere: Hidden\nserviceLabel: {label}");
    let objects = [
        object("a", 1, &hidden("{}")),
        object("b", 1, &hidden("{}")),
        object("c", 1, &hidden("{key: example.com/skip}")),
        object("d", 1, EDGE),
    ];
    assert_eq!(
        view(on(&node("work")), &objects).narrowing.without_hidden().to_string(),
        "example.com/skip notin (c),sourcepreserve.io/preserve notin (a,b)"
    );
    assert!(view(on(&node("edge")), &objects).narrowing.without_hidden().selects_all());
}

#[test]
fn a_service_with_several_labels_is_seen_as_the_narrowest_of_them_allows() {
    let objects =
        [object("a", 1, EDGE), object("b", 1, &format!("{EDGE}elsewhere: Hidden\nserviceLabel: {{key: k}}"))];
    let narrowing = view(on(&node("work")), &objects).narrowing;
    let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    assert_eq!(narrowing.of(&labels(&[])), View::Full);
    assert_eq!(narrowing.of(&labels(&[("k", "other")])), View::Full);
    assert_eq!(narrowing.of(&labels(&[("sourcepreserve.io/preserve", "a")])), View::ClusterOnly);
    assert_eq!(narrowing.of(&labels(&[("sourcepreserve.io/preserve", "a"), ("k", "b")])), View::Hidden);
}

#[test]
fn a_node_that_is_listed_keeps_its_view_after_it_is_selected_no_more() {
    let mut listed = object("x", 1, EDGE);
    for (names, expected) in [
        (Some(&["n"][..]), View::Full),
        (Some(&["other"]), View::ClusterOnly),
        (Some(&[]), View::ClusterOnly),
        (None, View::ClusterOnly),
    ] {
        let ingress_nodes = names.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        listed.status =
            Some(crate::preserve::IngressSourcePreserveStatus { ingress_nodes, ..Default::default() });
        assert_eq!(view(on(&node("work")), [&listed]).objects[0].view, expected, "{names:?}");
        assert_eq!(view(on(&node("edge")), [&listed]).objects[0].view, View::Full, "selected, {names:?}");
    }
}

#[test]
fn the_agent_of_mode_beside_serves_what_it_may_take_over_and_what_nothing_else_serves() {
    let mut leaves = object("leaves", 3, EDGE);
    let listed = "{namespace: a, name: b, ingressEndpoints: 1, state: Preserved, servedBeside: true}";
    leaves.status = serde_yaml::from_str(&format!("services: [{listed}]")).unwrap();
    let objects = [object("b", 2, &format!("{EDGE}mode: Beside")), object("f", 1, EDGE), leaves];
    let views = view(on(&node("work")), &objects);
    let preserve = |object: &str| ("sourcepreserve.io/preserve", object.to_owned());
    let proxy = |name: &str| ("service.kubernetes.io/service-proxy-name", name.to_owned());
    let ours = || proxy("ingress-source-preserve");
    let cluster_only = Some(View::ClusterOnly);
    let table = [
        ("of an object of this mode", "b", vec![preserve("b")], true, cluster_only),
        ("taken over", "b", vec![preserve("b"), ours()], false, cluster_only),
        ("of an object of mode Filter", "f", vec![preserve("f")], true, None),
        ("the same before it is given back", "f", vec![preserve("f"), ours()], true, cluster_only),
        ("the same while kube-proxies take it", "leaves", vec![preserve("leaves")], true, cluster_only),
        ("open", "b", vec![ours()], true, Some(View::Full)),
        ("of nobody, with our name", "b", vec![ours()], false, None),
        ("renamed, while we serve it", "b", vec![preserve("b"), proxy("other")], true, cluster_only),
        ("of another proxy", "b", vec![proxy("other")], true, None),
    ];
    for (name, object, labels, is_listed, expected) in table {
        let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let own = views.objects.iter().find(|view| view.object == object).unwrap();
        assert_eq!(own.served(&labels, is_listed), expected, "{name}");
        let is_watched =
            views.served_labels().iter().any(|label| labels.get(&label.key) == Some(&label.value));
        assert!(is_watched || expected.is_none(), "{name}");
    }
    let labels = view(on(&node("work")), []).served_labels();
    let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
    assert_eq!(labels, ["service.kubernetes.io/service-proxy-name=ingress-source-preserve"]);
}
