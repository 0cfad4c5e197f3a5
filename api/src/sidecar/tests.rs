use isp_testkit::sidecars;
use serde_json::json;

use super::*;

fn object(sidecars: &serde_json::Value) -> IngressSourcePreserve {
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": "shop"},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"ingress": "yes"}}},
            "services": [{"namespace": "shop", "name": "gateway"}],
            "sidecars": sidecars,
        },
    }))
    .unwrap()
}

fn rules() -> Rules {
    let entry = json!([{
        "namespaceSelector": {"matchLabels": {"team": "shop"}},
        "podSelector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["batch"]}]},
    }]);
    Rules::new([&object(&entry)], "sourcepreserve-system")
}

fn labels<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

#[test]
fn every_pod_of_the_table_is_decided_as_it_says() {
    let rules = rules();
    let rows = sidecars::rows();
    assert!(rows.len() >= 60);
    for row in rows {
        let namespace = row.namespace_labels();
        let name = row.namespace_name.as_deref().unwrap_or("some");
        let pod = Pod { labels: &row.labels, annotations: &row.annotations, host_network: row.host_network };
        let (decision, mode) = rules.decide(Namespace { name, labels: &namespace }, pod);
        let (word, warning) = match &decision {
            Decision::Set(_) => ("Set", None),
            Decision::Leave(reason) => (reason.as_str(), reason.warning(mode)),
        };
        assert_eq!((word, warning.is_some()), (row.expect.as_str(), row.warns), "{}: {warning:?}", row.name);
    }
}

#[test]
fn a_warning_names_what_stands_in_the_way_and_the_way_out() {
    let level =
        Reason::PodSecurity { level: "baseline".to_owned() }.warning(InterceptionMode::Tproxy).unwrap();
    for part in ["TPROXY", "NET_ADMIN", "\"baseline\"", "pod-security.kubernetes.io/enforce", "spec.sidecars"]
    {
        assert!(level.contains(part), "{level}");
    }
    let chosen = Reason::Chosen { annotation: PROXY_CONFIG_ANNOTATION, same: false };
    let chosen = chosen.warning(InterceptionMode::Tproxy).unwrap();
    assert!(chosen.contains("proxy.istio.io/config") && chosen.contains("Remove it"), "{chosen}");
}

#[test]
fn only_entries_that_can_be_read_of_objects_that_stay_are_asked() {
    let bad = json!({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Near"}]}});
    let good = json!({"namespaceSelector": {"matchLabels": {"team": "shop"}}, "via": "Policy"});
    let mut one = object(&json!([bad, good]));
    let rules = Rules::new([&one], "own");
    assert_eq!(rules.entries.len(), 1);
    assert!(rules.clone().via(Via::Webhook).is_empty());
    assert!(rules.clone().of("other").is_empty());
    assert!(!rules.via(Via::Policy).of("shop").is_empty());
    one.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert!(Rules::new([&one], "own").is_empty());
}

fn pod(native: bool, role: &str, mode: Option<&str>, rules: Option<&str>) -> k8s_openapi::api::core::v1::Pod {
    let env: Vec<_> =
        mode.map(|mode| json!({"name": "ISTIO_META_INTERCEPTION_MODE", "value": mode})).into_iter().collect();
    let proxy = json!({"name": "istio-proxy", "args": ["proxy", role], "env": env});
    let init = rules.map(|rules| json!({"name": "istio-init", "args": ["istio-iptables", "-p", "15001", "-m", rules, "-i", "*"]}));
    let application = json!({"name": "app"});
    let (mut containers, mut inits) = (vec![application], Vec::from_iter(init));
    if native { &mut inits } else { &mut containers }.push(proxy);
    serde_json::from_value(json!({"spec": {"containers": containers, "initContainers": inits}})).unwrap()
}

#[test]
fn a_sidecar_is_found_wherever_it_runs_and_a_gateway_is_none() {
    for native in [false, true] {
        let found = Sidecar::of(&pod(native, "sidecar", Some("TPROXY"), Some("REDIRECT")));
        let expected = Sidecar { proxy: "TPROXY".to_owned(), rules: Some("REDIRECT".to_owned()) };
        assert_eq!(found, Some(expected));
        assert_eq!(Sidecar::of(&pod(native, "router", Some("TPROXY"), None)), None);
        assert_eq!(Sidecar::of(&pod(native, "sidecar", None, None)), None);
    }
}

#[test]
fn a_pod_is_consistent_when_proxy_rules_and_annotation_agree_and_stale_when_a_restart_would_help() {
    const CONSISTENT: Option<Effect> = Some(Effect::Consistent);
    const STALE: Option<Effect> = Some(Effect::Stale);
    let (t, r) = (Some("TPROXY"), Some("REDIRECT"));
    for (annotation, proxy, made_for, expected, why) in [
        (t, "TPROXY", t, CONSISTENT, "as it should be"),
        (t, "TPROXY", None, CONSISTENT, "istio-cni makes the rules"),
        (None, "TPROXY", t, CONSISTENT, "the mesh's default"),
        (None, "REDIRECT", r, STALE, "created before"),
        (t, "REDIRECT", r, STALE, "annotated after the injection"),
        (t, "REDIRECT", None, STALE, "annotated after the injection, and istio-cni went by it"),
        (t, "TPROXY", r, STALE, "rules and proxy disagree"),
        (r, "REDIRECT", r, None, "its author has chosen"),
        (r, "REDIRECT", None, STALE, "with istio-cni the injector writes the annotation"),
    ] {
        let namespace =
            Namespace { name: "shop", labels: &labels([("team", "shop"), ("istio-injection", "enabled")]) };
        let annotations = annotation.map(|mode| (INTERCEPTION_MODE_ANNOTATION.to_owned(), mode.to_owned()));
        let sidecar = Sidecar { proxy: proxy.to_owned(), rules: made_for.map(str::to_owned) };
        let effect = rules().effect(namespace, &Labels::new(), &annotations.into_iter().collect(), &sidecar);
        assert_eq!(effect, expected, "{why}");
    }
    let sidecar = Sidecar { proxy: "REDIRECT".to_owned(), rules: r.map(str::to_owned) };
    for (name, namespace, why) in [
        ("shop", labels([("team", "billing")]), "not selected"),
        ("kube-system", labels([("team", "shop")]), "left alone"),
        ("shop", labels([("team", "shop"), (POD_SECURITY_LABEL, "baseline")]), "it could not be"),
    ] {
        let namespace = Namespace { name, labels: &namespace };
        assert_eq!(rules().effect(namespace, &Labels::new(), &Labels::new(), &sidecar), None, "{why}");
    }
    let settings = labels([(PROXY_CONFIG_ANNOTATION, "interceptionMode: REDIRECT")]);
    let namespace = Namespace { name: "shop", labels: &labels([("team", "shop")]) };
    assert_eq!(
        rules().effect(namespace, &Labels::new(), &settings, &sidecar),
        None,
        "chosen in the settings"
    );
}

#[test]
fn aliases_in_the_settings_are_not_expanded() {
    let level = |n: usize| format!("l{n}: &l{n} [{}]\n", vec![format!("*l{}", n - 1); 10].join(", "));
    let levels: String = (1..20).map(level).collect();
    let text = format!("l0: &l0 [x]\n{levels}interceptionMode: TPROXY\n");
    assert_eq!(mode_in(&text).as_deref(), Some("TPROXY"));
}

#[test]
fn settings_that_are_too_large_to_parse_count_as_another_mode() {
    let mode = |padding| {
        let text = format!("interceptionMode: TPROXY # {}", "x".repeat(padding));
        chosen(&labels([(PROXY_CONFIG_ANNOTATION, &text)]), InterceptionMode::Tproxy)
    };
    let reason = |same| Some(Reason::Chosen { annotation: PROXY_CONFIG_ANNOTATION, same });
    assert_eq!(mode(10), reason(true));
    assert_eq!(mode(1 << 20), reason(false));
}
