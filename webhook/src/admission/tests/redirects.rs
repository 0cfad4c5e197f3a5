//! Pods with a proxy of their own, and objects that ask for it.

use super::*;

fn redirecting(redirect: &Value) -> Value {
    json!({"namespaceSelector": {"matchLabels": {"team": "shop"}}, "redirect": redirect})
}

/// The answer with these entries, in a namespace without Istio unless the pod asks for it.
fn answer(entries: &Value, pod: &Value) -> (Value, &'static str) {
    let rules = Rules::new([&object("shop", &json!([]), entries)], "sourcepreserve-system");
    let request = json!({"uid": "1", "operation": "CREATE", "namespace": "shop", "object": pod});
    let Asked::Decide(pod) = Asked::of(review::read::<PodReview>(&review(&request)).unwrap()).unwrap() else {
        panic!("a new pod is decided about");
    };
    let (answer, outcome) = pod.answer(&rules, &labels(&[("team", "shop")]), "redirect:1").unwrap();
    (serde_json::to_value(answer).unwrap(), outcome)
}

#[test]
fn the_patch_makes_the_pod_what_it_should_be_whatever_init_containers_it_has() {
    let redirect = json!({"inbound": {"method": "REDIRECT", "port": 15006}});
    let entries = |order: &str| {
        let mut redirect = redirect.clone();
        redirect["initOrder"] = json!(order);
        json!([redirecting(&redirect)])
    };
    let init = |name: &str| json!({"name": name, "image": name, "fieldOfTomorrow": [name], "env": [{"name": "A", "value": name}]});
    for inits in
        [None, Some(json!([])), Some(json!([init("a")])), Some(json!([init("a"), init("b"), init("c")]))]
    {
        for order in ["First", "Last"] {
            let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "app"}]}});
            if let Some(inits) = &inits {
                pod["spec"]["initContainers"] = inits.clone();
            }
            let (answer, outcome) = answer(&entries(order), &pod);
            assert_eq!(outcome, "Redirected");
            let mut after = patched(pod.clone(), &answer);
            let found = after["spec"]["initContainers"].as_array_mut().unwrap();
            let place = if order == "First" { 0 } else { found.len() - 1 };
            let ours = found.remove(place);
            assert_eq!((&ours["name"], &ours["image"]), (&json!("pod-redirect"), &json!("redirect:1")));
            let others = inits.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
            assert_eq!(*found, others, "the others stay, in their order");
            after["spec"].as_object_mut().unwrap().remove("initContainers");
            pod["spec"].as_object_mut().unwrap().remove("initContainers");
            assert_eq!(after, pod, "and so does everything else");
        }
    }
}

#[test]
fn entries_for_istio_and_for_a_proxy_of_the_pod_do_not_stand_in_each_others_way() {
    let istio = json!({"namespaceSelector": {"matchLabels": {"team": "shop"}}});
    let entries = json!([istio, redirecting(&json!({"inbound": {"method": "REDIRECT", "port": 15006}}))]);
    let pod = |inject: &str| json!({"metadata": {"labels": {"sidecar.istio.io/inject": inject}}, "spec": {"containers": [{"name": "app"}]}});
    let (with_istio, outcome) = answer(&entries, &pod("true"));
    assert_eq!(outcome, "Istio");
    let after = patched(pod("true"), &with_istio);
    assert_eq!(after["metadata"]["annotations"], json!({"sidecar.istio.io/interceptionMode": "TPROXY"}));
    assert_eq!(after["spec"], pod("true")["spec"], "its proxy is Istio's");
    let (own, outcome) = answer(&entries, &pod("false"));
    assert_eq!(outcome, "Redirected");
    let after = patched(pod("false"), &own);
    assert_eq!(after["metadata"], pod("false")["metadata"]);
    assert_eq!(after["spec"]["initContainers"][0]["name"], "pod-redirect");
}

#[test]
fn a_pod_that_is_left_alone_gets_no_patch_but_a_warning() {
    let entries = json!([redirecting(&json!({"inbound": {"method": "REDIRECT", "port": 15006}}))]);
    let (answer, outcome) = answer(&entries, &json!({"metadata": {}, "spec": {"hostNetwork": true}}));
    assert_eq!(outcome, "HostNetwork");
    let response = &answer["response"];
    assert_eq!((&response["allowed"], &response["patch"]), (&json!(true), &Value::Null));
    assert!(response["warnings"][0].as_str().unwrap().contains("spec.hostNetwork"), "{response}");
}

#[test]
fn an_object_with_a_redirect_that_cannot_work_is_refused_with_field_value_and_way_out() {
    for (redirect, parts) in [
        (
            json!({"outbound": {"port": 15001}}),
            ["spec.sidecars[0].redirect.outbound.destinations", "\"all\"", "exempt the proxy by its UID"],
        ),
        (
            json!({"outbound": {"port": 15001}, "exempt": {"marks": [16_777_216]}}),
            ["spec.sidecars[0].redirect.exempt.marks", "\"0x1000000/0xffffffff\"", "use another mark"],
        ),
        (
            json!({}),
            ["spec.sidecars[0].redirect.inbound.port", "nothing is redirected", "set the port of the proxy"],
        ),
    ] {
        let mut bad = fine();
        bad.spec.sidecars = object("x", &json!([]), &json!([redirecting(&redirect)])).spec.sidecars;
        let (response, outcome) = judge("CREATE", Some(&bad), None);
        assert_eq!((outcome, &response["allowed"]), ("Denied", &json!(false)));
        let message = response["status"]["message"].as_str().unwrap();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        let mut paused = bad.clone();
        paused.spec.rollout.paused = true;
        assert_eq!(judge("UPDATE", Some(&paused), Some(&bad)).1, "Warned", "one that exists can be changed");
    }
}
