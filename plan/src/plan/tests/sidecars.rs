//! Admission objects for new pods, and the count of existing pods.

use std::sync::Arc;

use isp_api::conditions::find;
use isp_api::preserve::SidecarStatus;
use isp_api::sidecar::Sidecar;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::world::{INGRESS, World};
use crate::action::Action;
use crate::cluster::{Key, SidecarPod};
use crate::observe;
use crate::own::OwnKind;

/// An object with the finalizer and these entries, on a cluster whose webhook has published its CA
/// bundle and whose API server serves policies.
fn world(sidecars: &Value) -> World {
    let mut world = World::new(&[("edge", &[(INGRESS, "")]), ("work", &[])]);
    world.cluster.admission.bundle = Some("QQ==".to_owned());
    world.cluster.admission.serves_policies = true;
    add(&mut world, "web", sidecars);
    world
}

fn add(world: &mut World, name: &str, sidecars: &Value) {
    let service = Key::new("web", name);
    world.add_service(&service, "kubectl-create");
    world.set_endpoints(&service, "edge", 1);
    let spec = json!({
        "ingressNodes": {"selector": {"matchLabels": {INGRESS: ""}}},
        "services": [{"namespace": "web", "name": name}],
        "sidecars": sidecars,
    });
    world.add_object(name, &spec);
}

fn entry(team: &str, via: &str) -> Value {
    json!({"namespaceSelector": {"matchLabels": {"team": team}}, "via": via})
}

const POD_KINDS: [OwnKind; 3] = [OwnKind::PodWebhook, OwnKind::PodPolicy, OwnKind::PodPolicyBinding];

/// All admission actions until nothing is left to do.
fn story(world: &mut World) -> Vec<String> {
    let mut told = Vec::new();
    world.settle(|_, action| {
        if let Action::ApplyOwn { kind, .. } | Action::DeleteOwn { kind, .. } = action
            && POD_KINDS.contains(kind)
        {
            told.push(action.to_string());
        }
    });
    told
}

fn webhooks(world: &World) -> &Vec<Value> {
    let key = Key::new("", "0-sourcepreserve.io");
    world.cluster.own[&OwnKind::PodWebhook][&key].content["webhooks"].as_array().unwrap()
}

fn said(world: &World) -> Option<(String, String)> {
    let status = world.cluster.objects["web"].status.as_ref()?;
    find(&status.conditions, "SidecarsConsistent").map(|said| (said.reason.clone(), said.message.clone()))
}

fn counted(world: &World) -> SidecarStatus {
    world.cluster.objects["web"].status.as_ref().unwrap().sidecars.clone().unwrap()
}

#[test]
fn nobody_is_asked_about_pods_until_an_object_wants_sidecars() {
    let mut world = world(&json!([]));
    assert_eq!(story(&mut world), [""; 0]);
    assert_eq!(said(&world), None);
    assert_eq!(world.cluster.objects["web"].status.as_ref().unwrap().sidecars, None);
}

#[test]
fn the_webhook_is_asked_about_what_the_entries_select_and_no_more_after_the_last_of_them() {
    let mut world = world(&json!([entry("a", "Webhook"), entry("a", "Webhook"), entry("b", "Webhook")]));
    assert_eq!(story(&mut world), ["apply-pod-webhook mutatingwebhookconfiguration/0-sourcepreserve.io"]);
    let asked = webhooks(&world);
    assert_eq!(asked.len(), 2, "the same is asked once: {asked:?}");
    assert_eq!(asked[0]["namespaceSelector"]["matchLabels"], json!({"team": "a"}));
    let left_alone = &asked[0]["namespaceSelector"]["matchExpressions"][0];
    assert_eq!(
        (&left_alone["key"], &left_alone["operator"]),
        (&json!("kubernetes.io/metadata.name"), &json!("NotIn"))
    );
    assert!(left_alone["values"].as_array().unwrap().contains(&json!("sourcepreserve-system")));
    for (field, value) in
        [("failurePolicy", "Ignore"), ("sideEffects", "None"), ("matchPolicy", "Equivalent")]
    {
        assert_eq!(asked[0][field], value);
    }
    assert_eq!(asked[0]["clientConfig"]["caBundle"], "QQ==");

    add(&mut world, "other", &json!([entry("c", "Webhook")]));
    assert_eq!(story(&mut world).len(), 1);
    assert_eq!(webhooks(&world).len(), 3);
    world.delete_object("web");
    assert_eq!(story(&mut world).len(), 1);
    assert_eq!(webhooks(&world).len(), 1, "what the other asks for stays");
    world.delete_object("other");
    assert_eq!(story(&mut world), ["delete-pod-webhook mutatingwebhookconfiguration/0-sourcepreserve.io"]);
    assert!(world.cluster.objects.is_empty());
}

#[test]
fn an_authority_that_changes_is_followed_and_without_one_nobody_is_asked() {
    let mut world = world(&json!([entry("a", "Webhook")]));
    world.cluster.admission.bundle = None;
    assert_eq!(story(&mut world), [""; 0]);
    assert_eq!(said(&world).unwrap().0, "WebhookUnavailable");
    for bundle in ["QQ==", "Qg=="] {
        world.cluster.admission.bundle = Some(bundle.to_owned());
        assert_eq!(story(&mut world).len(), 1);
        assert_eq!(webhooks(&world)[0]["clientConfig"]["caBundle"], bundle);
    }
    world.cluster.admission.bundle = None;
    assert_eq!(
        story(&mut world),
        ["delete-pod-webhook mutatingwebhookconfiguration/0-sourcepreserve.io"],
        "the webhook was removed"
    );
}

#[test]
fn many_entries_are_asked_about_as_one() {
    let entries: Vec<Value> = (0..17).map(|team| entry(&team.to_string(), "Webhook")).collect();
    let mut world = world(&json!(entries));
    story(&mut world);
    assert_eq!(webhooks(&world).len(), 1);
    assert_eq!(webhooks(&world)[0]["namespaceSelector"]["matchLabels"], Value::Null);
}

#[test]
fn a_policy_comes_and_goes_with_its_entry() {
    let mut world = world(&json!([entry("a", "Webhook"), entry("b", "Policy")]));
    let told = story(&mut world);
    assert_eq!(
        told,
        [
            "apply-pod-webhook mutatingwebhookconfiguration/0-sourcepreserve.io",
            "apply-pod-policy mutatingadmissionpolicy/sourcepreserve.web.1",
            "bind-pod-policy mutatingadmissionpolicybinding/sourcepreserve.web.1",
        ]
    );
    world.delete_object("web");
    assert_eq!(story(&mut world).len(), 3);
    assert!(POD_KINDS.iter().all(|kind| world.cluster.own(*kind).next().is_none()));
    assert!(world.cluster.objects.is_empty());
}

#[test]
fn an_api_server_without_policies_is_said() {
    let mut world = world(&json!([entry("b", "Policy")]));
    world.cluster.admission.serves_policies = false;
    assert_eq!(story(&mut world), [""; 0]);
    let (reason, message) = said(&world).unwrap();
    assert_eq!(reason, "PolicyUnavailable");
    assert!(message.contains("via Webhook"), "{message}");
}

const KINDS: [OwnKind; 3] = [OwnKind::PodWebhook, OwnKind::PodPolicy, OwnKind::PodPolicyBinding];

/// Adds foreign objects with our label under each of these names.
fn take_names(world: &mut World, names: [&str; 2]) {
    let metadata = |name: &str, manager: &str| {
        serde_json::from_value(json!({
            "name": name, "uid": name, "resourceVersion": "1", "labels": {"app.kubernetes.io/name": "sourcepreserve-operator"},
            "managedFields": [{
                "manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {"f:app.kubernetes.io/name": {}}}},
            }],
        }))
        .unwrap()
    };
    for name in names {
        for kind in KINDS {
            let there = world.cluster.own.entry(kind).or_default();
            // An object forged as the operator's does not have one of its names.
            for (name, manager) in
                [(name.to_owned(), "argocd"), (format!("tenant-{name}"), "sourcepreserve-operator")]
            {
                let object =
                    DynamicObject { types: None, metadata: metadata(&name, manager), data: json!({}) };
                there.insert(Key::new("", &*name), observe::written(&object));
            }
        }
    }
}

#[test]
fn what_somebody_else_made_is_neither_deleted_nor_overwritten_and_its_name_is_said_to_be_taken() {
    for (via, taken) in [
        ("Webhook", "MutatingWebhookConfiguration 0-sourcepreserve.io"),
        ("Policy", "MutatingAdmissionPolicy sourcepreserve.web.0"),
    ] {
        let mut world = world(&json!([entry("a", via)]));
        take_names(&mut world, ["0-sourcepreserve.io", "sourcepreserve.web.0"]);
        assert_eq!(story(&mut world), [""; 0], "{via}");
        let (reason, message) = said(&world).unwrap();
        assert_eq!(reason, "NameTaken");
        assert!(message.contains(taken), "{message}");

        world.delete_object("web");
        assert_eq!(story(&mut world), [""; 0], "{via}");
        assert!(world.cluster.objects.is_empty(), "it holds nothing up");
        assert_eq!(world.cluster.own(OwnKind::PodWebhook).count(), 4);
    }
}

#[test]
fn a_policy_of_somebody_else_is_not_put_into_force() {
    let mut world = world(&json!([entry("a", "Policy")]));
    take_names(&mut world, ["0-sourcepreserve.io", "sourcepreserve.web.0"]);
    world.cluster.own.remove(&OwnKind::PodPolicyBinding);
    assert_eq!(story(&mut world), [""; 0]);
}

#[test]
fn a_name_that_becomes_free_is_used() {
    let mut world = world(&json!([entry("a", "Policy")]));
    take_names(&mut world, ["0-sourcepreserve.io", "sourcepreserve.web.0"]);
    story(&mut world);
    world.cluster.own.remove(&OwnKind::PodPolicy);
    assert_eq!(story(&mut world), ["apply-pod-policy mutatingadmissionpolicy/sourcepreserve.web.0"]);
    assert!(said(&world).unwrap().1.contains("MutatingAdmissionPolicyBinding"), "{:?}", said(&world));
    world.cluster.own.remove(&OwnKind::PodPolicyBinding);
    assert_eq!(story(&mut world), ["bind-pod-policy mutatingadmissionpolicybinding/sourcepreserve.web.0"]);
    assert_eq!(said(&world).unwrap().0, "Consistent");
}

fn pod(mode: &str, owner: (&str, &str)) -> SidecarPod {
    SidecarPod {
        labels: [("app".to_owned(), "a".to_owned())].into(),
        annotations: [].into(),
        sidecar: Sidecar { proxy: mode.to_owned(), rules: Some(mode.to_owned()) },
        owner: (owner.0.to_owned(), owner.1.to_owned()),
    }
}

#[test]
fn pods_are_counted_and_what_has_to_be_restarted_is_named() {
    let mut world = world(&json!([entry("a", "Webhook")]));
    for (name, team) in [("shop", "a"), ("shop-2", "a"), ("others", "b")] {
        world
            .cluster
            .namespaces
            .insert(name.to_owned(), Arc::new([("team".to_owned(), team.to_owned())].into()));
    }
    for (namespace, name, mode, owner) in [
        ("others", "x", "REDIRECT", ("Deployment", "x")),
        ("shop", "a-1", "REDIRECT", ("Deployment", "a")),
        ("shop", "a-2", "REDIRECT", ("Deployment", "a")),
        ("shop", "b-1", "TPROXY", ("Deployment", "b")),
        ("shop-2", "c-0", "REDIRECT", ("StatefulSet", "c")),
    ] {
        world.cluster.sidecars.insert(Key::new(namespace, name), pod(mode, owner));
    }
    let notices = world.plan().notices;
    let stale: Vec<_> = notices.iter().filter(|notice| notice.reason == "StaleSidecars").collect();
    assert_eq!(stale.len(), 1);
    assert!(
        stale[0].message.contains("kubectl rollout restart -n shop deployment/a"),
        "{}",
        stale[0].message
    );

    story(&mut world);
    let status = counted(&world);
    assert_eq!((status.matching, status.consistent, status.stale), (4, 1, 3));
    let owners: Vec<_> =
        status.restart.iter().map(|owner| (owner.kind.as_str(), owner.name.as_str(), owner.pods)).collect();
    assert_eq!(owners, [("Deployment", "a", 2), ("StatefulSet", "c", 1)]);
    let (reason, message) = said(&world).unwrap();
    assert_eq!(reason, "Stale");
    assert!(message.starts_with("3 of 4 pods"), "{message}");
    assert!(world.plan().notices.is_empty(), "it is said once");

    world.cluster.sidecars.retain(|_, pod| pod.sidecar.proxy == "TPROXY");
    story(&mut world);
    assert_eq!(said(&world).unwrap().0, "Consistent");
    assert_eq!(counted(&world).restart, []);
}

fn redirecting(team: &str, port: u16) -> Value {
    let redirect = json!({"inbound": {"method": "REDIRECT", "port": port}});
    json!({"namespaceSelector": {"matchLabels": {"team": team}}, "redirect": redirect})
}

#[test]
fn the_webhook_is_asked_about_all_pods_of_a_redirect_and_warns_those_that_it_leaves_alone() {
    let mut world = world(&json!([entry("a", "Webhook"), redirecting("b", 1), redirecting("a", 1)]));
    assert_eq!(story(&mut world).len(), 1);
    let asked = webhooks(&world);
    let conditions: Vec<_> = asked
        .iter()
        .map(|asked| (&asked["namespaceSelector"]["matchLabels"]["team"], &asked["matchConditions"]))
        .collect();
    assert_eq!(conditions, [(&json!("a"), &Value::Null), (&json!("b"), &Value::Null)]);
}

#[test]
fn pods_of_a_redirect_are_counted_by_what_they_would_get_today() {
    let mut world = world(&json!([redirecting("a", 15_006)]));
    add(&mut world, "newer", &json!([redirecting("a", 15_007)]));
    world
        .cluster
        .namespaces
        .insert("shop".to_owned(), Arc::new([("team".to_owned(), "a".to_owned())].into()));
    let rules = isp_api::sidecar::Rules::new(world.cluster.objects.values(), "sourcepreserve-system");
    for (name, phase, has) in [("a-0", "Running", true), ("a-1", "Running", false), ("a-2", "Failed", false)]
    {
        let metadata = json!({"name": name, "namespace": "shop"});
        let mut pod = json!({"metadata": metadata, "spec": {"containers": [{"name": "app"}]}, "status": {"phase": phase}});
        let labels = [("team".to_owned(), "a".to_owned())].into();
        let namespace = isp_api::sidecar::Namespace { name: "shop", labels: &labels };
        if has {
            pod = crate::build::pod_redirect::redirected(&rules, namespace, &pod, "image")
                .unwrap()
                .pod
                .unwrap();
        }
        let facts = observe::redirect_pod(&serde_json::from_value(pod).unwrap());
        world.cluster.redirects.extend(facts.map(|facts| (Key::new("shop", name), facts)));
    }
    story(&mut world);
    let status = counted(&world);
    assert_eq!((status.matching, status.consistent, status.stale), (2, 1, 1));
    assert_eq!((&*status.restart[0].kind, &*status.restart[0].name), ("Pod", "a-1"));
    assert_eq!(said(&world).unwrap().0, "Stale");
    let newer = world.cluster.objects["newer"].status.as_ref().unwrap().sidecars.clone().unwrap();
    assert_eq!(newer.matching, 0, "the older object decides about them");
}
