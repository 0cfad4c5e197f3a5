mod anything;
mod redirects;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use isp_api::sidecar::Rules;
use serde_json::{Value, json};

use super::objects::{self, Facts};
use super::pods::{Asked, PodReview};
use super::review::{self, BadReview};
use super::*;

fn object(name: &str, services: &Value, sidecars: &Value) -> IngressSourcePreserve {
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve",
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"ingress": "yes"}}},
            "services": services,
            "sidecars": sidecars,
        },
    }))
    .unwrap()
}

fn rules() -> Rules {
    let sidecars = json!([{"namespaceSelector": {"matchLabels": {"team": "shop"}}}]);
    let services = json!([{"namespace": "shop", "name": "gateway"}]);
    Rules::new([&object("shop", &services, &sidecars)], "sourcepreserve-system")
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn review(request: &Value) -> Vec<u8> {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
        .to_string()
        .into_bytes()
}

fn about_pod(request: &Value) -> Result<(Value, &'static str), BadReview> {
    let namespace = labels(&[("team", "shop"), ("istio-injection", "enabled")]);
    let (answer, outcome) = match Asked::of(review::read::<PodReview>(&review(request))?)? {
        Asked::Decide(pod) => pod.answer(&rules(), &namespace, "redirect:1")?,
        Asked::Allow(answer) => (answer, "NotAsked"),
    };
    Ok((serde_json::to_value(answer).unwrap(), outcome))
}

fn patch(answer: &Value) -> json_patch::Patch {
    assert_eq!(answer["response"]["patchType"], "JSONPatch", "{answer}");
    let patch = STANDARD.decode(answer["response"]["patch"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&patch).unwrap()
}

/// The pod after the patch, as an API server would apply it.
fn patched(mut pod: Value, answer: &Value) -> Value {
    json_patch::patch(&mut pod, &patch(answer)).unwrap();
    pod
}

#[test]
fn the_annotation_is_added_whether_there_are_others_or_none() {
    const MODE: &str = "sidecar.istio.io/interceptionMode";
    for (before, after) in [
        (json!({}), json!({"annotations": {MODE: "TPROXY"}})),
        (json!({"annotations": null}), json!({"annotations": {MODE: "TPROXY"}})),
        (
            json!({"labels": null, "name": "p"}),
            json!({"labels": null, "name": "p", "annotations": {MODE: "TPROXY"}}),
        ),
        (json!({"annotations": {}}), json!({"annotations": {MODE: "TPROXY"}})),
        (json!({"annotations": {"a": "b"}}), json!({"annotations": {"a": "b", MODE: "TPROXY"}})),
    ] {
        let pod = json!({"metadata": before, "spec": {}});
        let request = json!({"uid": "1", "operation": "CREATE", "namespace": "shop", "object": pod});
        let (answer, outcome) = about_pod(&request).unwrap();
        assert_eq!((outcome, &answer["response"]["uid"]), ("Set", &json!("1")));
        let expected = json!({"metadata": after, "spec": {}});
        assert_eq!(patched(pod, &answer), expected);
        assert_eq!(patch(&answer).0.len(), 1, "one operation and no other");
    }
}

#[test]
fn a_pod_that_is_left_alone_is_allowed_as_it_is_with_a_warning_where_its_author_should_hear_one() {
    let chosen =
        json!({"metadata": {"annotations": {"sidecar.istio.io/interceptionMode": "REDIRECT"}}, "spec": {}});
    let request = json!({"uid": "2", "operation": "CREATE", "namespace": "shop", "object": chosen});
    let (answer, outcome) = about_pod(&request).unwrap();
    assert_eq!(outcome, "Chosen");
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(answer["response"]["patch"], Value::Null);
    assert_eq!(answer["response"]["warnings"].as_array().unwrap().len(), 1);

    for asked_in_vain in [
        json!({"uid": "3", "operation": "UPDATE", "namespace": "shop", "object": {}}),
        json!({"uid": "3", "operation": "CREATE", "namespace": "shop", "subResource": "ephemeralcontainers", "object": {}}),
        json!({"uid": "3", "operation": "CONNECT", "namespace": "shop", "subResource": "exec"}),
        json!({"uid": "3", "operation": "CREATE", "object": {}}),
    ] {
        let (answer, outcome) = about_pod(&asked_in_vain).unwrap();
        assert_eq!((outcome, &answer["response"]), ("NotAsked", &json!({"uid": "3", "allowed": true})));
    }
}

#[test]
fn what_is_no_review_is_refused_with_the_field_that_is_wrong() {
    for (body, says) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("[]", "invalid"),
        (
            r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":null}"#,
            "admission.k8s.io/v1beta1",
        ),
        (r#"{"apiVersion":"v1","kind":"Pod"}"#, "Pod"),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#, "request"),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"","operation":"CREATE"}}"#,
            "request.uid",
        ),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"EAT"}}"#,
            "EAT",
        ),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"a"}}"#,
            "request.object",
        ),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"a","object":{"metadata":{"labels":{"a":1}}}}}"#,
            "integer",
        ),
    ] {
        let error = match review::read::<PodReview>(body.as_bytes()) {
            Ok(request) => Asked::of(request).unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains(says), "{body}: {error}");
    }
}

fn facts() -> Facts {
    let older = object("older", &json!([{"namespace": "shop", "name": "gateway"}]), &json!([]));
    Facts {
        objects: vec![older],
        inventory: Arc::new(Inventory {
            services: vec![
                ("shop".to_owned(), "gateway".to_owned(), labels(&[("expose", "yes")])),
                ("shop".to_owned(), "other".to_owned(), labels(&[])),
            ],
            nodes: vec![("a".to_owned(), labels(&[("ingress", "yes")])), ("b".to_owned(), labels(&[]))],
        }),
        namespaces: vec![("shop".to_owned(), labels(&[("team", "shop")]))],
    }
}

fn judge(
    operation: &str,
    object: Option<&IngressSourcePreserve>,
    old: Option<&IngressSourcePreserve>,
) -> (Value, &'static str) {
    let request = json!({"uid": "1", "operation": operation, "object": object, "oldObject": old});
    let request = review::read(&review(&request)).unwrap();
    let (answer, outcome) = objects::answer(request, &facts()).unwrap();
    (serde_json::to_value(answer).unwrap()["response"].take(), outcome)
}

/// An object without problems.
fn fine() -> IngressSourcePreserve {
    let mut fine = object(
        "newer",
        &json!([{"namespace": "shop", "name": "other"}]),
        &json!([{"namespaceSelector": {"matchLabels": {"team": "shop"}}}]),
    );
    fine.metadata.creation_timestamp = None;
    fine
}

#[test]
fn an_object_that_claims_what_another_has_is_refused() {
    assert_eq!(judge("CREATE", Some(&fine()), None).1, "Allowed");
    let mut claims = fine();
    claims.spec.services =
        object("x", &json!([{"namespace": "shop", "name": "gateway"}]), &json!([])).spec.services;
    let (response, outcome) = judge("CREATE", Some(&claims), None);
    assert_eq!((outcome, &response["allowed"]), ("Denied", &json!(false)));
    let message = response["status"]["message"].as_str().unwrap();
    for part in ["spec.services", "shop/gateway", "older"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(judge("UPDATE", Some(&claims), Some(&fine())).1, "Denied", "grown into it");
}

#[test]
fn what_is_in_conflict_already_can_still_be_changed_and_ended() {
    let mut before = fine();
    before.spec.services =
        object("x", &json!([{"namespace": "shop", "name": "gateway"}]), &json!([])).spec.services;
    let mut after = before.clone();
    after.metadata.finalizers = Some(vec!["sourcepreserve.io/restore".to_owned()]);
    assert_eq!(judge("UPDATE", Some(&after), Some(&before)).1, "Allowed", "its claims stay");
    after.spec.rollout.paused = true;
    let (response, outcome) = judge("UPDATE", Some(&after), Some(&before));
    assert_eq!((outcome, &response["allowed"]), ("Warned", &json!(true)));
    after.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert_eq!(judge("UPDATE", Some(&after), Some(&fine())).1, "Allowed", "on its way out");
}

#[test]
fn selectors_that_select_nothing_yet_are_warned_of_field_by_field() {
    let mut lost = object(
        "newer",
        &json!([
            {"namespace": "shop", "name": "typo"},
            {"namespace": "shop", "selector": {"matchLabels": {"expose": "no"}}},
            {"namespace": "shop", "name": "other"},
        ]),
        &json!([{"namespaceSelector": {"matchLabels": {"team": "nobody"}}}]),
    );
    lost.spec.ingress_nodes =
        serde_json::from_value(json!({"selector": {"matchLabels": {"ingress": "no"}}})).unwrap();
    let (response, outcome) = judge("CREATE", Some(&lost), None);
    assert_eq!((outcome, &response["allowed"]), ("Warned", &json!(true)));
    let warnings = response["warnings"].as_array().unwrap();
    let fields = [
        "spec.ingressNodes.selector",
        "spec.services[0]",
        "spec.services[1].selector",
        "spec.sidecars[0].namespaceSelector",
    ];
    assert_eq!(warnings.len(), fields.len(), "{warnings:?}");
    for (warning, field) in warnings.iter().zip(fields) {
        assert!(warning.as_str().unwrap().starts_with(field), "{warning}");
    }
}

#[test]
fn a_deletion_that_would_leave_a_service_dark_is_warned_of() {
    let with_status = |policy: &str, original: &str, endpoints: u32| {
        let mut object = serde_json::to_value(fine()).unwrap();
        object["spec"]["deletionPolicy"] = json!(policy);
        object["status"] = json!({"services": [{
            "namespace": "shop", "name": "other", "original": {"externalTrafficPolicy": original},
            "ingressEndpoints": endpoints, "state": "Preserved",
        }]});
        serde_json::from_value::<IngressSourcePreserve>(object).unwrap()
    };
    for (policy, original, endpoints, outcome) in [
        ("Restore", "Cluster", 1, "Allowed"),
        ("Restore", "Cluster", 0, "Allowed"),
        ("Restore", "Local", 1, "Warned"),
        ("Retain", "Cluster", 1, "Allowed"),
        ("Retain", "Cluster", 0, "Warned"),
    ] {
        let (response, found) = judge("DELETE", None, Some(&with_status(policy, original, endpoints)));
        assert_eq!((found, &response["allowed"]), (outcome, &json!(true)), "{policy} {original} {endpoints}");
    }
    assert_eq!(judge("DELETE", None, None).1, "Allowed");
}

#[test]
fn a_cache_knows_what_it_was_told_last() {
    let cache = Cache::new("sourcepreserve-system".to_owned());
    assert!(cache.rules().is_empty());
    let by_policy = json!([{"namespaceSelector": {"matchLabels": {"team": "shop"}}, "via": "Policy"}]);
    let services = json!([{"namespace": "shop", "name": "gateway"}]);
    let take = |object: &IngressSourcePreserve| {
        cache.take_objects(&BTreeMap::from([("shop".to_owned(), object.clone())]));
    };
    take(&object("shop", &services, &by_policy));
    assert!(cache.rules().is_empty(), "the API server does that itself");
    take(&fine());
    assert!(!cache.rules().is_empty());
    cache.take_namespaces(&BTreeMap::from([("shop".to_owned(), Arc::new(labels(&[("team", "shop")])))]));
    assert_eq!(cache.labels("shop").as_deref(), Some(&labels(&[("team", "shop")])));
    assert_eq!(cache.labels("other"), None);
}

#[test]
fn the_cluster_is_read_only_for_what_is_claimed_and_only_where_a_namespace_can_be() {
    let claimed = |operation: &str, part: &str, object: &IngressSourcePreserve, old: &Value| {
        let request = json!({"uid": "1", "operation": operation, "subResource": part, "object": object, "oldObject": old});
        let request = review::read(&review(&request)).unwrap();
        objects::claimant(&request).map(inventory::namespaces)
    };
    let mut ending = fine();
    ending.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert_eq!(claimed("CREATE", "", &fine(), &Value::Null), Some(["shop".to_owned()].into()));
    for (operation, part, object, old) in [
        ("CREATE", "status", fine(), Value::Null),
        ("UPDATE", "", fine(), json!(fine())),
        ("UPDATE", "", ending, Value::Null),
        ("DELETE", "", fine(), Value::Null),
        ("CONNECT", "", fine(), Value::Null),
    ] {
        assert_eq!(claimed(operation, part, &object, &old), None, "{operation} {part}");
    }
    let paths: Vec<Value> = ["", "..", "a/secrets", "a?b", "A", "-a", "a b", "%2e", &"a".repeat(64)]
        .map(|namespace| json!({"namespace": namespace, "name": "x"}))
        .to_vec();
    let strange = object("strange", &json!(paths), &json!([]));
    assert_eq!(claimed("CREATE", "", &strange, &Value::Null), Some([].into()));
}

#[tokio::test(start_paused = true)]
async fn the_news_of_a_namespace_is_waited_for_by_so_many_and_not_for_ever() {
    let cache = Arc::new(Cache::new("sourcepreserve-system".to_owned()));
    let (admission, _reader) = Admission::new(cache.clone(), "redirect:1".to_owned(), Arc::default());
    let late = async {
        tokio::time::sleep(PATIENCE / 2).await;
        cache.take_namespaces(&BTreeMap::from([("new".to_owned(), Arc::new(labels(&[("team", "new")])))]));
    };
    let (found, ()) = tokio::join!(admission.labels("new"), late);
    assert_eq!(found.as_deref(), Some(&labels(&[("team", "new")])));

    let began = tokio::time::Instant::now();
    let nowhere = futures_util::future::join_all((0..WAITING).map(|_| admission.labels("nowhere")));
    let one_more = async {
        tokio::time::sleep(PATIENCE / 2).await;
        let asked = tokio::time::Instant::now();
        assert_eq!((admission.labels("nowhere").await, asked.elapsed()), (None, Duration::ZERO));
        assert!(admission.labels("new").await.is_some(), "those that are known do not wait");
    };
    let (nowhere, ()) = tokio::join!(nowhere, one_more);
    assert!(nowhere.iter().all(Option::is_none));
    assert_eq!(began.elapsed(), PATIENCE);
}
