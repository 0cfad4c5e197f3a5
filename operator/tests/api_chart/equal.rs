//! The chart and kustomize install the same objects.

use std::collections::BTreeMap;

use isp_testkit::control_plane::SYSTEM;
use isp_testkit::difference::{self, Difference};
use serde_json::{Value, json};

use crate::helm::{chart, helm};
use crate::rendered::{kustomized, nowhere, objects, render};

/// Objects by API version, kind, namespace and name.
fn by_name(objects: Vec<Value>) -> BTreeMap<[String; 4], Value> {
    let count = objects.len();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let by_name: BTreeMap<_, _> = objects
        .into_iter()
        .map(|object| {
            let metadata = &object["metadata"];
            let name = [&object["apiVersion"], &object["kind"], &metadata["namespace"], &metadata["name"]];
            (name.map(text), object)
        })
        .collect();
    assert_eq!(by_name.len(), count, "an object is there twice");
    by_name
}

/// The differences between an object of the chart and of kustomize, one line each.
fn compare(place: &str, chart: &Value, kustomize: &Value) -> Vec<String> {
    let text = |side: &Option<Value>| side.clone().unwrap_or(json!("(nothing)")).to_string();
    let line = |found: &Difference| {
        format!("{}: {} in the chart, {} by kustomize", found.place, text(&found.before), text(&found.after))
    };
    difference::between(place, chart, kustomize).iter().map(line).collect()
}

#[test]
fn differences_are_found_however_deep_they_are() {
    let (one, other) = (json!({"a": [1, {"b": "x"}], "c": 1}), json!({"a": [1.0, {"b": "y"}], "d": null}));
    let found = [
        r#"it.a[1].b: "x" in the chart, "y" by kustomize"#,
        r#"it.c: 1 in the chart, "(nothing)" by kustomize"#,
        r#"it.d: "(nothing)" in the chart, null by kustomize"#,
    ];
    assert_eq!(compare("it", &one, &other), found);
}

#[test]
fn the_chart_is_clean() {
    let linted = helm(nowhere(), &["lint", "--strict", &chart()]).unwrap();
    assert!(linted.contains("1 chart(s) linted, 0 chart(s) failed"), "{linted}");
}

/// A deep comparison with two exceptions: Helm itself creates the release's namespace, and the CRDs
/// are annotated to survive an uninstall.
fn are_equal(overlay: &str, values: &[&str]) {
    let mut by_kustomize = by_name(objects(&kustomized(overlay)));
    let mut by_chart = by_name(objects(&render(values).unwrap()));

    let namespace = ["v1", "Namespace", "", SYSTEM].map(str::to_owned);
    assert!(by_kustomize.remove(&namespace).is_some(), "kustomize makes the namespace");
    let mut kept = 0;
    for object in by_chart.values_mut().filter(|object| object["kind"] == "CustomResourceDefinition") {
        // They have no other annotations.
        let annotations = object["metadata"].as_object_mut().unwrap().remove("annotations");
        assert_eq!(annotations, Some(json!({"helm.sh/resource-policy": "keep"})));
        kept += 1;
    }
    assert_eq!(kept, 2, "every definition is kept");

    assert_eq!(by_chart.keys().collect::<Vec<_>>(), by_kustomize.keys().collect::<Vec<_>>());
    let mut differences = Vec::new();
    for (name, object) in &by_kustomize {
        differences.extend(compare(&format!("{name:?}"), &by_chart[name], object));
    }
    assert!(differences.is_empty(), "chart and kustomize differ:\n{}", differences.join("\n"));
    assert!(by_chart.len() >= 20, "only {} objects were compared", by_chart.len());
}

#[test]
fn chart_and_kustomize_install_the_same_objects() {
    are_equal("default", &[]);
}

#[test]
fn chart_and_kustomize_install_the_same_objects_with_cert_manager() {
    are_equal("cert-manager", &[r#"webhook.certificates="cert-manager""#]);
}
