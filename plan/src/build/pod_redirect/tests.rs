use isp_api::IngressSourcePreserve;
use isp_dataplane::redirect::Settings;
use isp_testkit::redirects::{IMAGE, Row, entries, rows};
use proptest::prelude::*;

use super::*;

fn object(name: &str, created: &str, sidecars: &Value) -> IngressSourcePreserve {
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"ingress": "yes"}}},
            "services": [{"namespace": "shop", "name": name}],
            "sidecars": sidecars,
        },
    }))
    .unwrap()
}

fn rules() -> Rules {
    Rules::new([&object("shop", "2026-01-01T00:00:00Z", &entries())], "sourcepreserve-system")
}

fn labels(team: &str) -> Labels {
    [("team".to_owned(), team.to_owned())].into()
}

/// The outcome in a namespace of this team.
fn outcome(rules: &Rules, team: &str, pod: &Value) -> Outcome {
    redirected(rules, Namespace { name: "some", labels: &labels(team) }, pod, IMAGE).unwrap()
}

fn app() -> Value {
    json!({"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "app", "image": "app"}]}})
}

/// The init container that pods of the second entry get.
fn ours() -> Value {
    outcome(&rules(), "late", &app()).pod.unwrap()["spec"]["initContainers"][0].clone()
}

fn of_row(row: &Row, pod: &Value) -> Outcome {
    let name = row.namespace_name.as_deref().unwrap_or("some");
    redirected(&rules(), Namespace { name, labels: &row.namespace_labels() }, pod, IMAGE).unwrap()
}

#[test]
fn every_pod_of_the_table_becomes_what_it_says_and_nothing_else_of_it_changes() {
    let rows = rows();
    assert!(rows.len() >= 30);
    for row in rows {
        let pod = row.pod(&ours());
        let Outcome { pod: after, word, warnings } = of_row(&row, &pod);
        assert_eq!(
            (word, after.is_some()),
            (&*row.expect, row.expect == "Redirected"),
            "{}: {warnings:?}",
            row.name
        );
        assert_eq!(warnings.len(), row.warns.len(), "{}: {warnings:?}", row.name);
        for (warning, says) in warnings.iter().zip(&row.warns) {
            assert!(warning.contains(says.as_str()), "{}: {warning}", row.name);
        }
        let Some(mut after) = after else { continue };
        assert_eq!(of_row(&row, &after).word, "HasRedirect", "{}: it is added once", row.name);
        let inits = after["spec"]["initContainers"].as_array_mut().unwrap();
        assert_eq!(inits.remove(row.place)["name"], "pod-redirect", "{}", row.name);
        if inits.is_empty() {
            after["spec"].as_object_mut().unwrap().remove("initContainers");
        }
        assert_eq!(after, pod, "{}: the rest stays", row.name);
    }
}

#[test]
fn the_init_container_may_write_packet_rules_and_nothing_else() {
    let mut ours = ours();
    let arguments: Vec<String> = serde_json::from_value(ours["args"].take()).unwrap();
    assert_eq!(Settings::parse(arguments.clone()).unwrap().arguments(), arguments);
    let expected = json!({
        "name": "pod-redirect", "image": IMAGE, "args": null,
        "resources": {"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"cpu": "100m", "memory": "32Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "runAsNonRoot": false, "runAsUser": 0, "runAsGroup": 0,
            "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    });
    assert_eq!(ours, expected);
}

#[test]
fn every_field_of_the_api_becomes_an_argument() {
    let redirect: isp_api::preserve::Redirect = serde_json::from_value(json!({
        "inbound": {"method": "TPROXY", "port": 15006, "ports": [8080, 8443], "exceptPorts": [9090]},
        "outbound": {
            "port": 15001, "destinations": ["10.0.0.0/8", "192.0.2.1", "2001:db8::/32"], "ports": [80],
            "exceptDestinations": ["10.1.0.0/16"], "exceptPorts": [22],
        },
        "exempt": {"uids": [1337], "gids": [7], "marks": [3], "cgroup": {"path": "proxy/envoy", "classId": 4}},
    }))
    .unwrap();
    let expected = [
        "--inbound-method=TPROXY",
        "--inbound-port=15006",
        "--inbound-ports=8080,8443",
        "--inbound-except-ports=9090",
        "--outbound-port=15001",
        "--outbound-destinations=10.0.0.0/8,192.0.2.1/32,2001:db8::/32",
        "--outbound-ports=80",
        "--outbound-except-destinations=10.1.0.0/16",
        "--outbound-except-ports=22",
        "--exempt-uids=1337",
        "--exempt-gids=7",
        "--exempt-marks=0x3/0xffffffff",
        "--exempt-net-cls=0x4",
        "--exempt-cgroups=proxy/envoy",
        "--mark=0x1000000/0x1000000",
        "--table=15006",
    ];
    assert_eq!(arguments(&redirect).unwrap(), expected);
}

#[test]
fn a_redirect_that_cannot_work_leaves_pods_alone_and_names_field_value_and_way_out() {
    let loops = json!({"outbound": {"port": 15001}});
    let ours = json!({"outbound": {"port": 15001}, "exempt": {"marks": [0x0100_0000]}});
    let named = json!({"outbound": {"port": 15001, "destinations": ["example.com"]}});
    for (redirect, parts) in [
        (loops, [".redirect.outbound.destinations: \"all\"", "exempt the proxy by its UID"]),
        (ours, [".redirect.exempt.marks: \"0x1000000/0xffffffff\"", "use another mark"]),
        (named, [".redirect.outbound.destinations: \"example.com\"", "use one such as"]),
    ] {
        let entry = json!([{"namespaceSelector": {"matchLabels": {"team": "shop"}}, "redirect": redirect}]);
        let rules = Rules::new([&object("shop", "2026-01-01T00:00:00Z", &entry)], "own");
        let Outcome { pod, word, warnings } = outcome(&rules, "shop", &app());
        assert_eq!((pod, word, warnings.len()), (None, "InvalidRedirect", 1));
        assert!(parts.iter().all(|part| warnings[0].contains(part)), "{warnings:?}");
    }
}

#[test]
fn the_entry_of_the_older_object_decides_and_the_contradiction_is_told() {
    let entry = |port: u16| json!([{"namespaceSelector": {"matchLabels": {"team": "shop"}}, "redirect": {"inbound": {"method": "REDIRECT", "port": port}}}]);
    let older = object("zebra", "2026-01-01T00:00:00Z", &entry(1));
    let newer = object("ant", "2026-01-02T00:00:00Z", &entry(2));
    let same = object("bee", "2026-01-03T00:00:00Z", &entry(1));
    let Outcome { pod, warnings, .. } = outcome(&Rules::new([&newer, &older], "own"), "shop", &app());
    assert_eq!(pod.unwrap()["spec"]["initContainers"][0]["args"][1], "--inbound-port=1");
    assert!(warnings[0].contains("IngressSourcePreserve zebra is used, not that of ant"), "{warnings:?}");
    assert!(outcome(&Rules::new([&older, &same], "own"), "shop", &app()).warnings.is_empty(), "they agree");
}

#[test]
fn a_pod_is_consistent_if_it_has_the_arguments_that_it_would_get_today() {
    let shape = |pod: &Value| Shape::of(&serde_json::from_value(pod["spec"].clone()).unwrap());
    let (rules, none) = (rules(), Labels::new());
    let state = |team: &str, object: &str, pod: &Value| {
        let labels = labels(team);
        effect(&rules, object, Namespace { name: "some", labels: &labels }, (&none, &none), &shape(pod))
    };
    let late = outcome(&rules, "late", &app()).pod.unwrap();
    assert_eq!(state("late", "shop", &late), Some(Effect::Consistent));
    assert_eq!(state("late", "shop", &app()), Some(Effect::Stale), "created before the entry");
    assert_eq!(state("shop", "shop", &late), Some(Effect::Stale), "the entry has changed since");
    assert_eq!(state("late", "other", &late), None, "the entry of another object decides");
    assert_eq!(state("billing", "shop", &late), None, "not selected");
    let mut other_image = late.clone();
    other_image["spec"]["initContainers"][0]["image"] = json!("other");
    assert_eq!(state("late", "shop", &other_image), Some(Effect::Consistent), "an upgrade restarts no pods");
    let mut on_host = app();
    on_host["spec"]["hostNetwork"] = json!(true);
    assert_eq!(state("late", "shop", &on_host), None, "left alone");
}

proptest! {
    /// Whatever else a pod has, known to this version or not, stays as it is.
    #[test]
    fn only_the_init_container_is_added(extra in "[a-z]{1,8}", inits in prop::collection::vec("[a-z]{1,9}", 0..4), last: bool) {
        let inits: Vec<Value> = inits.iter().map(|name| json!({"name": name, "fieldOfTomorrow": {"of": name}})).collect();
        let mut pod = app();
        pod["spec"]["fieldOfTomorrow"] = json!(extra);
        if !inits.is_empty() {
            pod["spec"]["initContainers"] = json!(inits);
        }
        let mut after = outcome(&rules(), if last { "late" } else { "shop" }, &pod).pod.unwrap();
        let found = after["spec"]["initContainers"].as_array_mut().unwrap();
        let place = if last { found.len() - 1 } else { 0 };
        prop_assert_eq!(&found.remove(place)["name"], "pod-redirect");
        prop_assert_eq!(&*found, &inits);
    }
}

#[test]
fn what_is_no_pod_is_an_error_or_left_as_it_is() {
    let labels = labels("shop");
    let namespace = Namespace { name: "some", labels: &labels };
    let complete = json!([{}, {"containers": []}]);
    for strange in [
        json!(null),
        json!("x"),
        json!([]),
        complete,
        json!({"spec": 1}),
        json!({"spec": {"initContainers": 1}}),
    ] {
        let Ok(outcome) = redirected(&rules(), namespace, &strange, IMAGE) else { continue };
        assert_eq!(outcome.pod.unwrap(), strange);
    }
}
