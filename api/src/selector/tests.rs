use std::collections::BTreeMap;

use kube::core::SelectorExt;

use super::*;

fn selector(yaml: &str) -> LabelSelector {
    serde_yaml::from_str(yaml).unwrap()
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn selectors_match_as_in_kubernetes() {
    let edge = labels(&[("role", "edge"), ("zone", "a")]);
    let table = [
        ("{}", true),
        ("{matchLabels: {role: edge}}", true),
        ("{matchLabels: {role: edge, zone: b}}", false),
        ("{matchExpressions: [{key: zone, operator: In, values: [a, b]}]}", true),
        ("{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}", false),
        ("{matchExpressions: [{key: rack, operator: NotIn, values: [a]}]}", true),
        ("{matchExpressions: [{key: rack, operator: DoesNotExist}]}", true),
        ("{matchExpressions: [{key: rack, operator: Exists, values: []}]}", false),
        ("{matchLabels: {role: edge}, matchExpressions: [{key: zone, operator: Exists}]}", true),
    ];
    for (yaml, expected) in table {
        assert_eq!(matcher(&selector(yaml)).unwrap().matches(&edge), expected, "{yaml}");
    }
}

#[test]
fn what_kubernetes_would_refuse_is_an_error_and_not_a_match() {
    let table = [
        ("{key: zone, operator: In}", "In on label \"zone\" lists no values"),
        ("{key: zone, operator: NotIn, values: []}", "NotIn on label \"zone\" lists no values"),
        ("{key: zone, operator: Exists, values: [a]}", "Exists on label \"zone\" lists values"),
        ("{key: zone, operator: Gt, values: ['1']}", "operator \"Gt\" on label \"zone\" is unknown"),
    ];
    for (requirement, expected) in table {
        let error = matcher(&selector(&format!("{{matchExpressions: [{requirement}]}}"))).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{requirement}: {error}");
    }
}
